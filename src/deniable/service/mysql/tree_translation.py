"""What MySQL's tools write → what our SQL says: a pure function of trees.

Superset, Metabase and Grafana group dates with their own formulas. Where our functions say the same in one word, a
formula is replaced by it; constant parts are computed. Whatever is left is checked by our parser as any other text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

Node = Any
Constant = Callable[[str], Any]
"""Computes an expression without columns."""


def our_sql(tree: Node, constant: Constant) -> str:
    """The text of a MySQL tree in our SQL."""
    tree = tree.copy()
    for step in (_without_safe_division, _without_null_order, _dates, _epochs, _grouped_by_name):
        tree = tree.transform(step, copy=False)
    text = str(tree.sql(dialect="duckdb"))
    return _folded(text, constant)


def _without_safe_division(node: Node) -> Node:
    """A division by a constant that is not zero needs no guard against zero."""
    if isinstance(node, exp.Div) and isinstance(node.expression, exp.Literal) and float(node.expression.this) != 0:
        node.set("safe", False)
    return node


def _without_null_order(node: Node) -> Node:
    """MySQL puts NULL first. What is unclear comes last here, wherever a tool puts it."""
    if isinstance(node, exp.Ordered):
        node.set("nulls_first", None)
    return node


def _dates(node: Node) -> Node:
    """Formulas that tools use to cut dates to a month, a quarter or a year."""
    if isinstance(node, exp.DayOfMonth):
        return exp.Day(this=node.this)
    if isinstance(node, exp.Anonymous) and node.name.upper() == "MAKEDATE" and len(node.expressions) == 2:
        year, day = node.expressions
        if isinstance(year, exp.Year) and day.sql() == "1":
            return _cut(year.this, "YEAR")
    if isinstance(node, (exp.StrToDate, exp.StrToTime)):
        shown = next(node.find_all(exp.TimeToStr), None)
        if shown is not None and shown.args["format"].name in ("%Y-%m", "%Y-%m-01", "%Y-%m-"):
            return _cut(shown.this, "MONTH")
    return node


def _cut(value: Node, unit: str) -> Node:
    while isinstance(value, (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.Cast)):
        value = value.this
    cut = exp.func("DATE_TRUNC", exp.Literal.string(unit), value, dialect="duckdb")
    return exp.Cast(this=cut, to=exp.DataType.build("date"))


def _epochs(node: Node) -> Node:
    """UNIX_TIMESTAMP(x) DIV 3600 * 3600, as Grafana writes it: seconds since 1970, of a date or a time."""
    is_epoch = isinstance(node, exp.TimeToUnix) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "UNIX_TIMESTAMP"
    )
    if is_epoch:
        value = node.this if isinstance(node, exp.TimeToUnix) else node.expressions[0]
        while isinstance(value, (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.StrToTime)):
            value = value.this
        return exp.Extract(this=exp.Var(this="EPOCH"), expression=value)
    return node


def _grouped_by_name(node: Node) -> Node:
    """GROUP BY a name that an answer took from an attribute means the answer: it is written out."""
    if not isinstance(node, exp.Select) or node.args.get("group") is None:
        return node
    named = {item.alias.casefold(): item.this for item in node.expressions if isinstance(item, exp.Alias)}
    for index, group in enumerate(node.args["group"].expressions):
        if isinstance(group, exp.Column) and not group.table:
            meant = named.get(group.name.casefold())
            if meant is not None and not isinstance(meant, exp.Column):
                node.args["group"].expressions[index] = meant.copy()
                node.args["group"].set("expressions", node.args["group"].expressions)
    return node


def _folded(text: str, constant: Constant) -> str:
    """The text with functions of constants computed: STR_TO_DATE('2026-01-31', …) is a date."""
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError:
        return text

    def fold(node: Node) -> Node:
        computed = isinstance(node, exp.Func) and not isinstance(
            node, (exp.AggFunc, exp.Cast, exp.Case, exp.And, exp.Or)
        )
        if not computed or node.find(exp.Column, exp.Star, exp.Table, exp.AggFunc) is not None:
            return node
        if isinstance(node.parent, exp.Select):
            return node
        value = constant(str(node.sql(dialect="duckdb")))
        if value is None:
            return node
        if hasattr(value, "hour"):
            midnight = (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0)
            kind, shown = ("date", value.date().isoformat()) if midnight else ("timestamp", value.isoformat(" "))
            return exp.cast(exp.Literal.string(shown), kind)
        if hasattr(value, "year"):
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
        return node

    return str(tree.transform(fold, copy=False).sql(dialect="duckdb"))
