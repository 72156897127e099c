"""Answers for windows of a released stream: a sum or mean, and how far it may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.queries.answers.result import Estimate

SINGLE_LAPLACE = 3.0
"""The excess kurtosis of one Laplace noise; that of a sum of k of them is 3/k, and 0 is a normal distribution."""
_BETWEEN = 0.7
PRESSED = "published sums press against θ: the stream has risen, and sums are lower bounds until θ is renewed"
LOWER_BOUND = (
    "sums are lower bounds: published sums press against θ, or are so small that all values but zeros may lie above it"
)


@dataclass(frozen=True, slots=True)
class Truncation:
    """What is known about the values that were cut at θ; all in steps of the grid.

    `excess` is a private estimate of E[(v − θ)+], the mean that cutting takes from a value, with its variance. It is
    added back. Where nothing measured it, `share` may estimate how many values lie above θ, each of which loses at most
    bound − θ; `tail` is the share of θ that they are assumed to lose on average.
    """

    theta: float
    bound: float
    share: float | None = None
    share_stderr: float = 0.0
    tail: float = 1.0
    excess: float | None = None
    excess_variance: float = 0.0
    excess_square: float = 0.0
    """E[(v − θ)+²]: what a few values lose differs from window to window."""
    level: float | None = None
    """The mean of cut values when all this was learnt."""
    empty_below: float | None = None
    """Blocks with a smaller published mean lost nothing, and nothing is added back to them."""
    sparse: bool = False
    """Whether published sums are so small that all values that are not 0 may lie above θ, how far nobody knows."""

    def pressed(self, rates: Floats, noise: float) -> NDArray[np.bool_]:
        """Whether blocks of these mean values press against θ: most of what they hold may be cut.

        Their mean is above three fourths of θ, or has jumped to three times what it was when θ was learnt and above a
        third of θ; by more than three standard errors of noise, and to twice what it was at least. A stream whose
        values are all close to θ was like that before.
        """
        if self.level is None or self.theta >= self.bound:
            return np.zeros(rates.shape, dtype=bool)
        jumped = max(3 * self.level, self.theta / 3)
        return np.asarray(rates - 3 * noise > max(2 * self.level, min(0.75 * self.theta, jumped)))

    def loss(self, count: Floats) -> Floats:
        """What truncation may have taken from sums of `count` values: an estimate plus two standard errors, or NaN."""
        if self.excess is not None:
            return np.zeros(count.shape)
        share = math.nan if self.share is None else min(max(self.share + 2 * self.share_stderr, 0.0), 1.0)
        each = max(min(self.bound - self.theta, self.tail * self.theta), 0)
        return np.asarray(count * (share * each if each else 0.0), dtype=np.float64)

    def added(self, count: Floats) -> tuple[Floats, Floats]:
        """What is added back to sums of `count` values, and its variance."""
        if self.excess is None:
            return np.zeros(count.shape), np.zeros(count.shape)
        return count * self.excess, count**2 * self.excess_variance + count * self.excess_square


@dataclass(frozen=True, slots=True)
class WindowEstimate(Estimate):
    """A sum or mean over a window. `stderr` is the exact standard error of the noise that was added, and nothing else.

    `smoothing` is an estimated standard error: how far values inside blocks may be off. `excess` is what was added back
    for values that were cut at θ, `cut` the standard error of that. The interval covers all three, and uses the
    quantiles of the noise: `tails` is its excess kurtosis, 3 for the Laplace noise of a single block.
    `truncation` is what cutting may have taken away where nothing was measured that could be added back, None if
    nothing is known. The interval does not cover it. `beyond` is for stretches that press against θ, which a `note`
    tells: there the upper end of the interval is what it would be if all their values were as large as the bound. In
    stretches of nearly nothing but zeros it is what it would be if all others were.

    >>> answer = WindowEstimate(100.0, 3.0, smoothing=4.0)
    >>> answer.interval[1] - answer.value > 1.95 * 5
    True
    """

    smoothing: float = 0.0
    truncation: float | None = 0.0
    excess: float = 0.0
    cut: float = 0.0
    tails: float = 0.0
    beyond: float = 0.0

    @property
    def note(self) -> str | None:
        """A warning that published numbers themselves give, if there is one."""
        return LOWER_BOUND if self.beyond else None

    @property
    def error(self) -> float:
        """Noise, smoothing and what was added back, together."""
        return math.hypot(self.stderr, self.smoothing, self.cut)

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high end."""
        error = self.error
        kurtosis = self.tails * (self.stderr / error) ** 4 if error else 0.0
        reach = float(quantile(self.confidence, kurtosis)) * error
        return self.value - reach, self.value + reach + self.beyond


@dataclass(frozen=True, slots=True)
class Windows:
    """Answers for many windows at once, one entry each. The fields are those of `WindowEstimate`."""

    values: Floats
    stderrs: Floats
    smoothing: Floats
    truncation: Floats
    excess: Floats
    cut: Floats
    tails: Floats
    beyond: Floats

    @property
    def errors(self) -> Floats:
        """Noise, smoothing and what was added back, together."""
        return np.sqrt(self.stderrs**2 + self.smoothing**2 + self.cut**2)

    def reach(self, confidence: float = 0.95) -> Floats:
        """Half the lengths of the intervals.

        >>> import numpy as np
        >>> nothing = np.zeros(1)
        >>> Windows(nothing, np.ones(1), *[nothing] * 6).reach().round(2)
        array([1.96])
        """
        errors = self.errors
        share = np.divide(self.stderrs, errors, out=np.zeros_like(errors), where=errors > 0)
        return quantile(confidence, self.tails * share**4) * errors


def quantile(confidence: float, kurtosis: float | Floats) -> Floats:
    """How many standard errors hold with this confidence, for noise between a normal and a Laplace distribution.

    Exact at both ends. In between, sums of k Laplace noises have excess kurtosis 3/k; the power was fitted to these,
    and is within 1 % of them at confidences from 0.8 to 0.99.

    >>> float(quantile(0.95, 0.0).round(3)), float(quantile(0.95, 3.0).round(3))
    (1.96, 2.118)
    """
    normal = NormalDist().inv_cdf(0.5 + confidence / 2)
    laplace = -math.log(1 - confidence) / math.sqrt(2)
    share = np.clip(np.asarray(kurtosis) / SINGLE_LAPLACE, 0.0, 1.0) ** _BETWEEN
    return np.asarray(normal + (laplace - normal) * share)
