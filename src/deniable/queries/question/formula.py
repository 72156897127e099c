"""Arithmetic between sums, with its derivative: how the error of several sums becomes that of an answer.

A question is answered from moments, sums over users of what each contributes. AVG is a quotient of two of them, a
variance a formula of three. By the delta method the variance of a formula f of moments m is ∇f · Cov(m) · ∇f.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Booleans, Floats

CLEAR = 3.0
"""A divisor must be this many of its standard errors away from zero."""


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}"


@dataclass(frozen=True, slots=True)
class Moment:
    """A sum over users, by its number in the question."""

    number: int

    def __str__(self) -> str:
        return f"m{self.number}"


@dataclass(frozen=True, slots=True)
class Binary:
    """Two formulas joined by +, −, * or /."""

    sign: str
    left: Formula
    right: Formula

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


@dataclass(frozen=True, slots=True)
class Root:
    """A square root."""

    of: Formula

    def __str__(self) -> str:
        return f"√{self.of}"


@dataclass(frozen=True, slots=True)
class Applied:
    """A function of an answer: round, floor, ceil, trunc, abs, exp, ln, greatest, least, or the rest of a division."""

    name: str
    of: Formula
    setting: float = 0.0
    """Decimals, or the constant that it is compared with or divided by."""

    def __str__(self) -> str:
        return f"{self.name}({self.of}, {self.setting:g})"

    def at(self, values: Floats) -> Floats:
        """The function of some numbers, as DuckDB has it: halves are rounded away from zero."""
        if self.name == "exp":
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(values))
        if self.name == "ln":
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.maximum(values, 0.0)))
        if self.name in ("round", "floor", "ceil", "trunc"):
            finite = np.isfinite(values)  # the ends of an interval may not be
            return np.asarray(np.where(finite, self._rounded(np.where(finite, values, 0.0)), values))
        if self.name == "abs":
            return np.abs(values)
        if self.name == "mod":
            whole = _is_near(values / self.setting)
            return np.asarray(np.where(whole, 0.0, np.fmod(values, self.setting)))
        extreme = np.maximum if self.name == "greatest" else np.minimum
        return np.asarray(extreme(values, self.setting))

    def _rounded(self, values: Floats) -> Floats:
        """A sum of many floats may miss the whole number that it is by a hair."""
        if self.name == "round":
            scale = 10.0**self.setting
            scaled = np.abs(values) * scale
            whole = np.floor(scaled + 0.5)
            return np.asarray(np.copysign(np.where(_is_near(scaled), np.rint(scaled), whole) / scale, values))
        rounded = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}[self.name](values)
        return np.where(_is_near(values), np.rint(values), rounded)

    def of_interval(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The smallest interval that holds the function of every number of an interval."""
        if self.name == "mod":
            return self._rests(low, high)
        ends = self.at(low), self.at(high)
        least, most = np.minimum(*ends), np.maximum(*ends)
        return np.where((self.name == "abs") & (low < 0) & (high > 0), 0.0, least), most

    def _rests(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """What divisions of an interval may leave over: with the sign of what is divided, as in SQL."""
        size, finite = abs(self.setting), np.isfinite(low) & np.isfinite(high)
        ends = np.where(finite, low, 0.0), np.where(finite, high, 0.0)
        same = finite & (np.trunc(ends[0] / size) == np.trunc(ends[1] / size))
        least = np.where(same, self.at(ends[0]), np.where(low < 0, -size, 0.0))
        return least, np.where(same, self.at(ends[1]), np.where(high > 0, size, 0.0))

    def slope(self, values: Floats) -> Floats:
        """Its derivative; that of rounding is 1, because it follows what is rounded, and so does a rest."""
        if self.name == "abs":
            return np.where(values < 0, -1.0, 1.0)
        if self.name == "exp":
            return self.at(values)
        if self.name == "ln":
            return np.asarray(1 / np.where(values > 0, values, 1.0))
        if self.name in ("greatest", "least"):
            return np.where(self.at(values) == values, 1.0, 0.0)
        return np.ones_like(values)


Formula = Number | Moment | Binary | Root | Applied


@dataclass(frozen=True, slots=True, eq=False)
class Valued:
    """The value of a formula for every group, its derivative by each moment, and whether it is clear of its noise."""

    value: Floats
    gradient: Floats
    clear: Booleans

    def variance(self, covariance: Floats) -> Floats:
        """∇f · Cov · ∇f of every group."""
        variances: Floats = np.einsum("gi,gij,gj->g", self.gradient, covariance, self.gradient)
        return np.maximum(variances, 0.0)


def evaluate(
    formula: Formula,
    sums: Floats,
    covariance: Floats,
    counts: Container[int] = (),
    above_zero: Booleans | None = None,
) -> Valued:
    """A formula at the moments of every group: `sums` groups × moments, `covariance` groups × moments × moments.

    Moments that are `counts` must be clearly above zero where they are divided by, others clearly apart from it. Some,
    groups × moments, may be known to be `above_zero` in another way.
    """
    groups, moments = sums.shape
    sure = np.ones(groups, dtype=bool)
    if isinstance(formula, Number):
        return Valued(np.full(groups, formula.value), np.zeros((groups, moments)), sure)
    if isinstance(formula, Moment):
        gradient = np.zeros((groups, moments))
        gradient[:, formula.number] = 1.0
        return Valued(sums[:, formula.number].copy(), gradient, sure)
    if isinstance(formula, Root):
        inner = evaluate(formula.of, sums, covariance, counts, above_zero)
        # Its slope is steep at zero: the error bars hold only where the radicand is clearly positive.
        clear = inner.clear & (inner.value > CLEAR * np.sqrt(inner.variance(covariance)))
        root = np.sqrt(np.where(clear, inner.value, 1.0))
        return Valued(root, inner.gradient / (2 * root[:, None]), clear)
    if isinstance(formula, Applied):
        inner = evaluate(formula.of, sums, covariance, counts, above_zero)
        slope, clear = formula.slope(inner.value), inner.clear
        if formula.name == "ln":  # as for roots
            clear = clear & (inner.value > CLEAR * np.sqrt(inner.variance(covariance)))
        return Valued(formula.at(inner.value), inner.gradient * slope[:, None], clear)
    left, right = (evaluate(side, sums, covariance, counts, above_zero) for side in (formula.left, formula.right))
    clear = left.clear & right.clear
    a, b = left.value[:, None], right.value[:, None]
    if formula.sign == "+":
        return Valued(left.value + right.value, left.gradient + right.gradient, clear)
    if formula.sign == "-":
        return Valued(left.value - right.value, left.gradient - right.gradient, clear)
    if formula.sign == "*":
        return Valued(left.value * right.value, left.gradient * b + right.gradient * a, clear)
    counted = isinstance(formula.right, Moment) and formula.right.number in counts
    away = right.value if counted else np.abs(right.value)
    apart = away > CLEAR * np.sqrt(right.variance(covariance))
    if counted and above_zero is not None and isinstance(formula.right, Moment):
        apart |= above_zero[:, formula.right.number]
    clear = clear & apart
    b = np.where(clear[:, None], b, 1.0)
    return Valued(left.value / b[:, 0], (left.gradient - a / b * right.gradient) / b, clear)


def gradient_at(formula: Formula, sums: Floats) -> Floats:
    """The derivative of a formula by each moment, at moments that are known exactly: groups × moments."""
    groups, moments = sums.shape
    return evaluate(formula, sums, np.zeros((groups, moments, moments))).gradient


def moments_of(formula: Formula) -> set[int]:
    """The numbers of the moments in a formula."""
    if isinstance(formula, Moment):
        return {formula.number}
    if isinstance(formula, Binary):
        return moments_of(formula.left) | moments_of(formula.right)
    return moments_of(formula.of) if isinstance(formula, (Root, Applied)) else set()


def _is_near(values: Floats) -> Booleans:
    """Whether numbers are whole but for rounding."""
    return np.asarray(np.abs(values - np.rint(values)) < 1e-9 * np.maximum(np.abs(values), 1.0))
