"""How many events of an epoch did not count, asked privately: what stand-ins replace is part of an answer's error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.arrays import Booleans
from deniable.mechanisms import DiscreteLaplace
from deniable.randomness import Source

_DOUBT = 2.0
"""Standard errors that Laplace noise exceeds upwards three times in a hundred."""
_LARGEST_RATE = 1e4
_RATE_HALVINGS = 60


class UncountedEvents:
    """Counts events that were replaced, and tells their share with noise. The count is as secret as the data."""

    def __init__(self, epsilon: float, most: int, source: Source) -> None:
        self._epsilon, self._most, self._source = epsilon, most, source
        self._events = self._replaced = 0  # of the open epoch
        self.share = 0.0
        """The largest share that the last answer allows, but for three in a hundred. Public."""
        self.filled = 0.0
        """The share of the warm-up that was replaced, as far as noise does not explain it. Public."""
        self.whole = False
        """Whether the last answer is about a whole epoch, not only about a warm-up."""

    def add(self, counts: Booleans) -> None:
        """Take whether events counted."""
        self._events += counts.size
        self._replaced += counts.size - int(counts.sum())

    def begin(self) -> None:
        """Begin an epoch."""
        self._events = self._replaced = 0

    def ask(self, epoch: int, when: str, *, whole: bool) -> None:
        """Measure the share of the open epoch so far. One person moves the count by at most `most`."""
        if not self._events:
            return
        noise = DiscreteLaplace(self._epsilon, self._most)
        source = self._source.stream(epoch, when).recomputable()
        noisy = int(noise.draw(np.array([self._replaced]), source)[0])
        error = math.sqrt(noise.variance())
        # At least one error: that noise is far below zero says nothing, and later more events do not count.
        self.share = min(max(noisy + _DOUBT * error, error) / self._events, 1.0)
        self.whole = whole
        if not whole:
            self.filled = min(believed(noisy, error) / self._events, 1.0)

    def share_after(self, growth: float) -> float:
        """The largest share of an epoch that is so many times as long as what was last measured, if it goes on so.

        Events of persons are taken to come at random, at the rate that explains the share: later in an epoch more of
        them do not count.
        """
        if self.whole or not self.share:
            return self.share
        return uncounted_share(_rate(self.share, self._most) * growth, self._most) if growth < math.inf else 1.0

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        return {
            "events": self._events,
            "replaced": self._replaced,
            "share": self.share,
            "filled": self.filled,
            "whole": self.whole,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._events, self._replaced, self.share = state["events"], state["replaced"], state["share"]
        self.filled, self.whole = state["filled"], state["whole"]


def believed(noisy: float, error: float) -> float:
    """What to take a noisy count for that is divided by: nothing where noise explains it, and shrunk above that.

    >>> believed(150.0, 100.0), believed(400.0, 100.0), believed(400.0, 0.0)
    (0.0, 375.0, 400.0)
    """
    return 0.0 if noisy <= _DOUBT * error else noisy - error**2 / noisy


def uncounted_share(rate: float, most: int) -> float:
    """The share of events beyond the first `most` of a person, who has a Poisson number of them with this mean.

    >>> [round(uncounted_share(rate, 2), 3) for rate in (0.1, 2.0, 100.0)]
    [0.002, 0.271, 0.98]
    """
    chance, counted = math.exp(-rate), 0.0
    for number in range(most):
        counted += (number - most) * chance  # E[min(N, k)] = k − Σ (k − n)·P(N = n)
        chance *= rate / (number + 1)
    return min(max(1.0 - (most + counted) / rate, 0.0), 1.0)


def _rate(share: float, most: int) -> float:
    """The mean number of events of a person at which this share does not count."""
    low, high = 1e-9, _LARGEST_RATE * most
    for _ in range(_RATE_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if uncounted_share(middle, most) < share else (low, middle)
    return high
