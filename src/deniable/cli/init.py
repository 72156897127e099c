"""`deniable init`: a specification is proposed for the columns of files, and a person decides on every domain."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import click

from deniable.errors import BadInput
from deniable.limits import LONGEST_NAME
from deniable.tables.schema.attributes import RESERVED

DEFAULT_KEY = "uid"
_PROPOSAL_HEAD = (
    "# A proposal. Domains are public knowledge: decide each one without looking at the data.",
    'epsilon = "DECIDE: how much all of a user\'s reports may spend, for example 2.0"',
    'design = "hio"  # then, for your questions: deniable plan THIS.toml questions.sql --users N',
    "fanout = 5",
    "# Rules say what becomes of values without a place; leave them out, and such rows are dropped:",
    '#   outside = "clip" moves a value to the nearest end, round = true to the nearest step, other = "other" stands',
    '#   for all that are not listed, missing = "own" gives missing values a cell of their own, which IS NULL counts.',
)


@click.command()
@click.option(
    "--from",
    "sources",
    required=True,
    multiple=True,
    metavar="[TABLE=]FILE",
    help="CSV or Parquet file with the columns of a table; may be repeated.",
)
@click.option("--key", default=DEFAULT_KEY, show_default=True, help="Column of user ids.")
@click.option("--name", default=None, help="Name of the table of one file; default: that of the file.")
def init(sources: tuple[str, ...], key: str, name: str | None) -> None:
    """Propose a specification for the columns of files.

    Each file is a table. It lists the columns, and proposes a kind for each and rules for values without a place. It
    shows no value and takes no domain from the data: domains must be public knowledge, so you decide each one. What is
    left to decide is marked.

    Of a Parquet file it reads only names and types. A CSV file has no types: its first line is taken for names, and
    kinds are guessed from the first 20,480 rows, so they depend on these rows. If the first line is somebody's row, or
    columns are named after people, the proposal shows that. Read it before you publish it.

    \b
    Example:
      deniable init --from users.csv > shop.toml
      deniable init --from users.csv --from bought.csv --key customer_id
    """
    from deniable.engines.collecting.input_frames import column_types

    if name is not None and len(sources) > 1:
        raise BadInput("--name is for one file. Nothing was proposed. Write --from users=users.csv.")
    lines, names = list(_PROPOSAL_HEAD), set[str]()
    for source in sources:
        table, path = _named(source)
        table = plain_name(name or table or Path(path).stem)
        if table.casefold() in names:
            raise BadInput(
                f"two tables are called {table!r}. Nothing was proposed. Write --from other={Path(path).name}."
            )
        names.add(table.casefold())
        columns = column_types(path)
        if key not in columns:
            problem = f"the file has no column {key!r} of user ids: {Path(path).name!r}"
            raise BadInput(f"{problem}. Nothing was proposed. Name it with --key.")
        if any(len(column) > LONGEST_NAME for column in columns):
            problem = f"the file has a column whose name is longer than {LONGEST_NAME} characters"
            raise BadInput(f"{problem}. Nothing was proposed. Shorten it.")
        lines += ["", *proposed_table(table, columns, key, _looked_at(path))]
    if key != DEFAULT_KEY:
        named = key if plain_name(key) == key else json.dumps(key, ensure_ascii=False)
        lines.insert(len(_PROPOSAL_HEAD), f"# To collect from these files: deniable perturb … --key {named}")
    click.echo("\n".join(lines))


def _named(source: str) -> tuple[str, str]:
    """The name that a file is given, if any, and its path."""
    name, sign, path = source.partition("=")
    return (name, path) if sign and name and path and not Path(source).exists() else ("", source)


def _looked_at(source: str) -> str:
    """Which parts of a file a proposal depends on."""
    from deniable.engines.collecting.input_frames import SAMPLE_ROWS, is_csv

    if is_csv(source):
        return f"names in the first line, kinds guessed from the first {SAMPLE_ROWS:,} rows"
    return "names and types of columns, no row"


def proposed_table(name: str, columns: Mapping[str, str], key: str, looked_at: str) -> list[str]:
    """Lines that do not load until a person has decided on every domain."""
    lines = [
        f"[tables.{name}]",
        f"# Looked at: {looked_at}.",
        "# many = 10  # DECIDE: for several rows per user, the most that count",
    ]
    taken: set[str] = set()
    for column, kind in columns.items():
        if column == key:
            continue
        safe = plain_name(column)
        while safe.lower() in RESERVED or safe.lower() in taken:
            safe += "_"
        taken.add(safe.lower())
        note = "" if safe == column else f"; rename the column {json.dumps(column, ensure_ascii=False)} to this"
        listless = ', { kind = "text", max_length = 16 } in a table of its own' if kind == "VARCHAR" else ""
        other = f'or {{ kind = "public" }}{listless}, or leave it out{note}'
        lines.append(f"attributes.{safe} = {_domain(kind)}  # {other}")
    return lines


def _domain(kind: str) -> str:
    """What is proposed for a column of a type."""
    ends, missing = 'low = "DECIDE", high = "DECIDE"', 'missing = "own"'
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return f'{{ kind = "dates", {ends}, unit = "DECIDE: day, week, month, …", outside = "clip", {missing} }}'
    if "INT" in kind:
        return f'{{ kind = "ordinal", {ends}, step = 1, outside = "clip", {missing} }}'
    if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        return f'{{ kind = "ordinal", {ends}, step = "DECIDE", round = true, outside = "clip", {missing} }}'
    if kind == "BOOLEAN":
        return f'{{ kind = "categorical", values = [true, false], {missing} }}'
    return f'{{ kind = "categorical", values = "DECIDE: a list that ends with other", other = "other", {missing} }}'


def plain_name(name: str) -> str:
    """A name of letters, digits and _ that does not begin with a digit.

    >>> plain_name("2024 sales")
    '_2024_sales'
    """
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain
