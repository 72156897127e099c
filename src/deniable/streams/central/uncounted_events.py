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


class UncountedEvents:
    """Counts events that were replaced, and tells their share with noise. The count is as secret as the data."""

    def __init__(self, epsilon: float, most: int, source: Source) -> None:
        self._epsilon, self._most, self._source = epsilon, most, source
        self._events = self._replaced = 0  # of the open epoch
        self.share = 0.0
        """The largest share that the last answer allows, but for three in a hundred. Public."""

    def add(self, counts: Booleans) -> None:
        """Take whether events counted."""
        self._events += counts.size
        self._replaced += counts.size - int(counts.sum())

    def begin(self) -> None:
        """Begin an epoch."""
        self._events = self._replaced = 0

    def ask(self, epoch: int, when: str) -> None:
        """Measure the share of the open epoch so far. One person moves the count by at most `most`."""
        if not self._events:
            return
        noise = DiscreteLaplace(self._epsilon, self._most)
        source = self._source.stream(epoch, when).recomputable()
        noisy = int(noise.draw(np.array([self._replaced]), source)[0])
        doubt = _DOUBT * math.sqrt(noise.variance())
        self.share = min(max(noisy + doubt, 0.0) / self._events, 1.0)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        return {"events": self._events, "replaced": self._replaced, "share": self.share}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._events, self._replaced, self.share = state["events"], state["replaced"], state["share"]
