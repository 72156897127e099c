"""CASE and IF as a list of branches, and expressions of them as branches of expressions."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

Node = Any


def branches_of(node: Node) -> tuple[list[tuple[Node, Node]], Node | None]:
    """Conditions with their values, and what stands in ELSE, if anything does."""
    if isinstance(node, exp.If):
        return [(node.this, node.args.get("true"))], node.args.get("false")
    compared = node.args.get("this")

    def condition(written: Node) -> Node:
        return written if compared is None else exp.EQ(this=compared.copy(), expression=written.copy())

    return [(condition(branch.this), branch.args.get("true")) for branch in node.args["ifs"]], node.args.get("default")


def lifted(node: Node) -> Node | None:
    """An expression with a CASE inside, as a CASE of expressions: f(CASE WHEN c THEN x END) is CASE WHEN c THEN f(x).

    None if there is no CASE in it.
    """
    inner = next((part for part in node.walk() if isinstance(part, (exp.Case, exp.If))), None)
    if inner is None or inner is node:
        return None
    branches, default = branches_of(inner)

    def instead(value: Node) -> Node:
        meant = exp.Paren(this=(value or exp.null()).copy())
        return node.copy().transform(lambda part: meant if part == inner else part)

    made = exp.Case(ifs=[exp.If(this=condition.copy(), true=instead(value)) for condition, value in branches])
    made.set("default", instead(default))
    return made
