"""Months, quarters and years: steps between dates that are not all of one length."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class CalendarStep:
    """A unit of the calendar.

    >>> CALENDAR_STEPS["quarter"].between(date(2024, 1, 1), date(2024, 12, 31))
    3
    >>> CALENDAR_STEPS["month"].after(date(2024, 1, 1), 13)
    datetime.date(2025, 2, 1)
    """

    name: str
    months: int

    def start(self, day: date) -> date:
        """The first day of the unit that a day lies in."""
        return date(day.year, (day.month - 1) // self.months * self.months + 1, 1)

    def between(self, first: date, day: date) -> int:
        """How many units after that of `first` a day lies."""
        return ((day.year - first.year) * 12 + day.month - first.month) // self.months

    def after(self, first: date, count: int) -> date:
        """The first day of the unit so many units after `first`, which is the first day of one."""
        month = first.year * 12 + first.month - 1 + count * self.months
        return date(month // 12, month % 12 + 1, 1)


CALENDAR_STEPS = {name: CalendarStep(name, months) for name, months in (("month", 1), ("quarter", 3), ("year", 12))}
