"""Quantiles from all prefix counts, with intervals by inverting the band of the distribution function.

For each value x of a domain C(x) is how many rows are at most x, n how many there are at all. The true quantile q of
share p has C(q) ≥ p·n and C(x) ≤ p·n for all x below it. Whether a value can be q is tested on both sides with the
error of C(x) − p·n, whose variance follows from the covariance of the two counts. From the estimate the interval goes
on in both directions until a value fails. What lies beyond is not looked at: counts do not fall, so that if too few
rows are at most x, too few are at most anything below x. A value far away may have a count with a larger error, which
contradicts nothing; were it kept, intervals would be up to twice as long and hold the truth in nearly 100 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from deniable.arrays import Booleans, Floats
from deniable.queries.answers.estimation import Moments
from deniable.queries.answers.result import Estimate, are_years
from deniable.queries.parsing.quantile_questions import DISCRETE

COUNT_SLACK = 1e-7
"""Of all rows: counts that are sums of floats miss the whole number that they are by so much at most."""


@dataclass(frozen=True, slots=True, eq=False)
class PrefixCounts:
    """For each of the values in order, how many rows are at most so large, and what is known of the errors."""

    values: Floats
    counts: Floats
    total: float
    crosses: Floats
    """values × 2 × 2: sums of products of what users contribute to the count and to the total."""
    model: Floats
    """values × 2 × 2: expected products of biases."""
    users: float
    single_rows: bool
    firsts: Floats | None = None
    """Where `values` are borders: the smallest of the values that each stands for."""

    def deviation(self, share: float) -> Floats:
        """The standard error of C(x) − share·n at each value."""
        slope = np.array([1.0, -share])
        products = np.einsum("i,xij,j->x", slope, self.crosses, slope)
        if self.single_rows:  # everybody counts once or not at all: the sum of squares is a sum, too
            truth = (1 - 2 * share) * self.counts + share**2 * self.total
        else:
            truth = (self.counts - share * self.total) ** 2 / max(self.users, 1.0)
        variances = np.maximum(products - truth, 0.0)
        rounding = 1e-9 * np.abs(products)
        variances = np.where(variances <= rounding, 0.0, variances)
        biases = np.maximum(np.einsum("i,xij,j->x", slope, self.model, slope), 0.0)
        return np.asarray(np.sqrt(variances + biases))


def prefix_counts(moments: Moments, rows: list[int], model: Floats | None, *, single_rows: bool) -> PrefixCounts:
    """The prefix counts in some rows of an answer whose last group is cumulative."""
    crosses = (moments.crosses - moments.between)[rows]
    return PrefixCounts(
        values=np.array([float(moments.keys[row][-1]) for row in rows]),
        counts=moments.sums[rows, 0],
        total=float(moments.sums[rows[0], 1]),
        crosses=crosses,
        model=np.zeros_like(crosses) if model is None else model[rows],
        users=float(moments.users[rows[0]]),
        single_rows=single_rows and not moments.pooled and moments.people is None,
    )


def quantile(prefix: PrefixCounts, share: float, kind: str, confidence: float, together: int = 1) -> Estimate:
    """The quantile of a share, with its interval."""
    reach = NormalDist().inv_cdf(1 - (1 - confidence) / together / 2)
    year = are_years(float(prefix.values[0]), float(prefix.values[-1]))
    errors = prefix.deviation(share)
    target = share * prefix.total
    if not prefix.total > 3 * np.sqrt(max(float(prefix.crosses[-1, 1, 1]) - prefix.total, 0.0)):
        ends = (float(prefix.values[0] if prefix.firsts is None else prefix.firsts[0]), float(prefix.values[-1]))
        return Estimate(math.nan, math.nan, confidence, together, bounds=ends, year=year)
    smooth = _isotonic(prefix.counts, errors)
    value = _at(prefix, smooth, share, kind)
    slack = COUNT_SLACK * max(prefix.total, 1.0)
    enough = smooth + reach * errors + slack >= target
    few = np.concatenate(([True], (smooth - reach * errors - slack <= target)[:-1]))
    here = max(int(np.searchsorted(prefix.values, value, side="right")) - 1, 0)
    starts = prefix.values if prefix.firsts is None else prefix.firsts
    low = min(float(starts[_run_end(enough[here::-1], here, -1)]), value)
    high = max(float(prefix.values[_run_end(few[here:], here, 1)]), value)
    return Estimate(value, (high - low) / (2 * reach), confidence, together, bounds=(low, high), year=year)


def _run_end(passed: Booleans, here: int, step: int) -> int:
    """The last position of those that pass one after the other, going on from `here`, which counts as one."""
    failed = ~passed[1:]
    return here + step * (int(np.argmax(failed)) if failed.any() else len(failed))


def _at(prefix: PrefixCounts, counts: Floats, share: float, kind: str) -> float:
    """The quantile of exact counts, as DuckDB has it."""
    total = prefix.total

    def ranked(rank: float) -> float:
        """The value of the row with this rank, counted from 1."""
        reached = counts >= rank - COUNT_SLACK * max(total, 1.0)
        return float(prefix.values[np.argmax(reached)] if reached.any() else prefix.values[-1])

    if kind == DISCRETE:
        return ranked(max(math.ceil(share * total - COUNT_SLACK * total), 1))
    position = max(share * (total - 1), 0.0)
    whole = round(position) if abs(position - round(position)) < COUNT_SLACK * max(total, 1.0) else math.floor(position)
    first, second = ranked(whole + 1), ranked(whole + 2)
    part = min(max(position - whole, 0.0), 1.0)
    return first if part < 1e-9 else first + part * (second - first)


def _isotonic(counts: Floats, errors: Floats) -> Floats:
    """The nearest counts that do not fall, each weighed by its error: pools of neighbours that violate the order."""
    weights = (
        1 / np.maximum(errors, 1e-9 * max(float(errors.max()), 1e-12)) ** 2 if errors.any() else np.ones_like(errors)
    )
    pools: list[list[float]] = []
    for count, weight in zip(counts.tolist(), weights.tolist(), strict=True):
        pools.append([count, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            value, mass, size = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + value * mass) / (last[1] + mass)
            last[1] += mass
            last[2] += size
    values, _, sizes = zip(*pools, strict=True)
    return np.repeat(np.array(values), np.array(sizes, dtype=np.int64))
