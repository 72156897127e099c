"""Questions that say in other words what a plain question says: DISTINCT, groups alone, HISTOGRAM, ALL, constants."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused

Node = Any
HIDDEN_COUNT = "rows_of_these"
BIN = "bin"
_HISTOGRAMS = ("histogram", "equi_width_histogram")


def values_alone(tree: Node) -> Node | None:
    """A question for values that can be grouped by, as one that counts them, too; None for any other.

    They are public: values of public columns that occur, and all values of a private attribute's domain.
    """
    if not isinstance(tree, exp.Select) or tree.find(exp.Window) or _histogram(tree) is not None:
        return None
    if any(item.find(exp.AggFunc, exp.Star, exp.Subquery) for item in tree.expressions):
        return None
    if not (tree.args.get("distinct") or tree.args.get("group")) or tree.args.get("from_") is None:
        return None
    made = tree.copy()
    made.set("distinct", None)
    if made.args.get("group") is None:
        nodes = (item.this if isinstance(item, exp.Alias) else item for item in tree.expressions)
        made.set("group", exp.Group(expressions=[node.copy() for node in nodes if node.find(exp.Column)]))
    counted = exp.alias_(exp.Count(this=exp.Star(), big_int=True), HIDDEN_COUNT)
    made.set("expressions", [*(item.copy() for item in tree.expressions), counted])
    return made


def histogram_counts(tree: Node) -> Node | None:
    """HISTOGRAM(x) or HISTOGRAM(x, [10, 20]) as counts by value, or up to each bound; None if there is none.

    As in DuckDB a bin is named by its upper bound, which belongs to it; what is above the last bound has none.
    """
    item = _histogram(tree)
    if item is None:
        return None
    node = item.this if isinstance(item, exp.Alias) else item
    value, bounds = node.expressions[0], node.expressions[1:]
    made = tree.copy()
    group = value if not bounds else _bins(value, bounds[0])
    others = [each.copy() for each in tree.expressions if each is not item]
    shown = [exp.alias_(group.copy(), BIN), exp.alias_(exp.Count(this=exp.Star(), big_int=True), "count")]
    made.set("expressions", [*others, *shown])
    before = tree.args.get("group")
    grouped = [] if before is None else [each.copy() for each in before.expressions]
    made.set("group", exp.Group(expressions=[*grouped, group.copy()]))
    return made.where(exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.null())))


def _histogram(tree: Node) -> Node | None:
    for item in tree.expressions if isinstance(tree, exp.Select) else []:
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in _HISTOGRAMS:
            if not 1 <= len(node.expressions) <= 2:
                raise QueryRefused("HISTOGRAM takes an expression and bounds", "Write HISTOGRAM(x, [10, 20, 30]).")
            return item
    return None


def _bins(value: Node, bounds: Node) -> Node:
    listed = bounds.expressions if isinstance(bounds, exp.Array) else []
    if not listed or not all(isinstance(bound, exp.Literal) and not bound.is_string for bound in listed):
        raise QueryRefused("the bounds of HISTOGRAM are a list of numbers", "Write HISTOGRAM(x, [10, 20, 30]).")
    numbers = [float(bound.this) for bound in listed]
    if numbers != sorted(set(numbers)):
        raise QueryRefused("the bounds of HISTOGRAM do not rise", "Write HISTOGRAM(x, [10, 20, 30]).")
    tests = [exp.If(this=exp.LTE(this=value.copy(), expression=bound.copy()), true=bound.copy()) for bound in listed]
    return exp.Case(ifs=tests)


def without_all(select: Node) -> Node:
    """GROUP BY ALL as the columns that are no aggregates, and ORDER BY ALL as every column by its number."""
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None and group.args.get("all") and not group.expressions:
        numbers = [
            exp.Literal.number(number)
            for number, item in enumerate(select.expressions, 1)
            if item.find(exp.Column) and not item.find(exp.AggFunc, exp.Window)
        ]
        select.set("group", exp.Group(expressions=numbers) if numbers else None)
    if order is not None and len(order.expressions) == 1 and _is_all(order.expressions[0].this):
        direction = order.expressions[0].args.get("desc")
        columns = [
            exp.Ordered(this=exp.Literal.number(number), desc=direction)
            for number in range(1, len(select.expressions) + 1)
        ]
        select.set("order", exp.Order(expressions=columns))
    return select


def _is_all(node: Node) -> bool:
    return isinstance(node, exp.Var) and str(node.this).upper() == "ALL"


def is_constant(tree: Node) -> bool:
    """Whether a SELECT asks for constants alone, as tools do to see whether anybody answers."""
    return isinstance(tree, exp.Select) and tree.args.get("from_") is None and not tree.find(exp.Column, exp.Subquery)
