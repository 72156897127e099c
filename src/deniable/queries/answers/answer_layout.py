"""How answers are shown: groups, and every value with its interval. The same for one answer and for many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.queries.answers.result import Estimate, Result

Column = list[str]
"""A header, then the cells below it."""


def number(value: float, error: float, *, commas: bool = True) -> str:
    """A number with as many digits as its error leaves meaning to: two of the error's.

    >>> number(291.499, 19.9), number(0.123456, 0.00789), number(7.0, 0.0), number(-0.2, 19.9)
    ('291', '0.1235', '7', '0')
    """
    separator = "," if commas else ""
    if not error > 0 or not math.isfinite(error):
        return f"{value:{separator}.10g}"
    decimals = min(max(1 - math.floor(math.log10(error)), 0), 9)
    return f"{value:z{separator}.{decimals}f}"


def interval_digits(estimate: Estimate) -> float:
    """The error that decides how many digits of an interval have a meaning."""
    low, high = estimate.interval
    return estimate.error if not math.isnan(estimate.value) else (high - low) / 4


def value_text(estimate: Estimate) -> str:
    """The value alone."""
    if math.isnan(estimate.value):
        return "unclear"
    return number(estimate.value, estimate.stderr, commas=not estimate.year)


def interval_text(estimate: Estimate) -> str:
    """From low to high; nothing where nothing is known."""
    if math.isnan(estimate.value) and estimate.bounds is None:
        return ""
    error = interval_digits(estimate)
    low, high = (number(end, error, commas=not estimate.year) for end in estimate.interval)
    return f"{low} to {high}"


def error_text(estimate: Estimate) -> str:
    """The value with its standard error and, on a grid, its model error."""
    if math.isnan(estimate.value):
        return "unclear"
    model = f" ± {number(estimate.model, estimate.model)} model" if estimate.model else ""
    return f"{value_text(estimate)} ± {number(estimate.stderr, estimate.stderr)}{model}"


def group_text(value: Any) -> str:
    """A value that is grouped by."""
    return "NULL" if value is None else str(value)


def group_columns(result: Result) -> list[Column]:
    """The columns of groups."""
    return [[name, *map(group_text, values)] for name, values in result.groups.items()]


def answer_columns(result: Result, *, stderr: bool = False) -> list[list[Column]]:
    """The columns of each answer: its value and interval or, with `stderr`, both with its standard error in one."""
    if stderr:
        return [
            [[f"{name} (± standard error)", *map(error_text, estimates)]] for name, estimates in result.answers.items()
        ]
    return [_with_interval(name, estimates, result) for name, estimates in result.answers.items()]


def all_columns(result: Result, *, stderr: bool = False) -> list[Column]:
    """The columns of groups and answers, in the order of the question."""
    groups = dict(zip(result.groups, group_columns(result), strict=True))
    answers = dict(zip(result.answers, answer_columns(result, stderr=stderr), strict=True))
    return [column for name in result.columns for column in ([groups[name]] if name in groups else answers[name])]


def _with_interval(name: str, estimates: Sequence[Estimate], result: Result) -> list[Column]:
    confidence = next((estimate.confidence for estimate in estimates), 0.95)
    columns = [
        [name, *map(value_text, estimates)],
        [f"{100 * confidence:.4g} % interval", *map(interval_text, estimates)],
    ]
    if any(estimate.model for column in result.answers.values() for estimate in column):
        columns.append(["model error", *map(_model_text, estimates)])
    return columns


def _model_text(estimate: Estimate) -> str:
    return "" if math.isnan(estimate.value) else number(estimate.model, estimate.model)
