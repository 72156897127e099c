"""Numbers, dates, times and spans of time: how they may be given, how they are kept, and how files have them."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from numbers import Integral, Real
from typing import Any

from deniable.errors import InvalidParameter
from deniable.tables.schema.calendar_steps import CALENDAR_STEPS, CalendarStep

_WIDE = Context(prec=200)
LONGEST_NUMBER = 400
"""Characters of a number that is written as a text, and its largest power of ten, up or down: beyond, nothing is
converted, because that would take long."""
_UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_NAMED = ", ".join((*_UNITS, *CALENDAR_STEPS))


def kind_of(value: Any) -> str:
    """What a value is: a "number", a "date" or a "time"."""
    if isinstance(value, datetime):
        return "time"
    return "date" if isinstance(value, date) else "number"


def as_scalar(name: str, value: Any) -> Any:
    """A number as an int or Decimal (a float as it prints), a date or a time without zone."""
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InvalidParameter(name, "has a time zone", "Convert all times to one zone and drop it.")
        return value
    if isinstance(value, date):
        return value
    if isinstance(value, bool) or not isinstance(value, (Real, str, Decimal)):
        raise InvalidParameter(name, "must be a number, a date or a time", "For texts use Categorical.")
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, str) and len(value) > LONGEST_NUMBER:
        raise InvalidParameter(name, f"is longer than {LONGEST_NUMBER} characters", "Use a coarser unit.")
    try:
        number = Decimal(value) if isinstance(value, (str, Decimal)) else Decimal(float.__repr__(float(value)))
    except InvalidOperation:
        raise InvalidParameter(name, "must be a number, a date or a time", "For texts use Categorical.") from None
    except OverflowError:
        raise InvalidParameter(name, "is too large", "Use a coarser unit.") from None
    if not number.is_finite():
        raise InvalidParameter(name, "must be finite", "Use a number.")
    if not number:
        return 0
    if abs(number.adjusted()) > LONGEST_NUMBER:
        raise InvalidParameter(name, f"is beyond 10^±{LONGEST_NUMBER}", "Use another unit.")
    # In a context of its own: the identity of a specification must not depend on the caller's.
    return int(number) if number == number.to_integral_value(context=_WIDE) else number.normalize(_WIDE)


def as_step(step: Any, kind: str) -> Any:
    """The distance between values of a kind: a number, or a span of time; without one, 1 or a day."""
    if kind == "number":
        number = as_scalar("step", 1 if step is None else step)
        if kind_of(number) != "number" or number <= 0:
            raise InvalidParameter("step", "must be a positive number", "Use 1, or the resolution of the values.")
        return number
    if isinstance(step, CalendarStep) or (isinstance(step, str) and step in CALENDAR_STEPS):
        if kind == "time":
            raise InvalidParameter("step", "is a unit of dates, not of times", "Give low and high as dates.")
        return CALENDAR_STEPS[step] if isinstance(step, str) else step
    step = _UNITS.get(step, step) if isinstance(step, str) else step
    if step is None:
        step = _UNITS["day"]
    if not isinstance(step, timedelta) or step <= timedelta(0):
        raise InvalidParameter("step", "must be a span of time", f"Use a timedelta, or one of {_NAMED}.")
    if kind == "date" and step % _UNITS["day"]:
        raise InvalidParameter("step", "must be whole days for dates", 'Use "day", or times instead of dates.')
    return step


def written(value: Any) -> Any:
    """How a bound or a step is written in JSON and TOML."""
    if isinstance(value, timedelta):
        return f"{int(value.total_seconds())} s" if value.microseconds == 0 else f"{value.total_seconds()} s"
    if isinstance(value, CalendarStep):
        return value.name
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, int) else str(value)


def named_span(step: Any) -> Any:
    """A step as people write it in a file: "week" for a span of so many seconds; `parsed` reads both alike."""
    return next((name for name, span in _UNITS.items() if written(span) == step), step)


def parsed(value: Any) -> Any:
    """The reverse of `written`; dates and times may also be native ones of TOML."""
    if isinstance(value, str):
        if re.fullmatch(r"[0-9]+(\.[0-9]+)? s", value):
            try:
                return timedelta(seconds=float(value.removesuffix(" s")))
            except OverflowError:
                return value  # which is not a step then
        if value in _UNITS or value in CALENDAR_STEPS:
            return value
        for parse in (date.fromisoformat, datetime.fromisoformat) if "-" in value[1:] else ():
            try:
                return parse(value)
            except ValueError:
                continue
    return value
