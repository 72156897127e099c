"""Answers for windows of a released stream: a sum or mean, and how far it may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from deniable.arrays import Floats
from deniable.queries.answers.result import Estimate


@dataclass(frozen=True, slots=True)
class Truncation:
    """What is known about the values that were cut at θ; all in steps of the grid.

    `share` estimates, from values that were not published, how many values lie above θ; None if nothing measured it.
    Each of those loses at most bound − θ; `tail` is the share of θ that they are assumed to lose on average.
    """

    theta: float
    bound: float
    share: float | None = None
    share_stderr: float = 0.0
    tail: float = 1.0

    def loss(self, count: Floats) -> Floats:
        """What truncation may have taken from sums of `count` values: an estimate plus two standard errors, or NaN."""
        share = math.nan if self.share is None else min(max(self.share + 2 * self.share_stderr, 0.0), 1.0)
        each = max(min(self.bound - self.theta, self.tail * self.theta), 0)
        return np.asarray(count * (share * each if each else 0.0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class WindowEstimate(Estimate):
    """A sum or mean over a window. `stderr` is the exact standard error of the noise that was added, and nothing else.

    `smoothing` is an estimated standard error: how far predictions inside blocks may be off. The interval covers both.
    `truncation` is what cutting values at θ may have taken away, None if nothing is known. The interval does not cover
    it.

    >>> answer = WindowEstimate(100.0, 3.0, smoothing=4.0)
    >>> answer.interval[1] - answer.value > 1.95 * 5
    True
    """

    smoothing: float = 0.0
    truncation: float | None = 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high end, for the truncated stream."""
        reach = NormalDist().inv_cdf(0.5 + self.confidence / 2) * float(np.hypot(self.stderr, self.smoothing))
        return self.value - reach, self.value + reach


@dataclass(frozen=True, slots=True)
class Windows:
    """Answers for many windows at once, one entry each."""

    values: Floats
    stderrs: Floats
    smoothing: Floats
    truncation: Floats
