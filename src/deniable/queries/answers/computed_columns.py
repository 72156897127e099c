"""Columns that are computed from groups once they are known: SELECT UPPER(plan) … GROUP BY plan ORDER BY LENGTH(plan).

Groups are public, so that a function of them is, too. The question is asked for its groups, and DuckDB evaluates the
functions at their values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from deniable.queries.answers.compound_answers import arranged
from deniable.queries.answers.result import Result
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.compound_questions import item_behind, ordering_of
from deniable.queries.parsing.spread_questions import plain_text_of

Node = Any
_GROUP, _KEY = "group_behind_", "key_behind_"
_AFTER_GROUPS = ("order", "limit", "offset")
Evaluate = Callable[[Node, pa.Table, dict[str, str]], list[Any]]


@dataclass(frozen=True, slots=True)
class ComputedColumns:
    """A SELECT, taken apart into what is asked and what is computed from its groups."""

    asked: Node
    names: tuple[str, ...]
    computed: dict[str, Node]
    """By the name of a column, or of a key of ORDER BY."""
    groups: dict[str, str]
    """By the plain name of a column of GROUP BY, the column of the answer to `asked`."""
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int

    def answer(self, asked: Result, evaluate: Evaluate) -> Result:
        """The answer with its computed columns, in the order that was asked for."""
        frame = pa.table({hidden: pa.array(list(asked.groups[hidden])) for hidden in self.groups.values()})
        columns: dict[str, list[Any]] = {}
        for name, node in self.computed.items():
            written = {column.sql(dialect="duckdb"): self.groups[_name(column)] for column in node.find_all(exp.Column)}
            columns[name] = evaluate(node, frame, written) if len(asked) else []
        for name in [*asked.groups, *asked.answers]:
            columns.setdefault(name, list(asked.groups[name] if name in asked.groups else asked.answers[name]))
        shown = arranged(columns, self.order, self.limit, self.offset, asked)
        return Result(
            {name: shown.groups[name] for name in self.names if name in shown.groups},
            {name: shown.answers[name] for name in self.names if name in shown.answers},
            shown.notes,
            shown.sql,
            shown.simulation,
        )


def computed_columns(select: Node) -> ComputedColumns | None:
    """A SELECT with items or keys of ORDER BY that are functions of its groups; None for any other."""
    group = select.args.get("group") if isinstance(select, exp.Select) else None
    if group is None or any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets", "all")):
        return None
    if select.args.get("having") is not None or select.find(exp.Window, exp.Subquery):
        return None
    behind = [item_behind(select, node) for node in group.expressions]
    known = {_name(node) for node in behind if isinstance(node, exp.Column)}
    texts = {plain_text_of(node) for node in behind}

    def is_computed(node: Node) -> bool:
        columns = list(node.find_all(exp.Column))
        if not columns or node.find(exp.AggFunc, exp.Star) or plain_text_of(node) in texts:
            return False
        return all(_name(column) in known for column in columns)

    items = {item.alias_or_name or name_of(item): _bare(item) for item in select.expressions}
    by_alias = {name.casefold(): node for name, node in items.items()}
    keys = [] if select.args.get("order") is None else list(select.args["order"].expressions)
    meant = [by_alias.get(_name(key.this), key.this) if isinstance(key.this, exp.Column) else key.this for key in keys]
    computed = {name: node for name, node in items.items() if is_computed(node)}
    if len(items) < len(select.expressions) or not (computed or any(is_computed(node) for node in meant)):
        return None
    shown_already = {plain_text_of(node): name for name, node in items.items() if isinstance(node, exp.Column)}
    groups = {name: shown_already.get(name, f"{_GROUP}{number}") for number, name in enumerate(sorted(known))}
    columns = {_name(node): node for node in behind if isinstance(node, exp.Column)}
    asked = select.copy()
    kept = [exp.alias_(node.copy(), name, quoted=True) for name, node in items.items() if name not in computed]
    hidden = [exp.alias_(columns[name].copy(), alias) for name, alias in groups.items() if name not in shown_already]
    order: list[tuple[str, bool]] = []
    for number, (key, node) in enumerate(zip(keys, meant, strict=True)):
        name, descending = f"{_KEY}{number}", bool(key.args.get("desc"))
        shown = next((each for each, item in items.items() if plain_text_of(item) == plain_text_of(node)), None)
        if shown is not None or isinstance(node, exp.Literal):
            order.append((shown, descending) if shown is not None else ordering_of(_by(key), tuple(items))[0][0])
            continue
        if is_computed(node):
            computed[name] = node
        else:
            hidden.append(exp.alias_(node.copy(), name))
        order.append((name, descending))
    asked.set("expressions", [*kept, *hidden])
    asked.set("group", exp.Group(expressions=[node.copy() for node in behind]))
    _, limit, offset = ordering_of(_without_order(select), tuple(items))
    for clause in _AFTER_GROUPS:
        asked.set(clause, None)
    if not any(each.find(exp.AggFunc) for each in asked.expressions):
        asked.set("expressions", [*asked.expressions, exp.alias_(exp.Count(this=exp.Star(), big_int=True), _KEY)])
    return ComputedColumns(asked, tuple(items), computed, groups, tuple(order), limit, offset)


def _by(key: Node) -> Node:
    return exp.Select(order=exp.Order(expressions=[key.copy()]))


def _without_order(select: Node) -> Node:
    made = exp.Select()
    for clause in ("limit", "offset"):
        if select.args.get(clause) is not None:
            made.set(clause, select.args[clause].copy())
    return made


def _bare(item: Node) -> Node:
    return item.this if isinstance(item, exp.Alias) else item


def _name(column: Node) -> str:
    return str(column.name).casefold()
