"""What MySQL's tools write → what our SQL says: a pure function of trees.

Dates have a file of their own. Constant parts are computed. What is left is checked by our parser as any other text.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from deniable.service.mysql.date_translation import translate_dates

Node = Any
Constant = Callable[[str], Any]
"""Computes an expression without columns."""


def our_sql(tree: Node, constant: Constant, date_columns: Container[str] = ()) -> str:
    """The text of a MySQL tree in our SQL. `date_columns` are names of columns that hold dates."""
    tree = tree.copy()
    translate_dates(tree)
    for step in (_without_safe_division, _without_null_order, _grouped_by_name, _grouped_by_time):
        tree = tree.transform(step, copy=False)
    text = str(tree.sql(dialect="duckdb"))
    return _folded(text, constant, date_columns)


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


def _grouped_by_time(node: Node) -> Node:
    """SELECT UNIX_TIMESTAMP(day) … GROUP BY day: one group per day, shown in seconds."""
    if not isinstance(node, exp.Select) or node.args.get("group") is None:
        return node
    for item in node.expressions:
        shown = item.unalias()
        seconds = shown.this if isinstance(shown, exp.Cast) else None
        if not isinstance(seconds, exp.Extract) or seconds.name.upper() != "EPOCH":
            continue
        ordered = node.args.get("order")
        for group in (*node.args["group"].expressions, *(entry.this for entry in ordered or ())):
            if group == seconds.expression:
                group.replace(shown.copy())
    return node


def _folded(text: str, constant: Constant, date_columns: Container[str]) -> str:
    """The text with functions of constants computed: STR_TO_DATE('2026-01-31', …) is a date."""
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError:
        return text

    def fold(node: Node) -> Node:
        kinds = (exp.Func, exp.Add, exp.Sub)
        computed = isinstance(node, kinds) and not isinstance(node, (exp.AggFunc, exp.Case, exp.And, exp.Or))
        if not computed or node.find(exp.Column, exp.Star, exp.Table, exp.AggFunc) is not None:
            return node
        if isinstance(node.parent, exp.Select) or _is_moment(node):
            return node
        value = constant(str(node.sql(dialect="duckdb")))
        if value is None:
            return node
        if hasattr(value, "hour"):
            value = value.replace(tzinfo=None)  # the catalogue computes in UTC
            midnight = (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0)
            kind, shown = ("date", value.date().isoformat()) if midnight else ("timestamp", value.isoformat(" "))
            return exp.cast(exp.Literal.string(shown), kind)
        if hasattr(value, "year"):
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
        return node

    tree = tree.transform(fold, copy=False).transform(_apart, copy=False)
    return str(tree.transform(_whole_days, date_columns, copy=False).sql(dialect="duckdb"))


def _is_moment(node: Node) -> bool:
    """A constant date with a time."""
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not node.is_type("date")


def _apart(node: Node) -> Node:
    """BETWEEN two moments, as two comparisons."""
    if isinstance(node, exp.Between) and (_is_moment(node.args["low"]) or _is_moment(node.args["high"])):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
        return exp.paren(exp.And(this=low, expression=exp.LTE(this=node.this.copy(), expression=node.args["high"])))
    return node


def _whole_days(node: Node, date_columns: Container[str]) -> Node:
    """A date compared with a moment during a day: a date is its midnight, so the day itself lies before the moment."""
    sides = {exp.GTE: exp.GT, exp.GT: exp.GT, exp.LTE: exp.LTE, exp.LT: exp.LTE}
    if type(node) not in sides or not _is_moment(node.expression):
        return node
    day, _, time = node.expression.this.name.partition(" ")
    if not isinstance(node.this, exp.Column) or node.this.name.casefold() not in date_columns or not time.strip("0:."):
        return node
    return sides[type(node)](this=node.this, expression=exp.cast(exp.Literal.string(day), "date"))
