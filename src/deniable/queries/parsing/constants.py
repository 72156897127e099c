"""Constants in a query: numbers, texts, dates, and their positions in an attribute's domain."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.checks import is_integer
from deniable.queries.parsing.domain_values import constant_of
from deniable.queries.parsing.scope import Node, Scope
from deniable.tables.schema.attributes import Categorical, Private

_TYPES = exp.DataType.Type
CAST_TO: dict[Any, Any] = {_TYPES.DATE: date, _TYPES.TIMESTAMP: datetime, _TYPES.TIMESTAMPNTZ: datetime}
BELOW = -1
"""The position of a category that is not in the list."""
WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"(?=.{1,20}\Z)([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9])?")


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
        if is_integer(value) or isinstance(value, Decimal):
            return -value
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        value = number(scope, node)
        return int(value) if value.denominator == 1 else Decimal(node.this)
    if (
        type(node) is exp.Cast
        and isinstance(node.this, exp.Literal)
        and node.this.is_string
        and node.to.this in CAST_TO
    ):
        return _point(scope, node, node.this.this, CAST_TO[node.to.this])  # DATE '2020-01-31'
    if isinstance(node, exp.Null) or node.find(exp.Column, exp.Placeholder, exp.Parameter, exp.Subquery):
        repair = "Compare an attribute with a number, a text or a date."
        raise scope.refusal(node, "a constant is expected here", repair)
    value = constant_of(scope, node)
    if isinstance(value, float):
        return Decimal(repr(value))
    return value


def position(scope: Scope, node: Node, domain: Private) -> Any:
    """A constant as a position in a domain: a whole number, or a fraction between two positions.

    Outside of the domain it is negative, or beyond the last position.
    """
    value = literal(scope, node)
    if isinstance(domain, Categorical):
        if type(value) is not type(domain.values[0]):
            known = ", ".join(map(str, domain.values[:5])) + (", …" if domain.size > 5 else "")
            raise scope.refusal(node, "the constant has another type than the attribute", f"It has {known}.")
        return domain.encode(value) if value in domain.values else BELOW
    if domain.kind != "number" and isinstance(value, str):
        value = _point(scope, node, value, datetime if domain.kind == "time" else date)
    if type(value) is date and domain.kind == "time":
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime) and domain.kind == "date" and value.time() == time():
        value = value.date()
    kinds: dict[str, Any] = {"number": (int, Decimal), "date": date, "time": datetime}
    odd = isinstance(value, bool) or (isinstance(value, datetime) and domain.kind == "date")
    if odd or not isinstance(value, kinds[domain.kind]):
        raise scope.refusal(node, "the constant has another type than the attribute", "Compare like with like.")
    if domain.kind == "number":
        return (Fraction(value) - Fraction(domain.low)) / Fraction(domain.step)
    if (value - domain.low) % domain.step:
        problem = "the constant lies inside an interval, but the attribute is known only by whole intervals"
        raise scope.refusal(node, problem, f"Use {domain.low} and multiples of {domain.step} after it.")
    return (value - domain.low) // domain.step


def is_outside(scope: Scope, node: Node, domain: Private) -> bool:
    """Whether a constant is none of the values of a domain, and outside of its range."""
    position_there = position(scope, node, domain)
    return bool(position_there < 0 or position_there > domain.size - 1)


def _point(scope: Scope, node: Node, text: str, kind: Any) -> Any:
    """A date or a point in time from a text."""
    try:
        value = kind.fromisoformat(text)
        if getattr(value, "tzinfo", None) is None:
            return value
    except ValueError:
        pass
    repair = "Write '2020-01-31' or '2020-01-31 13:00', without a time zone."
    raise scope.refusal(node, "the constant is not a date or time", repair)
