"""How far predictions inside blocks are off: as expected, over the whole stream, and near the ends of a window.

A window that ends o values into a block of g has these o values published at the rate that was predicted for the block.
Nobody knows what it misses, but complete blocks show it: e_t, the noisy mean of block t less the rate predicted for it,
is public. It is made of

    a trend      that blocks nearby share, with its sign: days and nights
    bursts       of block t and of the one the prediction came from, with variance B² each
    noise        of both, and their values' chance: its variance is known

Bursts and noise of a block enter e_t with one sign and e_{t+1} with the other, so of three neighbours' mean only two
terms are left: with A the mean square of the trend and N the variance of the rest, e_t has mean square A + N and the
mean of three A + N/9. That gives A and N, and from these the best linear estimate of the trend at every block.
All of this is about the smoother `recent`; for others the trend is shrunk less than it should be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.streams.released.covariance import Covariance
from deniable.streams.structure.block_layout import BlockLayout

_OWN_WEIGHT = 0.5
"""How much a block's own burst counts, compared with the mean of all bursts."""
_FEWEST_BLOCKS = 4
"""With fewer blocks nothing local is learnt."""
_SAMPLE = 1024
"""Blocks whose noise is averaged. It differs little from one to the next."""


@dataclass(frozen=True, slots=True)
class Smoothing:
    """One estimate for all blocks, expected or measured over the whole stream; both in squared steps.

    `spread` is the variance of single values, `drift` that of the change of the mean from block to block. A window that
    ends o values into a block of g misses their true sum by about o·spread·(1 + o/g) + o²·drift, squared.
    """

    layout: BlockLayout
    spread: float
    drift: float

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Squared error to expect of every window sum, in squared steps."""
        first, over_first = self.layout.locate(starts)
        last, over_last = self.layout.locate(stops)
        inside = stops - starts
        apart = self._edge(over_first) + self._edge(over_last)
        result: Floats = np.where(first == last, self._edge(inside), apart)
        return result

    def _edge(self, over: Integers) -> Floats:
        block = self.layout.block
        result: Floats = over * self.spread * (1 + over / block) + np.square(over, dtype=np.float64) * self.drift
        return result if block > 1 else np.zeros(over.shape)


def measured_smoothing(
    totals: Integers, layout: BlockLayout, *, node_variance: float, spread: float, expected_drift: float
) -> Smoothing:
    """The given spread, and the drift that blocks of full length show beyond their noise.

    The expected drift counts as one more change from block to block.
    """
    full = np.diff(layout.position(np.arange(totals.size + 1))) == layout.block
    changes = np.square(np.diff(totals / layout.block)[full[1:] & full[:-1]])
    noise = 2 * node_variance / layout.block**2 + 2 * spread / layout.block
    drift = (expected_drift + float((changes - noise).sum())) / (changes.size + 1)
    return Smoothing(layout, spread, max(drift, 0.0))


@dataclass(frozen=True, eq=False)
class SmoothingByBlock:
    """What complete blocks show about window ends in and around them. Entry 0 of the arrays is block `first`."""

    layout: BlockLayout
    spread: float
    first: int
    trend: Floats
    """Estimate of (mean of the block − rate predicted for it), bursts and noise apart."""
    doubt: Floats
    """Its variance."""
    burst: Floats
    """B² of the block."""

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Squared error to expect of every window sum, in squared steps."""
        (first, over_first), (last, over_last) = self.layout.locate(starts), self.layout.locate(stops)
        reach_first, reach_last = self._reach(first, over_first), self._reach(last, over_last)
        i, j = first - self.first, last - self.first
        bias = reach_last * self.trend[j] - reach_first * self.trend[i]
        doubt_first, doubt_last = self.doubt[i], self.doubt[j]
        apart = reach_first**2 * doubt_first + self._chance(i, over_first)
        apart += reach_last**2 * doubt_last + self._chance(j, over_last)
        within = (reach_last - reach_first) ** 2 * doubt_last + self._chance(j, stops - starts)
        return np.asarray(bias**2 + np.where(i == j, within, apart))

    def _reach(self, block: Integers, over: Integers) -> Floats:
        """How often the trend counts: a line that passes the predicted rate in the middle of the block before.

        The very first block is filled with a rate that came from no block: there the difference is the same throughout.
        """
        share = (self.layout.block + over) / (2 * self.layout.block)
        return np.asarray(over * np.where(block == 0, 1.0, share))

    def _chance(self, index: Integers, over: Integers) -> Floats:
        """Squared error from bursts, of which any part may lie before the end, and from single values."""
        block = self.layout.block
        result: Floats = over * (1 + over / block) * (self.spread + block * self.burst[index])
        return result


def smoothing_by_block(
    prefix: Floats, number: int, covariance: Covariance, whole: Smoothing
) -> SmoothingByBlock | Smoothing:
    """What the blocks of a stream of published prefix sums show, whose first value is number `number`.

    `whole` counts as one more block. With too few blocks it is the answer.
    """
    layout, block = whole.layout, whole.layout.block
    ends = layout.locate(np.array([number, number + prefix.size - 1]))[0]
    first = int(ends[0])
    numbers = np.arange(first, int(ends[1]) + 1)
    edges, stops = layout.position(numbers), layout.position(numbers + 1)
    # Blocks that are here from their first value to their last, and of full length.
    known = (edges >= number) & (stops < number + prefix.size) & (stops - edges == block)
    if block == 1 or known.sum() < _FEWEST_BLOCKS:
        return whole
    errors = np.zeros(numbers.size)
    start_of = edges[known] - number
    total, predicted = (prefix[start_of + length] - prefix[start_of] for length in (block, 1))
    errors[known] = total / block - predicted
    some = np.flatnonzero(known)[:: max(int(known.sum()) // _SAMPLE, 1)]
    noise = 2 * float(covariance.variance(edges[some], stops[some]).mean()) / block**2 + 2 * whole.spread / block
    start = known & (numbers == 0)
    alike = known & (numbers > 0) & (layout.position(numbers - 1) == edges - block)
    near = np.convolve(alike, np.ones(3), "same")
    mean = np.convolve(np.where(alike, errors, 0.0), np.ones(3), "same") / np.maximum(near, 1)
    trend, rest = _shares(errors[alike], mean[alike & (near == 3)], noise, whole.drift)
    # The mean of k neighbours has two terms of k² left of the rest.
    shrunk = np.where(near > 0, trend / (trend + rest / np.maximum(near, 1) ** 2), 0.0)
    own = np.where(alike, np.square(errors - shrunk * mean), rest)
    burst = max(rest - noise, 0.0) / 2 * ((1 - _OWN_WEIGHT) + _OWN_WEIGHT * own / rest)
    return SmoothingByBlock(
        layout,
        whole.spread,
        first,
        np.where(start, errors, shrunk * mean),
        np.where(start, noise / 2, trend * (1 - shrunk)),
        burst,
    )


def _shares(errors: Floats, means: Floats, noise: float, drift: float) -> tuple[float, float]:
    """A and N, from the squares of single errors and of means of three."""
    single = (noise + drift + float(np.square(errors).sum())) / (errors.size + 1)
    three = (noise / 9 + drift + float(np.square(means).sum())) / (means.size + 1)
    trend = min(max((9 * three - single) / 8, 0.0), single)
    return trend, max(single - trend, noise, 1e-300)
