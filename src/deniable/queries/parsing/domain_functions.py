"""Functions of one attribute, known at every value of its domain: comparisons, bins, shifted and scaled values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.arrays import Booleans, Floats
from deniable.queries.parsing.constants import number
from deniable.queries.parsing.functions import DOMAIN_FUNCTIONS
from deniable.queries.parsing.rationals import Rationals
from deniable.queries.parsing.scope import Node, PrivateColumn, Scope
from deniable.tables.schema.attributes import Enumerable, Ordinal

MOST_COMPUTED_VALUES = 1 << 20
COMPARISONS: dict[Any, Callable[[Any, Any], Any]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
FLIPPED: dict[Any, Any] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


def numbers(domain: Ordinal) -> Floats:
    """The values of an ordinal domain of numbers, each the float nearest to it; NaN for what is missing."""
    scale = domain.denominator
    low, step = int(domain.low * scale), int(domain.step * scale)
    values = np.asarray((low + step * np.arange(domain.size)) / scale, dtype=np.float64)
    values[domain.known_size :] = np.nan
    return values


def is_known(domain: Enumerable) -> Booleans:
    """Which positions of a domain stand for values, and not for what is missing."""
    return np.asarray(np.arange(domain.size) < domain.known_size)


def compare(domain: Enumerable, kind: Node, bound: Any) -> Booleans:
    """Which positions of a domain compare in this way with a bound, which may lie between two of them."""
    return _compare(domain, kind, bound) & is_known(domain)


def _compare(domain: Enumerable, kind: Node, bound: Any) -> Booleans:
    positions = np.arange(domain.size)
    mask: Booleans
    if kind in (exp.EQ, exp.NEQ):
        mask = positions == int(bound) if bound == math.floor(bound) else np.zeros(domain.size, dtype=bool)
        return mask if kind is exp.EQ else ~mask
    if kind in (exp.LT, exp.GTE):
        mask = positions < math.ceil(bound)
        return mask if kind is exp.LT else ~mask
    mask = positions <= math.floor(bound)
    return mask if kind is exp.LTE else ~mask


def single_attribute(scope: Scope, node: Node) -> PrivateColumn:
    """The only private attribute, of numbers, that an expression is a function of."""
    columns = [scope.meaning(column) for column in node.find_all(exp.Column)]
    private = [column for column in columns if isinstance(column, PrivateColumn)]
    if not private or len(private) < len(columns) or len({column.attribute for column in private}) != 1:
        problem = "an expression of one private attribute is expected here"
        raise scope.refusal(node, problem, "Compare one attribute with constants; join several conditions by AND.")
    if any(column.dimension is not None for column in private):
        raise scope.refusal(node, "a dimension's column cannot be calculated with here", "Use the column itself.")
    first = private[0]
    if not isinstance(first.domain, Ordinal) or first.domain.kind != "number":
        timed = isinstance(first.domain, Ordinal)
        repair = "Compare it with dates or times." if timed else "Calculate with ordinal attributes of numbers."
        raise scope.refusal(node, f"{first.attribute[1]!r} is not a number", repair)
    if first.domain.size > MOST_COMPUTED_VALUES:
        raise scope.refusal(node, "the attribute's domain is too large to calculate with", "Compare the attribute.")
    return first


def evaluate(scope: Scope, node: Node, domain: Ordinal) -> Rationals:
    """An expression of one attribute at every value of its domain, exactly; one number for a constant.

    What is missing is calculated with as if it were one more value: the caller leaves it out.
    """
    if isinstance(node, exp.Paren):
        return evaluate(scope, node.this, domain)
    if isinstance(node, exp.Column):
        return Rationals.steps(Fraction(domain.low), Fraction(domain.step), domain.size)
    if isinstance(node, exp.Literal) and not node.is_string:
        return Rationals.constant(number(scope, node))
    function = DOMAIN_FUNCTIONS.get(type(node))
    if function is None:
        problem = f"{type(node).__name__.upper()} cannot be calculated here"
        raise scope.refusal(node, problem, "Use +, -, *, /, // and FLOOR of one attribute and numbers.")
    arguments = [evaluate(scope, node.args[name], domain) for name in function.arguments]
    if refusal := function.refuses(*arguments):
        raise scope.refusal(node, *refusal)
    return function.compute(*arguments)
