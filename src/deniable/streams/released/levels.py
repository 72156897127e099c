"""How much more or less values lose to θ where their level has moved since that was learnt, from published sums.

What is known of values above θ was learnt at one level. If all values become ρ times as large, a power law with the
share above θ and the mean that were learnt says that they lose ρ^α times as much. The level is seen in means of blocks,
so this costs nothing; their noise would be taken for large values if α·noise were not small.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.streams.released.covariance import Covariance

SMALL_NOISE = 0.2
"""Noise of a level, as a share of it and times α: the mean of ρ^α is then too large by a fiftieth at most."""


def block_errors(covariance: Covariance, edges: Integers) -> Callable[[int], float]:
    """The standard error of the mean of so many blocks in a row, for blocks between these edges."""

    def error(blocks: int) -> float:
        first = (edges.size - 1 - blocks) // 2
        start, stop = edges[first], edges[first + blocks]
        return float(np.sqrt(covariance.variance(np.array([start]), np.array([stop]))[0]) / (stop - start))

    return error


def smooth_rates(rates: Floats, noise: Callable[[int], float], most: float) -> Floats | None:
    """Means of runs of blocks around each one: of the fewest blocks whose mean has at most that noise, if any have.

    `noise` is the standard error of the mean of so many blocks.

    >>> smooth_rates(np.array([1.0, 3.0, 5.0, 7.0]), lambda blocks: 1 / blocks, 0.5).tolist()
    [2.0, 2.0, 4.0, 6.0]
    """
    run = 1
    while run <= rates.size and noise(run) > most:
        run *= 2
    if run > rates.size:
        return None
    first = np.clip(np.arange(rates.size) - run // 2, 0, rates.size - run)
    before = np.concatenate(([0.0], np.cumsum(rates)))
    return np.asarray((before[first + run] - before[first]) / run)


def growth(rates: Floats, noise: Callable[[int], float], level: float, power: float, most: float) -> Floats | None:
    """By block: how many times as much its values lose as those of that level. None, if noise hides their levels.

    No more than the share `most` of what values are.

    >>> growth(np.array([10.0, 20.0, 5.0]), lambda blocks: 0.0, 10.0, 2.0, 5.0).tolist()
    [1.0, 4.0, 0.25]
    """
    smooth = smooth_rates(rates, noise, SMALL_NOISE * level / max(power, 1.0)) if level > 0 else None
    if smooth is None:
        return None
    times = np.maximum(smooth, 0.0) / level
    return np.asarray(np.minimum(times**power, np.maximum(times * most, 1.0)))
