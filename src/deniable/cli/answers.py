"""How answers are shown: as a table, as JSON, as CSV. What is unclear is a word in a table and nothing in data."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import click

from deniable.cli.terminal import show, table, width
from deniable.queries.result import Estimate, Result, number


def show_table(result: Result) -> None:
    """Every answer with its interval; where the terminal is too narrow for that, with its standard error."""
    groups = list(result.groups)
    rows = [[_text(values[place]) for values in result.groups.values()] for place in range(len(result))]
    assumed = any(one.model for estimates in result.answers.values() for one in estimates)
    wide, narrow = [row.copy() for row in rows], [row.copy() for row in rows]
    confidence = next((one.confidence for estimates in result.answers.values() for one in estimates), 0.95)
    for estimates in result.answers.values():
        for place, one in enumerate(estimates):
            wide[place] += [*_with_interval(one), *([_model(one)] if assumed else [])]
            narrow[place].append(_with_error(one))
    parts = (f"{_percent(confidence)} interval", *(["model error"] if assumed else []))
    header = [*groups, *(part for name in result.answers for part in (name, *parts))]
    if _width(header, wide) > width():
        header, wide = [*groups, *(f"{name} ± error" for name in result.answers)], narrow
    made = table("Answer", *header, numbers_from=len(groups))
    for row in wide:
        made.add_row(*row)
    show(made)
    for note in result.notes:
        click.echo(note)


def as_json(result: Result) -> str:
    """One JSON object per row."""
    return "".join(json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in _plain_rows(result))


def as_csv(result: Result) -> str:
    """A header and one line per row."""
    rows = _plain_rows(result)
    names = result.to_arrow().column_names
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _plain_rows(result: Result) -> list[dict[str, Any]]:
    """Rows in which an unclear number is missing: JSON has no word for it."""
    return [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in result.to_arrow().to_pylist()
    ]


def _with_interval(one: Estimate) -> list[str]:
    if math.isnan(one.value):
        return ["unclear", ""]
    low, high = one.interval
    return [number(one.value, one.stderr), f"{number(low, one.stderr)} to {number(high, one.stderr)}"]


def _model(one: Estimate) -> str:
    return "" if math.isnan(one.value) else number(one.model, one.model)


def _with_error(one: Estimate) -> str:
    if math.isnan(one.value):
        return "unclear"
    return f"{number(one.value, one.error)} ± {number(one.error, one.error)}"


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"


def _text(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _width(header: list[str], rows: list[list[str]]) -> int:
    return sum(max(map(len, column)) + 2 for column in zip(header, *rows, strict=True))
