"""Checks of public settings and of single values, with the standard library only.

In Python True is an integer, 1.0 is not, and NaN passes most comparisons that are written the wrong way round. Each
rule stands here once. A message about a private value never repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, TypeGuard

from deniable.errors import InvalidData, InvalidParameter


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is a Python integer; True and False are not.

    >>> is_integer(3), is_integer(3.0), is_integer(True)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a Python integer or float, NaN and infinity included; True and False are not.

    >>> is_number(3), is_number(3.5), is_number("3"), is_number(True)
    (True, True, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_integer(
    name: str,
    value: object,
    smallest: int,
    largest: int,
    *,
    problem: str | None = None,
    repair: str = "Change that setting.",
) -> None:
    """Refuse a public setting unless it is an integer from `smallest` to `largest`.

    >>> check_integer("fanout", 1, 2, 256, repair="Use 5.")
    Traceback (most recent call last):
    deniable.errors.InvalidParameter: fanout must be a Python integer from 2 to 256. Nothing was drawn or spent. Use 5.
    """
    if not is_integer(value) or not smallest <= value <= largest:
        raise InvalidParameter(name, problem or f"must be a Python integer from {smallest} to {largest}", repair)


def check_number(
    name: str,
    value: object,
    problem: str,
    repair: str,
    *,
    above: float = -math.inf,
    smallest: float = -math.inf,
    largest: float = math.inf,
    below: float = math.inf,
) -> None:
    """Refuse a public setting unless it is a finite number within these limits.

    >>> check_number("share", float("nan"), "must be above 0", "Use 1.", above=0)
    Traceback (most recent call last):
    deniable.errors.InvalidParameter: share must be above 0. Nothing was drawn or spent. Use 1.
    """
    if not is_number(value) or not (above < value < below and smallest <= value <= largest):
        raise InvalidParameter(name, problem, repair)


def check_flag(name: str, value: object, repair: str) -> None:
    """Refuse a public setting unless it is True or False.

    >>> check_flag("cap", 1, "Leave it out.")
    Traceback (most recent call last):
    deniable.errors.InvalidParameter: cap must be True or False. Nothing was drawn or spent. Leave it out.
    """
    if not isinstance(value, bool):
        raise InvalidParameter(name, "must be True or False", repair)


def check_range(low: float, high: float) -> None:
    """Refuse a public range of numbers that is empty, too wide or too narrow."""
    repair = "Give the public range of the values."
    for name, end in (("low", low), ("high", high)):
        check_number(name, end, "must be a finite number", repair)
    if not low < high:
        raise InvalidParameter("low", "must be below high", repair)
    if max(abs(low), abs(high)) > 1e150 or high - low < 1e-150:
        raise InvalidParameter("low", "and high must lie within ±1e150 and 1e-150 apart", "Change the unit.")


def checked_cell(value: Any, count: int) -> int:
    """A private cell number as a Python integer."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidData("the value must be an integer", "Convert it to a cell number from 0 on.")
    cell = int(value)
    if not 0 <= cell < count:
        raise InvalidData(f"the value must lie in the public domain 0..{count - 1}", "Clip or re-code it first.")
    return cell


def position_in(value: float | Fraction, low: float, high: float) -> Fraction:
    """The position of a private number in [low, high], as an exact fraction of the range."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidData("the value must be a finite number", "Replace it first.")
    if not low <= value <= high:
        raise InvalidData(f"the value must lie in the public range [{low:g}, {high:g}]", "Clip it first.")
    exact = Fraction(value) if isinstance(value, (int, float, Fraction)) else Fraction(float(value))
    return (exact - Fraction(low)) / (Fraction(high) - Fraction(low))


def check_scores(scores: Sequence[int]) -> None:
    """Refuse scores of candidates that are not integers."""
    if not scores:
        raise InvalidData("scores are empty", "Pass at least one candidate.")
    if not all(map(is_integer, scores)):
        raise InvalidData("scores must be integers", "Multiply by the resolution and round first.")
