"""Whether a stream has moved away from what was learnt about it, judged by published sums alone, so at no cost.

An epoch is looked at in sixteenths. Where one of them says that the stream has moved, and the next four say so again,
these four show it as it is now: the epoch ends, and the next one is learnt from that quarter. Everything here is a
function of published sums and of private answers, which are public, too: when an epoch ends tells nothing more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.warmup import Learnt

_PARTS, _PARTS_OF_QUARTER = 16, 4
_FACTOR = 3.0
"""A mean three times as large or small is a shift. Days and nights, seen in sixteenths of an epoch, are mostly less."""
_CERTAIN = 4.0
"""Standard errors of noise that may not explain it."""
_TOWARDS_THETA = 2 / 3
"""The mean of cut values cannot rise above θ: a rise by two thirds of the way there is a shift, too."""


def part_length(plan: StreamPlan) -> int:
    """Values of a sixteenth of an epoch: whole blocks, so that its noisy sum is known."""
    return -(-plan.layout.blocks // _PARTS) * plan.block


def quarter_length(plan: StreamPlan) -> int:
    """Values that the next epoch is learnt from where a stream has moved: a quarter of the epoch, in whole parts."""
    return min(_PARTS_OF_QUARTER, -(-plan.layout.blocks // 4)) * part_length(plan)


@lru_cache(maxsize=1024)
def _noise_of_nodes(plan: StreamPlan, start: int, stop: int) -> float:
    """Variance of the noise of a sum, for nodes of variance 1."""
    return float(plan.noise_model(1.0, 0.0).variance(np.array([start]), np.array([stop]))[0])


@dataclass(frozen=True, slots=True)
class LevelShift:
    """Looks at the sums of parts of an epoch. `falls`: whether a lower level counts; a higher one always does.

    >>> from deniable.streams import Expectation, choose_plan
    >>> plan = choose_plan(1.0, 1 << 16, expectation=Expectation())
    >>> shift = LevelShift(plan, 0.0, Learnt(theta=100, mean=20.0), top=1000, falls=True)
    >>> [shift.seen([0, mean * 4096], 4096, 4096) for mean in (5, 20, 50, 70)]
    [True, False, False, True]
    """

    plan: StreamPlan
    node_variance: float
    learnt: Learnt
    top: int
    falls: bool

    def noise(self, start: int, stop: int) -> float:
        """Variance of the noise of the sum of these values, which are whole blocks."""
        return self.node_variance * _noise_of_nodes(self.plan, start, stop)

    def seen(self, sums: list[int], part: int, taken: int) -> bool:
        """Whether the latest part of an epoch shows a shift, or the latest four together, which have less noise.

        `sums` are noisy sums of the epoch up to the ends of its parts, the last of which is after `taken` values.
        """
        latest = len(sums) - 2  # the parts before it have all their values
        begins = {latest, max(latest + 1 - _PARTS_OF_QUARTER, 0)}
        return any(self._moved(begin * part, taken, sums[-1] - sums[begin]) for begin in begins)

    def _moved(self, start: int, stop: int, noisy_sum: int) -> bool:
        usual, theta, count = self.learnt.mean, self.learnt.theta, stop - start
        if usual is None:
            return False
        doubt = _CERTAIN * math.sqrt(self.noise(start, stop) / count**2 + self.learnt.mean_variance)
        high = min(_FACTOR * usual, usual + _TOWARDS_THETA * (theta - usual))
        rate = noisy_sum / count
        return (self.falls and rate + doubt < usual / _FACTOR) or (theta < self.top and rate - doubt > high)
