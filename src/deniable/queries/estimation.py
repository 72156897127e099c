"""Moments → answers: values, standard errors and intervals, and what ORDER BY, HAVING and LIMIT make of them.

Users are independent, so the covariance of the moments is Σ W·Wᵀ − Σ f·fᵀ over users, W being what a user's reports
contribute and f what her rows are worth. The first sum comes from the same pass as the answer. The second is not
known, but it is at least S·Sᵀ/C, where S are the moments and C is the number of users that they add up; so the errors
stated are a little too large, never too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.queries.formula import CLEAR, Formula, evaluate
from deniable.queries.question import Comparison, Floats, Having, Ordering, Question
from deniable.queries.result import UNCLEAR, Estimate, Result

BIASED = "clipped to what is possible: biased, and intervals may not cover"


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What an engine brings back: for every combination of groups, sums over users."""

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


def covariance(question: Question, moments: Moments, single_rows: bool) -> Floats:
    """The covariance of the moments, for every row of the answer."""
    return _whole(_covariance(question, moments, single_rows), moments)


def _whole(found: Floats, moments: Moments) -> Floats:
    """Zero where nothing but rounding is left."""
    scale = np.sqrt(np.maximum(np.einsum("gii->gi", moments.crosses), 0.0))
    return np.where(np.abs(found) > 1e-11 * scale[:, :, None] * scale[:, None, :], found, 0.0)


def _covariance(question: Question, moments: Moments, single_rows: bool) -> Floats:
    sums = moments.sums
    spread = np.einsum("gi,gj->gij", sums, sums)
    crosses = moments.crosses - moments.between
    crude: Floats = crosses - spread / np.maximum(moments.users, 1.0)[:, None, None]
    counts = [number for number, one in enumerate(question.moments) if one.indicator]
    if not (single_rows and len(counts) == 1 and len({one.region for one in question.moments}) == 1):
        return crude
    # Every user counts once or not at all, and the number of those who do is a moment itself.
    count, error = sums[:, counts[0]], np.sqrt(np.maximum(crude[:, counts[0], counts[0]], 0.0))
    clear = (count > CLEAR * error) & (count > 0)
    sharper = crosses - spread / np.where(clear, count, 1.0)[:, None, None]
    fits = clear & (np.einsum("gii->gi", sharper) >= -1e-9 * np.einsum("gii->gi", moments.crosses)).all(axis=1)
    return np.where(fits[:, None, None], sharper, crude)


def answer(
    question: Question,
    moments: Moments,
    *,
    single_rows: bool,
    confidence: float = 0.95,
    simultaneous: bool = False,
    clip: bool = False,
    nonnegative: bool = False,
    rows_per_user: float = 1.0,
) -> Result:
    """The rows of an answer."""
    spread = covariance(question, moments, single_rows)
    together = max(len(moments.keys), 1) if simultaneous else 1
    kept = _kept(question, moments, spread)
    order = _sorted(question, moments, spread, np.flatnonzero(kept))
    end = None if question.limit is None else question.offset + question.limit
    order = order[question.offset : end]
    answers: dict[str, tuple[Estimate, ...]] = {}
    unclear = False
    for one in question.outputs:
        if not one.shown:
            continue
        found = evaluate(one.formula, moments.sums, spread)
        values = np.where(found.clear, found.value, math.nan)
        errors = np.where(found.clear, np.sqrt(found.variance(spread)), math.nan)
        if one.possible is not None:
            low, high = one.possible
            if one.adds_up:  # of nobody it is zero
                low, high = min(low, 0.0), max(high, 0.0)
            scale = moments.users * rows_per_user if one.adds_up else np.ones_like(moments.users)
            if clip:
                values = np.clip(values, low * scale, high * scale)
            if nonnegative and low >= 0:
                values = np.maximum(values, 0.0)
        unclear |= bool(np.isnan(values[order]).any())
        answers[one.name] = tuple(
            Estimate(float(values[row]), float(errors[row]), confidence, together) for row in order
        )
    notes = [UNCLEAR] if unclear else []
    notes += [BIASED] if clip or nonnegative else []
    if together > 1:
        notes.append(f"the intervals of all {together:,} rows hold at once with {confidence:.0%}")
    groups = {
        label: [moments.keys[row][place] for row in order]
        for label in question.shown_groups
        for place, group in enumerate(question.groups)
        if group.label == label
    }
    return Result(groups, answers, tuple(notes), question.text)


def _values(formula: Formula, moments: Moments, spread: Floats) -> Floats:
    found = evaluate(formula, moments.sums, spread)
    return np.where(found.clear, found.value, math.nan)


_COMPARED: dict[str, Any] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def _kept(question: Question, moments: Moments, spread: Floats) -> NDArray[np.bool_]:
    """The rows that HAVING keeps."""
    if question.having is None:
        return np.ones(len(moments.keys), dtype=bool)
    return _truth(question.having, moments, spread)[0]


def _truth(having: Having, moments: Moments, spread: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where a condition is true, and where it is false; a comparison with something unclear is neither."""
    if isinstance(having, Comparison):
        left, right = (_values(side, moments, spread) for side in (having.left, having.right))
        known = ~np.isnan(left) & ~np.isnan(right)
        true = _COMPARED[having.sign](left, right)
        return known & true, known & ~true
    parts = [_truth(part, moments, spread) for part in having.parts]
    if having.sign == "not":
        return parts[0][1], parts[0][0]
    every, some = (0, 1) if having.sign == "and" else (1, 0)
    found = (
        np.logical_and.reduce([part[every] for part in parts]),
        np.logical_or.reduce([part[some] for part in parts]),
    )
    return found if having.sign == "and" else (found[1], found[0])


def _sorted(question: Question, moments: Moments, spread: Floats, rows: NDArray[np.int64]) -> list[int]:
    """Rows in the order that was asked for; what is unclear or missing comes last."""
    order: list[int] = rows.tolist()
    for one in reversed(question.order):
        keys = _sort_keys(one, question, moments, spread)
        known = sorted(
            (row for row in order if keys[row] is not None), key=lambda row: keys[row], reverse=one.descending
        )
        order = known + [row for row in order if keys[row] is None]
    return order


def _sort_keys(one: Ordering, question: Question, moments: Moments, spread: Floats) -> Sequence[Any]:
    if not one.group:
        (formula,) = (output.formula for output in question.outputs if output.name == one.key)
        return [None if math.isnan(value) else value for value in _values(formula, moments, spread).tolist()]
    (place,) = (place for place, group in enumerate(question.groups) if group.label == one.key)
    return [key[place] for key in moments.keys]
