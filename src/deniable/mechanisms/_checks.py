"""Checks of one value and of public settings, with the standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from deniable.errors import InvalidData, InvalidParameter


def check_count(name: str, value: int, *, smallest: int, largest: int) -> None:
    """A public setting that counts something."""
    if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
        raise InvalidParameter(name, f"must be a Python integer from {smallest} to {largest}", "Change that setting.")


def check_range(low: float, high: float) -> None:
    """A public range of numbers."""
    for name, end in (("low", low), ("high", high)):
        if isinstance(end, bool) or not isinstance(end, (int, float)) or not math.isfinite(end):
            raise InvalidParameter(name, "must be a finite number", "Give the public range of the values.")
    if not low < high:
        raise InvalidParameter("low", "must be below high", "Give the public range of the values.")
    if max(abs(low), abs(high)) > 1e150 or high - low < 1e-150:
        raise InvalidParameter("low", "and high must lie within ±1e150 and 1e-150 apart", "Change the unit.")


def check_cell(value: Any, count: int) -> int:
    """One private cell number, as a Python integer. The message does not repeat it."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidData("the value must be an integer", "Convert it to a cell number from 0 on.")
    cell = int(value)
    if not 0 <= cell < count:
        raise InvalidData(f"the value must lie in the public domain 0..{count - 1}", "Clip or re-code it first.")
    return cell


def position_in(value: float | Fraction, low: float, high: float) -> Fraction:
    """Where one private number lies in [low, high], as an exact fraction of the range."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidData("the value must be a finite number", "Replace it first.")
    if not low <= value <= high:
        raise InvalidData(f"the value must lie in the public range [{low:g}, {high:g}]", "Clip it first.")
    exact = Fraction(value) if isinstance(value, (int, float, Fraction)) else Fraction(float(value))
    return (exact - Fraction(low)) / (Fraction(high) - Fraction(low))


def check_scores(scores: Sequence[int]) -> None:
    """Integer scores of candidates. The message does not repeat them."""
    if not scores:
        raise InvalidData("scores are empty", "Pass at least one candidate.")
    if any(isinstance(score, bool) or not isinstance(score, int) for score in scores):
        raise InvalidData("scores must be integers", "Multiply by the resolution and round first.")
