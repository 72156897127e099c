"""JOIN, LEFT, RIGHT and FULL JOIN as the parser of names wants them, and ids that are NULL without a partner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from deniable.queries.parsing.source_names import conjuncts
from deniable.tables.schema.attributes import Enumerable
from deniable.tables.specification.specification import Specification

Node = Any


def with_left_joins(select: Node) -> None:
    """Write RIGHT JOIN as LEFT JOIN, and what else ON says of a JOIN into WHERE."""
    joins = select.args.get("joins") or []
    if joins and str(joins[0].args.get("side") or "").upper() == "RIGHT":
        source = select.args["from_"]
        first, second = source.this.copy(), joins[0].this.copy()
        source.set("this", second)
        joins[0].set("this", first)
        joins[0].set("side", "LEFT")
    for join in joins:
        parts = conjuncts(join.args["on"]) if join.args.get("on") is not None else []
        own = join.this.alias_or_name.casefold()
        joining = [part for part in parts if _joins_with(part, own)]
        if join.args.get("side") or len(parts) < 2 or not joining:
            continue
        named = next((part for part in joining if part.left.name.casefold() == part.right.name.casefold()), joining[0])
        join.set("on", named.copy())
        select.where(*(part.copy() for part in parts if part is not named), copy=False)


def _joins_with(node: Node, own: str) -> bool:
    """Whether a condition compares a column of a table with one of another table."""
    if not isinstance(node, exp.EQ) or not isinstance(node.left, exp.Column) or not isinstance(node.right, exp.Column):
        return False
    tables = {node.left.table.casefold(), node.right.table.casefold()}
    return own in tables and len(tables) == 2


def tables_first(first: Node, joins: list[Node], names: Iterable[str]) -> tuple[Node, list[Node]]:
    """FROM with a table of people first: a dimension before it changes places with the table that it is joined with."""
    known = {name.casefold() for name in names}
    if not joins or joins[0].args.get("side") or not isinstance(first, exp.Table) or first.name.casefold() in known:
        return first, joins
    second = joins[0].this
    if not isinstance(second, exp.Table) or second.name.casefold() not in known:
        return first, joins
    swapped = joins[0].copy()
    swapped.set("this", first.copy())
    return second, [swapped, *joins[1:]]


def with_named_partners(select: Node, collection: Specification, keys: set[str]) -> Node:
    """j.uid IS NULL, of a table that LEFT JOIN names, as the same condition on an attribute that all its rows have.

    So it may be part of any function of the table's columns.
    """
    joins = select.args.get("joins") or []
    sides = [str(join.args.get("side") or "").upper() for join in joins]
    holders = [join for join, side in zip(joins, sides, strict=True) if side]
    holders += [select.args["from_"]] if "FULL" in sides else []
    named = {
        holder.this.alias_or_name.casefold(): attribute
        for holder in holders
        if isinstance(holder.this, exp.Table)
        for table in collection.tables
        if table.name.casefold() == holder.this.name.casefold()
        for attribute in [name for name, meaning in table.attributes.items() if _all_have(meaning)][:1]
    }

    def replaced(part: Node) -> Node:
        key = part.this if isinstance(part, exp.Is) and isinstance(part.expression, exp.Null) else None
        if not isinstance(key, exp.Column) or key.name.casefold() not in keys or key.table.casefold() not in named:
            return part
        made = exp.column(named[key.table.casefold()], table=key.args["table"].copy())
        made.this.meta.update(key.this.meta)  # where an error would be shown
        return exp.Is(this=made, expression=exp.null())

    return select.transform(replaced) if named else select


def _all_have(meaning: Any) -> bool:
    return isinstance(meaning, Enumerable) and meaning.missing_position is None
