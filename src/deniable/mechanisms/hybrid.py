"""The hybrid mechanism: stochastic rounding for some, the piecewise mechanism for the others, better than either."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable.accounting import Spending, in_parallel
from deniable.exact import RandBelow, exp_below, fraction_coin
from deniable.mechanisms._range_mechanism import RangeMechanism
from deniable.mechanisms._window import scale_law
from deniable.mechanisms.piecewise import Piecewise
from deniable.mechanisms.stochastic_rounding import StochasticRounding

if TYPE_CHECKING:
    from deniable.arrays import Floats, Integers
    from deniable.randomness import Source

SWITCH = 0.61
"""Up to this ε the piecewise mechanism never helps [WXY19]."""

_BATCH_VALUES = 1 << 15
_BITS = 2  # reports 0 and 1 are those of stochastic rounding, all others those of the piecewise mechanism


@dataclass(frozen=True, slots=True)
class Hybrid(RangeMechanism):
    """Report a number in [low, high]: with probability α by the piecewise mechanism, else by stochastic rounding.

        α = 1 − e^(−ε/2) if ε > 0.61, else 0        [WXY19; WCZ21, App. E.2]

    Above the switch the two variances bend in opposite directions and cancel: on [−1, 1] it is, for every value,

        e^(−ε/2)·(((e^ε + 1)/(e^ε − 1))² + (e^(ε/2) + 3)/(3(e^(ε/2) − 1)))        [WCZ21, Eq. (14)]

    ε-LDP exactly, because the choice is made without looking at the value; as unbiased as the two are.

    >>> round(Hybrid(epsilon=2.0).variance(0.3), 3)
    1.042
    """

    epsilon: float
    low: float = -1.0
    high: float = 1.0
    steps: int | None = None

    def __post_init__(self) -> None:
        self.piecewise  # noqa: B018 - checks all settings

    @property
    def piecewise(self) -> Piecewise:
        """The mechanism of the one part."""
        return Piecewise(self.epsilon, self.low, self.high, self.steps)

    @property
    def rounding(self) -> StochasticRounding:
        """The mechanism of the other part."""
        return StochasticRounding(self.epsilon, self.low, self.high)

    @property
    def alpha(self) -> Fraction:
        """Probability of the piecewise mechanism."""
        if math.isinf(self.epsilon):
            return Fraction(1)
        return 1 - 1 / exp_below(self.epsilon / 2) if self.epsilon > SWITCH else Fraction(0)

    @property
    def outputs(self) -> int:
        """How many different reports there are."""
        return _BITS + self.piecewise.window.outputs

    @property
    def spends(self) -> Spending:
        """The larger of the two parts: the choice between them does not look at the value."""
        return in_parallel([self.piecewise.spends, self.rounding.spends])

    def law(self, value: float | Fraction) -> tuple[Fraction, ...]:
        """The exact probability of every report, for one true value."""
        pieces = scale_law(self.piecewise.law(value), self.alpha)
        return scale_law(self.rounding.law(value), 1 - self.alpha) + pieces

    def draw(self, values: Floats, source: Source) -> Integers:
        """One report for each value in the range; the source has been checked.

        Who uses which mechanism is drawn first, without looking at any value.
        """
        import numpy as np

        reports = np.empty(values.size, dtype=np.int64)
        for start in range(0, values.size, _BATCH_VALUES):
            part = slice(start, start + _BATCH_VALUES)
            reports[part] = self._draw_batch(values[part], source)
        return reports

    def _draw_batch(self, values: Floats, source: Source) -> Integers:
        """Reports of one batch, whose words and intermediate arrays stay in the cache."""
        import numpy as np

        if not self.alpha:
            return self.rounding.draw(values, source)
        choose = source.bernoulli(self.alpha, values.size)
        reports = np.empty(values.size, dtype=np.int64)
        for who, mechanism, offset in ((choose, self.piecewise, _BITS), (~choose, self.rounding, 0)):
            if who.any():
                reports[who] = mechanism.draw(values[who], source) + offset
        return reports

    def draw_one(self, value: float | Fraction, randbelow: RandBelow) -> int:
        """One report for one value; the draws have been checked."""
        if fraction_coin(self.alpha, randbelow):
            return _BITS + self.piecewise.draw_one(value, randbelow)
        return self.rounding.draw_one(value, randbelow)

    def estimate(self, reports: Any) -> Floats:
        """One unbiased estimate per report; their mean estimates the mean of the values."""
        import numpy as np

        from deniable.mechanisms._arrays import as_cells

        codes = as_cells(reports, self.outputs, "reports")
        bits = self.rounding.estimate(np.minimum(codes, 1))
        pieces = self.piecewise.estimate(np.maximum(codes - _BITS, 0))
        return np.where(codes < _BITS, bits, pieces)

    def decode_one(self, report: int) -> Fraction:
        """The estimate of one report, exactly."""
        if report < _BITS:
            return self.rounding.decode_one(report)
        return self.piecewise.decode_one(report - _BITS)

    def variance(self, value: float) -> float:
        """Variance of one report's estimate: both are unbiased, so the two variances average."""
        alpha = float(self.alpha)
        return alpha * self.piecewise.variance(value) + (1 - alpha) * self.rounding.variance(value)
