"""Sums over UNION ALL of answers: SELECT SUM(n) FROM (SELECT COUNT(*) AS n … UNION ALL SELECT COUNT(*) …) AS t.

They are asked as the sum of a number for each part, so that errors which parts have in common are counted.
"""

from __future__ import annotations

import functools
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.column_names import name_of

Node = Any


def united_sums(tree: Node) -> Node | None:
    """A question for sums over UNION ALL in other words; None for any other question."""
    source = tree.args.get("from_") if isinstance(tree, exp.Select) else None
    inner = source.this.this if source is not None and isinstance(source.this, exp.Subquery) else None
    if not isinstance(inner, exp.Union):
        return None
    parts = _parts(inner)
    if not all(
        isinstance(part, exp.Select) and any(item.find(exp.AggFunc) for item in part.expressions) for part in parts
    ):
        return None
    if any(part.args.get("distinct") for part in (inner, *inner.find_all(exp.Union))):
        problem = "equal answers cannot be taken once: noise decides which are equal"
        raise QueryRefused(problem, "Write UNION ALL.")
    others = ("joins", "where", "group", "having", "order", "offset", "distinct")
    nodes = [item.this if isinstance(item, exp.Alias) else item for item in tree.expressions]
    plain = all(isinstance(node, exp.Sum) and isinstance(node.this, exp.Column) for node in nodes)
    if not plain or any(tree.args.get(clause) for clause in others):
        problem = "of answers that UNION ALL puts together only SUM is known, over all of them"
        raise QueryRefused(problem, "Ask the parts one by one, or SELECT SUM(n) FROM (… UNION ALL …) AS t.")
    names = [str(item.alias_or_name or name_of(item)).casefold() for item in parts[0].expressions]
    items = []
    for item, node in zip(tree.expressions, nodes, strict=True):
        if node.this.name.casefold() not in names:
            raise QueryRefused(f"the derived table has no column {node.this.name!r}", "Name one that it selects.")
        position = names.index(node.this.name.casefold())
        numbers: list[Node] = [exp.Subquery(this=_number(part, position)) for part in parts]
        total = functools.reduce(lambda left, right: exp.Add(this=left, expression=right), numbers)
        items.append(exp.alias_(total, str(item.alias_or_name or name_of(item)), quoted=True))
    made = exp.Select(expressions=items)
    if tree.args.get("with_") is not None:
        made.set("with_", tree.args["with_"].copy())
    return made


def _parts(node: Node) -> list[Node]:
    """The SELECTs of UNION ALL, in their order."""
    if isinstance(node, exp.Union):
        return [*_parts(node.left), *_parts(node.right)]
    return [node.this] if isinstance(node, exp.Subquery) else [node]


def _number(part: Node, position: int) -> Node:
    """What a part's column adds up to."""
    made, item = part.copy(), part.expressions[position]
    inner = item.this if isinstance(item, exp.Alias) else item
    if part.args.get("group") is None:
        made.set("expressions", [exp.alias_(inner.copy(), "n")])
        return made
    listed = [each.copy() for each in part.expressions]
    listed[position] = exp.alias_(inner.copy(), "n")
    made.set("expressions", listed)
    summed = exp.Select(expressions=[exp.alias_(exp.Sum(this=exp.column("n")), "n")])
    summed.set("from_", exp.From(this=exp.Subquery(this=made, alias=exp.TableAlias(this=exp.to_identifier("part")))))
    return summed
