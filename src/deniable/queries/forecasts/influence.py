"""How far a lying user can move an answer: from a plan alone, before or after anything is collected.

A report contributes w(view, seed, y). With drawn coins a liar chooses all three; with assigned coins only y, so that

    max_y w(view, seed, y) − min_y w(view, seed, y)

is how far he moves a sum, at the view and seed that are his. Over several reports these add up, and over joined tables
the contributions multiply: the extremes of a product of intervals are at their ends.

Where a view hashes, w depends on which cells share a bucket. The bound counts every cell with a positive weight and
none with a negative one; a liar reaches it if some seed of 2^32 separates them, and otherwise stays below. What he
finds by trying thousands of seeds is stated next to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms.frequency_oracle import HashedCells, NamedCell
from deniable.mechanisms.hashing import bucket_array
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.plan import Plan
from deniable.queries.question.formula import gradient_at
from deniable.queries.weights.table_plan import PartPlan, TablePlan, ViewWeights
from deniable.randomness import SeededSource
from deniable.tables.schema.report_format import ASSIGNED

TRIED_USERS = 2_000
"""Coins of so many users are tried, always the same ones."""
TRIED_SEEDS = 4_096
MOST_HASHED = 2**21
"""Cells × seeds that are hashed for a view."""


@dataclass(frozen=True, slots=True)
class Influence:
    """How far one user who lies in all her reports moves an answer, in the answer's own unit.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, coins="assigned")
    >>> db = dn.connect(shop.perturb(users={"uid": range(1_000), "age": [20, 30] * 500}))
    >>> liar, = db.influence("SELECT COUNT(*) AS young FROM users WHERE age < 25")
    >>> liar.typical < liar.reached <= liar.most
    True
    """

    name: str
    coins: str
    """Whether liars choose their views and seeds ("drawn") or not ("assigned")."""
    most: float
    """What no report exceeds: with drawn coins over all views, seeds and y; with assigned ones at the worst coins."""
    reached: float
    """What a liar reached, with the seeds and views that were tried; the same as `most` if that is exact."""
    typical: float
    """The mean over users: how far a liar moves an answer whose coins are like everybody's."""
    users: int
    exact: bool
    """Whether `most` is reached; otherwise it is a bound."""

    def of_share(self, liars: float) -> float:
        """How far a share of lying users moves the answer together, if all lie alike.

        >>> liar.of_share(0.01) == 0.01 * 1_000 * liar.typical
        True
        """
        return liars * self.users * (self.typical if self.coins == ASSIGNED else self.reached)

    def __str__(self) -> str:
        bound = "" if self.exact else f" (at most {self.most:,.4g})"
        together = f"1% of liars: {self.of_share(0.01):,.4g}"
        if self.coins == ASSIGNED:
            moves = f"{self.typical:,.4g} on average, {self.reached:,.4g} at worst{bound}"
            return f"one liar moves {self.name} by {moves}; {together}"
        return f"one liar moves {self.name} by {self.reached:,.4g}{bound}; {together}"


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """What a user's contribution to one column can be: without limits on coins, and for each user that was tried."""

    bound: tuple[float, float]
    reached: tuple[float, float]
    least: Floats
    most: Floats

    def __add__(self, other: _Reach) -> _Reach:
        bound = (self.bound[0] + other.bound[0], self.bound[1] + other.bound[1])
        reached = (self.reached[0] + other.reached[0], self.reached[1] + other.reached[1])
        return _Reach(bound, reached, self.least + other.least, self.most + other.most)

    def times(self, other: _Reach) -> _Reach:
        """The product of the contributions to two tables."""
        ends = [a * b for a, b in product((self.least, self.most), (other.least, other.most))]
        return _Reach(
            _product(self.bound, other.bound),
            _product(self.reached, other.reached),
            np.minimum.reduce(ends),
            np.maximum.reduce(ends),
        )


def _product(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    ends = [a * b for a, b in product(first, second)]
    return min(ends), max(ends)


def influences(plan: Plan, moments: Moments, users: int) -> tuple[Influence, ...]:
    """For every output, in the first private group: ratios are moved as their derivative at its moments says."""
    sums: Floats = moments.sums[moments.private == 0].sum(axis=0)
    listed = []
    for output in plan.question.outputs:
        slopes = gradient_at(output.formula, sums[None, :])[0]
        reaches = _reaches(plan, slopes)
        bound, tried, mean, worst = (sum(amount[index] for amount in map(_ranges, reaches)) for index in range(4))
        assigned = plan.collection.coins == ASSIGNED
        most, achieved = (bound, worst) if assigned else (bound, tried)
        if assigned and len(plan.tables) == 1:
            most = max(_assigned_bound(plan, slopes), worst)
        exact = len(reaches) <= 1 and bool(np.isclose(most, achieved, rtol=1e-9))
        listed.append(Influence(output.name, plan.collection.coins, most, achieved, mean, users, exact))
    return tuple(listed)


def _ranges(reach: _Reach) -> tuple[float, float, float, float]:
    apart = reach.most - reach.least
    return (
        reach.bound[1] - reach.bound[0],
        reach.reached[1] - reach.reached[0],
        float(apart.mean()),
        float(apart.max()),
    )


def _reaches(plan: Plan, slopes: Floats) -> list[_Reach]:
    """What can be contributed: of one table a single combination of its columns, of joins a product for every term."""
    terms = [
        (float(slope) * term.coefficient, term.columns)
        for moment, slope in enumerate(slopes)
        if slope
        for term in plan.terms(0, moment)
    ]
    if len(plan.tables) == 1:
        weights = np.zeros(plan.tables[0].columns)
        for coefficient, (column,) in terms:
            weights[column] += coefficient
        return [_reach(plan, plan.tables[0], weights)]
    reaches = []
    for coefficient, columns in terms:
        whole = _reach(plan, plan.tables[0], _unit(plan.tables[0], columns[0]))
        for table, column in zip(plan.tables[1:], columns[1:], strict=True):
            whole = whole.times(_reach(plan, table, _unit(table, column)))
        scale, scales = (coefficient, coefficient), np.full(TRIED_USERS, coefficient)
        reaches.append(whole.times(_Reach(scale, scale, scales, scales)))
    return reaches


def _unit(table: TablePlan, column: int) -> Floats:
    weights = np.zeros(table.columns)
    weights[column] = 1.0
    return weights


def _assigned_bound(plan: Plan, slopes: Floats) -> float:
    """The largest range at any view and any seed of a single table."""
    weights = np.zeros(plan.tables[0].columns)
    for moment, slope in enumerate(slopes):
        for term in plan.terms(0, moment) if slope else ():
            weights[term.columns[0]] += float(slope) * term.coefficient
    tau = plan.collection[plan.tables[0].table].tau
    total = 0.0
    for part in plan.tables[0].parts:
        bounds = [_bounds(view, weights) for view in part.views]
        total += tau * max((high - low for low, high in bounds), default=0.0)
    return total


def _reach(plan: Plan, table: TablePlan, weights: Floats) -> _Reach:
    """What a user's reports of a table can contribute to a combination of its columns, added up over them."""
    tau = plan.collection[table.table].tau
    zero = np.zeros(TRIED_USERS)
    total = _Reach((0.0, 0.0), (0.0, 0.0), zero, zero)
    for row in range(tau):
        for number, part in enumerate(table.parts):
            total += _part_reach(part, weights, seed=row * len(table.parts) + number)
    return total


def _part_reach(part: PartPlan, weights: Floats, seed: int) -> _Reach:
    source = SeededSource(seed)
    constant = float(part.constants @ weights)
    bound = [(constant, constant)] if part.share < 1 - 1e-12 else []
    chosen = source.below(2**32, TRIED_USERS) / 2.0**32
    edges = np.cumsum([view.probability for view in part.views])
    which = np.searchsorted(edges, chosen, side="right")  # the last number stands for all views without weight
    least, most = np.full(TRIED_USERS, constant), np.full(TRIED_USERS, constant)
    lows, highs = [low for low, _ in bound], [high for _, high in bound]
    for number, view in enumerate(part.views):
        base = constant + _base(view, weights)
        low, high = _bounds(view, weights)
        bound.append((base + low, base + high))
        tried_low, tried_high = _tried(view, weights, source)
        lows.append(base + float(tried_low.min()))
        highs.append(base + float(tried_high.max()))
        mine = np.flatnonzero(which == number)
        seeds = np.arange(mine.size) % tried_low.size
        least[mine], most[mine] = base + tried_low[seeds], base + tried_high[seeds]
    ends = (min(low for low, _ in bound), max(high for _, high in bound))
    return _Reach(ends, (min(lows), max(highs)), least, most)


def _signals(view: ViewWeights, weights: Floats) -> tuple[Integers, Floats]:
    """The cells that count, and what each adds to a report that supports it."""
    cells, _, rows = view.by_cell()
    values = np.add.reduceat(
        np.append(rows.values * weights[rows.columns], 0.0), np.minimum(rows.starts[:-1], rows.values.size)
    )
    values[rows.counts == 0] = 0.0
    return cells, values / (view.p - view.q)


def _base(view: ViewWeights, weights: Floats) -> float:
    """What every report of a view adds, whatever cells it supports."""
    return -view.q * float(_signals(view, weights)[1].sum())


def _bounds(view: ViewWeights, weights: Floats) -> tuple[float, float]:
    """The least and the most that supported cells can add: exact where a report names its cell."""
    cells, values = _signals(view, weights)
    if isinstance(view.oracle.support, NamedCell):
        others = [] if cells.size == view.cell_count else [0.0]
        return min([*others, float(values.min())]), max([*others, float(values.max())])
    return float(np.minimum(values, 0.0).sum()), float(np.maximum(values, 0.0).sum())


def _tried(view: ViewWeights, weights: Floats, source: SeededSource) -> tuple[Floats, Floats]:
    """For each of some seeds, the least and the most that supported cells add, over all y."""
    cells, values = _signals(view, weights)
    if not isinstance(view.oracle.support, HashedCells):
        low, high = _bounds(view, weights)
        return np.array([low]), np.array([high])
    buckets = view.oracle.support.buckets
    count = max(16, min(TRIED_SEEDS, MOST_HASHED // max(cells.size, 1)))
    hashed = bucket_array(source.seeds(count)[:, None], cells[None, :], buckets)
    hashed += np.arange(count)[:, None] * buckets
    totals = np.bincount(hashed.ravel(), np.tile(values, count), minlength=count * buckets).reshape(count, buckets)
    return totals.min(axis=1), totals.max(axis=1)
