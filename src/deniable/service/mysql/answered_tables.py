"""Questions about an answer: SELECT sex, n, n_low FROM (SELECT sex, COUNT(*) AS n … GROUP BY sex) AS virtual_table.

A tool that keeps a question as a dataset asks for its columns, those with the errors too. The inner question is
answered, and the outer one picks from the rows, which are public by then. It may not add several rows up: the ends of
intervals do not add, so every group of the outer question must be one row of the inner.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.answers.result import Result

Node = Any
_ERROR_COLUMNS = ("_stderr", "_low", "_high", "_model")


def inner_question(select: Node) -> Node | None:
    """The question in FROM, if the outer one asks for columns that only its answer has; None for other questions."""
    source = select.args.get("from_")
    if source is None or not isinstance(source.this, exp.Subquery) or select.args.get("joins"):
        return None
    inner = source.this.this
    if not isinstance(inner, exp.Select):
        return None
    named = {item.alias_or_name.casefold() for item in inner.expressions}
    asked = {column.name.casefold() for column in _own_columns(select, source)}
    added = {f"{name}{ending}" for name in named for ending in _ERROR_COLUMNS} - named
    return inner if asked & added else None


def _own_columns(select: Node, source: Node) -> list[Node]:
    """The columns of a question, without those of the question in its FROM."""
    inside = {id(column) for column in source.find_all(exp.Column)}
    return [column for column in select.find_all(exp.Column) if id(column) not in inside]


def outer_text(select: Node, result: Result, name: str) -> str:
    """The outer question about a table `name` with the answer's rows, for DuckDB."""
    outer = select.copy()
    source = outer.args["from_"]
    alias = source.this.alias_or_name
    source.set("this", exp.alias_(exp.Table(this=exp.to_identifier(name, quoted=True)), alias or "answer", table=True))
    if len(list(outer.find_all(exp.Table))) != 1 or outer.find(exp.Subquery) is not None:
        raise QueryRefused("a question about an answer has one table", "Ask for columns of the question in FROM.")
    grouped = {group.name.casefold() for group in outer.args.get("group") or ()}
    adds = outer.find(exp.AggFunc) is not None or outer.args.get("group") is not None
    if adds and not {group.casefold() for group in result.groups} <= grouped and len(result) > 1:
        raise QueryRefused(
            "errors of several rows cannot be added up", f"Group by all of {', '.join(result.groups)}, or by none."
        )
    for entry in outer.find_all(exp.Ordered):
        entry.set("nulls_first", None)
    return str(outer.sql(dialect="duckdb"))


def without_nan(table: pa.Table) -> pa.Table:
    """The rows with NULL where a number is unclear."""
    columns = [
        pa.array([None if cell != cell else cell for cell in column.to_pylist()], column.type)
        if pa.types.is_floating(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)
