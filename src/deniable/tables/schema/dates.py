"""Dates and times as domains, in units of the calendar."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

from deniable.errors import InvalidParameter
from deniable.tables.schema.calendar_steps import CALENDAR_STEPS
from deniable.tables.schema.ordinal import Ordinal
from deniable.tables.schema.placing import DROP, OWN

DATE_UNITS = ("hour", "day", "week", "month", "quarter", "year")


def Dates(low: Any, high: Any, unit: str = "day", *, outside: str = DROP, missing: Any = None) -> Ordinal:  # noqa: N802 - stands beside Ordinal and Categorical
    """Dates from `low` to `high`, known by the hour, day, week, month, quarter or year that they lie in.

    Both ends are dates, or texts such as "2024-12-31". Weeks begin on Monday, and units at both ends are whole ones.
    The result is an `Ordinal`; rules are those of `Ordinal`.

    >>> Dates("2024-01-15", "2024-12-31", unit="month").size, Dates("2024-01-01", "2024-01-02", unit="hour").size
    (12, 48)
    """
    if unit not in DATE_UNITS:
        raise InvalidParameter("unit", "is unknown", f"Use {', '.join(DATE_UNITS[:-1])} or {DATE_UNITS[-1]}.")
    first, last = _moment("low", low), _moment("high", high)
    rules: dict[str, Any] = {"outside": outside}
    if missing is not None:
        rules["missing"] = OWN if missing == OWN else _start(_moment("missing", missing), unit)
    if unit == "hour" and not isinstance(high, datetime) and last.time() == time() and not _has_time(high):
        last += timedelta(hours=23)
    return Ordinal(_start(first, unit), _start(last, unit), unit, **rules)


def _moment(name: str, value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidParameter(name, "is not a date", 'Write "2024-01-31".') from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise InvalidParameter(name, "is not a date without time zone", 'Use a date, or write "2024-01-31".')
    return value


def _has_time(value: Any) -> bool:
    """Whether a moment was written with a time of day."""
    return isinstance(value, str) and len(value.strip()) > len("2024-01-31")


def _start(moment: datetime, unit: str) -> date:
    """Where the unit begins that a moment lies in."""
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.date()
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return CALENDAR_STEPS[unit].start(day) if unit in CALENDAR_STEPS else day
