"""Predictions as ranges, where errors depend on rows that nobody has counted yet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill

from deniable.queries.forecasts.assumed_rows import AssumedRows, Assumption
from deniable.queries.forecasts.prediction import Prediction, predict
from deniable.queries.planning.plan import Plan
from deniable.queries.question.formula import Binary, Formula, Root, moments_of

WORTH_SAYING = 1.1
"""A range is shown where its ends are this many times apart."""
NOTE_WIDTH = 80


def ranged(plan: Plan, users: float, assumed: AssumedRows) -> tuple[tuple[Prediction, ...], tuple[str, ...]]:
    """Predictions, with their ranges and the reasons for these where what is not known makes a difference."""
    middle = predict(plan, users, assumed.middle)
    reasons, assumptions = not_known(plan, assumed)
    if not reasons:
        return middle, ()
    ends = [predict(plan, users, end) for end in assumptions]
    spread = tuple(_spanned(*each) for each in zip(middle, *ends, strict=True))
    return (spread, reasons) if any(not math.isnan(each.low) for each in spread) else (middle, ())


def not_known(plan: Plan, assumed: AssumedRows) -> tuple[tuple[str, ...], tuple[Assumption, ...]]:
    """What is not known exactly and may matter to a question, in words, and what to assume at both ends of it."""
    tables = [plan.collection[table.table] for table in plan.tables]
    reasons = assumed.reasons(tables, conditions=_divides_matching(plan))
    return reasons, assumed.ends(tables) if reasons else ()


def _spanned(middle: Prediction, few: Prediction, many: Prediction) -> Prediction:
    """A prediction with its range, unless that is narrow."""
    errors = [math.inf if math.isnan(each.error) else each.error for each in (middle, few, many)]
    low, high = min(errors), max(errors)
    if math.isinf(low) or high <= WORTH_SAYING * low:
        return middle
    return replace(middle, low=low, high=high)


def _divides_matching(plan: Plan) -> bool:
    """Whether an output is divided by a number of rows that meet conditions on private attributes."""
    question = plan.question
    if not any(_divides(output.formula) for output in question.outputs if output.shown):
        return False
    conditions = any(
        values.min() != values.max()
        for count in question.counts
        for term in question.moments[count].terms
        for values in term.conditions.values()
    )
    return conditions or len(plan.private_groups) > 1


def _divides(formula: Formula) -> bool:
    if isinstance(formula, Root):
        return _divides(formula.of)
    if not isinstance(formula, Binary):
        return False
    by_moment = formula.sign == "/" and bool(moments_of(formula.right))
    return by_moment or _divides(formula.left) or _divides(formula.right)


def shown_range(prediction: Prediction) -> str:
    """A range in words; nothing if there is none."""
    return shown_span(prediction.low, prediction.high)


def shown_span(low: float, high: float) -> str:
    """From low to high; nothing if they are not numbers.

    >>> shown_span(0.123, 456.7), shown_span(2, float("inf"))
    ('0.123 to 457', '2 to unclear')
    """
    if math.isnan(low):
        return ""
    return f"{low:,.3g} to {'unclear' if math.isinf(high) else f'{high:,.3g}'}"


def range_note(reasons: Sequence[str]) -> str:
    """Why a forecast is a range."""
    return fill(f"range: {'; '.join(reasons)}", NOTE_WIDTH)
