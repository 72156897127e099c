"""`--rows` and `--matching`: what is expected of people's rows, for commands that forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from deniable.errors import BadInput

if TYPE_CHECKING:
    from deniable.queries.forecasts.assumed_rows import MatchingGiven, Span

rows_option = click.option(
    "--rows",
    "rows_given",
    multiple=True,
    metavar="[TABLE=]ROWS",
    help="Expected rows per user: orders=2.3, or a range, orders=1..4; may be repeated.",
)
matching_option = click.option(
    "--matching",
    "matching_given",
    metavar="SHARE",
    help="Expected share of rows that meet the conditions: 0.2, or a range, 0.1..0.3.",
)
matchings_option = click.option(
    "--matching",
    "matchings_given",
    multiple=True,
    metavar="SHARE",
    help="Expected share of rows that meet the conditions: 0.2, or 0.1..0.3; once, or once per question.",
)


def given_rows(texts: tuple[str, ...]) -> Any:
    """Expected rows as `assumed_rows` takes them; None if nothing is given."""
    by_table: dict[str, float | Span] = {}
    for text in texts:
        name, sign, numbers = text.rpartition("=")
        if not sign and len(texts) == 1:
            return _span("rows", numbers)
        if not name:
            raise BadInput("rows of several tables need their names. Nothing was predicted. Write --rows orders=2.3.")
        if name in by_table:
            raise BadInput(f"rows of {name!r} are given twice. Nothing was predicted. Name each table once.")
        by_table[name] = _span("rows", numbers)
    return by_table or None


def given_matching(text: str | None) -> float | Span | None:
    """The expected share of rows that match, if given."""
    return None if text is None else _span("matching", text)


def given_matchings(texts: tuple[str, ...]) -> MatchingGiven:
    """The expected shares of several questions: one for all of them, or one for each."""
    shares: list[float | Span | None] = [_span("matching", text) for text in texts]
    return shares if len(shares) > 1 else (shares[0] if shares else None)


def _span(option: str, text: str) -> float | Span:
    """A number, or a range as two numbers with dots between them."""
    try:
        ends = [float(end) for end in text.split("..")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2):
        raise BadInput(f"--{option} {text!r} is not a number or range. Nothing was predicted. Write 2.3, or 1..4.")
    return ends[0] if len(ends) == 1 else (ends[0], ends[1])
