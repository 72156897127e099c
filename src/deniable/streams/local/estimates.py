"""Second reports of a stream without trust: each is an unbiased estimate, and their sums are the answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms import SquareWave
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import LocalChoice
from deniable.streams.released.windows import Truncation, WindowEstimate


class Estimates:
    """What second reports under one θ say, and their sum."""

    def __init__(self, protocol: ToPLProtocol, choice: LocalChoice) -> None:
        self._protocol, self.choice = protocol, choice
        self._mechanism = protocol.second(choice.theta)
        self._total = 0.0
        self.number = 0
        self.looked_at = 0
        """How many there were when θ was last looked at."""

    def take(self, codes: Integers) -> Floats:
        """One estimate per report."""
        estimates = self.decoded(codes)
        self.number += codes.size
        self._total = math.fsum((self._total, float(estimates.sum())))
        return estimates

    def decoded(self, codes: Integers) -> Floats:
        """The estimates that reports stand for."""
        mechanism = self._mechanism
        return mechanism.estimate_each(codes) if isinstance(mechanism, SquareWave) else mechanism.estimate(codes)

    @property
    def variance(self) -> float:
        """Variance of the noise of one estimate, averaged over the distribution that values are believed to have.

        If nothing is known about the values, it is the largest variance of any value.
        """
        choice = self.choice
        if choice.mean is None or choice.square is None:
            return max(self._mechanism.variance(share * choice.theta) for share in (0.0, 0.5, 1.0))
        return self._protocol.mean_variance(choice.theta, choice.mean, choice.square)

    @property
    def total(self) -> WindowEstimate:
        """The sum of all estimates."""
        stderr = math.sqrt(self.number * self.variance)
        loss = float(self.choice.truncation(float(self._protocol.bound)).loss(np.array([float(self.number)]))[0])
        return WindowEstimate(self._total, stderr, truncation=None if math.isnan(loss) else loss)

    def revise(self, choice: LocalChoice, earlier: int) -> None:
        """What later first reports say about the same θ. What was believed before stays true of so many estimates.

        Values of two kinds then stand in one phase, and a window may hold more of either: that is one more error.
        """
        old, share = self.choice, earlier / max(self.number, 1)
        if old.mean is None or not share:
            self.choice = choice
            return
        mixed = {
            name: share * getattr(old, name) + (1 - share) * getattr(choice, name)
            for name in ("above", "above_stderr", "excess", "mean", "square", "excess_square")
        }
        apart = math.sqrt(share * (1 - share)) * abs(choice.excess - old.excess)
        errors = math.hypot(share * old.excess_stderr, (1 - share) * choice.excess_stderr, apart)
        self.choice = replace(choice, **mixed, excess_stderr=errors)

    def restored_by(self, bound: float) -> Truncation:
        """What is known about values above θ, and what is added back for them; for a public θ nothing is."""
        choice, cut = self.choice, self.choice.truncation(bound)
        if choice.mean is None:
            return cut
        variance, square = choice.excess_stderr**2, choice.excess_square
        return replace(cut, excess=choice.excess, excess_variance=variance, excess_square=square)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on but single reports, as JSON."""
        return {"published": self.number, "total": self._total, "looked_at": self.looked_at}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.number, self._total = state["published"], state["total"]
        self.looked_at = state.get("looked_at", 0)


def state_before() -> dict[str, Any]:
    """This part of a state before there is a θ."""
    return {"published": 0, "total": 0.0, "looked_at": 0}
