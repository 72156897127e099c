"""Functions of single values that DuckDB itself evaluates: on every value of a private attribute's domain, once, or on
public columns, row by row.

Each kind of node is listed with the parts that it may have; a node of any other kind is refused by name. `ANYWHERE` are
those that mean the same in DuckDB and Spark, so that public columns may use them with either engine.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

_ARGUMENT = frozenset({"this"})
_SIDES = frozenset({"this", "expression"})
_ITEMS = frozenset({"this", "expressions"})
_DIVISION = frozenset({"this", "expression", "typed", "safe"})
_OPERATORS: dict[Any, frozenset[str]] = {
    **dict.fromkeys((exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is), _SIDES),
    **dict.fromkeys((exp.Not, exp.Paren, exp.Neg, exp.Boolean, exp.Null, exp.Var), _ARGUMENT),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _SIDES),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: _ITEMS,
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.DataType: frozenset({"this", "nested", "expressions"}),
    exp.DataTypeParam: _ARGUMENT,
}
ANYWHERE: dict[Any, frozenset[str]] = {
    **_OPERATORS,
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Abs), _ARGUMENT),
    **dict.fromkeys((exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Hour, exp.Minute), _ARGUMENT),
    **dict.fromkeys((exp.Like, exp.ILike), frozenset({"this", "expression", "negate"})),
    **dict.fromkeys((exp.RegexpLike, exp.StartsWith, exp.EndsWith, exp.Contains, exp.Nullif), _SIDES),
    exp.Coalesce: _ITEMS,
    **dict.fromkeys((exp.Greatest, exp.Least), frozenset({"this", "expressions", "ignore_nulls"})),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _SIDES),
}
"""On public columns, too."""
ON_DOMAINS: dict[Any, frozenset[str]] = {
    **ANYWHERE,
    exp.Div: _DIVISION,
    **dict.fromkeys((exp.IntDiv, exp.Mod, exp.Pow), _SIDES),
    **dict.fromkeys((exp.Sqrt, exp.Ln, exp.Exp, exp.Sign, exp.Trunc), _ARGUMENT),
    exp.Log: _SIDES,
    exp.Round: frozenset({"this", "decimals"}),
    **dict.fromkeys((exp.Ceil, exp.Floor), _ARGUMENT),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    **dict.fromkeys((exp.Left, exp.Right), _SIDES),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.SimilarTo: _SIDES,
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.DateTrunc: frozenset({"this", "unit"}),
    exp.Extract: _SIDES,
    **dict.fromkeys((exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfMonth, exp.DayOfYear, exp.Week, exp.LastDay), _ARGUMENT),
    **dict.fromkeys((exp.Dayname, exp.Monthname), _ARGUMENT),
    exp.TimeToStr: frozenset({"this", "format"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.DateBin: _SIDES,
    exp.DateAdd: _SIDES,
    exp.DateSub: _SIDES,
    exp.DateDiff: frozenset({"this", "expression", "unit", "date_part_boundary"}),
    exp.DateFromParts: frozenset({"year", "month", "day"}),
}
"""On the values of a domain."""
_OF_THE_DAY = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime)
_DAY_NAMES = {"now", "today", "get_current_timestamp", "get_current_time", "transaction_timestamp", "localtimestamp"}
Refusal = tuple[str, str]


def named(node: Any) -> str:
    """What a function or an operator is called in a message."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    if isinstance(node, exp.Func):
        return str(node.sql_name())
    return type(node).__name__.upper()


def why_not(node: Any, known: dict[Any, frozenset[str]]) -> Refusal | None:
    """Why a node is not let through; None if it is known."""
    if isinstance(node, _OF_THE_DAY) or (isinstance(node, exp.Anonymous) and str(node.this).lower() in _DAY_NAMES):
        problem = "the answer would depend on the day it is asked on, and the same text has to mean the same"
        return problem, "Write the date: DATE '2024-01-31'."
    if type(node) not in known:
        if type(node) in ON_DOMAINS:
            return f"{named(node)} is for private attributes", "Compare the public column with constants."
        return f"{named(node)} is not known here", _NEAREST.get(named(node), "Compare with constants, or use CASE.")
    for part, value in node.args.items():
        if value and part not in known[type(node)]:
            return f"{part.strip('_').upper()} of {named(node)} is not supported", "Leave it out."
    return None


_NEAREST = {
    "RAND": "Answers do not depend on chance.",
    "GLOB": "Use LIKE.",
    "COLLATE": "Use LOWER.",
    "TIME_TO_UNIX": "Compare it with dates.",
}
