"""How far values inside blocks are off: as expected, as measured over the whole stream, and near the ends of a window.

Inside a complete block of g values the stream is a straight line between two noisy prefix sums. What the line misses
depends on how rough the stream is at lengths below g, see `Roughness`. Δ is known at a few lengths: below g from
private answers where a publisher asked for them, at g from neighbouring blocks, whose noise is known.
Where neighbouring blocks differ clearly, the level changes inside them, and that is counted where it happens: evenly,
or in one place where the blocks on both sides differ far more than others do.
In a block that is not complete, every value stands for the rate that was predicted, which is off by Δ(g)/g² more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.streams.released.covariance import Covariance
from deniable.streams.released.roughness import Roughness
from deniable.streams.structure.block_layout import BlockLayout

_OWN_WEIGHT = 0.8
"""How much the differences to a block's own neighbours count, compared with those of all blocks."""
_BY_CHANCE = 3.0
"""Squares of normal numbers have a variance of twice their squared mean, and noise has heavier tails."""
_LEVEL_POWER = 1.5
"""Between counts, whose variance grows as their mean, and amounts, whose variance grows as its square."""
_CHANGE = 1 / 64
"""A level that changes evenly, by one from block to block: what a line misses at the middle of a block, squared."""
_CLEARLY, _MEDIAN_SQUARE = 4.0, 0.455
"""Standard deviations that normal differences never reach twice in a row; the median of a squared normal number."""
_FEWEST_BLOCKS = 4
"""With fewer pairs of blocks nothing is learnt about which are rougher than others."""
_SAMPLE = 1024
"""Blocks whose noise is averaged. It differs little from one to the next."""


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Roughness of the whole stream, expected or measured, in squared steps, and the blocks it is seen through."""

    layout: BlockLayout
    roughness: Roughness

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Squared error to expect of every window sum, in squared steps, if all blocks are complete and alike."""
        (first, over_first), (last, over_last) = self.layout.locate(starts), self.layout.locate(stops)
        block = self.layout.block
        apart = self.roughness.start(over_first, block) + self.roughness.start(over_last, block)
        return np.where(first == last, self.roughness.inside(stops - starts, block), apart)


def block_difference(totals: Integers, layout: BlockLayout, covariance: Covariance, usual: float) -> float | None:
    """Δ at the length of a block: mean square difference of neighbouring blocks, their noise taken off. None: no pair.

    What is usual counts as one more pair.
    """
    edges = layout.position(np.arange(totals.size + 1))
    full = np.diff(edges) == layout.block
    pairs = np.flatnonzero(full[1:] & full[:-1])
    if pairs.size == 0:
        return None
    changes = np.square(np.diff(totals.astype(np.float64))[pairs])
    noise = _difference_noise(covariance, edges, pairs)
    return max(usual + float((changes - noise).sum()), 0.0) / (changes.size + 1)


def _difference_noise(covariance: Covariance, edges: Integers, pairs: Integers) -> float:
    """Variance of the noise of the difference of two neighbouring blocks, on average."""
    some = pairs[:: max(pairs.size // _SAMPLE, 1)]
    low, middle, high = edges[some], edges[some + 1], edges[some + 2]
    left, right, both = (covariance.variance(*ends) for ends in ((low, middle), (middle, high), (low, high)))
    return float((2 * left + 2 * right - both).mean())


@dataclass(frozen=True, eq=False)
class SmoothingByBlock:
    """`Smoothing` with factors for every block: how much rougher it is than others. Entry 0 is block `first`."""

    whole: Smoothing
    first: int
    until: int
    """Blocks from this one on are not complete."""
    levels: Floats
    """By block: how much more single values vary than those of others, because they are larger."""
    factors: Floats
    """By block: how much rougher it is than others beyond what single values vary, because neighbours differ more."""
    changes: Floats
    """By block: the larger squared difference to a neighbour, as far as noise does not explain it."""
    isolated: Floats
    """By block: the smaller one, squared, of two differences far larger than others, if both go the same way."""
    jumps: Floats
    """By block: how much more its neighbour before has than the one after it, if that is far more than others."""
    jumped_at: Floats
    """By block: at which share of it the level would have jumped, if it did so at once."""

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Squared error to expect of every window sum, in squared steps."""
        layout = self.whole.layout
        (first, over_first), (last, over_last) = layout.locate(starts), layout.locate(stops)
        rough, size, length = self.whole.roughness, layout.block, stops - starts
        apart = self._part(first, over_first, rough.start(over_first, size))
        apart += self._part(last, over_last, rough.start(over_last, size))
        before, after = self._jump(first, over_first), self._jump(last, over_last)
        apart += before**2 + after**2
        inside = self._part(last, length, rough.inside(length, size)) + (after - before) ** 2
        return np.where(first == last, inside, apart)

    def _part(self, block: Integers, over: Integers, inside: Floats) -> Floats:
        size = self.whole.layout.block
        predicted = np.where(block >= self.until, (over / size) ** 2 * self.whole.roughness.difference(size), 0.0)
        number = np.clip(block - self.first, 0, self.factors.size - 1)
        chance = self.whole.roughness.by_chance(over, size)
        hat = np.where(over < size, 4 * over * (size - over) / size**2, 0.0)
        changes = self.changes[number] * _CHANGE * hat**2 + self.isolated[number] * hat / 4
        rough = chance + self.factors[number] * (inside - chance + predicted)
        return np.asarray(self.levels[number] * rough + changes)

    def _jump(self, block: Integers, over: Integers) -> Floats:
        """What a line misses of the first `over` values if the level jumped inside of the block.

        With a before the jump at the share u of the block and c after it, the line has x·(u·a + (1 − u)·c) at the share
        x; there are x·a up to the jump, and u·a + (x − u)·c behind it.
        """
        number, share = np.clip(block - self.first, 0, self.factors.size - 1), over / self.whole.layout.block
        at = self.jumped_at[number]
        return np.asarray(self.jumps[number] * np.minimum(share, at) * (1 - np.maximum(share, at)))


def smoothing_by_block(
    totals: Floats, first: int, covariance: Covariance, whole: Smoothing, until: int
) -> SmoothingByBlock:
    """What complete blocks show about roughness near them. `totals` are noisy sums of blocks from `first` on."""
    layout, count = whole.layout, max(totals.size, 1)
    levels, factors = np.ones(count), np.ones(count)
    changes, isolated, jumps, jumped_at = (np.zeros(count) for _ in range(4))
    edges = layout.position(np.arange(first, first + totals.size + 1))
    full = np.diff(edges) == layout.block
    pairs = np.flatnonzero(full[1:] & full[:-1])
    if layout.block > 1 and pairs.size:
        sums = np.where(full, totals, 0.0)
        noise = _difference_noise(covariance, edges, pairs)
        changes, isolated = _changes(sums, pairs, noise), _isolated(sums, pairs)
        jumps, jumped_at = _jumps(sums, pairs)
        if pairs.size >= _FEWEST_BLOCKS:
            levels, factors = _levels(sums, full, noise / 2), _bursts(sums, pairs, noise)
    return SmoothingByBlock(whole, first, until, levels, factors, changes, isolated, jumps, jumped_at)


def _levels(totals: Floats, full: np.ndarray, noise: float) -> Floats:
    """Where values are larger they vary more. Levels are shrunk towards their mean by how much of them is noise."""
    mean, variance = float(totals[full].mean()), float(totals[full].var())
    if mean <= 0:
        return np.ones(totals.size)
    share = max(1 - noise / variance, 0.0) if variance > 0 else 0.0
    levels = np.where(full, np.maximum(1 + share * (totals / mean - 1), 0.05), 1.0) ** _LEVEL_POWER
    return np.asarray(levels / levels[full].mean())


def _bursts(totals: Floats, pairs: Integers, noise: float) -> Floats:
    """Where neighbouring blocks differ more, values inside do: as far as differences are unequal not just by chance."""
    changes = np.square(np.diff(totals)[pairs])
    mean, signal = float(changes.mean()), float(changes.mean()) - noise
    unequal = float(changes.var()) / mean**2 if mean > 0 else 0.0
    if signal <= 0 or unequal <= _BY_CHANCE:
        return np.ones(totals.size)
    near, number = np.zeros(totals.size), np.zeros(totals.size)
    for side in (0, 1):
        np.add.at(near, pairs + side, np.maximum(changes - noise, 0.0))
        np.add.at(number, pairs + side, 1)
    own = np.where(number > 0, near / np.maximum(number, 1), signal)
    weight = _OWN_WEIGHT * (1 - _BY_CHANCE / unequal) * signal / (signal + noise)
    return np.asarray(1 - weight + weight * own / signal)


def _isolated(totals: Floats, pairs: Integers) -> Floats:
    """Squares of what a block lies above both neighbours, or below both, where that is far more than usual.

    A burst or an outage: all of it may lie in one place of the block, at any. A line then misses x or 1 − x of it at
    the share x of the block, which is x(1 − x) squared on average.
    """
    result = np.zeros(totals.size)
    middle, before, after, clear = _around(totals, pairs)
    both = np.where(before * after < 0, np.minimum(np.square(before), np.square(after)), 0.0)
    result[middle] = np.where(both > clear, both, 0.0)
    return result


def _jumps(totals: Floats, pairs: Integers) -> tuple[Floats, Floats]:
    """How much more the block before has than the one after, where that is far more than usual; and where it jumped.

    A failure, or a new customer: somewhere in the block between, at once. Its own sum says where that would be.
    """
    jumps, shares = np.zeros(totals.size), np.zeros(totals.size)
    middle, before, after, clear = _around(totals, pairs)
    fall = -(before + after)
    jumps[middle] = np.where(np.square(fall) > clear, fall, 0.0)
    shares[middle] = np.clip(np.divide(-after, fall, out=np.zeros_like(fall), where=fall != 0), 0.0, 1.0)
    return jumps, shares


def _around(totals: Floats, pairs: Integers) -> tuple[Integers, Floats, Floats, float]:
    """Blocks between two full ones, the changes before and after each, and the square of what is clearly unusual."""
    changes = np.diff(totals)
    usual = float(np.median(np.square(changes[pairs]))) / _MEDIAN_SQUARE
    middle = np.intersect1d(pairs[:-1] + 1, pairs[1:])
    return middle, changes[middle - 1], changes[middle], _CLEARLY**2 * usual


def _changes(totals: Floats, pairs: Integers, noise: float) -> Floats:
    """The larger squared difference between a block and its neighbours, less its noise."""
    largest = np.zeros(totals.size)
    for side in (0, 1):
        np.maximum.at(largest, pairs + side, np.square(np.diff(totals)[pairs]))
    return np.asarray(np.maximum(largest - noise, 0.0))
