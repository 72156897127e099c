"""What a publisher releases: published values, with everything that is needed to answer for windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.streams.central.far_tail import power_of
from deniable.streams.central.hindsight import LEVEL_DOUBT, Blocks, Part, as_later, chosen_larger, in_hindsight
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.threshold import PublicThreshold
from deniable.streams.central.warmup import NOT_NOISE, Learnt, roughness
from deniable.streams.released.covariance import TreeNoise
from deniable.streams.released.levels import SMALL_NOISE, block_errors, growth
from deniable.streams.released.prediction_error import Smoothing, block_difference
from deniable.streams.released.released_stream import SIMULATION, Released
from deniable.streams.released.roughness import Roughness
from deniable.streams.released.stretch import Stretch
from deniable.streams.released.windows import Truncation

_CYCLES = 0.3
"""How much the mean of a run of values, shorter than a block, may differ from the next one's, as a share of it: as in a
cycle whose peaks are a third above its mean. On drawn days and nights, even seeds, windows of 60 and 300 values at
ε = 0.1 are covered in 96 and 92 %, and in 93 and 87 % with a share of 0.2.
"""
_SHORTEST_CYCLE, _KNOWN_UP_TO = 5, 4
"""Cycles of 2^5 values and more are expected, unless runs a fourth as long or longer were compared."""
_AMONG_STREAMS, _CERTAINLY_DIFFER = 3.0, 2.0
"""How much Δ differs among streams, as a multiple of what is usual: some have cycles shorter than a block, and most
have none. And the standard errors from which on runs differ by more than noise.
"""
_STAND_IN_DOUBT = 0.5
"""How far stand-ins may be off on average, as a share of the mean: values of persons with many events differ."""
_FEWEST_COUNTED = 1 / 8
_FAR_DOUBT = 2.0
"""Standard errors that Laplace noise exceeds upwards three times in a hundred."""
_SUSPECTED, _SEEN = 1.3, 2.0
"""Standard errors from which on a count of far values is a reason to doubt, or to believe it: noise alone exceeds them
once in ten times, and three times in a hundred."""
_LEAST_POWER, _LARGEST_POWER, _ANY_GROWTH, _SAME_LEVEL = 0.5, 16.0, 1e9, 0.1
"""Of the level, for what is lost there; and how much a mean that was learnt may differ from the epoch's before."""
_OUTWEIGHS = 5.0
"""Answers say so where values that noise may hide would add as much as is there, if they were seen or suspected, or
nothing speaks against them; and so many times that, where a smooth tail does."""


class PublishedParts(Protocol):
    """All epochs of a stream, and what holds now."""

    @property
    def learnt(self) -> Learnt:
        """The private answers that hold now."""

    @property
    def plan(self) -> StreamPlan:
        """How the stream is cut, and its tree."""

    @property
    def chunk(self) -> int:
        """The number of the open epoch or chunk."""

    def parts(self) -> Sequence[Part]:
        """Every epoch."""


def release(
    steps: NDArray[Any],
    settings: Settings,
    publisher: PublishedParts,
    *,
    first: int,
    timestamps: NDArray[Any] | None,
    simulation: bool,
) -> Released:
    """The values that were published from number `first` on, in steps of the grid, with their errors."""
    parts = publisher.parts()
    start, *later = _stretches(settings, parts)
    about = _about(settings, publisher) | ({SIMULATION: True} if simulation else {})
    facts = (start.truncation, start.smoothing, timestamps, first, tuple(later))
    return Released(steps, start.covariance, settings.grid, about, *facts)


def _stretches(settings: Settings, parts: Sequence[Part]) -> list[Stretch]:
    """Every epoch, from the last to the first: what one shows may be said of the one before."""
    result: list[Stretch] = []
    after: Part | None = None
    seen: Learnt | None = None  # what the excess of the epoch behind was judged by
    hidden_shares, earlier = _hidden_shares(settings, parts), (None, *parts[:-1])
    told = [(part[2].noisy_mean(), later[1]) for part, later in pairwise(parts)]
    for part, hidden, before in zip(reversed(parts), reversed(hidden_shares), reversed(earlier), strict=True):
        begin, learnt, blocks = part
        noise = replace(
            blocks.plan.noise_model(blocks.perturber.node_variance, learnt.mean_variance), layout=blocks.layout
        )
        mean = blocks.noisy_mean()
        level = learnt.theta / 4 if mean is None else min(max(mean, 0.0), learnt.theta)
        truncation = replace(_truncation(settings, learnt), hidden=hidden, uncounted=_uncounted_error(learnt, level))
        truncation = replace(truncation, growth=_growth(truncation, learnt, before))
        seen = None if after is None else (after[1] if seen is None else seen)
        if after is not None and truncation.excess is not None:
            if after[1].theta >= 2 * learnt.theta:
                truncation, seen = in_hindsight(truncation, blocks, after, noise), after[1]
            elif _alike(mean, after[2].noisy_mean()):
                truncation = as_later(truncation, result[-1].truncation, seen, mean)
            else:
                seen = None
        larger = [later for other, later in told if _alike(mean, other) and later.theta >= 2 * learnt.theta]
        truncation = chosen_larger(truncation, [*larger, *([] if after is None else [after[1]])])
        truncation = replace(truncation, level=_known_level(learnt))
        result.append(Stretch(begin, noise, truncation, _smoothing(settings, learnt, blocks, noise)))
        after = part
    return result[::-1]


def _truncation(settings: Settings, learnt: Learnt) -> Truncation:
    theta, tail = learnt.theta, settings.expectation.tail
    truncation = Truncation(theta, settings.grid.top, learnt.above, learnt.above_stderr, tail, level=learnt.mean)
    if learnt.excess is None:
        return truncation
    share = math.hypot(learnt.above or 0.0, learnt.above_stderr)
    mean = theta / 4 if learnt.mean is None else min(max(learnt.mean, 0.0), theta)
    far = (share, power_of(share, mean / theta)) if share > 0 else None
    return replace(truncation, excess=learnt.excess, excess_variance=learnt.excess_variance, far=far)


def _known_level(learnt: Learnt) -> float | None:
    """The mean when θ was learnt; where noise hides it, a fourth of θ counts, as it does for streams of most kinds."""
    if learnt.mean is None:
        return None
    usual = learnt.theta / 4
    weight = learnt.mean_variance / (learnt.mean_variance + usual**2)
    return weight * usual + (1 - weight) * learnt.mean


def _growth(truncation: Truncation, learnt: Learnt, before: Part | None) -> tuple[float, float] | None:
    """The level at which the excess was learnt, and the power by which it grows with the level.

    Where the epoch that it was learnt from had days and nights, the days had most of it: the level is then a mean of
    its levels of that power.
    """
    if truncation.excess is None or truncation.far is None or not truncation.level or truncation.level <= 0:
        return None
    level, power = truncation.level, min(truncation.far[1], _LARGEST_POWER)
    if power < _LEAST_POWER or power * math.sqrt(learnt.mean_variance) > SMALL_NOISE * level:
        return None
    mean = None if before is None else before[2].noisy_mean()
    if before is not None and mean is not None and abs(mean - level) <= _SAME_LEVEL * level:
        blocks = before[2]
        noise = replace(blocks.plan.noise_model(blocks.perturber.node_variance, 0.0), layout=blocks.layout)
        totals = blocks.totals()
        edges = blocks.layout.position(np.arange(totals.size + 1))
        times = growth(totals / np.diff(edges), block_errors(noise, edges), level, power, _ANY_GROWTH)
        if times is not None:
            level *= float(times.mean()) ** (1 / power)
    return level, power


def _uncounted_error(learnt: Learnt, level: float) -> float:
    """How far a value may be off on average because stand-ins replace some: as others differ, and by the mean's noise.

    What stood for values of a warm-up was taken out of its mean, which makes that noise larger.
    """
    share = learnt.uncounted
    noise = math.sqrt(learnt.mean_variance) / max(1 - share, _FEWEST_COUNTED)
    return share * math.hypot(_STAND_IN_DOUBT * level, noise)


def _hidden_shares(settings: Settings, parts: Sequence[Part]) -> list[float]:
    """For every epoch: the share of its values that may lie near the bound unseen, where these would change all sums.

    What was learnt from an epoch is said of it and of all that look alike: their θ is not far smaller, and published
    means are about the same. So what cannot be said early is said in hindsight.
    """
    means = [blocks.noisy_mean() for _, _, blocks in parts]
    told = [(parts[0][1].mean, parts[0][1])]  # of the warm-up, whose mean was asked privately
    told += [(mean, after[1]) for mean, after in zip(means, parts[1:], strict=False)]
    pressed = [mean for mean, (_, learnt, _) in zip(means, parts, strict=True) if (mean or 0.0) > learnt.theta / 2]
    result = []
    for number, ((_, learnt, _), mean) in enumerate(zip(parts, means, strict=True)):
        alike = [later for other, later in told if _alike(mean, other) and later.theta <= 2 * learnt.theta]
        known = alike if any(later is learnt for later in alike) else [learnt, *alike]
        later_parts = zip(means[number:], parts[number:], strict=True)
        crossed = any(it[1].theta >= 2 * learnt.theta and not _alike(mean, other) for other, it in later_parts)
        close = any(_alike(mean, other) for other in pressed)
        result.append(_hidden(settings, learnt, mean, *_most_far(known), crossed=crossed, close=close))
    return result


def _most_far(known: list[Learnt]) -> tuple[float, float]:
    """The share of values far above θ by all measurements together, and its standard error."""
    far = [(it.far, it.far_variance) for it in known if it.far is not None]
    if any(variance <= 0 for _, variance in far):
        return max(share for share, _ in far), 0.0
    weight = sum(1 / variance for _, variance in far)
    return (sum(share / variance for share, variance in far) / weight, weight**-0.5) if far else (0.0, 0.0)


def _alike(mean: float | None, other: float | None) -> bool:
    return mean is not None and other is not None and abs(mean - other) <= LEVEL_DOUBT * max(mean, other)


def _hidden(
    settings: Settings, learnt: Learnt, mean: float | None, far: float, error: float, *, crossed: bool, close: bool
) -> float:
    """The share of values that may be far above θ, if there is reason to think so and they matter.

    One reason is that more was measured than noise explains. Others are that more was measured than noise mostly
    explains, or that published sums are so small that all values that are not 0 may be such: each adds θ to a sum of
    cut values. Or values lie so `close` to θ, here or where the stream looked alike, that nothing follows from them
    about larger ones. Otherwise it takes more to speak of them. Where a later θ has `crossed` the gap, it shows them.
    A public θ is somebody's word that few values lie above it: noise alone is not a reason to doubt that.
    """
    theta, top = learnt.theta, settings.grid.top
    if learnt.excess is None or learnt.above is None or mean is None or theta >= top:
        return 0.0
    if isinstance(settings.threshold, PublicThreshold) and learnt.above <= NOT_NOISE * learnt.above_stderr:
        return 0.0
    share, rate = min(max(far, 0.0) + _FAR_DOUBT * error, 1.0), max(mean, 0.0)
    possible, there = min(share, rate / theta) * (top - theta), rate + learnt.excess
    if far > _SEEN * error and not crossed:
        return share if possible > there else 0.0
    suspected = far > _SUSPECTED * error
    if crossed and not suspected and rate > theta * share:
        return 0.0
    outweighs = 1.0 if suspected or close else _OUTWEIGHS
    return share if possible > max(outweighs * there, theta) else 0.0


def _smoothing(settings: Settings, learnt: Learnt, blocks: Blocks, noise: TreeNoise) -> Smoothing | None:
    """As learnt before publishing, and as blocks show."""
    layout = blocks.layout
    if layout.block == 1:
        return None
    expected = roughness(learnt, settings)
    measured = block_difference(blocks.totals(), layout, noise, expected.difference(layout.block))
    if measured is None:
        return Smoothing(layout, expected)
    smallest, drift = expected.squares[0], _CYCLES * min(max(blocks.noisy_mean() or 0.0, 0.0), learnt.theta)
    block = float(layout.block)
    between = Roughness((1.0, block), (smallest, max(measured, smallest * block)))
    # Cycles shorter than a block do not show in its neighbours: where no run was compared, at least what is expected.
    measured_lengths = [length for length in learnt.lengths if length < block] or [1.0]
    powers = (float(2**power) for power in range(_SHORTEST_CYCLE, layout.block.bit_length()))
    unknown = [length for length in powers if _KNOWN_UP_TO * measured_lengths[-1] < length < block]
    lengths = sorted({*measured_lengths, *unknown})
    squares = (max(between.difference(length), smallest * length + (drift * length) ** 2) for length in lengths)
    usual = Roughness((*lengths, block), (*squares, between.squares[-1]))
    below = sum(length < layout.block for length in learnt.lengths)
    runs = learnt.lengths[:below], learnt.squares[:below], learnt.doubts[:below]
    known = usual.weighed(*runs, spread=_AMONG_STREAMS) if below else usual
    certain = [length for length, square, doubt in zip(*runs, strict=True) if square > _CERTAINLY_DIFFER**2 * doubt]
    return Smoothing(layout, known.ending(block, between.squares[-1]).with_cycles(certain))


def _about(settings: Settings, publisher: PublishedParts) -> dict[str, Any]:
    """Public facts, under the paper's letters."""
    facts: dict[str, Any] = {"method": settings.method, "epsilon": settings.epsilon}
    if settings.delta:
        facts["delta"] = settings.delta
    plan = publisher.plan
    facts |= {"theta": float(settings.grid.value(publisher.learnt.theta)), "warmup": settings.warmup}
    if plan.hierarchy != "tree":
        facts["hierarchy"] = plan.hierarchy
    return facts | {"r": plan.horizon, "b": plan.fanout, "s": plan.block, "chunk": publisher.chunk}
