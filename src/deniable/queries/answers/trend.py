"""A level over rounds: as it was measured, and smoothed by a stated prior on how fast it moves.

Let y be the measured levels and Σ their covariance, which includes what rounds have in common. The prior is a random
walk: from one round to the next the level moves by about `moves` (a standard deviation), and nothing is assumed about
where it starts. The smoothed levels are the mean of the posterior, and their errors its standard deviations:

    (Σ⁻¹ + Δᵀ·Δ/moves²)⁻¹ · Σ⁻¹·y,     Δ the differences of neighbouring rounds, divided by the root of their distance.

This is a function of answers, so it costs no privacy. If the level moves faster than stated, smoothed levels lag
behind, and their intervals do not cover.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Floats
from deniable.checks import check_number
from deniable.errors import QueryRefused
from deniable.queries.answers.estimation import Moments, covariance
from deniable.queries.answers.result import Estimate, Result
from deniable.queries.planning.plan import Plan
from deniable.queries.question.formula import evaluate
from deniable.queries.question.question import Question
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.wording import percent


def trend(
    plan: Plan, moments: Moments, name: str, rounds: Sequence[int], moves: float | None, confidence: float
) -> Result:
    """The levels of all rounds, and with `moves` the smoothed ones; the intervals of all rounds hold at once."""
    if moves is not None:
        check_number("moves", moves, "must be a finite number above 0", "Say how far it moves in a round.", above=0)
    if plan.biases:
        raise QueryRefused("a trend has no model errors", "Ask for single rounds with sql, or use another design.")
    values, spread = levels(plan.question, moments)

    def estimates(middle: Floats, errors: Floats) -> tuple[Estimate, ...]:
        pairs = zip(middle.tolist(), errors.tolist(), strict=True)
        return tuple(Estimate(value, error, confidence, len(rounds)) for value, error in pairs)

    answers = {name: estimates(values, np.sqrt(np.maximum(np.diag(spread), 0.0)))}
    notes = [f"all {len(rounds)} intervals hold at once with {percent(confidence)}"]
    if moves is not None and not np.isnan(values).any():
        answers[f"{name}_smoothed"] = estimates(*smoothed(values, spread, rounds, moves))
        notes.append(f"smoothed: if it moves by about {moves:g} from one round to the next")
    return Result({ROUND_COLUMN: list(rounds)}, answers, tuple(notes))


def levels(question: Question, moments: Moments) -> tuple[Floats, Floats]:
    """The answers of a question without groups, and their joint covariance. NaN where one is unclear."""
    spread = covariance(question, moments, single_rows=False)
    valued = [evaluate(output.formula, moments.sums, spread, question.counts) for output in question.outputs]
    values = np.array([answer.value[0] if answer.clear[0] else np.nan for answer in valued])
    slopes = np.array([answer.gradient[0] for answer in valued])
    return values, slopes @ spread[0] @ slopes.T


def smoothed(values: Floats, spread: Floats, rounds: Sequence[int], moves: float) -> tuple[Floats, Floats]:
    """Smoothed levels and their standard errors.

    >>> even, errors = smoothed(np.array([10.0, 14.0, 12.0]), np.diag([4.0, 4.0, 4.0]), [1, 2, 3], moves=1e-6)
    >>> even.round(3).tolist(), errors.round(3).tolist()
    ([12.0, 12.0, 12.0], [1.155, 1.155, 1.155])
    """
    steps = np.diff(np.eye(values.size), axis=0) / np.sqrt(np.diff(np.asarray(rounds, dtype=np.float64)))[:, None]
    size = max(float(np.trace(spread)) / max(values.size, 1), 1e-300)
    # Rounds that are known exactly have no inverse: they get an error far below everything else.
    measured = np.linalg.inv(spread / size + 1e-12 * np.eye(values.size))
    posterior = np.linalg.inv(measured + steps.T @ steps * (size / moves**2)) * size
    return posterior @ measured @ values / size, np.sqrt(np.maximum(np.diag(posterior), 0.0))
