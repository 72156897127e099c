"""The square wave: reports near the truth are likelier, and the server recovers the whole distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deniable.checks import check_integer, position_in
from deniable.errors import InvalidParameter
from deniable.exact import RandBelow, exp_between
from deniable.mechanisms._range_mechanism import RangeMechanism
from deniable.mechanisms._window import COARSEST_GRID, FINEST_GRID, SlidingWindow, grid_for

if TYPE_CHECKING:
    from deniable.arrays import Floats, Integers
    from deniable.mechanisms.reconstruction import Reconstruction
    from deniable.randomness import Source


@lru_cache(maxsize=256)
def half_width(epsilon: float) -> Fraction:
    """Half the width of the wave on [0, 1]: the one that carries most information about the value.

        b = (ε·e^ε − e^ε + 1)/(2e^ε(e^ε − 1 − ε))        [LWL20, Section 5.3; WCZ21, App. E.1]

    In rationals: at small ε numerator and denominator are tiny differences of large numbers.
    """
    exact = Fraction(epsilon)
    power, _ = exp_between(exact, digits=80)
    return (exact * power - power + 1) / (2 * power * (power - 1 - exact))


@dataclass(frozen=True, slots=True)
class SquareWave(RangeMechanism):
    """Report a number in [low, high] as a point of the range widened by b on both sides.

    On [0, 1] the continuous mechanism reports y ∈ [−b, 1 + b] with density e^ε/(2b·e^ε + 1) where |y − v| ≤ b, and e^ε
    times less elsewhere  [LWL20]. Here the range is cut into `cells` equal cells, and the wave covers round(2b·cells)
    outputs. ε-LDP exactly. `estimate` gives the distribution of the values by expectation maximisation with smoothing.

    >>> wave = SquareWave(epsilon=1.0, low=0, high=100)
    >>> wave.window.inputs, wave.window.width
    (65536, 33565)
    """

    epsilon: float
    low: float = 0.0
    high: float = 1.0
    cells: int | None = None

    def __post_init__(self) -> None:
        RangeMechanism.__post_init__(self)
        if self.cells is not None:
            check_integer("cells", self.cells, 2, FINEST_GRID)

    @property
    def window(self) -> SlidingWindow:
        """The integer law of the reports."""
        if math.isinf(self.epsilon):
            return SlidingWindow(self.epsilon, self.cells or COARSEST_GRID, 1)
        share = 2 * half_width(self.epsilon)
        cells = self.cells or grid_for(share)
        return SlidingWindow(self.epsilon, cells, max(1, round(cells * share)))

    def cell_of(self, value: float | Fraction) -> int:
        """The cell a value falls in, by the float arithmetic that arrays go through."""
        position_in(value, self.low, self.high)
        cells = self.window.inputs
        return min(int((float(value) - self.low) / (self.high - self.low) * cells), cells - 1)

    def law(self, value: float | Fraction) -> tuple[Fraction, ...]:
        """The exact probability of every report, for one true value."""
        return self.window.law(self.cell_of(value))

    def draw(self, values: Floats, source: Source) -> Integers:
        """The number of an output for each value in the range; the source has been checked."""
        import numpy as np

        window = self.window
        positions = (values - self.low) / (self.high - self.low) * window.inputs
        return window.draw(np.clip(positions.astype(np.int64), 0, window.inputs - 1), source)

    def draw_one(self, value: float | Fraction, randbelow: RandBelow) -> int:
        """The number of an output for one value; the draws have been checked."""
        return self.window.draw_one(self.cell_of(value), randbelow)

    def estimate(self, reports: Any, bins: int = 1024, *, smooth: bool = True) -> Floats:
        """The share of values in each of `bins` equal bins of the range (see `reconstruct`)."""
        return self.reconstruct(reports, bins, smooth=smooth).shares

    def reconstruct(self, reports: Any, bins: int = 1024, *, smooth: bool = True) -> Reconstruction:
        """The most likely distribution, by EM or (default) EM with smoothing, and how it was reached."""
        from deniable.mechanisms._arrays import as_cells
        from deniable.mechanisms.reconstruction import reconstruct

        window = self.window
        check_integer("bins", bins, 2, window.inputs)
        if window.inputs % bins:
            raise InvalidParameter("bins", f"must divide the {window.inputs} cells", "Use a power of two.")
        smooth = smooth and self.epsilon < math.inf  # without noise there is nothing to smooth
        return reconstruct(window, as_cells(reports, window.outputs, "reports"), bins, smooth=smooth)

    def estimate_each(self, reports: Any) -> Floats:
        """One unbiased estimate per report, of the middle of its value's cell; noisier than `Hybrid`'s."""
        from deniable.mechanisms._arrays import as_cells

        indices = self.window.decode(as_cells(reports, self.window.outputs, "reports"))
        decoded: Floats = self.low + (self.high - self.low) / self.window.inputs * (indices + 0.5)
        return decoded

    def variance(self, value: float) -> float:
        """Variance of one entry of `estimate_each`."""
        step = (self.high - self.low) / self.window.inputs
        return float(self.window.variance(self.cell_of(value))) * step**2
