"""What first reports say about the distribution of values, and how certain that is.

A `DistributionBelief` is a list of distributions with weights: one distribution where the reports were simply inverted
(EMS), many where they leave many possible. Everything here is post-processing of reports, so it costs no privacy.

Why not EMS alone? A threshold depends on the far tail: 0.1 % of the values at a hundred times the typical value count
as much as all the rest. At ε = 0.2, 65,536 square-wave reports give a share of the values to within about 3 %, so EMS
leaves several per cent of pure noise spread over the tail, and that noise decides θ. `tail_belief` asks instead which
distributions with a *smooth* tail explain the reports, and keeps all of them, weighted by how well they do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms._window import SlidingWindow
from deniable.mechanisms.reconstruction import Blur, reconstruct_counts
from deniable.streams.local.stream_protocol import ToPLProtocol

BINS = 1024
"""Bins of the scale that reports are counted in."""


@dataclass(frozen=True, eq=False)
class FirstReports:
    """The first reports of a stream, counted in bins of outputs, and r, the longest windows that matter."""

    protocol: ToPLProtocol
    counts: Floats
    horizon: int

    @property
    def number(self) -> int:
        """How many reports there are."""
        return int(self.counts.sum())


def bins_of(window: SlidingWindow) -> int:
    """How many bins inputs are counted in: 1024, or the largest divisor that fits a coarse grid."""
    return math.gcd(window.inputs, BINS)


@dataclass(frozen=True, eq=False)
class DistributionBelief:
    """Distributions on `values`, one per row of `shares`, and how much each is believed; the weights add up to 1.

    >>> import deniable as dn
    >>> import numpy as np
    >>> belief = DistributionBelief(np.array([1.0, 2.0]), np.array([[0.5, 0.5]]), np.array([1.0]))
    >>> belief.distribution
    array([0.5, 0.5])
    """

    values: Floats
    shares: Floats
    weights: Floats

    def excess(self, thetas: Floats) -> Floats:
        """Σ_{t>θ} f_t·(t − θ) for every distribution (rows) and θ (columns): what cutting takes from a value."""
        result: Floats = self.shares @ np.maximum(self.values[:, None] - thetas, 0.0)
        return result

    def above(self, theta: float) -> Floats:
        """The share of values above θ, for every distribution."""
        result: Floats = self.shares @ (self.values > theta).astype(np.float64)
        return result

    def mean(self, of: Floats) -> float:
        """The mean of a function of the values, given at `values`."""
        return float(self.weights @ (self.shares @ of))

    @property
    def distribution(self) -> Floats:
        """The believed distribution: the weighted mean of all."""
        result: Floats = self.weights @ self.shares
        return result


def reconstructed(reports: FirstReports, *, smooth: bool = True) -> DistributionBelief:
    """The one distribution that EMS finds; EM without `smooth`, and where ε is infinite.  [LWL20; WCZ21, App. E.1]"""
    window = reports.protocol.wave.window
    smooth = smooth and math.isfinite(window.epsilon)
    estimate = reconstruct_counts(window, reports.counts, bins_of(window), smooth=smooth)
    return DistributionBelief(_middles(reports.protocol, estimate.shares.size), estimate.shares[None, :], np.ones(1))


@lru_cache(maxsize=16)
def transition(window: SlidingWindow, bins: int) -> Floats:
    """The chance of each bin of outputs (rows) given a bin of inputs."""
    blur = Blur.of(window, bins)
    return np.stack([blur.forward(unit) for unit in np.eye(bins)], axis=1)


def _middles(protocol: ToPLProtocol, bins: int) -> Floats:
    return np.array([protocol.value((index + 0.5) / bins) for index in range(bins)])
