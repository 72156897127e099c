"""Intervals of ratios that hold however close the divisor is to zero, after Fieller.

For a ratio A/B of sums, A − r·B has mean zero at the true r. So the r for which |A − r·B| is at most z of its standard
errors hold the truth with the stated confidence, whatever B is. They are an interval where B is z errors away from
zero. Elsewhere they are everything, or everything outside of an interval; then nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats
from deniable.queries.question.formula import Binary, Formula, Moment, Number, evaluate

SHARP = 10.0
"""Where a divisor is so many standard errors from zero, the interval is the value and its error to both sides."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """shift + scale · above / below."""

    above: Formula
    below: Formula
    shift: float = 0.0
    scale: float = 1.0


def ratio_of(formula: Formula) -> Ratio | None:
    """A formula as a ratio of sums; None if it is not one."""
    if not isinstance(formula, Binary):
        return None
    if formula.sign == "/":
        if isinstance(formula.right, Number):
            inner = ratio_of(formula.left)
            value = formula.right.value
            return None if inner is None or not value else _moved(inner, 0.0, 1 / value)
        if _is_sum(formula.left) and _is_sum(formula.right):
            return Ratio(formula.left, formula.right)
        return None
    for number, other, first in ((formula.left, formula.right, True), (formula.right, formula.left, False)):
        inner = ratio_of(other) if isinstance(number, Number) else None
        if inner is None or not isinstance(number, Number):
            continue
        if formula.sign == "*":
            return _moved(inner, 0.0, number.value)
        if formula.sign == "+":
            return _moved(inner, number.value, 1.0)
        return _moved(inner, number.value, -1.0) if first else _moved(inner, -number.value, 1.0)
    return None


def _moved(ratio: Ratio, shift: float, scale: float) -> Ratio:
    return Ratio(ratio.above, ratio.below, shift + scale * ratio.shift, scale * ratio.scale)


def _is_sum(formula: Formula) -> bool:
    """Whether a formula is a sum of moments and numbers, with constant factors."""
    if isinstance(formula, (Moment, Number)):
        return True
    if not isinstance(formula, Binary) or not (_is_sum(formula.left) and _is_sum(formula.right)):
        return False
    if formula.sign in "+-":
        return True
    return isinstance(formula.right, Number) or (formula.sign == "*" and isinstance(formula.left, Number))


def ratio_interval(ratio: Ratio, sums: Floats, covariance: Floats, reach: float) -> tuple[Floats, Floats, Floats]:
    """The interval of every row, infinite where nothing is known; and how many errors the divisor is from zero."""
    above, below = (evaluate(side, sums, covariance) for side in (ratio.above, ratio.below))
    a, b = above.value, below.value
    spread_a, spread_b = above.variance(covariance), below.variance(covariance)
    together = np.einsum("gi,gij,gj->g", above.gradient, covariance, below.gradient)
    with np.errstate(all="ignore"):
        away = np.where(spread_b > 0, np.abs(b) / np.sqrt(spread_b), np.inf)
        square = b**2 - reach**2 * spread_b
        middle = a * b - reach**2 * together
        root = np.sqrt(np.maximum(middle**2 - square * (a**2 - reach**2 * spread_a), 0.0))
        ends = np.stack([(middle - root) / square, (middle + root) / square])
        known = (square > 0) & np.isfinite(ends).all(axis=0)
        ends = ratio.shift + ratio.scale * ends
    low = np.where(known, ends.min(axis=0), -np.inf)
    high = np.where(known, ends.max(axis=0), np.inf)
    return low, high, away
