"""WHERE → disjoint conjunctions. Every node is recognised, or the query is refused."""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from deniable.arrays import Booleans
from deniable.limits import MOST_CONDITIONS
from deniable.queries.parsing.constants import CAST_TO, position
from deniable.queries.parsing.domain_functions import COMPARISONS, FLIPPED, compare, evaluate, single_attribute
from deniable.queries.parsing.scope import Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.question.conditions import Disjoint, TooManyTerms, both, either, private, public
from deniable.queries.question.public_trees import PublicTree
from deniable.queries.question.public_trees import column as public_column
from deniable.tables.schema.attributes import Categorical, Ordinal

_PUBLIC_NODES = {
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is,
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Cast,
    exp.DataType,
}  # fmt: skip


def read_where(scope: Scope, node: Node) -> Disjoint:
    """The condition of WHERE."""
    if sum(1 for _ in node.find_all(exp.And, exp.Or)) > MOST_CONDITIONS:
        raise scope.refusal(node, f"there are more than {MOST_CONDITIONS} conditions", "Use IN and BETWEEN.")
    try:
        return _read(scope, node, negated=False)
    except TooManyTerms:
        repair = "Use fewer ORs between different attributes, or ask several questions and add the answers."
        raise scope.refusal(node, "the condition needs more than 64 disjoint conjunctions", repair) from None


def _read(scope: Scope, node: Node, *, negated: bool) -> Disjoint:
    if isinstance(node, exp.Paren):
        return _read(scope, node.this, negated=negated)
    if isinstance(node, exp.Not):
        return _read(scope, node.this, negated=not negated)
    if node.find(exp.Subquery, exp.Select, exp.Exists):
        raise scope.refusal(node, "subqueries are not supported", "Ask two questions.")
    whole = _whole(scope, node, negated)
    if whole is not None:
        return whole
    if isinstance(node, (exp.And, exp.Or)):
        left, right = _read(scope, node.left, negated=negated), _read(scope, node.right, negated=negated)
        return both(left, right) if isinstance(node, exp.And) != negated else either(left, right)
    column, mask = _condition(scope, node)
    return private(column.place, ~mask if negated else mask)


def _whole(scope: Scope, node: Node, negated: bool) -> Disjoint | None:
    """A condition on public columns of one table, or on columns of one dimension, which DuckDB evaluates."""
    found = [scope.find(column) for column in node.find_all(exp.Column)]
    if not found:
        return None
    if all(isinstance(one, PublicColumn) for one in found):
        tables = {one.table for one in found if isinstance(one, PublicColumn)}
        if len(tables) == 1:
            return public((tables.pop(), checked_tree(scope, node, negated)))
        if isinstance(node, (exp.And, exp.Or)):
            return None
        raise scope.refusal(node, "a condition compares public attributes of two tables", "Compare with constants.")
    dimensions = {id(one.dimension): one for one in found if isinstance(one, PrivateColumn) and one.dimension}
    if len(dimensions) == 1 and all(isinstance(one, PrivateColumn) and one.dimension for one in found):
        (one,) = dimensions.values()
        assert one.dimension is not None  # noqa: S101 - chosen so
        return private(one.place, one.dimension.holds(checked_tree(scope, node, negated).tree))
    return None


def checked_tree(scope: Scope, node: Node, negated: bool = False) -> PublicTree:
    """A condition of public columns, after every node of it was recognised."""
    for one in node.walk():
        odd_cast = isinstance(one, exp.Cast) and one.to.this not in CAST_TO
        if type(one) not in _PUBLIC_NODES or odd_cast or (isinstance(one, exp.In) and not one.expressions):
            raise scope.refusal(one, "this condition is not supported", "Use comparisons with constants.")

    def bare(one: Node) -> Node:
        if not isinstance(one, exp.Column):
            return one
        return public_column(scope.find(one).column)

    copied = node.transform(bare)
    return PublicTree.of(exp.Not(this=exp.Paren(this=copied)) if negated else copied)


def _condition(scope: Scope, node: Node) -> tuple[PrivateColumn, Booleans]:
    """A condition on one private attribute."""
    if isinstance(node, exp.Between):
        low = _compared(scope, exp.GTE(this=node.this, expression=node.args["low"]))
        high = _compared(scope, exp.LTE(this=node.this, expression=node.args["high"]))
        _same(scope, node, [low, high])
        return low[0], low[1] & high[1]
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        column, mask = _compared(scope, exp.EQ(this=node.this, expression=node.expressions[0]))
        for one in node.expressions[1:]:  # each mask may be as long as the domain: one after the other
            other = _compared(scope, exp.EQ(this=node.this, expression=one))
            _same(scope, node, [(column, mask), other])
            mask = mask | other[1]
        return column, mask
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        return _compared(scope, exp.EQ(this=node.this, expression=node.expression))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        column = _private(scope, node.this)
        return column, np.zeros(column.domain.size, dtype=bool)  # a private attribute is never missing
    if isinstance(node, exp.Column):
        true = exp.true()
        true.meta.update(node.this.meta)  # where an error would be shown
        return _compared(scope, exp.EQ(this=node, expression=true))
    if type(node) in COMPARISONS:
        return _compared(scope, node)
    repair = "Use =, <>, <, <=, >, >=, BETWEEN, IN, IS TRUE, AND, OR and NOT."
    raise scope.refusal(node, "this condition is not supported", repair)


def _same(scope: Scope, node: Node, found: list[tuple[PrivateColumn, Booleans]]) -> None:
    if len({column.place for column, _ in found}) > 1:
        raise scope.refusal(node, "two attributes stand in one condition", "Join two conditions by AND or OR.")


def _compared(scope: Scope, node: Node) -> tuple[PrivateColumn, Booleans]:
    kind, left, right = type(node), _bare(node.left), _bare(node.right)
    if not left.find(exp.Column):
        kind, left, right = FLIPPED[kind], right, left
    if isinstance(left, exp.Column) and not right.find(exp.Column):
        column = _private(scope, left)
        if isinstance(column.domain, Categorical) and kind not in (exp.EQ, exp.NEQ):
            raise scope.refusal(node, "categories have no order", "Use =, <> or IN.")
        return column, compare(column.domain, kind, position(scope, right, column.domain))
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        problem = "two attributes of one person cannot be compared: each is randomised on its own tree"
        raise scope.refusal(node, problem, "Compare an attribute with a constant.")
    column = single_attribute(scope, node)
    assert isinstance(column.domain, Ordinal)  # noqa: S101 - single_attribute sees to it
    one, other = evaluate(scope, left, column.domain), evaluate(scope, right, column.domain)
    return column, one.compared(COMPARISONS[kind], other)


def _bare(node: Node) -> Node:
    return _bare(node.this) if isinstance(node, exp.Paren) else node


def _private(scope: Scope, node: Node) -> PrivateColumn:
    column = scope.find(_bare(node))
    if isinstance(column, PublicColumn):
        raise scope.refusal(node, f"public attribute {column.name!r} cannot stand here", "Give it a condition alone.")
    if column.dimension is not None:
        raise scope.refusal(node, "a dimension's column cannot stand here", "Give it a condition of its own.")
    return column
