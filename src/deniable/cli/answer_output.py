"""Answers as tables, JSON and CSV. An unclear number is a word in tables and missing in data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from deniable.cli.terminal import columns_width, json_line, show_columns, width
from deniable.queries.answers.plain_rows import plain_rows
from deniable.queries.answers.result import Estimate, Result, interval_digits, number


def show_table(result: Result) -> None:
    """Print every answer with its interval or, if the terminal is too narrow for that, with its standard error."""
    groups = [[name, *map(_text, values)] for name, values in result.groups.items()]
    answers = [column for name, estimates in result.answers.items() for column in _wide(name, estimates, result)]
    if columns_width([*groups, *answers]) > width():
        answers = [[f"{name} ± error", *map(_with_error, each)] for name, each in result.answers.items()]
    show_columns("Answer", groups, answers)
    for note in result.footnotes:
        click.echo(note)


def _wide(name: str, estimates: Sequence[Estimate], result: Result) -> list[list[str]]:
    """An answer, its interval and, if some answer has one, its model error."""
    confidence = next((estimate.confidence for estimate in estimates), 0.95)
    values, intervals = zip(*map(_with_interval, estimates), strict=True) if estimates else ((), ())
    columns = [[name, *values], [f"{_percent(confidence)} interval", *intervals]]
    if any(estimate.model for column in result.answers.values() for estimate in column):
        columns.append(["model error", *map(_model, estimates)])
    return columns


def as_json(result: Result) -> str:
    """One JSON object per row."""
    return "".join(json_line(row) + "\n" for row in plain_rows(result))


def _with_interval(estimate: Estimate) -> tuple[str, str]:
    if math.isnan(estimate.value) and estimate.bounds is None:
        return "unclear", ""
    (low, high), error = estimate.interval, interval_digits(estimate)
    value = "unclear" if math.isnan(estimate.value) else number(estimate.value, estimate.stderr)
    return value, f"{number(low, error)} to {number(high, error)}"


def _model(estimate: Estimate) -> str:
    return "" if math.isnan(estimate.value) else number(estimate.model, estimate.model)


def _with_error(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "unclear"
    return f"{number(estimate.value, estimate.error)} ± {number(estimate.error, estimate.error)}"


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"


def _text(value: Any) -> str:
    return "NULL" if value is None else str(value)
