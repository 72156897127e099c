"""Stochastic rounding: a number becomes one of the two ends of its range, then one bit of randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable.checks import position_in
from deniable.exact import RandBelow, secret_coin
from deniable.mechanisms._range_mechanism import RangeMechanism
from deniable.mechanisms.randomized_response import RandomizedResponse

if TYPE_CHECKING:
    from deniable.arrays import Floats, Integers
    from deniable.randomness import Source


@dataclass(frozen=True, slots=True)
class StochasticRounding(RangeMechanism):
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

    @property
    def response(self) -> RandomizedResponse:
        """The randomized response on the rounded bit."""
        return RandomizedResponse(self.epsilon, 2)

    def law(self, value: float | Fraction) -> tuple[Fraction, ...]:
        """The exact probability of the reports 0 (the lower end) and 1, for one true value."""
        position = position_in(value, self.low, self.high)
        upper = (1 - position) * self.response.q + position * self.response.p
        return 1 - upper, upper

    def draw(self, values: Floats, source: Source) -> Integers:
        """One bit for each value in the range; the source has been checked."""
        from deniable.mechanisms._arrays import round_to_points

        return self.response.draw(round_to_points(values, self.low, self.high, 1, source), source)

    def draw_one(self, value: float | Fraction, randbelow: RandBelow) -> int:
        """One bit for one value; the draws have been checked."""
        rounded = int(secret_coin(position_in(value, self.low, self.high), randbelow))
        return self.response.draw_one(rounded, randbelow)

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
