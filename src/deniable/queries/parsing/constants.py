"""Constants in a query: numbers, texts, dates, and their positions in an attribute's domain."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.checks import is_integer
from deniable.queries.parsing.domain_values import constant_of
from deniable.queries.parsing.scope import Node, Scope
from deniable.queries.question.listed_words import ListedWords
from deniable.tables.schema.attributes import Categorical, Enumerable, Ordinal
from deniable.tables.schema.calendar_steps import CalendarStep
from deniable.tables.schema.scalars import named_span, written

_TYPES = exp.DataType.Type
CAST_TO: dict[Any, Any] = {_TYPES.DATE: date, _TYPES.TIMESTAMP: datetime, _TYPES.TIMESTAMPNTZ: datetime}
BELOW = -1
"""The position of a category that is not in the list."""
WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"(?=.{1,20}\Z)([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?(?:[0-9]|1[0-8]))?")


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


PLAIN_WORDS = (
    "a word is compared with something that is computed",
    "Write the word itself, such as word = 'news'.",
)


def bound_of(scope: Scope, kind: Node, node: Node, domain: Enumerable) -> tuple[Node, Any]:
    """A comparison with a constant, as one with a position in a domain.

    Up to the last day of an interval means before the day after it, where the next one begins.
    """
    if isinstance(domain, Ordinal) and domain.kind == "date" and kind in (exp.LTE, exp.GT):
        value = _of_kind(scope, node, domain)
        if _inside(domain, value) and not _inside(domain, value + timedelta(days=1)):
            return (exp.LT if kind is exp.LTE else exp.GTE), _position(domain, value + timedelta(days=1))
    return kind, position(scope, node, domain)


def position(scope: Scope, node: Node, domain: Enumerable) -> Any:
    """A constant as a position in a domain: a whole number, or a fraction between two positions.

    Outside of the domain it is negative, or beyond the last position.
    """
    if isinstance(domain, Categorical):
        value = _like(literal(scope, node), domain.values[0])
        if type(value) is not type(domain.values[0]):
            known = ", ".join(map(str, domain.values[:5])) + (", …" if domain.size > 5 else "")
            raise scope.refusal(node, "the constant has another type than the attribute", f"It has {known}.")
        if isinstance(domain, ListedWords) and value not in domain.values and domain.text.holds(value):
            raise scope.refusal(node, *PLAIN_WORDS)
        return domain.encode(value) if value in domain.values else BELOW
    value = _of_kind(scope, node, domain)
    if _inside(domain, value):
        problem = "the constant lies inside an interval, but the attribute is known only by whole intervals"
        step = named_span(written(domain.step))
        raise scope.refusal(
            node, problem, f"Compare with the beginning of one: {domain.low}, and every {step} after it."
        )
    return _position(domain, value)


def _position(domain: Ordinal, value: Any) -> Any:
    if domain.kind == "number":
        return (Fraction(value) - Fraction(domain.low)) / Fraction(domain.step)
    if isinstance(domain.step, CalendarStep):
        return domain.step.between(domain.low, value)
    return (value - domain.low) // domain.step


def _inside(domain: Ordinal, value: Any) -> bool:
    """Whether a date or time is not where an interval begins."""
    if domain.kind == "number":
        return False
    if isinstance(domain.step, CalendarStep):
        return bool(domain.step.start(value) != value)
    return bool((value - domain.low) % domain.step)


def _of_kind(scope: Scope, node: Node, domain: Ordinal) -> Any:
    """A constant of the kind of an ordinal domain: a number, a date or a time."""
    value = literal(scope, node)
    if domain.kind == "number" and isinstance(value, str) and _NUMBER.fullmatch(value.strip().lstrip("-")):
        value = Decimal(value.strip())  # as DuckDB reads '35' next to a number
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
    return value


def _like(value: Any, example: Any) -> Any:
    """A constant as the type of a list of values, as DuckDB reads it next to them: 'true' and 1 are true."""
    if isinstance(example, bool):
        words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
        return words.get(str(value).strip().casefold(), value)
    if is_integer(example) and isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value):
        return int(value)
    return value


def is_outside(scope: Scope, node: Node, domain: Enumerable) -> bool:
    """Whether a constant is none of the values of a domain, and outside of its range."""
    position_there = position(scope, node, domain)
    return bool(position_there < 0 or position_there > domain.known_size - 1)


def _point(scope: Scope, node: Node, text: str, kind: Any) -> Any:
    """A date or a point in time from a text."""
    try:
        if kind is date and len(text) == len("2020-01-31"):
            return date.fromisoformat(text)
        value = datetime.fromisoformat(text)
        if not value.utcoffset():  # tools write 2020-01-31T00:00:00.000Z, and DuckDB reads it as times without a zone
            value = value.replace(tzinfo=None)
            if kind is datetime:
                return value
            if value.time() == time():
                return value.date()
    except ValueError:
        pass
    repair = "Write '2020-01-31' or '2020-01-31 13:00', without a time zone."
    raise scope.refusal(node, "the constant is not a date or time", repair)
