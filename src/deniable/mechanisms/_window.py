"""The sliding window: the one law behind the piecewise and the square-wave mechanism, on integers.

Input i ∈ {0, …, inputs − 1} is reported as one of inputs + width − 1 outputs. The `width` outputs from i on are each
e^ε times as likely as any other. As i moves the window moves with it and its size never changes, so the total weight is
the same for every input: the law is exactly ε-LDP, and the mean report is exactly linear in i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deniable.exact import RandBelow, exp_below, fraction_coin

if TYPE_CHECKING:
    from deniable.arrays import Floats, Integers
    from deniable.randomness import Source

# Settings of the default grid: up to ε = 25 every variance is within 0.1 % of the continuous one.
COARSEST_GRID, FINEST_GRID, ENOUGH_WIDTH = 2**16, 2**30, 2048


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """The law of one report. See the module's text."""

    epsilon: float
    inputs: int
    width: int

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        return self.inputs + self.width - 1

    @property
    def weights(self) -> tuple[Fraction, Fraction]:
        """Probability of each output inside and outside the window."""
        return _weights(self)

    def law(self, index: int) -> tuple[Fraction, ...]:
        inside, outside = self.weights
        return tuple(inside if index <= j < index + self.width else outside for j in range(self.outputs))

    @property
    def inside(self) -> Fraction:
        """Probability of a report inside the window."""
        return _weights(self)[0] * self.width

    def draw(self, indices: Integers, source: Source) -> Integers:
        """One report per input. The words that are drawn do not depend on the inputs."""
        keep = source.bernoulli(self.inside, indices.size)
        near = source.below(self.width, indices.size) + indices
        reports = source.below(self.inputs - 1, indices.size)
        reports += (reports >= indices) * self.width
        reports[keep] = near[keep]
        return reports

    def draw_one(self, index: int, randbelow: RandBelow) -> int:
        """One report, with the standard library only. All three draws are made, whatever comes out."""
        keep, near, other = fraction_coin(self.inside, randbelow), randbelow(self.width), randbelow(self.inputs - 1)
        return index + near if keep else other + self.width * (other >= index)

    @property
    def line(self) -> tuple[Fraction, Fraction]:
        """(intercept, slope) of the mean report as a function of the input."""
        inside, outside = self.weights
        extra = (inside - outside) * self.width
        intercept = outside * _sum(self.outputs) + (inside - outside) * _sum(self.width)
        return intercept, extra

    def decode(self, reports: Any) -> Any:
        """Unbiased estimates of inputs from their reports; exact for integers and fractions, float for arrays."""
        intercept, slope = self.line
        if isinstance(reports, int):
            return (reports - intercept) / slope
        decoded: Floats = (reports - float(intercept)) / float(slope)
        return decoded

    def variance(self, index: int) -> Fraction:
        """Variance of the decoded report of one input."""
        inside, outside = self.weights
        intercept, slope = self.line
        window = _sum_of_squares(index + self.width) - _sum_of_squares(index)
        square = outside * _sum_of_squares(self.outputs) + (inside - outside) * window
        return (square - (intercept + slope * index) ** 2) / slope**2


@lru_cache(maxsize=256)
def _weights(window: SlidingWindow) -> tuple[Fraction, Fraction]:
    if math.isinf(window.epsilon):
        return Fraction(1, window.width), Fraction(0)
    ratio = exp_below(window.epsilon)
    outside = 1 / (window.outputs + (ratio - 1) * window.width)
    return ratio * outside, outside


def grid_for(share: Fraction) -> int:
    """Grid size, a power of two, on which a window that covers `share` of the inputs spans enough outputs."""
    grid = COARSEST_GRID
    while grid < FINEST_GRID and grid * share < ENOUGH_WIDTH:
        grid *= 2
    return grid


def mix_laws(lower: tuple[Fraction, ...], upper: tuple[Fraction, ...], rest: Fraction) -> tuple[Fraction, ...]:
    """The law of an input that is rounded up with probability `rest` and down otherwise."""
    if rest in (0, 1):
        return upper if rest else lower
    return tuple((1 - rest) * a + rest * b for a, b in zip(lower, upper, strict=True))


def scale_law(law: tuple[Fraction, ...], factor: Fraction) -> tuple[Fraction, ...]:
    """Every probability times a factor; a long law repeats few numbers, so each is multiplied once."""
    products = {id(chance): chance * factor for chance in {id(chance): chance for chance in law}.values()}
    return tuple(products[id(chance)] for chance in law)


def _sum(count: int) -> int:
    """0 + 1 + … + (count − 1)."""
    return count * (count - 1) // 2


def _sum_of_squares(count: int) -> int:
    """0² + 1² + … + (count − 1)²."""
    return (count - 1) * count * (2 * count - 1) // 6
