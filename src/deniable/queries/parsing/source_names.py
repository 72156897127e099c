"""Names in FROM as people write them: schemas, commas between tables, CROSS JOIN with a condition in WHERE."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

Node = Any


def without_schemas(select: Node) -> None:
    """Leave out schemas and catalogs: there is one set of tables, whatever a tool calls it."""
    for node in select.find_all(exp.Table, exp.Column):
        for part in ("db", "catalog"):
            if node.args.get(part) is not None:
                node.set(part, None)


def with_named_joins(select: Node, keys: set[str]) -> None:
    """Give joins without a condition the one that WHERE has for them: FROM a, b WHERE a.uid = b.uid."""
    before = {select.args["from_"].this.alias_or_name.casefold()}
    for join in select.args.get("joins") or []:
        own = join.this.alias_or_name.casefold()
        free = not any(join.args.get(part) for part in ("on", "using", "method", "side"))
        if free and join.args.get("kind") in (None, "", "CROSS"):
            condition = _joining(select.args.get("where"), own, before, keys)
            if condition is not None:
                join.set("kind", None)
                join.set("on", condition.copy())
                condition.replace(exp.true())
        before.add(own)
    _tidy(select)


def _joining(where: Node, own: str, before: set[str], keys: set[str]) -> Node | None:
    """The condition of WHERE that joins a table with an earlier one; on the user id, if there is one."""
    joining = []
    for node in conjuncts(where.this) if where is not None else []:
        if isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
            tables = {node.left.table.casefold(), node.right.table.casefold()}
            if own in tables and len(tables) == 2 and tables - {own} <= before:
                joining.append(node)
    on_key = [node for node in joining if node.left.name.casefold() in keys and node.right.name.casefold() in keys]
    return next(iter([*on_key, *joining]), None)


def conjuncts(node: Node) -> list[Node]:
    """The conditions that AND joins."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    return [*conjuncts(node.left), *conjuncts(node.right)] if isinstance(node, exp.And) else [node]


def _tidy(select: Node) -> None:
    """Leave out a WHERE that became TRUE, and TRUE among its conditions."""
    where = select.args.get("where")
    if where is None:
        return
    left = [part.copy() for part in conjuncts(where.this) if not (isinstance(part, exp.Boolean) and part.this)]
    if len(left) < len(conjuncts(where.this)):
        select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)
