"""Questions that are made of several plain ones: UNION ALL, GROUPING SETS, constants in the SELECT list.

A tree in, plain SELECTs out; `spread_questions.py` does the same for windows and scalar subqueries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.column_names import name_of

Node = Any
MOST_UNITED = 64
_CONSTANTS = (exp.Null, exp.Boolean)


@dataclass(frozen=True, slots=True)
class PlainPart:
    """A plain SELECT, and the columns of its answer that are the same in every row."""

    select: Node
    constants: Mapping[str, Any]
    """Values, or expressions of constants that are still to be computed."""
    names: tuple[str, ...]
    """All columns in order."""


@dataclass(frozen=True, slots=True)
class Compound:
    """Parts whose rows stand below each other, and what becomes of these rows."""

    parts: tuple[PlainPart, ...]
    names: tuple[str, ...]
    order: tuple[tuple[str, bool], ...] = ()
    """Names of columns, and whether they descend."""
    limit: int | None = None
    offset: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it is a single SELECT without constants."""
        return len(self.parts) == 1 and not self.parts[0].constants and not self.order


def compound_of(tree: Node, flatten: Callable[[Node], Node]) -> Compound:
    """The parts of a question, each flattened to one SELECT from tables."""
    selects = [flatten(select) for select in _selects(tree, tree.args.get("with_"))]
    parts = [part for select in selects for part in _parts(select)]
    if len(parts) > MOST_UNITED:
        raise QueryRefused(f"the question has more than {MOST_UNITED} parts", "Ask several questions.")
    if len({len(part.names) for part in parts}) > 1:
        raise QueryRefused("the parts of UNION ALL have different numbers of columns", "Select the same columns.")
    names = parts[0].names
    if isinstance(tree, exp.Select) and len(parts) == 1:  # its rows are ordered as any other's
        return Compound(tuple(parts), names)
    tree = selects[0] if isinstance(tree, exp.Select) else tree
    return Compound(tuple(parts), names, *ordering_of(tree, names))


def _selects(tree: Node, tables: Node) -> Iterator[Node]:
    """The SELECTs that UNION ALL joins, each with the tables of WITH."""
    if isinstance(tree, exp.Union):
        if tree.args.get("distinct") is not False:
            raise QueryRefused("UNION would compare noisy rows", "Write UNION ALL.")
        for side in (tree.this, tree.expression):
            yield from _selects(side.this if isinstance(side, exp.Subquery) else side, tables)
    elif isinstance(tree, exp.Select):
        made = tree.copy()
        if tables is not None and made.args.get("with_") is None:
            made.set("with_", tables.copy())
        yield made
    else:
        raise QueryRefused("one SELECT is expected", "Write SELECT COUNT(*) FROM …")


def _parts(select: Node) -> Iterator[PlainPart]:
    """A SELECT, once for each of its grouping sets, without its constants."""
    names = tuple(item.alias_or_name or name_of(item) for item in select.expressions)
    group = select.args.get("group")
    elements = [] if group is None else [*group.expressions, *_listed(group)]
    sets = list(_sets(elements)) if any(_is_set(element) for element in elements) else None
    everything = {_text(select, node) for chosen in sets or [] for node in chosen}
    for chosen in sets if sets is not None else [None]:
        made, constants = select.copy(), {}
        kept = []
        for name, item in zip(names, made.expressions, strict=True):
            node = item.this if isinstance(item, exp.Alias) else item
            text = _text(select, node)
            out = set() if chosen is None else everything - {_text(select, each) for each in chosen}
            grouped_out = text in out
            if chosen is not None and not grouped_out and not node.find(exp.Star):
                node = _without_groups(select, node, out, everything)
                item = exp.alias_(node, name, quoted=True)
                if not node.find(exp.Column, exp.AggFunc):
                    constants[name] = node
                    continue
            if grouped_out or isinstance(node, _CONSTANTS) or (isinstance(node, exp.Literal) and node.is_string):
                constants[name] = None if grouped_out or isinstance(node, exp.Null) else _value(node)
            else:
                kept.append(item if isinstance(item, exp.Alias) else exp.alias_(item.copy(), name, quoted=True))
        if chosen is not None:
            made.set(
                "group",
                exp.Group(expressions=[item_behind(select, each).copy() for each in chosen]) if chosen else None,
            )
        if constants or chosen is not None:
            made.set("expressions", [each.copy() for each in kept])
            if sets is not None:
                for clause in ("order", "limit", "offset"):
                    made.set(clause, None)
        yield PlainPart(made, constants, names)


def _without_groups(select: Node, node: Node, out: set[str], everything: set[str]) -> Node:
    """An item of a grouping set: columns that it does not group by are NULL, and GROUPING says which these are."""

    def replaced(part: Node) -> Node:
        if isinstance(part, exp.Grouping):
            absent = [_text(select, each) in out for each in part.expressions]
            return exp.Literal.number(sum(2**power for power, is_out in enumerate(reversed(absent)) if is_out))
        inside = part.find_ancestor(exp.AggFunc) is not None or isinstance(part, exp.AggFunc)
        return exp.null() if not inside and _text(select, part) in out else part

    return node.copy().transform(replaced) if everything else node


def _listed(group: Node) -> list[Node]:
    return [node for name in ("rollup", "cube", "grouping_sets") for node in group.args.get(name) or []]


def _is_set(node: Node) -> bool:
    return isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets))


def _sets(elements: list[Node]) -> Iterator[list[Node]]:
    """All grouping sets of a GROUP BY: one choice for each of its elements, joined."""
    for choice in product(*(_choices(element) for element in elements)):
        yield [node for part in choice for node in part]


def _choices(node: Node) -> list[list[Node]]:
    members = [_members(each) for each in node.expressions] if _is_set(node) else []
    if isinstance(node, exp.Rollup):
        return [[each for part in members[:end] for each in part] for end in range(len(members), -1, -1)]
    if isinstance(node, exp.Cube):
        sizes = range(len(members), -1, -1)
        return [[each for part in some for each in part] for size in sizes for some in combinations(members, size)]
    if isinstance(node, exp.GroupingSets):
        return [
            choice for each in node.expressions for choice in (_choices(each) if _is_set(each) else [_members(each)])
        ]
    return [_members(node)]


def _members(node: Node) -> list[Node]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return _members(node.this) if isinstance(node, exp.Paren) else [node]


def item_behind(select: Node, node: Node) -> Node:
    """A select item that is named by its position or alias; else the expression itself."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        position = int(node.this)
        if 1 <= position <= len(select.expressions):
            item = select.expressions[position - 1]
            return item.this if isinstance(item, exp.Alias) else item
    if isinstance(node, exp.Column) and not node.table:
        for item in select.expressions:
            if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold():
                # GROUP BY x means the column x before an answer of that name, which is computed from the column.
                return node if _is_made_of(item.this, node) else item.this
    return node


def _is_made_of(item: Node, column: Node) -> bool:
    same = (part.name.casefold() == column.name.casefold() for part in item.find_all(exp.Column))
    return not isinstance(item, exp.Column) and any(same)


def _text(select: Node, node: Node) -> str:
    """An expression as a text that is the same for the same expression."""
    meant = item_behind(select, node)
    name = meant.name.casefold() if isinstance(meant, exp.Column) else ""
    return name or str(meant.sql(dialect="duckdb", normalize_functions="lower")).casefold()


def _value(node: Node) -> Any:
    return bool(node.this) if isinstance(node, exp.Boolean) else str(node.this)


def _count(node: Node) -> int | None:
    if node is None:
        return None
    value = node.args.get("expression")
    if not isinstance(value, exp.Literal) or value.is_string or not value.this.isdigit():
        raise QueryRefused("LIMIT and OFFSET take a whole number", "Write LIMIT 10.")
    return int(value.this)


def _ordering(key: Node, names: tuple[str, ...], named: Mapping[str, str]) -> tuple[str, bool]:
    """A key of ORDER BY: a column by its name or position, or written again."""
    node = key.this
    by_name = {name.casefold(): name for name in names}
    if isinstance(node, exp.Literal) and node.this.isdigit() and 1 <= int(node.this) <= len(names):
        return names[int(node.this) - 1], bool(key.args.get("desc"))
    if isinstance(node, exp.Column) and node.name.casefold() in by_name:
        return by_name[node.name.casefold()], bool(key.args.get("desc"))
    if (written := str(node.sql(dialect="duckdb"))) in named:
        return named[written], bool(key.args.get("desc"))
    raise QueryRefused("rows of several parts are ordered by a column of the answer", "Name it with AS.")


def ordering_of(tree: Node, names: tuple[str, ...]) -> tuple[tuple[tuple[str, bool], ...], int | None, int]:
    """ORDER BY, LIMIT and OFFSET of a question, by the columns of its answer."""
    limit, offset = (_count(tree.args.get(clause)) for clause in ("limit", "offset"))
    keys = (tree.args.get("order") or exp.Order(expressions=[])).expressions
    items = tree.expressions if isinstance(tree, exp.Select) and len(tree.expressions) == len(names) else []
    nodes = [item.this if isinstance(item, exp.Alias) else item for item in items]
    named = {str(node.sql(dialect="duckdb")): name for node, name in zip(nodes, names, strict=False)}
    return tuple(_ordering(key, names, named) for key in keys), limit, offset or 0
