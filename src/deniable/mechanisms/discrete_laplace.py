"""The discrete Laplace mechanism: integer noise on integers, with nothing for rounding to betray."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_integer, is_integer
from deniable.errors import InvalidData, InvalidParameter
from deniable.exact import RandBelow, check_epsilon, check_randbelow, checked_scale, discrete_laplace, exp_between

if TYPE_CHECKING:
    from deniable.arrays import Floats, Integers
    from deniable.randomness import Source


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Add integer noise X with P(X = k) = (1 − r)/(1 + r)·r^|k|, r = e^(−ε/Δ), to integers of sensitivity Δ.

    ε-DP for every pair of inputs at distance ≤ Δ, with equality far out on either side  [GRS12]. The trusted server's
    mechanism: one value per neighbour relation is protected, not one per user unless Δ covers all a user contributes.

    >>> DiscreteLaplace(epsilon=0.5, sensitivity=1).scale
    Fraction(2, 1)
    """

    epsilon: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("sensitivity", self.sensitivity, 1, 2**60)
        if not math.isinf(self.epsilon):
            checked_scale(self.scale)

    @property
    def scale(self) -> Fraction:
        """Δ/ε, exactly; zero at ε = ∞."""
        return Fraction(0) if math.isinf(self.epsilon) else Fraction(self.sensitivity) / Fraction(self.epsilon)

    @property
    def ratio(self) -> Fraction:
        """r = e^(−ε/Δ) as a rational at most 10^-37 above it (relative), so that laws keep the promise."""
        return Fraction(0) if math.isinf(self.epsilon) else exp_between(-1 / self.scale)[1]

    @property
    def spends(self) -> Spending:
        """ε for integers at L1 distance up to the sensitivity."""
        return Spending(Unit.STEP, Neighbours.DISTANCE, self.epsilon)

    def law(self, value: int, low: int, high: int) -> tuple[Fraction, ...]:
        """The probability of every output of {low, …, high}, the ends taking everything beyond them.

        Clamping is post-processing; it makes the law finite, so that a whole publisher can be enumerated.
        """
        if not low < high:
            raise InvalidParameter("low", "must be below high", "Give the two ends of the outputs to list.")
        below, above = self.cumulative(low - value), 1 - self.cumulative(high - 1 - value)
        return below, *(self.probability(y - value) for y in range(low + 1, high)), above

    def probability(self, noise: int) -> Fraction:
        """P(X = noise), in terms of `ratio`."""
        r = self.ratio
        return (1 - r) / (1 + r) * r ** abs(noise)

    def cumulative(self, noise: int) -> Fraction:
        """P(X ≤ noise), in terms of `ratio`."""
        r = self.ratio
        return r**-noise / (1 + r) if noise <= 0 else 1 - r ** (noise + 1) / (1 + r)

    def perturb(self, values: Any, *, source: Source | None = None, simulation: bool = False) -> Integers:
        """Every value with noise of its own."""
        from deniable.mechanisms._arrays import as_integers
        from deniable.randomness import release_source

        source = release_source(source, simulation=simulation, epsilon=self.epsilon)
        return self.draw(as_integers(values), source)

    def draw(self, values: Integers, source: Source) -> Integers:
        """`perturb` for integers and a source that have been checked."""
        return values.copy() if math.isinf(self.epsilon) else values + source.discrete_laplace(self.scale, values.size)

    def perturb_one(self, value: int, *, randbelow: RandBelow = secrets.randbelow, simulation: bool = False) -> int:
        """One value with noise, with the standard library only."""
        check_randbelow(randbelow, self.epsilon, simulation=simulation)
        if not is_integer(value):
            raise InvalidData("the value must be an integer", "Multiply by the resolution and round first.")
        return self.draw_one(value, randbelow)

    def draw_one(self, value: int, randbelow: RandBelow) -> int:
        """`perturb_one` for an integer and draws that have been checked."""
        return value if math.isinf(self.epsilon) else value + discrete_laplace(self.scale, randbelow)

    def estimate(self, reports: Any) -> Floats:
        """The outputs themselves: the noise has mean zero."""
        from deniable.mechanisms._arrays import as_integers

        return as_integers(reports, "reports").astype("float64")

    def variance(self) -> float:
        """2r/(1 − r)², about 2(Δ/ε)²; in the form that stays exact at large scales, 1/(2·sinh²(ε/2Δ))."""
        if math.isinf(self.epsilon):
            return 0.0
        half = float(1 / (2 * self.scale))
        return 0.5 / math.sinh(half) ** 2
