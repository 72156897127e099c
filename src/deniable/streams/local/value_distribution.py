"""What first reports say about the distribution of values, and how certain that is.

A `DistributionBelief` is a list of distributions with weights: one distribution where the reports were simply inverted
(EMS), many where they leave many possible. Everything here is post-processing of reports, so it costs no privacy.

Why not EMS alone? A threshold depends on the far tail: 0.1 % of the values at a hundred times the typical value count
as much as all the rest. At ε = 0.2, 65,536 square-wave reports give a share of the values to within about 3 %, so EMS
leaves several per cent of pure noise spread over the tail, and that noise decides θ. `smooth_tail` asks instead which
*smooth* distributions explain the reports, and keeps all of them, weighted by how well they do.
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
_COARSE, _FINE = 64, 256  # bins that the likelihood and the answer of `smooth_tail` are computed on


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
        above, beyond = self._tails()
        index = np.searchsorted(self.values, thetas, side="right")
        result: Floats = beyond[:, index] - thetas * above[:, index]
        return np.maximum(result, 0.0)

    def above(self, theta: float) -> Floats:
        """The share of values above θ, for every distribution."""
        result: Floats = self.shares[:, self.values > theta].sum(axis=1)
        return result

    def mean(self, of: Floats) -> float:
        """The mean of a function of the values, given at `values`."""
        return float(self.weights @ (self.shares @ of))

    @property
    def distribution(self) -> Floats:
        """The believed distribution: the weighted mean of all."""
        result: Floats = self.weights @ self.shares
        return result

    def _tails(self) -> tuple[Floats, Floats]:
        """Σ f and Σ f·t over the values from each index on, with a zero at the end."""

        def tails(terms: Floats) -> Floats:
            zero = np.zeros((terms.shape[0], 1))
            return np.concatenate((np.cumsum(terms[:, ::-1], axis=1)[:, ::-1], zero), axis=1)

        return tails(self.shares), tails(self.shares * self.values)


def reconstructed(reports: FirstReports) -> DistributionBelief:
    """The one distribution that EMS finds (EM where ε is infinite).  [LWL20; WCZ21, App. E.1]"""
    window = reports.protocol.wave.window
    estimate = reconstruct_counts(window, reports.counts, bins_of(window), smooth=math.isfinite(window.epsilon))
    return DistributionBelief(_middles(reports.protocol, estimate.shares.size), estimate.shares[None, :], np.ones(1))


# The family of `smooth_tail`, on the scale from 0 to 1: a bump with its own width to the left and to the right, and a
# share of values at the low end. The bump falls as e^(−z^shape/2) to the right; on the logarithmic scale shape 2 is a
# lognormal tail, 3 a lighter and 1.5 a heavier one. Prior weights of the shapes; all other priors are flat.
# Chosen on the streams that docs/streams.md names, so its figures for them flatter the choice.
_SHAPES = {1.5: 0.05, 2.0: 0.45, 3.0: 0.5}
_LOW_END = 0.03
# Parameters: position of the bump, log of its left and of its right width, share of values at the low end.
_SMALLEST_PARAMETERS = np.array([0.0, math.log(0.02), math.log(0.01), 0.0])
_LARGEST_PARAMETERS = np.array([1.0, math.log(0.5), math.log(0.7), 0.95])
_GRID_POINTS = (17, 4, 13, 6)
_GRID_REFINEMENTS = 4
_NEGLIGIBLE_LIKELIHOOD = 1e-3


def smooth_tail(reports: FirstReports) -> DistributionBelief:
    """All smooth distributions that explain the reports, weighted by likelihood times prior.

    A grid over the family's parameters, drawn closer around what the reports leave possible, up to three times.
    """
    window = reports.protocol.wave.window
    bins = bins_of(window)
    coarse = math.gcd(bins, _COARSE)
    counts = np.add.reduceat(reports.counts, np.arange(0, reports.counts.size, bins // coarse))
    matrix = _transition(window, coarse)
    low, high = _SMALLEST_PARAMETERS, _LARGEST_PARAMETERS
    for remaining in reversed(range(_GRID_REFINEMENTS)):
        axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, _GRID_POINTS, strict=True)]
        weights = _posterior(counts, matrix, axes)
        closer = _support(weights, axes)
        if not remaining or np.all(closer[1] - closer[0] > 0.8 * (high - low)):
            break
        low, high = closer
    members, ends = np.nonzero(weights.reshape(-1, _GRID_POINTS[3]) > _NEGLIGIBLE_LIKELIHOOD * weights.max())
    kept = weights.reshape(-1, _GRID_POINTS[3])[members, ends]
    share = axes[3][ends][:, None]
    shares = (1 - share) * _bumps(axes, _FINE)[members] + share * _low_end(_FINE)
    return DistributionBelief(_middles(reports.protocol, _FINE), shares, kept / kept.sum())


def _posterior(counts: Floats, matrix: Floats, axes: list[Floats]) -> Floats:
    """Weights over (position, left width, right width, shape, share at 0)."""
    bumps, end = _bumps(axes, matrix.shape[1]) @ matrix.T, matrix @ _low_end(matrix.shape[1])
    fits = np.stack([np.log((1 - share) * bumps + share * end) @ counts for share in axes[3]], axis=-1)
    fits = fits.reshape(*_GRID_POINTS[:3], len(_SHAPES), _GRID_POINTS[3])
    prior = np.log(np.array(list(_SHAPES.values())))[:, None]
    weights = np.exp(fits + prior - (fits + prior).max())
    return np.asarray(weights / weights.sum())


def _support(weights: Floats, axes: list[Floats]) -> tuple[Floats, Floats]:
    """The box of parameters that are not negligible, one step larger on every side."""
    low, high = _SMALLEST_PARAMETERS.copy(), _LARGEST_PARAMETERS.copy()
    for axis, dimension in ((0, 0), (1, 1), (2, 2), (3, 4)):
        best = weights.max(axis=tuple(other for other in range(5) if other != dimension))
        alive = np.flatnonzero(best > _NEGLIGIBLE_LIKELIHOOD * best.max())
        step = axes[axis][1] - axes[axis][0]
        low[axis] = max(low[axis], axes[axis][alive[0]] - step)
        high[axis] = min(high[axis], axes[axis][alive[-1]] + step)
    return low, high


def _bumps(axes: list[Floats], bins: int) -> Floats:
    """One bump per row, for all combinations of position, left width, right width and shape."""
    grid = np.meshgrid(axes[0], np.exp(axes[1]), np.exp(axes[2]), list(_SHAPES), indexing="ij")
    position, left, right, shape = (part.reshape(-1, 1) for part in grid)
    away = (np.arange(bins) + 0.5) / bins - position
    size = np.where(away < 0, (away / left) ** 2, (np.abs(away) / right) ** shape)
    bumps = np.exp(-size / 2) + 1e-300
    return np.asarray(bumps / bumps.sum(axis=1, keepdims=True))


def _low_end(bins: int) -> Floats:
    end = np.exp(-(((np.arange(bins) + 0.5) / bins / _LOW_END) ** 2) / 2)
    return np.asarray(end / end.sum())


@lru_cache(maxsize=16)
def _transition(window: SlidingWindow, bins: int) -> Floats:
    """The chance of each bin of outputs (rows) given a bin of inputs."""
    blur = Blur.of(window, bins)
    return np.stack([blur.forward(unit) for unit in np.eye(bins)], axis=1)


def _middles(protocol: ToPLProtocol, bins: int) -> Floats:
    return np.array([protocol.value((index + 0.5) / bins) for index in range(bins)])
