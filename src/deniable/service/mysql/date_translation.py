"""Dates as MySQL and its tools write them → dates in our SQL, in place.

Superset, Metabase and Grafana cut dates to weeks, months and quarters with formulas of their own. Some functions have
the same name in both dialects and another meaning (Sunday is 1 in MySQL and 0 here); those are rewritten, or refused
where there is no counterpart: a chart must not be shifted by a day without anybody noticing.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused

Node = Any
_MONTH_FORMATS = ("%Y-%m", "%Y-%m-01", "%Y-%m-")
_WRAPPERS = (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.StrToTime, exp.Cast, exp.Paren)


def translate_dates(tree: Node) -> None:
    """Replace what MySQL's dialect says about dates."""
    for step in (_cuts, _quarter_steps, _days_of_week, _weeks, _days_of_month, _moments, _epochs):
        step(tree)


def _each(tree: Node, *kinds: type) -> list[Node]:
    """Inner nodes first, so that what is replaced has been seen to inside."""
    return list(tree.find_all(*kinds))[::-1]


def _is_call(node: Node, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == name


def _calls(tree: Node, name: str) -> list[Node]:
    return [node for node in _each(tree, exp.Anonymous) if _is_call(node, name)]


def _bare(value: Node) -> Node:
    while isinstance(value, _WRAPPERS):
        value = value.this
    return value


def _as_date(value: Node) -> Node:
    return exp.Cast(this=value, to=exp.DataType.build("date"))


def _cut(value: Node, unit: str) -> Node:
    return _as_date(exp.func("DATE_TRUNC", exp.Literal.string(unit), _bare(value).copy(), dialect="duckdb"))


def _cuts(tree: Node) -> None:
    """MAKEDATE(YEAR(x), 1), and Metabase's texts that are read as dates again: month, quarter, week from Sunday."""
    for node in _calls(tree, "MAKEDATE"):
        year, day = node.expressions
        if isinstance(year, exp.Year) and day.sql() == "1":
            node.replace(_cut(year.this, "YEAR"))
    for node in _each(tree, exp.StrToDate, exp.StrToTime):
        shown, parts = node.find(exp.TimeToStr), node.find(exp.Concat)
        if shown is not None and shown.args["format"].name in _MONTH_FORMATS:
            node.replace(_cut(shown.this, "MONTH"))
        elif parts is not None and (value := _quarter_of(parts.expressions)) is not None:
            node.replace(_cut(value, "QUARTER"))
        elif parts is not None and _is_call(parts.expressions[0], "YEARWEEK") and _from_sunday(node, parts.expressions):
            node.replace(_week_from_sunday(parts.expressions[0].expressions[0]))


def _quarter_of(parts: list[Node]) -> Node | None:
    """x, if the parts are YEAR(x), '-', QUARTER(x) * 3 - 2, '-01'."""
    if len(parts) != 4 or not isinstance(parts[0], exp.Year) or (parts[1].name, parts[3].name) != ("-", "-01"):
        return None
    value, month = _bare(parts[0].this), parts[2].copy()
    quarter = month.find(exp.Quarter)
    if quarter is None or _bare(quarter.this) != value:
        return None
    quarter.replace(exp.to_identifier("q"))
    return value if month.sql().replace("(", "").replace(")", "") == "q * 3 - 2" else None


def _from_sunday(node: Node, parts: list[Node]) -> bool:
    alone = len(parts) == 2 and len(parts[0].expressions) == 1
    return alone and parts[1].name == " Sunday" and node.args["format"].name == "%X%V %A"


def _week_from_sunday(value: Node) -> Node:
    """The Sunday on or before a day."""
    day = _bare(value).copy()
    back = exp.Interval(this=exp.Paren(this=exp.DayOfWeek(this=day.copy())), unit=exp.Var(this="DAY"))
    return _as_date(exp.Sub(this=day, expression=_ours(back)))


def _ours(node: Node) -> Node:
    """Mark days of the week that already count as we do."""
    for day in node.find_all(exp.DayOfWeek):
        day.meta["ours"] = True
    return node


def _quarter_steps(tree: Node) -> None:
    """MAKEDATE(YEAR(x), 1) + INTERVAL QUARTER(x) QUARTER - INTERVAL 1 QUARTER, as Superset writes it."""
    for node in _each(tree, exp.Sub):
        added, taken = node.this, node.expression
        if not (isinstance(added, exp.Add) and isinstance(taken, exp.Interval) and taken.this.name == "1"):
            continue
        step = added.expression
        if (
            isinstance(step, exp.Interval)
            and {str(step.args["unit"]).upper(), str(taken.args["unit"]).upper()} == {"QUARTER"}
            and isinstance(_bare(step.this), exp.Quarter)
        ):
            value = _bare(step.this).this
            if added.this == _cut(value, "YEAR"):
                node.replace(_cut(value, "QUARTER"))


def _days_of_week(tree: Node) -> None:
    """MySQL counts days of the week from 1 for Sunday (DAYOFWEEK) or from 0 for Monday (WEEKDAY)."""
    for node in _each(tree, exp.DayOfWeek):
        if not node.meta.get("ours"):
            counted = exp.DayOfWeek(this=_bare(node.this).copy())
            node.replace(exp.paren(exp.Add(this=counted, expression=exp.Literal.number(1))))
    for node in _calls(tree, "WEEKDAY"):
        counted = exp.DayOfWeek(this=_bare(node.expressions[0]).copy())
        shifted = exp.paren(exp.Add(this=counted, expression=exp.Literal.number(6)))
        node.replace(exp.paren(exp.Mod(this=shifted, expression=exp.Literal.number(7))))


def _weeks(tree: Node) -> None:
    """Weeks of a year: ours are those of ISO 8601, which MySQL calls WEEKOFYEAR(x) and WEEK(x, 3)."""
    for node in _each(tree, exp.Week):
        mode = node.args.get("mode")
        if mode is None or mode.name != "3":
            raise QueryRefused("weeks are counted as in ISO 8601 here", "Write WEEK(day, 3) or WEEKOFYEAR(day).")
        node.set("mode", None)
    for node in _each(tree, exp.WeekOfYear):
        node.replace(exp.Week(this=node.this.copy()))
    if _calls(tree, "YEARWEEK"):
        raise QueryRefused("YEARWEEK is not known here", "Write YEAR(day) and WEEKOFYEAR(day).")


def _days_of_month(tree: Node) -> None:
    for node in _each(tree, exp.DayOfMonth):
        node.replace(exp.Day(this=node.this.copy()))


def _moments(tree: Node) -> None:
    """'2026-01-31 13:00' - INTERVAL 7 DAY, as NOW() - INTERVAL 7 DAY arrives here."""
    for node in _each(tree, exp.Interval):
        if isinstance(node.parent, (exp.Add, exp.Sub)) and node.parent.this.is_string:
            node.parent.this.replace(exp.cast(node.parent.this.copy(), "timestamp"))


def _epochs(tree: Node) -> None:
    """UNIX_TIMESTAMP(x) DIV 3600 * 3600, as Grafana writes it: whole seconds since 1970, of a date or a time."""
    for node in _each(tree, exp.TimeToUnix, exp.Anonymous):
        if isinstance(node, exp.TimeToUnix) or node.name.upper() == "UNIX_TIMESTAMP":
            value = _bare(node.this if isinstance(node, exp.TimeToUnix) else node.expressions[0])
            seconds = exp.Extract(this=exp.Var(this="EPOCH"), expression=value.copy())
            # DuckDB's // divides floats without cutting off the fraction.
            node.replace(exp.Cast(this=seconds, to=exp.DataType.build("bigint")))
