"""Windows and scalar subqueries: every cell of the answer as a formula in one row, so that covariances are known.

`COUNT(*) / SUM(COUNT(*)) OVER ()` in groups needs the covariance of a group's count with the total. Written as one row
with a FILTER for each group, all of them are sums over the same users, and the error of any formula of them follows.
A subquery of the same tables is such a sum, too. One of other tables is asked on its own and put in as a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.limits import MOST_ANSWERS
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.compound_questions import item_behind, ordering_of
from deniable.queries.parsing.literals import literal_of

Node = Any
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """A question with windows or subqueries, taken apart."""

    select: Node
    groups: tuple[Node, ...]
    names: tuple[str, ...]
    items: tuple[Node, ...]
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int

    @property
    def shown_groups(self) -> dict[str, int]:
        """Columns of the answer that are groups, by their number."""
        return groups_among(self.groups, dict(zip(self.names, self.items, strict=True)))

    def keys_text(self) -> str:
        """A plain question whose rows are the groups of the answer."""
        made = self.select.copy()
        listed = [exp.alias_(group.copy(), f"g{number}") for number, group in enumerate(self.groups)]
        made.set("expressions", [*listed, exp.alias_(exp.Count(this=exp.Star(), big_int=True), "n")])
        made.set("group", exp.Group(expressions=[group.copy() for group in self.groups]))
        for clause in ("order", "limit", "offset"):
            made.set(clause, None)
        return str(made.sql(dialect="duckdb"))

    def cells_text(self, keys: Sequence[Key]) -> str:
        """A plain question of one row, with an answer `c{row}_{column}` for every cell that is not a group."""
        shown = self.shown_groups
        asked = [number for number, name in enumerate(self.names) if name not in shown]
        if len(keys) * len(asked) > MOST_ANSWERS:
            problem = f"windows and subqueries over {len(keys):,} groups need more than {MOST_ANSWERS} sums"
            raise QueryRefused(problem, "Use fewer groups or columns: larger bins, or WHERE.")
        cells = [
            exp.alias_(_Cell(self, keys, row).of(self.items[number]), f"c{row}_{number}")
            for row in range(len(keys))
            for number in asked
        ]
        made = exp.Select(expressions=cells, from_=self.select.args["from_"].copy())
        made.set("joins", [join.copy() for join in self.select.args.get("joins") or []])
        return str(made.sql(dialect="duckdb"))


def spread_of(select: Node) -> Spread | None:
    """A question with windows or scalar subqueries; None for any other."""
    inside = [item for item in select.expressions if item.find(exp.Window, exp.Subquery)]
    having = select.args.get("having")
    if not inside:
        return None
    if having is not None and having.find(exp.Window, exp.Subquery):
        raise QueryRefused("HAVING compares aggregates", "Choose among the answer's rows yourself.")
    items = tuple(item.this if isinstance(item, exp.Alias) else item for item in select.expressions)
    names = tuple(item.alias_or_name or name_of(item) for item in select.expressions)
    group = select.args.get("group")
    groups = () if group is None else tuple(item_behind(select, node) for node in group.expressions)
    if group is not None and group.args.get("all"):
        groups = tuple(item for item in items if item.find(exp.Column) and not item.find(exp.AggFunc))
    return Spread(select, groups, names, items, *ordering_of(select, names))


def same_source(select: Node, other: Node) -> bool:
    """Whether two SELECTs are of the same tables, joined in the same way."""
    return _source(select) == _source(other)


def _source(select: Node) -> str:
    source = select.args.get("from_")
    joins = [str(join.sql(dialect="duckdb")).casefold() for join in select.args.get("joins") or []]
    return "|".join([str(source and source.sql(dialect="duckdb")).casefold(), *joins])


def scalar_subquery(node: Node) -> Node:
    """The SELECT of a scalar subquery: one aggregate."""
    inner = node.this
    plain = isinstance(inner, exp.Select) and len(inner.expressions) == 1 and inner.find(exp.AggFunc)
    if not plain or any(inner.args.get(clause) for clause in ("group", "having", "limit", "offset", "distinct")):
        raise QueryRefused("a subquery here is one aggregate", "Write (SELECT COUNT(*) FROM t WHERE …).")
    return inner


class _Cell:
    """What an item is in one row, as a formula of filtered aggregates."""

    def __init__(self, spread: Spread, keys: Sequence[Key], row: int) -> None:
        self._spread, self._keys, self._row = spread, keys, row
        self._texts = [plain_text_of(group) for group in spread.groups]

    def of(self, node: Node) -> Node:
        text = plain_text_of(node)
        if text in self._texts:
            return literal_of(self._keys[self._row][self._texts.index(text)])
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Subquery):
            inner = scalar_subquery(node)
            item = inner.expressions[0]
            where = inner.args.get("where")
            return exp.Paren(this=_filtered(item.this if isinstance(item, exp.Alias) else item, [where]))
        if isinstance(node, (exp.AggFunc, exp.Filter)):
            return _filtered(node, [self._spread.select.args.get("where"), self._here(self._row)])
        made = node.copy()
        for name, value in node.args.items():
            if isinstance(value, exp.Expression):
                made.set(name, self.of(value))
            elif isinstance(value, list):
                made.set(name, [self.of(each) if isinstance(each, exp.Expression) else each for each in value])
        return made

    def _here(self, row: int) -> Node | None:
        parts: list[Node] = []
        for group, value in zip(self._spread.groups, self._keys[row], strict=True):
            node = exp.Paren(this=group.copy())
            if value is None:
                parts.append(exp.Is(this=node, expression=exp.null()))
            else:
                parts.append(exp.EQ(this=node, expression=literal_of(value)))
        return exp.Where(this=exp.and_(*parts, copy=False)) if parts else None

    def _window(self, node: Node) -> Node:
        function, order = node.this, node.args.get("order")
        ordered = [] if order is None else order.expressions
        frame = node.args.get("spec")
        rows = self._partition(node.args.get("partition_by") or [], ordered)
        position = rows.index(self._row)
        if isinstance(function, (exp.Lag, exp.Lead)):
            if not ordered:
                raise QueryRefused("LAG and LEAD need an order", "Write OVER (ORDER BY …).")
            offset = function.args.get("offset")
            step = 1 if offset is None else int(offset.this)
            other = position - step if isinstance(function, exp.Lag) else position + step
            if not 0 <= other < len(rows):
                default = function.args.get("default")
                if default is None or isinstance(default, exp.Null):
                    return _nothing()
                if default.find(exp.Column, exp.AggFunc):
                    raise QueryRefused("the default of LAG and LEAD is a number", "Write LAG(COUNT(*), 1, 0).")
                return exp.Paren(this=default.copy())
            return exp.Paren(this=_Cell(self._spread, self._keys, rows[other]).of(function.this))
        if not isinstance(function, (exp.Sum, exp.Avg, exp.FirstValue, exp.LastValue)):
            problem = "of windows there are SUM, AVG, LAG, LEAD and FIRST_VALUE of answers; noise would decide ranks"
            raise QueryRefused(problem, "Write SUM(COUNT(*)) OVER (…); ORDER BY n DESC LIMIT 3 shows the largest.")
        if frame is not None:
            members = rows[slice(*_frame(frame, position, len(rows)))]
        else:
            members = rows[: position + 1] if ordered else rows
        if not members:
            return _nothing()
        if isinstance(function, (exp.FirstValue, exp.LastValue)):
            member = members[0 if isinstance(function, exp.FirstValue) else -1]
            return exp.Paren(this=_Cell(self._spread, self._keys, member).of(function.this))
        total = _Cell(self._spread, self._keys, members[0]).of(function.this)
        for member in members[1:]:
            total = exp.Add(this=total, expression=_Cell(self._spread, self._keys, member).of(function.this))
        if isinstance(function, exp.Sum):
            return exp.Paren(this=total)
        size = exp.Literal.number(f"{len(members)}.0")
        return exp.Paren(this=exp.Div(this=exp.Paren(this=total), expression=size, typed=False, safe=False))

    def _partition(self, by: list[Node], ordered: list[Node]) -> list[int]:
        """The rows of this one's partition, in order; both by groups, because answers are noisy."""
        columns = [self._group(node) for node in by]
        mine = [self._keys[self._row][column] for column in columns]
        rows = [row for row, key in enumerate(self._keys) if [key[column] for column in columns] == mine]
        for key in reversed(ordered):
            column = self._group(key.this)
            known = [row for row in rows if self._keys[row][column] is not None]
            known.sort(key=lambda row: self._keys[row][column], reverse=bool(key.args.get("desc")))
            rows = known + [row for row in rows if self._keys[row][column] is None]
        if ordered and len({tuple(self._keys[row][self._group(key.this)] for key in ordered) for row in rows}) < len(
            rows
        ):
            raise QueryRefused("rows of a window have no definite order", "Order by all groups, or PARTITION BY some.")
        return rows

    def _group(self, node: Node) -> int:
        text = plain_text_of(item_behind(self._spread.select, node))
        if text not in self._texts:
            problem = "windows are ordered and partitioned by groups: the order of answers is noisy"
            raise QueryRefused(problem, "Order by a column of GROUP BY; ORDER BY n DESC at the end shows who is first.")
        return self._texts.index(text)


def _nothing() -> Node:
    """An answer that does not exist."""
    return exp.Div(this=exp.Literal.number(0), expression=exp.Literal.number(0), typed=False, safe=False)


def _frame(frame: Node, position: int, rows: int) -> tuple[int, int]:
    """ROWS BETWEEN … AND …, as the first row of a partition and the one after the last."""

    def row(end: str, otherwise: int) -> int:
        value, side = frame.args.get(end), str(frame.args.get(f"{end}_side") or "").upper()
        if isinstance(value, exp.Literal) and not value.is_string and value.this.isdigit():
            return position - int(value.this) if side == "PRECEDING" else position + int(value.this)
        if value == "UNBOUNDED":
            return 0 if side == "PRECEDING" else rows - 1
        if value is None or value == "CURRENT ROW":
            return position if value is not None else otherwise
        raise QueryRefused("frames of windows are counted in rows", "Write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW.")

    if str(frame.args.get("kind")).upper() != "ROWS" or frame.args.get("exclude"):
        raise QueryRefused("frames of windows are counted in rows", "Write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW.")
    return max(row("start", position), 0), max(row("end", position) + 1, 0)


def cell_of(spread: Spread, keys: Sequence[Key], row: int, item: Node) -> Node:
    """What an item is in the row of a group, as a formula of filtered aggregates."""
    return _Cell(spread, keys, row).of(item)


def _filtered(node: Node, conditions: list[Node | None]) -> Node:
    """An expression whose aggregates are over the rows that pass some conditions."""
    known = [exp.Paren(this=each.this.copy()) for each in conditions if each is not None]

    def restricted(part: Node) -> Node:
        own = [exp.Paren(this=part.expression.this.copy())] if isinstance(part, exp.Filter) else []
        aggregate = part.this if isinstance(part, exp.Filter) else part
        if not own and not known:
            return part.copy()
        where = exp.Where(this=exp.and_(*known, *own, copy=True))
        return exp.Filter(this=aggregate.copy(), expression=where)

    if isinstance(node, (exp.Filter, exp.AggFunc)):
        return restricted(node)
    made = node.copy()
    for part in list(made.find_all(exp.Filter, exp.AggFunc)):
        if isinstance(part, exp.Filter) or not isinstance(part.parent, exp.Filter):
            part.replace(restricted(part))
    return made


def groups_among(groups: Sequence[Node], items: Mapping[str, Node]) -> dict[str, int]:
    """Which items are groups: the number of the group by the item's name."""
    texts = [plain_text_of(group) for group in groups]
    written = {name: plain_text_of(item) for name, item in items.items()}
    return {name: texts.index(text) for name, text in written.items() if text in texts}


def plain_text_of(node: Node) -> str:
    """An expression as a text that is the same for the same expression, without brackets and prefixes."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return str(node.name).casefold()
    return str(node.sql(dialect="duckdb", normalize_functions="lower")).casefold()
