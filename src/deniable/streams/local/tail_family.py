"""A family of tails, and which of its members explain first reports on top of a given body.

Everything lies on the scale from 0 to 1 that first reports use. A member of the family is

    (1 − share) · body + share · bump

The body is any distribution. The bump has a position, a width to the left and a width to the right, and falls to the
right as e^(−z^shape/2). On the logarithmic scale shape 1 is a power law, 2 a lognormal tail, 1.5 lies between them, and
3 is lighter than both. Tails of exponential, gamma and Weibull distributions fall as e^(−(e^z − 1 − z)) there, lighter
than any power; this is the infinite shape. Priors are flat: over shapes, positions and logarithms of widths. So is nine
tenths of that over the share; one tenth is flat over its logarithm, because a tail may be small.

A share of reports is nearly normal around its expectation, with the variance that the reconstruction explains: every
output of a square wave has some chance under any value, so no bin is rare. The log-likelihood is then a square, and
along `share` a parabola.

No stream is smooth: whole numbers and round prices are lumps on the scale, and where reports are precise, a smooth
curve through lumps fits badly unless its tail makes up for it. So values may lie up to a third of a doubling away from
where a member says. Across each border of bins moves a share that is normal around 0, with the density there times this
reach as its standard deviation. That is more noise of the reports, with a known covariance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable.arrays import Floats

SHAPES = np.array([1.0, 1.5, 2.0, 3.0, math.inf])
_LUMP_REACH = 1 / 32  # of lumps, on the scale from 0 to 1: a third of a doubling
_LEAST_TAIL_SHARE = 1e-3
_LOG_FLAT = 0.1  # the part of the prior over shares that is flat over their logarithm
# Parameters: position of the bump, logs of its left and of its right width, log of its share.
_LOW_CORNER = np.array([0.0, math.log(0.02), math.log(0.01), math.log(_LEAST_TAIL_SHARE)])
_HIGH_CORNER = np.array([1.0, math.log(0.5), math.log(0.7), 0.0])
_POINTS = (17, 4, 13, 12)
_REFINEMENTS = 3
_NEGLIGIBLE = 1e-3  # a likelihood, next to the largest
_MOST_MEMBERS = 4096
_FAR = 7.0  # e^7 standard deviations are as good as infinitely many


@dataclass(frozen=True, eq=False)
class ReportLikelihood:
    """How well distributions explain reports: −½·‖reports − matrix·shares‖², in units of their independent errors."""

    reports: Floats
    matrix: Floats

    @classmethod
    def of(cls, counts: Floats, transition: Floats, believed: Floats) -> ReportLikelihood:
        """From counts of reports, the chance of each given a coarse bin, and shares that explain them well."""
        number = counts.sum()
        precision = np.sqrt(number / np.maximum(transition @ believed, 1 / number))
        reports, matrix = precision * counts / number, precision[:, None] * transition
        density = believed.size * (believed[1:] + believed[:-1]) / 2
        moved = np.diff(matrix, axis=1) * density * _LUMP_REACH  # what a lump does across each border of bins
        errors = np.linalg.cholesky(np.eye(reports.size) + moved @ moved.T)
        return cls(np.linalg.solve(errors, reports), np.linalg.solve(errors, matrix))

    def image(self, shares: Floats) -> Floats:
        """The reports to expect from a distribution on fine bins."""
        result: Floats = self.matrix @ coarsened(shares, self.bins)
        return result

    @property
    def bins(self) -> int:
        """How many coarse bins there are."""
        return int(self.matrix.shape[1])


@dataclass(frozen=True, eq=False)
class TailFit:
    """The posterior over the tails on top of one body."""

    body: Floats
    axes: list[Floats]
    weights: Floats
    evidence: float
    """The logarithm of the mean likelihood over the prior."""
    best: float
    """The logarithm of the largest likelihood."""
    bump: Floats
    share: float

    @property
    def complexity(self) -> float:
        """What its parameters cost: how far the evidence lies below the best likelihood."""
        return self.best - self.evidence

    def members(self) -> tuple[Floats, Floats]:
        """The distributions that are not negligible, as rows, and their weights.

        Where few reports leave very many, some stand for all: those at even steps along the sum of the weights.
        """
        where = np.nonzero(self.weights > 10 * _NEGLIGIBLE * self.weights.max())
        kept = self.weights[where]
        if kept.size > _MOST_MEMBERS:
            steps = (np.arange(_MOST_MEMBERS) + 0.5) / _MOST_MEMBERS
            chosen = np.searchsorted(np.cumsum(kept), steps * kept.sum())
            where = tuple(index[chosen] for index in where)
            kept = np.ones(_MOST_MEMBERS)
        combinations, which = np.unique(np.ravel_multi_index(where[:4], self.weights.shape[:4]), return_inverse=True)
        *at, shape = np.unravel_index(combinations, self.weights.shape[:4])  # one bump, with several shares
        position, left, right = (axis[index] for axis, index in zip(self.axes, at, strict=False))
        bumps = _bumps(position, left, right, SHAPES[shape], self.body.size)
        share = np.exp(self.axes[3][where[4]])[:, None]
        return share * bumps[which] + (1 - share) * self.body, kept / kept.sum()


def fit_tail(likelihood: ReportLikelihood, body: Floats) -> TailFit:
    """A grid over the family's parameters, drawn closer around what the reports leave possible."""
    start = likelihood.image(body)
    off = likelihood.reports - start
    low, high = _LOW_CORNER, _HIGH_CORNER
    for remaining in reversed(range(_REFINEMENTS + 1)):
        axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, _POINTS, strict=True)]
        first = remaining == _REFINEMENTS  # the same for all bodies and reports
        change = (_widest_bumps(likelihood.bins) if first else _all_bumps(axes, likelihood.bins)) @ likelihood.matrix.T
        change -= start
        gain, curve = change @ off, np.einsum("ij,ij->i", change, change)
        share = np.exp(axes[3])
        fits = gain[:, None] * share - curve[:, None] * share**2 / 2 - off @ off / 2
        scores = (fits + _log_prior(share)).reshape(*_POINTS[:3], SHAPES.size, _POINTS[3])
        weights = np.exp(scores - scores.max())
        closer = _support(weights, axes)
        if not remaining or np.all(closer[1] - closer[0] > 0.8 * (high - low)):
            break
        low, high = closer
    volume = float(np.prod((high - low) / (_HIGH_CORNER - _LOW_CORNER)))
    evidence = float(scores.max()) + math.log(float(weights.mean()) * volume)
    index = np.unravel_index(int(weights.argmax()), weights.shape)
    position, left, right, size = (axis[[at]] for axis, at in zip(axes, (*index[:3], index[4]), strict=True))
    bump = _bumps(position, left, right, SHAPES[[index[3]]], body.size)[0]
    weights /= weights.sum()
    return TailFit(body, axes, weights, evidence, float(fits.max()), bump, math.exp(float(size[0])))


def coarsened(shares: Floats, bins: int) -> Floats:
    """Shares of so many larger bins."""
    result: Floats = shares.reshape(bins, -1).sum(axis=1)
    return result


def _log_prior(share: Floats) -> Floats:
    """The density of the prior over log(share), next to a flat one."""
    span = -math.log(_LEAST_TAIL_SHARE)
    return np.log(_LOG_FLAT + (1 - _LOG_FLAT) * share * span / (1 - _LEAST_TAIL_SHARE))


def _support(weights: Floats, axes: list[Floats]) -> tuple[Floats, Floats]:
    """The box of parameters that are not negligible, one step larger on every side."""
    low, high = _LOW_CORNER.copy(), _HIGH_CORNER.copy()
    for axis, dimension in enumerate((0, 1, 2, 4)):
        best = weights.max(axis=tuple(other for other in range(5) if other != dimension))
        alive = np.flatnonzero(best > _NEGLIGIBLE * best.max())
        step = axes[axis][1] - axes[axis][0]
        low[axis] = max(low[axis], axes[axis][alive[0]] - step)
        high[axis] = min(high[axis], axes[axis][alive[-1]] + step)
    return low, high


@lru_cache(maxsize=4)
def _widest_bumps(bins: int) -> Floats:
    """Those of the whole box of parameters."""
    corners = zip(_LOW_CORNER, _HIGH_CORNER, _POINTS, strict=True)
    bumps = _all_bumps([np.linspace(low, high, points) for low, high, points in corners], bins)
    bumps.setflags(write=False)
    return bumps


def _all_bumps(axes: list[Floats], bins: int) -> Floats:
    """One bump per row on coarse bins, for all combinations of position, widths and shape.

    A bump is the product of its two sides, each of which is 1 on the other one, and neither knows the other's width.
    """
    position, left, right = axes[:3]
    away = (np.arange(bins) + 0.5) / bins - position[:, None]
    lefts = _falling(np.square(np.minimum(away, 0.0)[:, None] * np.exp(-left)[:, None]))
    right_away = np.maximum(away, 0.0)[:, None] * np.exp(-right)[:, None]
    rights = _falling(_distances(right_away[:, :, None], SHAPES[:, None]))
    bumps = (lefts[:, :, None, None] * rights[:, None]).reshape(-1, bins)
    bumps /= bumps.sum(axis=1, keepdims=True)
    return bumps


def _bumps(position: Floats, left: Floats, right: Floats, shape: Floats, bins: int) -> Floats:
    """exp(-d²/2) left of the position and exp(-d^shape/2) right of it; mostly in place, because there are very many."""
    away = (np.arange(bins) + 0.5) / bins - position[:, None]
    bumps = np.minimum(away, 0.0)
    bumps *= np.exp(-left)[:, None]
    np.square(bumps, out=bumps)
    np.maximum(away, 0.0, out=away)
    away *= np.exp(-right)[:, None]
    bumps += _distances(away, shape[:, None])
    bumps = _falling(bumps)
    bumps /= bumps.sum(axis=1, keepdims=True)
    return bumps


def _distances(away: Floats, shapes: Floats) -> Floats:
    """away^shape; for the infinite shape 2·(e^away − 1 − away), which begins as away² does."""
    light = np.broadcast_to(np.isinf(shapes), np.broadcast_shapes(away.shape, shapes.shape))
    result: Floats = np.power(away, np.where(np.isinf(shapes), 2.0, shapes))
    far = np.minimum(np.broadcast_to(away, light.shape)[light], _FAR)
    result[light] = 2 * (np.expm1(far) - far)
    return result


def _falling(distances: Floats) -> Floats:
    """exp(-d/2), never quite 0; in place."""
    np.minimum(distances, 1200.0, out=distances)
    distances /= -2
    return np.exp(distances, out=distances)
