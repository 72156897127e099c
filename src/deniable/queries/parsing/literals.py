"""Values as constants of SQL."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

Node = Any


def literal_of(value: Any) -> Node:
    """A value as a constant of SQL."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), exp.DataType.Type.TIMESTAMP)
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), exp.DataType.Type.DATE)
    if isinstance(value, (int, float, Decimal)):
        number = exp.Literal.number(format(abs(Decimal(repr(value) if isinstance(value, float) else value)), "f"))
        return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
    return exp.Literal.string(str(value))
