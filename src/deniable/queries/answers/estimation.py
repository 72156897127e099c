"""Moments → answers: values, standard errors and intervals, and what ORDER BY, HAVING and LIMIT make of them.

Users are independent, so the covariance of the moments is Σ W·Wᵀ − Σ f·fᵀ over users, W being what a user's reports
contribute and f what her rows are worth. The first sum comes from the same pass as the answer. The second is at least
S·Sᵀ/C, where S are the moments and C is the number of users that they add up. Where the question adds it up as moments
of its own (`planning/product_moments.py`), the rest of it is subtracted too, less its standard error. So stated errors
are a little too large, not too small.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from deniable.arrays import Booleans, Floats, Integers
from deniable.queries.answers.added_biases import products_of_both
from deniable.queries.answers.allowed import Allowed, cut
from deniable.queries.answers.answer_options import DEFAULTS, AnswerOptions
from deniable.queries.answers.known_spread import without_spread
from deniable.queries.answers.ratio_intervals import SHARP, ratio_interval, ratio_of
from deniable.queries.answers.result import UNCLEAR, Estimate, Result, are_years
from deniable.queries.planning.known_sums import without_known
from deniable.queries.question.formula import CLEAR, Applied, Formula, Moment, evaluate, moments_of
from deniable.queries.question.question import AnswerColumn, Having, HavingComparison, Ordering, Question
from deniable.tables.schema.rounds import FRESH, ROTATING, Rounds
from deniable.wording import counted, percent

MODEL_NOTE = "model: what cells leave open of where rows are between their borders"
FEW_USERS = 30
"""Fewer users are not enough to estimate a variance."""
FEW_CARRY = "few: about {} {} the variance here: errors may be far larger than shown"
CHOSEN = "chosen by noisy estimates: too extreme on average; use simultaneous intervals"
BIASED = "clipped to what is possible: biased, and intervals may not cover"


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What an engine returns: sums over users for every combination of groups."""

    keys: tuple[tuple[Any, ...], ...]
    """The value of each group, in the question's order, for every row."""
    users: Floats
    """How many users there are, for every row."""
    sums: Floats
    """rows × moments."""
    crosses: Floats
    """rows × moments × moments: sums of products of two contributions of the same user."""
    between: Floats
    """The part of these that is due to how many users drew which view, where these numbers have been counted."""
    private: Integers
    """The number of the combination of private groups, for every row."""
    known: Booleans
    """rows × moments: whether a moment is known exactly, whatever reports say."""
    people: float | None = None
    """How many people the answer is about, where only some of them answer in a round."""
    pooled: bool = False
    """Whether a user may count several times, in several rounds."""
    by_round: Floats | None = None
    """As `crosses`, of contributions of the same user in the same round, where rounds are independent."""
    rows: Floats | None = None
    """How many users in a round there are, for every row."""
    others: Floats | None = None
    """rows × moments × moments: what the noise of another population, which is joined, adds to the covariances."""
    above_zero: Booleans | None = None
    """rows × moments: whether cells show without any assumption that a moment is above zero; None if nobody looked."""
    allowed: Allowed | None = None
    """What cells show without any assumption of what moments can be; None if nothing is assumed, or nobody looked."""
    unlimited: tuple[tuple[Floats, Floats], ...] = ()
    """By group of users, expected products of biases before bounds limited them, and by how much they multiply each
    moment's; empty if they did not."""


def over_rounds(moments: Moments, rounds: Rounds, people: float, asked: int) -> Moments:
    """Moments of several rounds. Where rounds rotate, those who answer stand for all: by how many is no secret.

    With W what a user contributes in all rounds, w in one of them, and F, f what her rows are worth, the variance of a
    sum is Σ W² − Σ F², and F² consists of squares f² and of products of two rounds. Where the noise of rounds is
    independent, products of two w estimate the latter without bias, as far as somebody answers in two rounds: with
    c = count/answers and κ = (count − answers)/(count·(answers − 1)) the variance is also

        c²·((1 + κ)·Σ w² − κ·Σ W²) − Σ f²      (everybody in every round: Σ w² − Σ f²)

    for W without c. The smaller of the two is stated: Σ f² is known better than Σ F² where rounds are added up.
    Whoever answers once shows nothing about two rounds: the law of the reports of independent people then depends on
    single rounds alone, and it is the same whether each of them stays or moves, while Σ F² is not. No estimate can tell
    the two apart, so the largest variance that fits is stated, the first, which is too large if people stay.
    """
    pooled = moments.rows is not None and bool((moments.rows > moments.users).any())
    if rounds.mode != ROTATING:
        return replace(moments, pooled=pooled, by_round=moments.by_round if rounds.mode == FRESH and pooled else None)
    scale, separate = rounds.count / rounds.answers, None
    if pooled and moments.by_round is not None:
        kappa = (rounds.count - rounds.answers) / (rounds.count * (rounds.answers - 1))
        separate = scale**2 * ((1 + kappa) * moments.by_round - kappa * moments.crosses)
    return replace(
        moments,
        sums=moments.sums * scale,
        crosses=moments.crosses * scale**2,
        known=np.zeros_like(moments.known) if scale > 1 else moments.known,
        people=people,
        pooled=pooled,
        by_round=separate,
        rows=np.full_like(moments.users, people * asked),
    )


def covariance(question: Question, moments: Moments, single_rows: bool, used: set[int] | None = None) -> Floats:
    """The covariance of the moments, for every row of the answer.

    Only the entries of moments in `used` are valid. They are sharper if these moments are about the same rows.
    """
    among_users = _covariance(question, moments, single_rows, used or set(range(len(question.moments))))
    whole = _whole(among_users, moments)
    return whole if moments.others is None else whole + moments.others


def _whole(covariances: Floats, moments: Moments) -> Floats:
    """Covariances, set to zero where a moment is known and where only rounding is left."""
    scale = np.sqrt(np.maximum(np.einsum("gii->gi", moments.crosses), 0.0))
    clear = np.abs(covariances) > 1e-11 * scale[:, :, None] * scale[:, None, :]
    return without_known(np.where(clear, covariances, 0.0), moments.known)


def _covariance(question: Question, moments: Moments, single_rows: bool, used: set[int]) -> Floats:
    sums = moments.sums
    spread = np.einsum("gi,gj->gij", sums, sums)
    crosses = moments.crosses - moments.between
    users = moments.users if moments.people is None else np.maximum(moments.users, moments.people)
    crude: Floats = crosses - spread / np.maximum(users, 1.0)[:, None, None]
    regions = {question.moments[number].region for number in used}
    counts = [
        number for number, moment in enumerate(question.moments) if moment.indicator and {moment.region} == regions
    ]
    if moments.pooled or moments.others is not None or not single_rows:
        return crude  # what another population contributes is not once or not at all
    if not counts:
        return without_spread(question.products, sums, crosses, users, crude, sorted(used))
    # Every user counts once or not at all, and the number of those who do is a moment itself: its variance is known.
    count = sums[:, counts[0]]
    error = np.sqrt(np.maximum(moments.crosses[:, counts[0], counts[0]] - count, 0.0))
    clear = (count > CLEAR * error) & (count > 0)
    if moments.rows is not None:  # over several rounds more may count than there are people, who then say more
        clear &= count <= np.maximum(users, 1.0)
    sharper = crosses - spread / np.where(clear, count, 1.0)[:, None, None]
    mine = sorted({*used, counts[0]})
    slack = -1e-9 * np.einsum("gii->gi", moments.crosses)[:, mine]
    fits = clear & (np.einsum("gii->gi", sharper)[:, mine] >= slack).all(axis=1)
    return without_spread(
        question.products,
        sums,
        crosses,
        users,
        np.where(fits[:, None, None], sharper, crude),
        sorted(used),
    )


def answer(
    question: Question,
    moments: Moments,
    options: AnswerOptions = DEFAULTS,
    *,
    single_rows: bool,
    rows_per_user: float = 1.0,
    model: Floats | None = None,
    effective: Floats | None = None,
) -> Result:
    """The rows of an answer.

    `model` are expected products of biases, rows × moments × moments; `effective` says how many users carry the
    variance of every moment, rows × moments, where they may be few.
    """
    estimates = _FormulaEstimates(question, moments, single_rows, model)
    together, all_hold = at_once(question, len(moments.keys), options.confidence) if options.simultaneous else (1, [])
    kept = np.ones(len(moments.keys), dtype=bool) if question.having is None else _truth(question.having, estimates)[0]
    if question.has_no_group:
        kept = np.zeros_like(kept)
    order = _sorted(estimates, np.flatnonzero(kept))
    end = None if question.limit is None else question.offset + question.limit
    order = order[question.offset : end]
    answers: dict[str, tuple[Estimate, ...]] = {}
    tail = (1 - options.confidence) / together / 2
    reach = NormalDist().inv_cdf(1 - tail)
    unclear, fewest = False, math.inf
    for output in question.outputs:
        if not output.shown:
            continue
        values, errors, biases = estimates.of(output.formula)
        if output.possible is not None:
            low, high = output.possible
            if output.adds_up:  # zero if there are no users
                low, high = min(low, 0.0), max(high, 0.0)
            users = moments.users if moments.people is None else np.maximum(moments.users, moments.people)
            scale = users * rows_per_user if output.adds_up else np.ones_like(moments.users)
            biases = np.minimum(biases, (high - low) * scale / 2)  # nothing assumed can be further off
            if options.clip:
                values = np.clip(values, low * scale, high * scale)
            if options.nonnegative and low >= 0:
                values = np.maximum(values, 0.0)
        bounds = estimates.bounds(output.formula, reach)
        if bounds is None and moments.allowed is not None and isinstance(output.formula, Moment):
            near = errors, biases
            bounds = moments.allowed.interval(output.formula.number, values, near, reach, tail, max(reach, CLEAR))
            if output.possible is not None:  # nor more rows than there are, where something is assumed of them
                bounds = cut(bounds, values, (low * scale, high * scale), biases > 0)
        elif bounds is not None and output.possible is not None and not output.adds_up:
            bounds = np.clip(bounds[0], *output.possible), np.clip(bounds[1], *output.possible)
        is_year = not output.adds_up and output.possible is not None and are_years(*output.possible)
        unclear |= bool(np.isnan(values[order]).any())
        fewest = min(fewest, _fewest(estimates, output.formula, effective, order, errors))
        answers[output.name] = tuple(
            Estimate(
                float(values[row]),
                float(errors[row]),
                options.confidence,
                together,
                float(biases[row]),
                _interval(bounds, row, bool(np.isnan(values[row])), output),
                year=is_year,
            )
            for row in order
        )
    notes = [*question.notes, *([UNCLEAR] if unclear else [])]
    if fewest < FEW_USERS:
        carriers = max(math.ceil(fewest), 1)
        notes.append(FEW_CARRY.format(counted(carriers, "user"), "carries" if carriers == 1 else "carry"))
    notes += [MODEL_NOTE] if any(estimate.model for each in answers.values() for estimate in each) else []
    notes += [BIASED] if options.clip or options.nonnegative else []
    by_estimates = question.having is not None or any(not key.group for key in question.order)
    notes += [CHOSEN] if by_estimates and len(order) < len(moments.keys) and not options.simultaneous else []
    notes += all_hold
    groups = {
        label: [moments.keys[row][position] for row in order]
        for label in question.shown_groups
        for position, group in enumerate(question.groups)
        if group.label == label
    }
    return Result(groups, answers, tuple(notes), question.text)


def _interval(
    bounds: tuple[Floats, Floats] | None, row: int, unclear: bool, output: AnswerColumn
) -> tuple[float, float] | None:
    """The interval of an answer, where it is not the value and its error: of an unclear one, all that is possible."""
    if bounds is not None:
        return float(bounds[0][row]), float(bounds[1][row])
    return output.possible if unclear and not output.adds_up else None


def at_once(question: Question, rows: int, confidence: float) -> tuple[int, list[str]]:
    """How many intervals an answer with this many rows has, and the note if all of them hold at once."""
    together = max(rows, 1) * sum(output.shown for output in question.outputs)
    notes = [f"all {together:,} intervals hold at once with {percent(confidence)}"] if together > 1 else []
    return together, notes


def _fewest(
    estimates: _FormulaEstimates, formula: Formula, effective: Floats | None, rows: list[int], errors: Floats
) -> float:
    """The fewest users who carry a moment that a formula uses, in rows that are not known exactly.

    The plan says so for evenly spread rows. If there are hardly any users and little noise, what was observed decides:
    every user who counts adds at least one to the sum of squares. An error of zero does not mean certainty if reports
    could have differed and happen to be alike, such as those of a single user.
    """
    used = sorted(moments_of(formula))
    planned = np.full((len(estimates.moments.keys), len(used)), math.inf) if effective is None else effective[:, used]
    squares = np.einsum("gii->gi", estimates.moments.crosses)[:, used]
    counts = np.array([number in estimates.question.counts for number in used], dtype=bool)
    seen = np.where(counts & (squares > 0), squares, math.inf)
    alike = np.einsum("gii->gi", estimates.spread(formula))[:, used] == 0.0
    by_chance = ~estimates.moments.known[:, used]
    lucky = (by_chance & ((alike & np.isfinite(planned)) | (seen < 1))).any(axis=1)
    uncertain = [row for row in rows if errors[row] > 0 or lucky[row]]
    return float(np.minimum(seen, planned)[uncertain].min(initial=math.inf))


class _FormulaEstimates:
    """Values and errors of formulas, estimated from the moments."""

    def __init__(self, question: Question, moments: Moments, single_rows: bool, model: Floats | None) -> None:
        self.question, self.moments, self._single_rows = question, moments, single_rows
        self._model = np.zeros_like(moments.crosses) if model is None else model

    def spread(self, formula: Formula) -> Floats:
        """The covariance of the moments that it uses, in every row."""
        return covariance(self.question, self.moments, self._single_rows, moments_of(formula))

    def model(self, formula: Formula) -> Floats:
        """Expected products of biases, those of several moments as they are expected together."""
        used = sorted(moments_of(formula))
        if not self.moments.unlimited or len(used) < 2:
            return self._model
        groups = [
            model * np.square(limits[:, used].max(axis=1))[:, None, None] for model, limits in self.moments.unlimited
        ]
        return functools.reduce(products_of_both, groups)

    def separate(self, formula: Formula) -> Floats | None:
        """The same from what users contribute in single rounds, where that is another estimate."""
        moments = self.moments
        if moments.by_round is None or moments.rows is None:
            return None
        # Each user in a round counts once or not at all.
        rounds = replace(moments, crosses=moments.by_round, users=moments.rows, people=None, pooled=False)
        return covariance(self.question, rounds, self._single_rows, moments_of(formula))

    def of(self, formula: Formula) -> tuple[Floats, Floats, Floats]:
        """Its value, standard error and model error in every row.

        Where they are unclear, or beyond any float, the first two are NaN and there is no model error to show.
        """
        spread, model = self.spread(formula), self.model(formula)
        with np.errstate(all="ignore"):
            valued = evaluate(
                formula,
                self.moments.sums,
                spread + model,
                self.question.counts,
                self.moments.above_zero,
            )
            variance, separate = valued.variance(spread), self.separate(formula)
            if separate is not None:
                variance = np.minimum(variance, valued.variance(separate))
            errors, biases = np.sqrt(variance), np.sqrt(valued.variance(model))
            clear = valued.clear & np.isfinite(valued.value) & np.isfinite(errors) & np.isfinite(biases)
        return (
            np.where(clear, valued.value, math.nan),
            np.where(clear, errors, math.nan),
            np.where(clear, biases, 0.0),
        )

    def bounds(self, formula: Formula, reach: float) -> tuple[Floats, Floats] | None:
        """The intervals of a ratio or a function of an answer, to `reach` standard errors; None for all other formulas,
        whose intervals are the value and its error to both sides.
        """
        ratio = ratio_of(formula)
        if ratio is None and not isinstance(formula, Applied):
            return None
        values, errors, biases = self.of(formula.of if isinstance(formula, Applied) else formula)
        near = reach * np.hypot(errors, biases)
        if isinstance(formula, Applied):
            inner = self.bounds(formula.of, reach)
            return formula.of_interval(*((values - near, values + near) if inner is None else inner))
        assert ratio is not None  # noqa: S101 - the other case has returned
        low, high, away = ratio_interval(ratio, self.moments.sums, self.spread(formula) + self.model(formula), reach)
        plain = (away > SHARP) & ~np.isnan(values)
        return np.where(plain, values - near, low), np.where(plain, values + near, high)


_COMPARED: dict[str, Any] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def _truth(having: Having, estimates: _FormulaEstimates) -> tuple[Booleans, Booleans]:
    """Where a condition is true, and where it is false; a comparison with something unclear is neither."""
    if isinstance(having, HavingComparison):
        left, right = (estimates.of(side)[0] for side in (having.left, having.right))
        known = ~np.isnan(left) & ~np.isnan(right)
        true = _COMPARED[having.sign](left, right)
        return known & true, known & ~true
    parts = [_truth(part, estimates) for part in having.parts]
    if having.sign == "not":
        return parts[0][1], parts[0][0]
    every, some = (0, 1) if having.sign == "and" else (1, 0)
    outcomes = (
        np.logical_and.reduce([part[every] for part in parts]),
        np.logical_or.reduce([part[some] for part in parts]),
    )
    return outcomes if having.sign == "and" else (outcomes[1], outcomes[0])


def _sorted(estimates: _FormulaEstimates, rows: Integers) -> list[int]:
    """Rows in the order of ORDER BY; unclear and missing values come last."""
    order: list[int] = rows.tolist()
    for ordering in reversed(estimates.question.order):
        keys = _sort_keys(ordering, estimates)
        known = sorted(
            (row for row in order if keys[row] is not None), key=lambda row: keys[row], reverse=ordering.descending
        )
        order = known + [row for row in order if keys[row] is None]
    return order


def _sort_keys(ordering: Ordering, estimates: _FormulaEstimates) -> Sequence[Any]:
    question = estimates.question
    if not ordering.group:
        (formula,) = (output.formula for output in question.outputs if output.name == ordering.key)
        return [None if math.isnan(value) else value for value in estimates.of(formula)[0].tolist()]
    (position,) = (position for position, group in enumerate(question.groups) if group.label == ordering.key)
    return [key[position] for key in estimates.moments.keys]
