"""Exact rationals in bulk: an expression of an attribute at every value of its domain, without a rounding error.

Numerators and denominators are arrays of integers: of 64 bits while every result provably fits, of Python's beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers

Whole = NDArray[Any]
"""64-bit integers, or Python's as objects."""
ROOM = 2**62
"""Products below it, and sums of two of them, fit into 64 bits with a sign."""


@dataclass(frozen=True, slots=True, eq=False)
class Rationals:
    """Numbers n/d with d > 0, not necessarily reduced; an array of one entry stands for that number everywhere.

    >>> x = Rationals.steps(Fraction(0), Fraction(1, 2), 5)
    >>> (x / Rationals.constant(Fraction(3, 4))).floor().distinct()[1].tolist()
    [0, 0, 1, 2, 2]
    """

    numerators: Whole
    denominators: Whole

    @classmethod
    def constant(cls, value: Fraction) -> Rationals:
        """One number."""
        return cls(_integers(value.numerator), _integers(value.denominator))

    @classmethod
    def steps(cls, low: Fraction, step: Fraction, count: int) -> Rationals:
        """low, low + step, low + 2·step, …"""
        positions = cls(np.arange(count, dtype=np.int64), _integers(1))
        return cls.constant(low) + positions * cls.constant(step)

    def __neg__(self) -> Rationals:
        return Rationals(-self.numerators, self.denominators)

    def __add__(self, other: Rationals) -> Rationals:
        left, right = self._over_one_denominator(other)
        return Rationals(_sum(left, right), _product(self.denominators, other.denominators))

    def __sub__(self, other: Rationals) -> Rationals:
        return self + -other

    def __mul__(self, other: Rationals) -> Rationals:
        tops = _product(self.numerators, other.numerators)
        return Rationals(tops, _product(self.denominators, other.denominators))

    def __truediv__(self, other: Rationals) -> Rationals:
        """Divided by numbers of which none is zero (`has_zero`)."""
        tops = _product(self.numerators, other.denominators)
        bottoms = _product(self.denominators, other.numerators)
        signs = np.where(bottoms < 0, -1, 1)
        return Rationals(tops * signs, bottoms * signs)

    def __floordiv__(self, other: Rationals) -> Rationals:
        """The quotient rounded towards zero, as DuckDB's // does it with whole numbers."""
        exact = self / other
        below = exact.floor().numerators
        inexact = exact.numerators % exact.denominators != 0
        return Rationals(below + ((below < 0) & inexact), _integers(1))

    def floor(self) -> Rationals:
        """The largest whole numbers that are not above."""
        return Rationals(self.numerators // self.denominators, _integers(1))

    @property
    def has_zero(self) -> bool:
        """Whether one of them is zero."""
        return bool((self.numerators == 0).any())

    @property
    def are_whole(self) -> bool:
        """Whether all are whole numbers."""
        return bool((self.numerators % self.denominators == 0).all())

    def compared(self, comparison: Callable[[Any, Any], Any], other: Rationals) -> Booleans:
        """Where a comparison such as `operator.lt` holds."""
        return np.asarray(comparison(*self._over_one_denominator(other)), dtype=bool)

    def distinct(self) -> tuple[tuple[tuple[int, int], ...], Integers]:
        """The different numbers, reduced, as (numerator, denominator) in no order, and which of them each one is."""
        common = np.gcd(self.numerators, self.denominators)
        tops, top = np.unique(self.numerators // common, return_inverse=True)
        bottoms, bottom = np.unique(self.denominators // common, return_inverse=True)
        pairs, which = np.unique(top * bottoms.size + bottom, return_inverse=True)
        distinct = [(int(tops[pair // bottoms.size]), int(bottoms[pair % bottoms.size])) for pair in pairs.tolist()]
        return tuple(distinct), np.asarray(which, dtype=np.int64)

    def _over_one_denominator(self, other: Rationals) -> tuple[Whole, Whole]:
        """The numerators of both over the product of their denominators."""
        return _product(self.numerators, other.denominators), _product(other.numerators, self.denominators)


def _integers(value: int) -> Whole:
    return np.array([value], dtype=np.int64 if abs(value) < ROOM else object)


def _product(left: Whole, right: Whole) -> Whole:
    return left * right if _largest(left) * _largest(right) < ROOM else _unbounded(left) * right


def _sum(left: Whole, right: Whole) -> Whole:
    return left + right if _largest(left) + _largest(right) < ROOM else _unbounded(left) + right


def _unbounded(values: Whole) -> Whole:
    return values.astype(object)


def _largest(values: Whole) -> int:
    """The largest size of any of them."""
    return max(abs(int(values.max())), abs(int(values.min())))
