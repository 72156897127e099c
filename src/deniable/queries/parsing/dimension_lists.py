"""x IN (SELECT k FROM d WHERE …) and EXISTS, where d is a public dimension → lists of values that everybody knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.literals import literal_of
from deniable.queries.parsing.scalar_functions import ANYWHERE, why_not
from deniable.queries.parsing.source_names import conjuncts
from deniable.queries.question.public_trees import column as public_column

Node = Any
Refusal = Callable[[Node, str, str], QueryRefused]
MOST_OF_A_DIMENSION = 1_000
_NOT_OF_LISTS = ("group", "having", "limit", "offset", "with_", "joins")


def with_dimension_lists(select: Node, dimensions: Mapping[str, Dimension], refusal: Refusal) -> None:
    """Put lists of values in the place of subqueries of dimensions."""
    for node in [node for node in select.find_all(exp.In, exp.Exists) if node.find_ancestor(exp.Select) is select]:
        inner = node.args["query"].this if isinstance(node, exp.In) and node.args.get("query") else node.this
        source = inner.args.get("from_") if isinstance(inner, exp.Select) else None
        table = None if source is None else source.this
        if not isinstance(table, exp.Table):
            continue
        dimension = {name.casefold(): each for name, each in dimensions.items()}.get(table.name.casefold())
        if dimension is not None:
            node.replace(_listed(node, inner, table, dimension, refusal))


def _listed(node: Node, inner: Node, table: Node, dimension: Dimension, refusal: Refusal) -> Node:
    where = inner.args.get("where")
    conditions = [] if where is None else conjuncts(where.this)
    own = {name.casefold(): name for name in dimension.columns}

    def is_own(column: Node) -> bool:
        prefix = column.table.casefold()
        return column.name.casefold() in own and prefix in ("", table.alias_or_name.casefold())

    if isinstance(node, exp.In):
        (item,) = inner.expressions if len(inner.expressions) == 1 else (None,)
        column, outer = item.this if isinstance(item, exp.Alias) else item, node.this
    else:
        column, outer, conditions = _correlated(conditions, is_own)
    refused = any(inner.args.get(clause) for clause in _NOT_OF_LISTS)
    if refused or outer is None or not isinstance(column, exp.Column) or not is_own(column):
        repair = "Write x IN (SELECT k FROM d WHERE …), or join the dimension."
        raise refusal(node, "a subquery of a dimension is a list of one of its columns", repair)
    for part in (part for condition in conditions for part in condition.walk()):
        if isinstance(part, exp.Column) and not is_own(part):
            raise refusal(part, f"the dimension has no column {part.name!r}", "Compare its columns with constants.")
        if why := why_not(part, ANYWHERE):
            raise refusal(part, *why)

    def by_name(part: Node) -> Node:
        return public_column(own[part.name.casefold()]) if isinstance(part, exp.Column) else part

    condition = exp.and_(*(part.copy() for part in conditions)).transform(by_name) if conditions else None
    values = dimension.listed(own[column.name.casefold()], condition)
    if len(values) > MOST_OF_A_DIMENSION:
        raise refusal(node, f"the dimension lists more than {MOST_OF_A_DIMENSION:,} values", "Join it instead.")
    known = [literal_of(value) for value in values if value is not None]
    listed = exp.In(this=outer.copy(), expressions=known) if known else exp.false()
    if len(known) == len(values) or isinstance(node, exp.Exists):
        return exp.Paren(this=listed)
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=listed, true=exp.true())]))  # else it is unknown, because of NULL


def _correlated(conditions: list[Node], is_own: Callable[[Node], bool]) -> tuple[Node, Node, list[Node]]:
    """Of an EXISTS: the dimension's column, what is compared with it, and the other conditions."""
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            for mine, other in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(mine, exp.Column) and isinstance(other, exp.Column) and is_own(mine) and other.table:
                    if is_own(other):
                        continue
                    return mine, other, [each for each in conditions if each is not condition]
    return None, None, conditions
