"""A smooth curve through a released stream, with a band that holds everywhere at once.

The stream is cut into cells. Their published means are y = x + e: x the true means, and e errors of known covariance C.
The curve is S·y, a local line fitted at every cell with weights that fall off over a bandwidth. What it estimates
without bias is S·x, *the stream smoothed in the same way*, and its error S·e has covariance S·C·S'. So the band needs
no assumption about the stream: with the stated confidence it holds S·x at all cells together. How far the cells
themselves lie from the curve is estimated next to it (`smoothing`).

The bandwidth of least estimated risk |y − S·y|² + 2·tr(S·C) is chosen from what was published, so it is free. Because
it looks at y, the band is made wide enough for all bandwidths that could have been chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.checks import check_integer, check_number
from deniable.errors import QueryRefused
from deniable.streams.released.curve_table import CurveTable
from deniable.streams.released.joint_windows import Answering, joint_windows

_SIMULATED_ERRORS = 2000
"""Simulated errors behind the width of the band. Their quantile is within half a percent of coverage."""
_NORMAL_FROM = 16
"""Sums of so many Laplace variables are taken as normal."""
MOST_CELLS = 1000


@dataclass(frozen=True, eq=False)
class Trend(CurveTable):
    """A smooth curve: one entry per cell of `stops − starts` values.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> curve = tops.released.trend()
    >>> curve.to_arrow().column_names
    ['start', 'stop', 'value', 'low', 'high', 'stderr', 'smoothing']
    """

    starts: Integers
    stops: Integers
    values: Floats
    """The curve."""
    stderrs: Floats
    """Standard errors of the curve, for the stream smoothed in the same way."""
    smoothing: Floats
    """How far the true mean of a cell lies from the curve, estimated: a standard deviation."""
    reach: float
    """The band is the curve ± this many standard errors."""
    confidence: float
    bandwidth: float
    """In values; 0 if nothing is smoothed."""
    weights: Floats
    """S: the curve is `weights` times the means of the cells."""
    simulation: bool
    times: Any = None

    @property
    def lows(self) -> Floats:
        """The lower end of the band."""
        return self.values - self.reach * self.stderrs

    @property
    def highs(self) -> Floats:
        """The upper end of the band."""
        return self.values + self.reach * self.stderrs

    def columns(self) -> dict[str, Any]:
        """The columns of `to_arrow`."""
        times = {} if self.times is None else {"timestamp": self.times}
        band = {"value": self.values, "low": self.lows, "high": self.highs}
        return {"start": self.starts, "stop": self.stops, **times, **band, "stderr": self.stderrs} | {
            "smoothing": self.smoothing
        }


def trend_of(released: Answering, *, cell: int | None, bandwidth: float | None, confidence: float) -> Trend:
    """The curve of a released stream. `cell` and `bandwidth` count values; None: chosen from settings and answers."""
    check_number("confidence", confidence, "must lie between 0.5 and 0.9999", "Use 0.95.", smallest=0.5, largest=0.9999)
    block, size = int(released.about.get("s", 1)), len(released)
    if cell is None:  # whole blocks, so that smoothing inside blocks adds nothing
        cell = min(max(-(-size // (200 * block)), 1) * block, max(size, 1))
    check_integer("cell", cell, 1, max(size, 1), repair="Use fewer values than the stream has.")
    count = size // cell
    if not 2 <= count <= MOST_CELLS:
        raise QueryRefused(
            f"the stream has {count:,} cells of {cell:,} values", f"Use cells so that there are 2 to {MOST_CELLS:,}."
        )
    starts = np.arange(count) * cell
    joint = joint_windows(released, starts, starts + cell)
    means, covariance = joint.values / cell, joint.covariance / cell**2
    if bandwidth is None:
        candidates = [0.0, *np.geomspace(0.7, max(count / 3, 1.0), 9).tolist()]
    else:
        check_number("bandwidth", bandwidth, "must not be negative", "Use 0 for no smoothing.", smallest=0)
        candidates = [bandwidth / cell]
    smoothers = [_local_lines(count, width) for width in candidates]
    risks = [
        float(np.square(means - weights @ means).sum() + 2 * np.einsum("ij,ji->", weights, covariance))
        for weights in smoothers
    ]
    best = int(np.argmin(risks))
    weights = smoothers[best]
    stamps = released.timestamps
    return Trend(
        starts=starts,
        stops=starts + cell,
        values=weights @ means,
        stderrs=_deviations(weights, covariance),
        smoothing=_distance(means, weights, covariance),
        reach=_reach(covariance, smoothers, confidence, max(cell // block, 1)),
        confidence=confidence,
        bandwidth=candidates[best] * cell,
        weights=weights,
        simulation=released.simulation,
        times=None if stamps is None else _for_arrow(stamps[starts]),
    )


def _for_arrow(stamps: NDArray[Any]) -> NDArray[Any]:
    """Arrow has no hours and minutes as units of time."""
    coarse = stamps.dtype.kind == "M" and np.datetime_data(stamps.dtype)[0] in ("h", "m")
    return stamps.astype("datetime64[s]") if coarse else stamps


def _local_lines(count: int, width: float) -> Floats:
    """S: at every cell a line is fitted to the cells around it, with the weights of a normal curve."""
    if width == 0:
        return np.eye(count)
    apart = np.arange(count) - np.arange(count)[:, None]
    near = np.exp(-0.5 * (apart / width) ** 2)
    zeroth, first, second = (np.sum(near * apart**power, axis=1, keepdims=True) for power in range(3))
    spread = zeroth * second - first**2
    lines = np.divide(near * (second - first * apart), spread, out=np.zeros_like(near), where=spread > 1e-12)
    flat = near / zeroth
    return np.asarray(np.where(spread > 1e-12, lines, flat))


def _deviations(weights: Floats, covariance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->i", weights @ covariance, weights), 0.0)))


def _distance(means: Floats, weights: Floats, covariance: Floats) -> Floats:
    """From what cells differ from the curve beyond their errors, on average over cells nearby."""
    rest = np.eye(means.size) - weights
    beyond = np.square(rest @ means) - _deviations(rest, covariance) ** 2
    nearby = _local_lines(means.size, max(means.size / 8, 1.0))
    nearby = np.maximum(nearby, 0.0)
    return np.asarray(np.sqrt(np.maximum(nearby @ beyond / nearby.sum(1), 0.0)))


def _reach(covariance: Floats, smoothers: list[Floats], confidence: float, blocks: int) -> float:
    """How many standard errors hold at all cells and for all bandwidths at once, by simulated errors.

    Errors are drawn as the noise is: a cell of few blocks has the longer tails of few Laplace variables.
    """
    rng = np.random.default_rng(0)  # a quantile of public numbers: nothing here protects anything
    count = covariance.shape[0]
    if blocks >= _NORMAL_FROM:
        drawn = rng.standard_normal((_SIMULATED_ERRORS, count))
    else:
        drawn = rng.laplace(size=(blocks, _SIMULATED_ERRORS, count)).sum(0) / (2 * blocks) ** 0.5
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    errors = drawn @ root
    largest = np.zeros(_SIMULATED_ERRORS)
    for weights in smoothers:
        deviations = _deviations(weights, covariance)
        known = deviations > 0
        if known.any():
            largest = np.maximum(largest, np.abs((errors @ weights.T)[:, known] / deviations[known]).max(1))
    return float(np.quantile(largest, confidence))
