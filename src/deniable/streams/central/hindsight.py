"""What an epoch lacks because its θ was too small, as the next epoch shows it: at no cost, from what is published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from deniable.arrays import Integers
from deniable.streams.central.perturber import Perturber
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.warmup import Learnt
from deniable.streams.released.covariance import TreeNoise
from deniable.streams.released.windows import Rise, Truncation
from deniable.streams.structure.block_layout import BlockLayout

LEVEL_DOUBT = 0.25
"""How much the mean of a stream may differ from one epoch to the next, as a share of it."""
_CLEARLY_MORE = 4.0
_LEAST_TIMES = 2.0
"""Standard errors, in units of the least that would have decided for a larger θ."""
_RISEN, _BEYOND_NOISE = 1.5, 3.0
"""Blocks have risen if their mean is so many times as large as when θ was learnt, by so many standard errors."""


class Blocks(Protocol):
    """The blocks of an epoch: those of its publisher, or as they are known from outside."""

    @property
    def plan(self) -> StreamPlan:
        """How the stream is cut, and its tree."""

    @property
    def perturber(self) -> Perturber:
        """Its noise."""

    @property
    def layout(self) -> BlockLayout:
        """Chunks and blocks."""

    def totals(self) -> Integers:
        """The noisy sums of complete blocks."""

    def noisy_mean(self) -> float | None:
        """The mean of the values of complete blocks, with its noise."""


Part = tuple[int, Learnt, Blocks]
"""Where an epoch begins, what it was published with, and its blocks."""


def as_later(truncation: Truncation, later: Truncation | None, seen: Learnt | None, mean: float | None) -> Truncation:
    """Where an epoch that looks alike turned out to lack far more, so does this one.

    `seen` is what that was judged by, `mean` that of these values: cut at a larger θ, they have no more than so many
    times it, and what lies above that θ was measured.
    """
    if later is None or later.excess is None or truncation.excess is None:
        return truncation
    most = math.inf
    if seen is not None and seen.excess is not None and mean is not None:
        most = max(mean, 0.0) * max(seen.theta / truncation.theta - 1, 0.0) + max(seen.excess, 0.0)
    excess = min(later.excess, most)
    if excess - truncation.excess <= _CLEARLY_MORE * math.sqrt(truncation.excess_variance):
        return truncation
    variance = later.excess_variance + (LEVEL_DOUBT * excess) ** 2
    return replace(
        truncation,
        excess=excess,
        excess_variance=variance,
        excess_square=later.excess_square,
        hidden=later.hidden,
        growth=None,
    )


def in_hindsight(truncation: Truncation, blocks: Blocks, after: Part, noise: TreeNoise) -> Truncation:
    """The excess above a θ that was too small, as the next epoch shows it: its θ was learnt from these values.

    The next epoch's mean, with what that one lacks, less the mean of the values as they were cut here. It is as far off
    as the level has changed in between; what was said before is as far off as the larger values that were not seen.
    Only what such a change does not explain is added, and the doubt stays: days must not look like large values. Blocks
    of zeros lost nothing and are left out, where noise lets them be known.
    """
    _, learnt, later = after
    rise = _rise(truncation, blocks, after, noise)
    empty, size = _empty_below(blocks, noise), blocks.layout.block
    if rise is not None:
        return replace(truncation, rise=rise, empty_below=empty)
    mean, level = blocks.noisy_mean(), later.noisy_mean()
    if mean is None or level is None or learnt.excess is None:
        return truncation
    if empty is not None:
        totals = blocks.totals()
        mean = float(totals[totals >= empty * size].mean()) / size
    # Cut at t > θ, these values are at most t/θ times as large as cut at θ: what is more has moved in between.
    whole = min(level, mean * learnt.theta / truncation.theta) + learnt.excess
    seen, doubt = max(whole - mean, 0.0), (LEVEL_DOUBT * whole) ** 2 + learnt.excess_variance
    possible, likely = (truncation.excess_variance + it for it in (seen**2, max(seen**2 - doubt, 0.0)))
    said, weight = truncation.excess or 0.0, likely / (likely + doubt) if likely + doubt > 0 else 0.0
    excess = max(weight * seen + (1 - weight) * said, said)
    variance = doubt * possible / (possible + doubt) if possible + doubt > 0 else 0.0
    each = max(learnt.theta - truncation.theta, 0.0)
    square = max(truncation.excess_square, excess * each)
    known = replace(truncation, excess=excess, excess_variance=variance, excess_square=square, growth=None)
    return replace(known, empty_below=empty)


def chosen_larger(truncation: Truncation, later: Sequence[Learnt]) -> Truncation:
    """What larger θ say of the values that they were learnt from: these, or others like them. More lie above this θ.

    `PredictedError` takes a larger θ than t, x·t, only if G(N(t)) − G(N(x·t)) exceeds 2·N_0·ln x, or noise does. So
    about N_0·√(x² − 1) values lie above t, or N_0·(1 + ln(x²/2)) where that is more than N_0. Added up over t from this
    θ to the larger one, this is what they lose. As noise may have chosen, it is a doubt, and no more is added back.
    """
    if truncation.excess is None:
        return truncation
    doubt = max((_lost_below(truncation.theta, learnt) for learnt in later), default=0.0)
    return replace(truncation, excess_variance=truncation.excess_variance + (_LEAST_TIMES * doubt) ** 2)


def _lost_below(theta: float, later: Learnt) -> float:
    """The least that values lose per value if that larger θ was right."""
    ratio = later.theta / theta
    if ratio <= 1 or later.above is None:
        return 0.0
    near = min(ratio, math.sqrt(2))
    parts = math.acosh(near) - math.sqrt(near**2 - 1) / near
    if ratio > near:
        parts += 3 / near - (3 + math.log(ratio**2 / 2)) / ratio
    return math.hypot(later.above, later.above_stderr) * later.theta * parts


def _empty_below(blocks: Blocks, noise: TreeNoise) -> float | None:
    """A tenth of the largest mean of a block: those with less lost nothing. None, if none has or noise may hide it."""
    totals, size = blocks.totals(), blocks.layout.block
    limit = float(totals.max(initial=0)) / size / 10
    error = math.sqrt(float(noise.variance(np.array([0]), np.array([size]))[0])) / size
    return limit if 3 * error < limit and bool((totals < limit * size).any()) else None


def _rise(truncation: Truncation, blocks: Blocks, after: Part, noise: TreeNoise) -> Rise | None:
    """Where the stream rose inside the epoch: blocks above the level that θ was learnt at, and what they lost.

    Values that rose are taken to be like those of the next epoch's blocks that are as high at least. Where no block
    has risen beyond noise, nothing is known of the level before, or high blocks lost no more than levels differ, None.
    """
    _, learnt, later = after
    size, usual = blocks.layout.block, truncation.level
    rates = blocks.totals() / size
    error = math.sqrt(float(noise.variance(np.array([0]), np.array([size]))[0])) / size
    if usual is None or learnt.excess is None or not rates.size:
        return None
    certain = max(_RISEN * usual, usual + _BEYOND_NOISE * error)
    if not (rates > certain).any():
        return None
    high = float(rates[rates > certain].mean())
    next_rates = later.totals() / later.layout.block
    level = next_rates[next_rates > (usual + high) / 2]
    if not level.size:
        return None
    whole = float(level.mean()) + learnt.excess
    excess = whole - high
    if excess <= LEVEL_DOUBT * whole:  # days are no rise: levels differ that much from one epoch to the next
        return None
    return Rise(usual, certain, high, excess, (LEVEL_DOUBT * whole) ** 2 + learnt.excess_variance, error)
