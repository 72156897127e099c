"""Second reports of a stream without trust: each is an unbiased estimate, and their sums are the answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.errors import InvalidParameter
from deniable.mechanisms import SquareWave
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import LocalChoice
from deniable.streams.released.covariance import IndependentNoise
from deniable.streams.released.released_stream import Released
from deniable.streams.released.windows import WindowEstimate
from deniable.streams.structure.growing_array import GrowingArray
from deniable.streams.structure.state_values import packed, unpacked
from deniable.streams.structure.value_grid import Grid


class Estimates:
    """What second reports under one θ say. With keep=False single estimates are forgotten, and their sum stays."""

    def __init__(self, protocol: ToPLProtocol, choice: LocalChoice, *, keep: bool) -> None:
        self._protocol, self.choice, self._keep = protocol, choice, keep
        self._mechanism = protocol.second(choice.theta)
        self._truncation = choice.truncation(float(protocol.bound))
        self._codes = GrowingArray(np.uint32)
        self._total = 0.0
        self.number = 0

    def take(self, codes: Integers) -> Floats:
        """One estimate per report."""
        estimates = self.decoded(codes)
        self.number += codes.size
        self._total = math.fsum((self._total, float(estimates.sum())))
        if self._keep and codes.size == 1:
            self._codes.append(int(codes[0]))
        elif self._keep:
            self._codes.extend(codes)
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
        loss = self.loss(self.number)
        return WindowEstimate(self._total, stderr, truncation=None if math.isnan(loss) else loss)

    def loss(self, count: int) -> float:
        """What cutting may have taken from the sum of so many values, NaN if nothing is known."""
        return float(self._truncation.loss(np.array([float(count)]))[0])

    def kept(self) -> Floats:
        """All estimates, in order."""
        if not self._keep:
            raise InvalidParameter("keep", "is False, so single estimates are gone", "Ask for `total`.")
        codes = self._codes.array().astype(np.int64)
        return self.decoded(codes) if codes.size else np.zeros(0)

    def release(self, values: Floats, about: dict[str, Any], first: int) -> Released:
        """Estimates from number `first` on, with everything that is needed to answer for windows."""
        noise, grid = IndependentNoise(self.variance), Grid(self._protocol.bound)
        return Released(values, noise, grid, about, self._truncation, first=first)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        codes = packed(self._codes.array()) if self._keep else None
        return {"published": self.number, "total": self._total, "codes": codes}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.number, self._total = state["published"], state["total"]
        if self._keep:
            self._codes.extend(unpacked(state["codes"], np.uint32))


def state_before(*, keep: bool) -> dict[str, Any]:
    """This part of a state before there is a θ."""
    return {"published": 0, "total": 0.0, "codes": "" if keep else None}
