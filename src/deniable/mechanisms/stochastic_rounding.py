"""Stochastic rounding: a number becomes one of the two ends of its range, then one bit of randomized response."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable.accounting import Spending
from deniable.checks import check_range, position_in
from deniable.exact import RandBelow, check_epsilon, check_randbelow, secret_coin
from deniable.mechanisms.randomized_response import RandomizedResponse

if TYPE_CHECKING:
    from deniable.arrays import Floats, Integers
    from deniable.randomness import Source


@dataclass(frozen=True, slots=True)
class StochasticRounding:
    """Report a number in [low, high] as one bit.

    The number is rounded to the upper end with the probability of its position in the range, which is right on average,
    and the bit goes through randomized response. On [−1, 1] the estimate is ±(e^ε + 1)/(e^ε − 1) and its variance

        ((e^ε + 1)/(e^ε − 1))² − v²        [DJW18; WCZ21, App. E.2]

    ε-LDP exactly, unbiased to 2^-128 of the range (arrays: to the 53 bits of a float). Better than the piecewise
    mechanism at small ε and near the ends of the range.

    >>> round(StochasticRounding(epsilon=1.0).variance(0.0), 3)
    4.683
    """

    epsilon: float
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_range(self.low, self.high)

    @property
    def response(self) -> RandomizedResponse:
        """The randomized response on the rounded bit."""
        return RandomizedResponse(self.epsilon, 2)

    @property
    def spends(self) -> Spending:
        """What randomized response on the rounded bit spends."""
        return self.response.spends

    def law(self, value: float | Fraction) -> tuple[Fraction, ...]:
        """The exact probability of the reports 0 (the lower end) and 1, for one true value."""
        position = position_in(value, self.low, self.high)
        upper = (1 - position) * self.response.q + position * self.response.p
        return 1 - upper, upper

    def perturb(self, values: Any, *, source: Source | None = None, simulation: bool = False) -> Integers:
        """One bit per value."""
        from deniable.mechanisms._arrays import as_reals, round_to_points
        from deniable.randomness import release_source

        source = release_source(source, simulation=simulation, epsilon=self.epsilon)
        checked = as_reals(values, self.low, self.high)
        return self.response.draw(round_to_points(checked, self.low, self.high, 1, source), source)

    def perturb_one(self, value: float, *, randbelow: RandBelow = secrets.randbelow, simulation: bool = False) -> int:
        """One bit, with the standard library only."""
        check_randbelow(randbelow, self.epsilon, simulation=simulation)
        rounded = int(secret_coin(position_in(value, self.low, self.high), randbelow))
        return self.response.perturb_one(rounded, randbelow=randbelow, simulation=True)

    def estimate(self, reports: Any) -> Floats:
        """One unbiased estimate per report; their mean estimates the mean of the values."""
        from deniable.mechanisms._arrays import as_cells

        lower, upper = float(self.decode_one(0)), float(self.decode_one(1))
        return lower + (upper - lower) * as_cells(reports, 2, "reports").astype("float64")

    def decode_one(self, report: int) -> Fraction:
        """The estimate of one report, exactly."""
        p, q = self.response.p, self.response.q
        return Fraction(self.low) + (Fraction(self.high) - Fraction(self.low)) * (report - q) / (p - q)

    def variance(self, value: float) -> float:
        """Variance of one report's estimate."""
        _, upper = self.law(value)
        return float(upper * (1 - upper) * (self.decode_one(1) - self.decode_one(0)) ** 2)
