"""Ordinal attributes: numbers, dates and times, in steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from deniable.checks import check_flag
from deniable.errors import InvalidParameter
from deniable.tables.schema.calendar_steps import CalendarStep
from deniable.tables.schema.names import grid_slack
from deniable.tables.schema.placing import CLIP, DROP, MISSING, OFF_GRID, OUTSIDE, OWN, WRONG_TYPE, Unplaceable
from deniable.tables.schema.rule_checks import check_choice, checked_replacement
from deniable.tables.schema.scalars import as_scalar, as_step, kind_of, written
from deniable.wording import counted

MOST_DOMAIN_VALUES = 2**31
LARGEST_NUMBER = 2**62


@dataclass(frozen=True, slots=True)
class Ordinal:
    """Numbers from `low` to `high` in equal steps, dates, or points in time cut into equal intervals.

    Numbers must lie on the grid. Points in time belong to the interval they fall in. `step` is a number, a timedelta,
    or one of "second", "minute", "hour", "day", "week", and for dates "month", "quarter", "year". Designs that collect
    rounded values for sums (AHIO, EHIO, SR-HIO) do so for every attribute of numbers; `summed=False` leaves one out,
    and the others get its share.

    Rules for values without a place: `outside="clip"` moves them to the nearest end, `round=True` to the nearest step,
    and `missing` is the value that stands for none, or "own" for a cell of its own after all values. Without rules
    such rows are dropped. An attribute with such a cell is summed by its tree alone.

    >>> from datetime import date
    >>> Ordinal(1, 95).size, Ordinal(0, "9.99", "0.01").size, Ordinal(date(2020, 1, 1), date(2020, 12, 31)).size
    (95, 1000, 366)
    """

    low: Any
    high: Any
    step: Any = None
    summed: bool = True
    outside: str = DROP
    round: bool = False
    missing: Any = None

    def __post_init__(self) -> None:
        low, high = as_scalar("low", self.low), as_scalar("high", self.high)
        if kind_of(low) != kind_of(high):
            raise InvalidParameter("low", "and high must be of one kind", "Use two numbers, dates or times.")
        step = as_step(self.step, kind_of(low))
        check_flag("summed", self.summed, "Use False if it is never summed.")
        if not low <= high:
            raise InvalidParameter("low", "is above high: the domain is empty", "Swap them, or widen the range.")
        for name, value in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, name, value)
        if self.kind == "number" and (Fraction(high) - Fraction(low)) % Fraction(step):
            raise InvalidParameter(
                "high", "is not a whole number of steps above low", "Give the step of the values, such as 0.01."
            )
        if self.kind == "number" and max(abs(self.low), abs(self.high)) * self.denominator > LARGEST_NUMBER:
            raise InvalidParameter("low", "or high is too large for exact arithmetic", "Use a coarser unit.")
        if isinstance(step, CalendarStep) and step.start(low) != low:
            problem = f"is not the first day of a {step.name}"
            raise InvalidParameter("low", problem, f"Use {step.start(low)}, or Dates, which finds it.")
        if not 2 <= self.size <= MOST_DOMAIN_VALUES:
            raise InvalidParameter(
                "step", f"gives {counted(self.size, 'value')} instead of 2 to 2^31", "Change low, high or step."
            )
        check_choice("outside", self.outside, (DROP, CLIP))
        check_flag("round", self.round, "Use True to round to the step.")
        if self.missing is not None and self.missing != OWN:
            object.__setattr__(self, "missing", checked_replacement(self, self.missing))

    @property
    def kind(self) -> str:
        """What its values are: a "number", a "date" or a "time"."""
        return kind_of(self.low)

    @property
    def size(self) -> int:
        """How many cells there are: values (or intervals), and one for missing values where they have their own."""
        return self.known_size + int(self.missing == OWN)

    @property
    def known_size(self) -> int:
        """How many values (or intervals) there are."""
        return self._offset(self.high) + 1

    @property
    def missing_position(self) -> int | None:
        """The position of missing values, where they have a cell of their own."""
        return self.known_size if self.missing == OWN else None

    @property
    def aggregatable(self) -> bool:
        """Whether designs collect rounded values of it for sums."""
        return self.kind == "number" and self.summed and self.missing != OWN

    @property
    def denominator(self) -> int:
        """The smallest factor that makes low and step whole numbers."""
        return math.lcm(Fraction(self.low).denominator, Fraction(self.step).denominator)

    def _offset(self, value: Any) -> int:
        if type(value) is type(self.low) is type(self.step) is int:
            return (value - self.low) // self.step
        if self.kind == "number":
            return math.floor((Fraction(value) - Fraction(self.low)) / Fraction(self.step))
        if isinstance(self.step, CalendarStep):
            return self.step.between(self.low, value)
        return int((value - self.low) // self.step)

    def encode(self, value: Any) -> int:
        """The position of a value in the domain, counted from 0."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            if self.missing is None:
                raise Unplaceable(MISSING)
            if self.missing == OWN:
                return self.known_size
            value = self.missing
        if isinstance(value, str):
            raise Unplaceable(WRONG_TYPE)
        try:
            scalar = as_scalar("value", value)
        except InvalidParameter:
            raise Unplaceable(WRONG_TYPE) from None
        if isinstance(scalar, int) and scalar.bit_length() > LARGEST_NUMBER.bit_length():
            raise Unplaceable(OUTSIDE if self.kind == "number" else WRONG_TYPE)
        if isinstance(scalar, datetime) and self.kind == "date":
            scalar = scalar.date()
        if kind_of(scalar) != self.kind:
            raise Unplaceable(WRONG_TYPE)
        if self.kind != "number":
            code = self._offset(scalar)
        else:
            steps = (Fraction(scalar) - Fraction(self.low)) / Fraction(self.step)
            # A float such as 0.1 + 0.2 may lie a hair off its grid point.
            slack = grid_slack(math.ulp(value), float(self.step)) if isinstance(value, float) else 0
            code = math.floor(steps + Fraction(1, 2) + Fraction(slack)) if self.round else round(steps)
            if 0 <= code < self.known_size and not self.round and abs(steps - code) > slack:
                raise Unplaceable(OFF_GRID)
        if not 0 <= code < self.known_size:
            if self.outside != CLIP:
                raise Unplaceable(OUTSIDE)
            return 0 if code < 0 else self.known_size - 1
        return code

    def decode(self, code: int) -> Any:
        """The value at a position of the domain; for an interval, where it begins, and None for what is missing."""
        if code == self.missing_position:
            return None
        if isinstance(self.step, CalendarStep):
            return self.step.after(self.low, code)
        return self.low + code * self.step

    def to_dict(self) -> dict[str, Any]:
        """The canonical form."""
        return {
            "kind": "ordinal",
            "low": written(self.low),
            "high": written(self.high),
            "step": written(self.step),
            **({} if self.summed else {"summed": False}),
            **({} if self.outside == DROP else {"outside": self.outside}),
            **({"round": True} if self.round else {}),
            **({} if self.missing is None else {"missing": written(self.missing)}),
        }
