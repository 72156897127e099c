"""Answers as tables, JSON and CSV. An unclear number is a word in tables and missing in data."""

from __future__ import annotations

import click

from deniable.cli.terminal import json_line, show_columns
from deniable.queries.answers.answer_layout import answer_columns, group_columns
from deniable.queries.answers.plain_rows import plain_rows
from deniable.queries.answers.result import Result


def show_table(result: Result, *, stderr: bool = False) -> None:
    """Print every answer with its interval or, with `stderr`, with its standard error."""
    show_columns("Answer", group_columns(result), answer_columns(result, stderr=stderr))
    for note in result.footnotes:
        click.echo(note)


def as_json(result: Result) -> str:
    """One JSON object per row."""
    return "".join(json_line(row) + "\n" for row in plain_rows(result))
