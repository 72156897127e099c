"""Exact numbers: what a probability is before it is sampled.

A privacy proof uses real numbers such as e^ε, a computer rounded ones. This file connects the two: rationals that are
provably below e^ε, and probabilities with as many binary digits as a caller asks for. Standard library only, so that a
device and a cluster share every digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from deniable.checks import is_number
from deniable.errors import InvalidParameter, SimulationOnly
from deniable.simulation import check_noise, is_simulated

WORD_BITS = 64
SECRET_BITS = 128
"""A choice that depends on private data takes one draw of so many bits, whatever the data are."""
RandBelow = Callable[[int], int]
"""A source of one uniform integer in {0, …, bound − 1}: `secrets.randbelow`, unless a test says otherwise."""

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-9, 700.0
SMALLEST_SCALE, LARGEST_SCALE = Fraction(1, 100), Fraction(10**12)


def check_epsilon(epsilon: float) -> None:
    """Refuse an ε that is not a positive number; infinity is allowed and means no noise."""
    if not is_number(epsilon) or not epsilon > 0:
        raise InvalidParameter("epsilon", "must be a positive number", "Use 0.1 to 10, or math.inf in a simulation.")
    if LARGEST_EPSILON < epsilon < math.inf:
        raise InvalidParameter(
            "epsilon", f"above {LARGEST_EPSILON:g} protects nobody", "Use 0.1 to 10, or math.inf in a simulation."
        )
    if epsilon < SMALLEST_EPSILON:
        raise InvalidParameter("epsilon", f"below {SMALLEST_EPSILON:g} lets nothing through", "Use 0.01 to 10.")


def checked_scale(scale: Fraction | float) -> Fraction:
    """A scale of integer noise as an exact rational."""
    if isinstance(scale, (int, float, Fraction)) and math.isfinite(scale):
        exact = Fraction(scale)
        if SMALLEST_SCALE <= exact <= LARGEST_SCALE:
            return exact
    raise InvalidParameter(
        "the noise scale",
        "must lie between 0.01 and 1e12",
        "Change epsilon, the sensitivity or the unit of the values.",
    )


@lru_cache(maxsize=4096)
def exp_between(x: Fraction, digits: int = 40) -> tuple[Fraction, Fraction]:
    """Two rationals around e^x, with a relative distance of about 10^(2 − digits)."""
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
    up = Context(prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
    low = down.divide(Decimal(x.numerator), Decimal(x.denominator))
    high = up.divide(Decimal(x.numerator), Decimal(x.denominator))
    # `exp` rounds to nearest whatever the context says: one unit in the last place encloses it.
    return Fraction(down.next_minus(down.exp(low))), Fraction(up.next_plus(up.exp(high)))


@lru_cache(maxsize=1024)
def exp_below(x: float) -> Fraction:
    """The largest multiple of 2^-64 that is provably ≤ e^x, for x ≥ 0.

    Every local randomiser uses it in place of e^ε, so that no ratio of its law exceeds e^ε
    and at most 2^-64 of the ratio is given away.
    """
    low, _ = exp_between(Fraction(x), digits=40 + int(x))
    return Fraction(math.floor(low * 2**WORD_BITS), 2**WORD_BITS)


class Chance(Protocol):
    """A probability whose binary digits can be read one by one."""

    def __hash__(self) -> int: ...

    def floor(self, bits: int) -> int:
        """⌊p · 2^bits⌋, exactly."""


@dataclass(frozen=True, slots=True)
class RationalChance:
    """A rational probability."""

    value: Fraction

    def floor(self, bits: int) -> int:
        """⌊p · 2^bits⌋, exactly."""
        return (self.value.numerator << bits) // self.value.denominator


@dataclass(frozen=True, slots=True)
class ExpChance:
    """e^(−x) for a rational x > 0."""

    x: Fraction

    def floor(self, bits: int) -> int:
        """⌊p · 2^bits⌋, exactly."""
        return _certified_floor(lambda digits: exp_between(-self.x, digits), bits)


@dataclass(frozen=True, slots=True)
class LogisticChance:
    """1/(1 + e^x) for a rational x > 0, optionally doubled."""

    x: Fraction
    factor: int = 1

    def floor(self, bits: int) -> int:
        """⌊p · 2^bits⌋, exactly."""

        def between(digits: int) -> tuple[Fraction, Fraction]:
            low, high = exp_between(self.x, digits)
            return self.factor / (1 + high), self.factor / (1 + low)

        return _certified_floor(between, bits)


def _certified_floor(between: Callable[[int], tuple[Fraction, Fraction]], bits: int) -> int:
    """⌊p · 2^bits⌋ from ever narrower enclosures of an irrational p.

    It ends: e^x is irrational for rational x ≠ 0, so p · 2^bits is never an integer.
    """
    digits = 20 + bits // 3
    while True:
        low, high = between(digits)
        floor: int = math.floor(low * 2**bits)
        if floor == math.floor(high * 2**bits):
            return floor
        digits *= 2


@lru_cache(maxsize=4096)
def word(chance: Chance, index: int) -> int:
    """The `index`-th group of 64 binary digits of a probability; 2^64 for the first one of p = 1."""
    floor = chance.floor(WORD_BITS * (index + 1))
    return floor % 2**WORD_BITS if index else floor


def coin(chance: Chance, randbelow: RandBelow, *, equal_words: int = 0) -> bool:
    """One exact Bernoulli draw: compare uniform digits with those of p until they differ.

    The first `equal_words` groups of digits have been compared already, and were equal.
    """
    while True:
        drawn, threshold = randbelow(2**WORD_BITS), word(chance, equal_words)
        if drawn != threshold:
            return drawn < threshold
        equal_words += 1


def fraction_coin(value: Fraction, randbelow: RandBelow) -> bool:
    """One exact Bernoulli draw of a public rational probability, by 64 uniform digits at a time.

    How many it draws depends on the probability, with a chance of 2^-64: for one that is a secret see `secret_coin`.
    """
    numerator, denominator = value.numerator, value.denominator
    while True:
        threshold, numerator = divmod(numerator << WORD_BITS, denominator)
        drawn = randbelow(2**WORD_BITS)
        if drawn != threshold:
            return drawn < threshold


def secret_coin(chance: Fraction, randbelow: RandBelow) -> bool:
    """One draw, whatever the chance is: heads with the chance rounded down to 128 binary digits.

    For rounding a value before it is randomised. Privacy does not rest on this chance; an average is off by at most
    2^-128 of the distance that is rounded over.
    """
    return randbelow(2**SECRET_BITS) < (chance.numerator << SECRET_BITS) // chance.denominator


def secret_below(count: int, randbelow: RandBelow) -> int:
    """One of `count` numbers from 0 on, by one draw whose bound is the same for every count.

    For choosing among somebody's rows before they are randomised. Privacy does not rest on it; no number's chance is
    off by more than 2^-128.
    """
    return randbelow(2**SECRET_BITS) * count >> SECRET_BITS


def check_randbelow(randbelow: RandBelow, epsilon: float, *, simulation: bool = False) -> None:
    """Refuse the draws of a seeded source, and an ε without noise, unless draws or caller say it is a simulation."""
    if simulation or is_simulated(randbelow):
        return
    if is_simulated(getattr(randbelow, "__self__", None)):  # a method of a seeded source
        raise SimulationOnly
    check_noise(epsilon, simulation=False)


@dataclass(frozen=True, slots=True)
class GeometricDigits:
    """P(G = k) ∝ e^(−k/scale), k = 0, 1, …, written in binary.

    e^(−k/scale) is a product over the binary digits of k, so the digits are independent, and digit i is one
    with probability 1/(1 + e^(2^i/scale)). Above the listed digits the number goes on as another geometric
    variable: `tail` is the chance that it has not ended. Nothing is cut off.
    """

    bits: tuple[LogisticChance, ...]
    tail: ExpChance

    @classmethod
    def of(cls, scale: Fraction) -> GeometricDigits:
        """The digits of a geometric variable of the given scale."""
        return _geometric_digits(scale)


# Digits are listed until the rest has probability below 2^-64 or so: e^-45.
_TAIL_EXPONENT = 45


@lru_cache(maxsize=256)
def _geometric_digits(scale: Fraction) -> GeometricDigits:
    count = 0
    while 2**count < _TAIL_EXPONENT * scale:
        count += 1
    bits = tuple(LogisticChance(2**i / scale) for i in range(count))
    return GeometricDigits(bits, ExpChance(2**count / scale))


def geometric(scale: Fraction, randbelow: RandBelow) -> int:
    """One exact draw of P(G = k) ∝ e^(−k/scale), k ≥ 0."""
    digits = GeometricDigits.of(scale)
    total = sum(coin(chance, randbelow) << i for i, chance in enumerate(digits.bits))
    while coin(digits.tail, randbelow):
        total += 1 << len(digits.bits)
    return total


def discrete_laplace(scale: Fraction, randbelow: RandBelow) -> int:
    """One exact draw of P(X = k) ∝ e^(−|k|/scale).

    X is zero with probability (1 − q)/(1 + q), q = e^(−1/scale); otherwise it has a fair sign and size 1 + G. All three
    are drawn, whatever comes out: how often it draws says nothing about X, unless X lies beyond 45 scales.
    """
    nonzero = coin(nonzero_chance(scale), randbelow)
    size, positive = 1 + geometric(scale, randbelow), randbelow(2)
    return nonzero * (size if positive else -size)


def nonzero_chance(scale: Fraction) -> LogisticChance:
    """P(X ≠ 0) = 2q/(1 + q) = 2/(1 + e^(1/scale)) for the discrete Laplace law."""
    return LogisticChance(1 / scale, factor=2)
