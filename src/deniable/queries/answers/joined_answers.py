"""Answers joined on their groups: FROM (SELECT city, COUNT(*) …) AS a JOIN (SELECT city, SUM(…) …) AS b USING (city).

Each derived table is asked on its own. Rows with the same groups stand side by side, as in any join. What is calculated
from both has an interval that holds whatever their errors have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.answers.answer_arithmetic import Interval, check_arithmetic, combined
from deniable.queries.answers.combined_quantiles import Ask
from deniable.queries.answers.compound_answers import arranged
from deniable.queries.answers.result import Estimate, Result
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.compound_questions import ordering_of
from deniable.queries.parsing.source_names import conjuncts

Node = Any
Row = dict[str, Any]
NO_PARTNER = "{}: unclear where a row has no partner in its derived table"
_GROUPED_AGAIN = ("group", "having", "distinct", "qualify", "windows")
_JOINED_BY = ("", "LEFT", "FULL", "RIGHT", "CROSS")


@dataclass(frozen=True, slots=True)
class _JoinedTable:
    """A derived table of answers."""

    alias: str
    text: str


@dataclass(frozen=True, slots=True)
class _Join:
    """How a part is joined with the ones before it."""

    side: str
    on: tuple[tuple[str, str], ...]
    """Columns before it, and its own, that have to be equal."""
    merged: tuple[str, ...]
    """Columns that USING makes one of."""


@dataclass(frozen=True, slots=True)
class JoinedAnswers:
    """A SELECT from several derived tables of answers."""

    parts: tuple[_JoinedTable, ...]
    joins: tuple[_Join, ...]
    items: dict[str, Node]
    where: tuple[Node, ...]
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int

    def answer(self, ask: Ask, confidence: float, text: str) -> Result:
        """The answer, row by row; missing values are NULL."""
        wide = max(len(list(node.find_all(exp.Column))) for node in self.items.values())
        shown = [ask(part.text, 1) for part in self.parts]
        tight = [ask(part.text, wide) for part in self.parts] if wide > 1 else shown
        rows = self._joined([_rows(part.alias, *pair) for part, *pair in zip(self.parts, shown, tight, strict=True)])
        columns = {name: [_item(node, row, confidence) for row in rows] for name, node in self.items.items()}
        notes = list(dict.fromkeys(note for result in shown for note in result.notes))
        for name, values in columns.items():
            if any(isinstance(value, Estimate) for value in values) and None in values:
                columns[name] = [Estimate(math.nan, math.nan, confidence) if each is None else each for each in values]
                notes.append(NO_PARTNER.format(name))
        return arranged(columns, self.order, self.limit, self.offset, replace(shown[0], notes=tuple(notes), sql=text))

    def _joined(self, tables: list[list[Row]]) -> list[Row]:
        rows = tables[0]
        for join, others in zip(self.joins, tables[1:], strict=True):
            made, met = [], set()
            for row in rows:
                partners = [number for number, other in enumerate(others) if _meet(join, row, other)]
                met.update(partners)
                made += [{**row, **_coalesced(join, row, others[number])} for number in partners]
                if not partners and join.side in ("LEFT", "FULL"):
                    made.append(row)
            if join.side in ("FULL", "RIGHT"):
                made += [_coalesced(join, {}, other) for number, other in enumerate(others) if number not in met]
            rows = made
        return rows


def joined_answers(tree: Node) -> JoinedAnswers | None:
    """A SELECT from derived tables of answers that are joined; None for any other."""
    source = tree.args.get("from_") if isinstance(tree, exp.Select) else None
    joins = [] if source is None else tree.args.get("joins") or []
    if not joins or source is None:
        return None
    tables = tree.args.get("with_")
    selects = [_answers_of(holder.this, tables) for holder in (source, *joins)]
    inner = [select for select in selects if select is not None]
    if len(inner) < len(selects) or all(select.args.get("group") is None for select in inner):
        return None
    if any(tree.args.get(clause) for clause in _GROUPED_AGAIN) or any(item.find(exp.Star) for item in tree.expressions):
        problem = "joined answers can be shown and calculated with, not grouped again"
        raise QueryRefused(problem, "Name their columns; group in the derived tables.")
    aliases = [holder.this.alias_or_name.casefold() for holder in (source, *joins)]
    parts = tuple(_JoinedTable(alias, _text(select, tables)) for alias, select in zip(aliases, inner, strict=True))
    owners = _owners(aliases, inner)
    items = {item.alias_or_name or name_of(item): _named(_bare(item), owners) for item in tree.expressions}
    names = tuple(items)
    if len(names) < len(tree.expressions):
        raise QueryRefused("two answers have the same name", "Name them with AS.")
    if tree.args.get("where") is not None:
        raise QueryRefused("rows of joined answers are not chosen by WHERE", "Put it into the derived tables.")
    made = tuple(_join(join, aliases[: number + 1], owners) for number, join in enumerate(joins))
    return JoinedAnswers(parts, made, items, (), *ordering_of(tree, names))


def _answers_of(node: Node, tables: Node) -> Node | None:
    """The SELECT of a derived table of answers."""
    inner = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(node, exp.Table):
        named = {each.alias.casefold(): each.this for each in (tables.expressions if tables is not None else [])}
        inner = named.get(node.name.casefold())
    known = isinstance(inner, exp.Select) and any(item.find(exp.AggFunc) for item in inner.expressions)
    return inner if known else None


def _text(select: Node, tables: Node) -> str:
    made = select.copy()
    if tables is not None and made.args.get("with_") is None:
        made.set("with_", tables.copy())
    return str(made.sql(dialect="duckdb"))


def _owners(aliases: list[str], inner: list[Node]) -> dict[tuple[str, str], str]:
    """What (table, column) and ("", column) mean: "table.column"."""
    owners: dict[tuple[str, str], str] = {}
    for alias, select in zip(aliases, inner, strict=True):
        for item in select.expressions:
            name = str(item.alias_or_name or name_of(item)).casefold()
            owners[alias, name] = f"{alias}.{name}"
            owners.setdefault(("", name), f"{alias}.{name}")
    return owners


def _named(node: Node, owners: dict[tuple[str, str], str]) -> Node:
    def replaced(part: Node) -> Node:
        if not isinstance(part, exp.Column):
            return part
        meant = owners.get((part.table.casefold(), part.name.casefold()))
        if meant is None:
            raise QueryRefused(f"the derived tables have no column {part.name!r}", "Name one that they select.")
        return exp.column(meant, quoted=True)

    made = node.copy().transform(replaced)
    if not isinstance(made, exp.Column) and not _is_merged(made):
        check_arithmetic(made)
    return made


def _is_merged(node: Node) -> bool:
    """COALESCE(a.city, b.city), as FULL JOIN needs it."""
    return isinstance(node, exp.Coalesce) and all(
        isinstance(part, exp.Column) for part in (node.this, *node.expressions)
    )


def _join(join: Node, before: list[str], owners: dict[tuple[str, str], str]) -> _Join:
    side = str(join.args.get("side") or join.args.get("kind") or "").upper()
    side = "" if side == "INNER" else side
    own = join.this.alias_or_name.casefold()
    if side not in _JOINED_BY or join.args.get("method"):
        raise QueryRefused("answers are joined by JOIN, LEFT, RIGHT or FULL JOIN", "Name their columns with ON.")
    pairs: list[tuple[str, str]] = []
    using = [str(name.name).casefold() for name in join.args.get("using") or []]
    for name in using:
        left = next((owners[alias, name] for alias in before if (alias, name) in owners), None)
        if left is None or (own, name) not in owners:
            raise QueryRefused(f"the derived tables have no common column {name!r}", "Select it in both.")
        pairs.append((left, owners[own, name]))
    for part in conjuncts(join.args["on"]) if join.args.get("on") is not None else []:
        sides = [part.left, part.right] if isinstance(part, exp.EQ) else []
        if isinstance(part, exp.Boolean) and part.this:
            continue
        if not sides or not all(isinstance(each, exp.Column) for each in sides):
            raise QueryRefused("answers are joined on equal groups", "Write ON a.city = b.city.")
        left, right = (str(_named(each, owners).name) for each in sides)
        pairs.append((left, right) if right.startswith(f"{own}.") else (right, left))
    return _Join(side, tuple(pairs), tuple(using))


def _rows(alias: str, shown: Result, tight: Result) -> list[Row]:
    """Rows as dictionaries; an answer is a pair: as it is shown, and as it takes part in arithmetic."""
    made: list[Row] = []
    for number in range(len(shown)):
        row: Row = {f"{alias}.{name.casefold()}": values[number] for name, values in shown.groups.items()}
        for name in shown.answers:
            row[f"{alias}.{name.casefold()}"] = (shown.answers[name][number], tight.answers[name][number])
        made.append(row)
    return made


def _meet(join: _Join, row: Row, other: Row) -> bool:
    for left, right in join.on:
        values = row.get(left), other.get(right)
        if any(isinstance(value, tuple) for value in values):
            raise QueryRefused(
                "answers are joined on groups: noise would decide which numbers are equal",
                "Write ON a.city = b.city, where city is a group.",
            )
        if values[0] is None or values[0] != values[1]:
            return False
    return True


def _coalesced(join: _Join, row: Row, other: Row) -> Row:
    """A row of the last part; a column of USING has the value of whichever row there is."""
    made = dict(other)
    for left, right in join.on:
        if right.split(".", 1)[1] in join.merged and row.get(left) is None:
            made[left] = other[right]
    return made


def _item(node: Node, row: Row, confidence: float) -> Any:
    """A cell of the answer."""
    if isinstance(node, exp.Column):
        value = row.get(str(node.name))
        return value[0] if isinstance(value, tuple) else value
    if _is_merged(node):
        known = (_item(part, row, confidence) for part in (node.this, *node.expressions))
        return next((value for value in known if value is not None), None)
    answers: dict[str, Interval] = {}
    for column in node.find_all(exp.Column):
        value = row.get(str(column.name))
        if value is None:
            return None
        if not isinstance(value, tuple):
            raise QueryRefused("joined answers are calculated with, not their groups", "Select the group itself.")
        answers[str(column.name)] = Interval.of(value[1])
    return combined(node, answers, confidence, 1)


def _bare(item: Node) -> Node:
    return item.this if isinstance(item, exp.Alias) else item
