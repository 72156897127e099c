"""Expressions of one attribute, evaluated at every value of its domain: bins, shifted and scaled values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.queries.conditions import Mask
from deniable.queries.scope import Node, PrivateColumn, Scope
from deniable.queries.tree_weights import Floats
from deniable.tables.schema import Categorical, Ordinal, Private

MOST_VALUES = 1_000_000
_TYPES = exp.DataType.Type
CAST_TO: dict[Any, Any] = {_TYPES.DATE: date, _TYPES.TIMESTAMP: datetime, _TYPES.TIMESTAMPNTZ: datetime}
_NUMBER = re.compile(r"(?=.{1,20}\Z)([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9])?")
COMPARISONS: dict[Any, Callable[[Any, Any], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
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
    """The values of an ordinal domain of numbers, each the float nearest to it."""
    scale = domain.denominator
    low, step = int(domain.low * scale), int(domain.step * scale)
    return np.asarray((low + step * np.arange(domain.size)) / scale, dtype=np.float64)


def number(scope: Scope, node: Node) -> Fraction:
    """The value of a number in the text."""
    if not _NUMBER.fullmatch(node.this):
        raise scope.refusal(node, "the number is not understood, or too long", "Use at most 18 digits.")
    return Fraction(node.this)


def literal(scope: Scope, node: Node) -> Any:
    """The value of a constant."""
    if isinstance(node, exp.Paren):
        return literal(scope, node.this)
    if isinstance(node, exp.Neg):
        value = literal(scope, node.this)
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            return -value
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        found = number(scope, node)
        return int(found) if found.denominator == 1 else Decimal(node.this)
    if (
        type(node) is exp.Cast
        and isinstance(node.this, exp.Literal)
        and node.this.is_string
        and node.to.this in CAST_TO
    ):
        return _point(scope, node, node.this.this, CAST_TO[node.to.this])  # DATE '2020-01-31'
    repair = "Compare an attribute with a number, a text or a date."
    raise scope.refusal(node, "a constant is expected here", repair)


def position(scope: Scope, node: Node, domain: Private) -> Any:
    """A constant as a place in a domain: a whole number, or a fraction between two places."""
    value = literal(scope, node)
    if isinstance(domain, Categorical):
        if type(value) is not type(domain.values[0]) or value not in domain.values:
            known = ", ".join(map(str, domain.values[:5])) + (", …" if domain.size > 5 else "")
            raise scope.refusal(node, "the constant is not in the attribute's public list", f"It has {known}.")
        return domain.encode(value)
    if domain.kind != "number" and isinstance(value, str):
        value = _point(scope, node, value, datetime if domain.kind == "time" else date)
    if type(value) is date and domain.kind == "time":
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime) and domain.kind == "date" and value.time() == time():
        value = value.date()
    kinds: dict[str, Any] = {"number": (int, Decimal), "date": date, "time": datetime}
    odd = isinstance(value, bool) or (isinstance(value, datetime) and domain.kind == "date")
    if odd or not isinstance(value, kinds[domain.kind]):
        raise scope.refusal(node, "the constant is of another type than the attribute", "Compare like with like.")
    if not domain.low <= value <= domain.high:
        repair = f"Use {domain.low} to {domain.high}."
        raise scope.refusal(node, "the constant is outside the attribute's domain", repair)
    if domain.kind == "number":
        return (Fraction(value) - Fraction(domain.low)) / Fraction(domain.step)
    if (value - domain.low) % domain.step:
        problem = "the constant lies within an interval, and the attribute is known by whole intervals only"
        raise scope.refusal(node, problem, f"Use {domain.low} and multiples of {domain.step} after it.")
    return domain.encode(value)


def _point(scope: Scope, node: Node, text: str, kind: Any) -> Any:
    """A date or a point in time from a text."""
    try:
        value = kind.fromisoformat(text)
        if getattr(value, "tzinfo", None) is None:
            return value
    except ValueError:
        pass
    repair = "Write '2020-01-31' or '2020-01-31 13:00', without a time zone."
    raise scope.refusal(node, "the constant is no date or time", repair)


def compare(domain: Private, kind: Node, place: Any) -> Mask:
    """Which places of a domain compare so with a position."""
    places = np.arange(domain.size)
    mask: Mask
    if kind in (exp.EQ, exp.NEQ):
        mask = places == int(place) if place == math.floor(place) else np.zeros(domain.size, dtype=bool)
        return mask if kind is exp.EQ else ~mask
    if kind in (exp.LT, exp.GTE):
        mask = places < math.ceil(place)
        return mask if kind is exp.LT else ~mask
    mask = places <= math.floor(place)
    return mask if kind is exp.LTE else ~mask


def single_attribute(scope: Scope, node: Node) -> PrivateColumn:
    """The one private attribute of numbers that an expression is a function of."""
    found = [scope.find(column) for column in node.find_all(exp.Column)]
    places = {one.place for one in found if isinstance(one, PrivateColumn)}
    if not found or len(places) != 1 or not all(isinstance(one, PrivateColumn) for one in found):
        problem = "an expression of one private attribute is expected here"
        raise scope.refusal(node, problem, "Compare one attribute with constants; join several conditions by AND.")
    (first, *_) = found
    assert isinstance(first, PrivateColumn)  # noqa: S101 - checked above
    if any(isinstance(one, PrivateColumn) and one.dimension is not None for one in found):
        raise scope.refusal(node, "a dimension's column cannot be calculated with here", "Use the column itself.")
    if not isinstance(first.domain, Ordinal) or first.domain.kind != "number":
        raise scope.refusal(node, f"{first.place[1]!r} is not a number", "Calculate with ordinal attributes.")
    if first.domain.size > MOST_VALUES:
        raise scope.refusal(node, "the attribute's domain is too large to calculate with", "Compare the attribute.")
    return first


def evaluate(scope: Scope, node: Node, domain: Ordinal) -> list[Fraction]:
    """An expression of one attribute at every value of its domain, exactly."""
    if isinstance(node, exp.Paren):
        return evaluate(scope, node.this, domain)
    if isinstance(node, exp.Column):
        low, step = Fraction(domain.low), Fraction(domain.step)
        return [low + code * step for code in range(domain.size)]
    if isinstance(node, exp.Literal) and not node.is_string:
        return [number(scope, node)] * domain.size
    if isinstance(node, exp.Neg):
        return [-one for one in evaluate(scope, node.this, domain)]
    if isinstance(node, exp.Floor) and not node.args.get("decimals"):
        return [Fraction(math.floor(one)) for one in evaluate(scope, node.this, domain)]
    if type(node) in (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv):
        left, right = evaluate(scope, node.left, domain), evaluate(scope, node.right, domain)
        pairs = list(zip(left, right, strict=True))
        if isinstance(node, exp.Add):
            return [a + b for a, b in pairs]
        if isinstance(node, exp.Sub):
            return [a - b for a, b in pairs]
        if isinstance(node, exp.Mul):
            return [a * b for a, b in pairs]
        if any(b == 0 for b in right):
            raise scope.refusal(node, "this divides by zero", "Divide by another constant.")
        if isinstance(node, exp.Div):
            return [a / b for a, b in pairs]
        if all(a.denominator == b.denominator == 1 for a, b in pairs):
            return [Fraction(math.trunc(a / b)) for a, b in pairs]  # towards zero, as DuckDB does
        raise scope.refusal(node, "// divides whole numbers only", "Write FLOOR(x / y).")
    problem = f"{type(node).__name__.upper()} cannot be calculated here"
    raise scope.refusal(node, problem, "Use +, -, *, /, // and FLOOR of one attribute and numbers.")
