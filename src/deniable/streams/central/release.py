"""What a publisher releases: published values, with everything that answers for windows need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.streams.central.perturber import Perturber
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.threshold import PublicThreshold
from deniable.streams.central.warmup import NOT_NOISE, Learnt, roughness
from deniable.streams.released.covariance import TreeNoise
from deniable.streams.released.prediction_error import Smoothing, block_difference
from deniable.streams.released.released_stream import SIMULATION, Released
from deniable.streams.released.roughness import Roughness
from deniable.streams.released.stretch import Stretch
from deniable.streams.released.windows import Truncation
from deniable.streams.structure.block_layout import BlockLayout

_LEVEL_DOUBT = 0.25
"""How much the mean of a stream may differ from one epoch to the next, as a share of it."""


_CYCLES = 0.2
"""How much the mean of a run of values, shorter than a block, may differ from the next one's, as a share of it."""
_SHORTEST_CYCLE, _KNOWN_UP_TO = 5, 4
"""Cycles of 2^5 values and more are expected, unless runs a fourth as long or longer were compared."""
_STAND_IN_DOUBT = 0.5
"""How far stand-ins may be off on average, as a share of the mean: values of persons with many events differ."""
_FAR_DOUBT = 2.0
"""Standard errors that Laplace noise exceeds upwards three times in a hundred."""
_CLEARLY_MORE = 4.0
_OUTWEIGHS = 10.0
"""Answers say so where values that noise may hide would make sums so many times as large, and add θ to every value."""


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
    for part, hidden in zip(reversed(parts), reversed(_hidden_shares(settings, parts)), strict=True):
        begin, learnt, blocks = part
        noise = replace(
            blocks.plan.noise_model(blocks.perturber.node_variance, learnt.mean_variance), layout=blocks.layout
        )
        mean = blocks.noisy_mean()
        level = learnt.theta / 4 if mean is None else min(max(mean, 0.0), learnt.theta)
        truncation = replace(
            _truncation(settings, learnt), hidden=hidden, uncounted=_STAND_IN_DOUBT * learnt.uncounted * level
        )
        if after is not None and truncation.excess is not None:
            if after[1].theta >= 2 * learnt.theta:
                truncation = _in_hindsight(truncation, blocks, after, noise)
            elif _alike(mean, after[2].noisy_mean()):
                truncation = _as_later(truncation, result[-1].truncation)
        result.append(Stretch(begin, noise, truncation, _smoothing(settings, learnt, blocks, noise)))
        after = part
    return result[::-1]


def _as_later(truncation: Truncation, later: Truncation | None) -> Truncation:
    """Where an epoch that looks alike turned out to lack far more, so does this one."""
    if later is None or later.excess is None or truncation.excess is None:
        return truncation
    if later.excess - truncation.excess <= _CLEARLY_MORE * math.sqrt(truncation.excess_variance):
        return truncation
    variance = later.excess_variance + (_LEVEL_DOUBT * later.excess) ** 2
    return replace(
        truncation,
        excess=later.excess,
        excess_variance=variance,
        excess_square=later.excess_square,
        hidden=later.hidden,
    )


def _in_hindsight(truncation: Truncation, blocks: Blocks, after: Part, noise: TreeNoise) -> Truncation:
    """The excess above a θ that was too small, as the next epoch shows it: its θ was learnt from these values.

    The next epoch's mean, with what that one lacks, less the mean of the values as they were cut here. It is as far off
    as the level has changed in between; what was said before is as far off as the larger values that were not seen.
    Blocks of zeros lost nothing and are left out, where noise lets them be known.
    """
    _, learnt, later = after
    mean, level = blocks.noisy_mean(), later.noisy_mean()
    if mean is None or level is None or learnt.excess is None:
        return truncation
    empty, size = _empty_below(blocks, noise), blocks.layout.block
    if empty is not None:
        totals = blocks.totals()
        mean = float(totals[totals >= empty * size].mean()) / size
    whole = level + learnt.excess
    seen, doubt = max(whole - mean, 0.0), (_LEVEL_DOUBT * whole) ** 2 + learnt.excess_variance
    before = truncation.excess_variance + seen**2
    weight = before / (before + doubt) if before + doubt > 0 else 0.0
    said = truncation.excess or 0.0
    excess = max(weight * seen + (1 - weight) * said, said)
    each = max(learnt.theta - truncation.theta, 0.0)
    square = max(truncation.excess_square, excess * each)
    return replace(truncation, excess=excess, excess_variance=weight * doubt, excess_square=square, empty_below=empty)


def _empty_below(blocks: Blocks, noise: TreeNoise) -> float | None:
    """A tenth of the largest mean of a block: those with less lost nothing. None, if none has or noise may hide it."""
    totals, size = blocks.totals(), blocks.layout.block
    limit = float(totals.max(initial=0)) / size / 10
    error = math.sqrt(float(noise.variance(np.array([0]), np.array([size]))[0])) / size
    return limit if 3 * error < limit and bool((totals < limit * size).any()) else None


def _truncation(settings: Settings, learnt: Learnt) -> Truncation:
    theta, tail = learnt.theta, settings.expectation.tail
    truncation = Truncation(theta, settings.grid.top, learnt.above, learnt.above_stderr, tail, level=learnt.mean)
    if learnt.excess is None or not learnt.above:
        return truncation if learnt.excess is None else replace(truncation, excess=0.0)
    # What a value above θ exceeds it by is taken as exponential, whose mean square is twice the square of its mean.
    each = min(learnt.excess / learnt.above, 2.0 * theta, max(settings.grid.top - theta, 0))
    square = 2 * learnt.excess * each
    return replace(truncation, excess=learnt.excess, excess_variance=learnt.excess_variance, excess_square=square)


def _hidden_shares(settings: Settings, parts: Sequence[Part]) -> list[float]:
    """For every epoch: the share of its values that may lie near the bound unseen, where these would change all sums.

    What was learnt from an epoch is said of it and of all that look alike: their θ is not far smaller, and published
    means are about the same. So what cannot be said early is said in hindsight.
    """
    means = [blocks.noisy_mean() for _, _, blocks in parts]
    told = [(mean, after[1]) for mean, after in zip(means, parts[1:], strict=False)]
    result = []
    for (_, learnt, _), mean in zip(parts, means, strict=True):
        alike = [later for other, later in told if _alike(mean, other) and later.theta <= 2 * learnt.theta]
        known = alike if any(later is learnt for later in alike) else [learnt, *alike]
        result.append(_hidden(settings, learnt, mean, *_most_far(known)))
    return result


def _most_far(known: list[Learnt]) -> tuple[float, float]:
    """The share of values far above θ by all measurements together, and its standard error."""
    far = [(it.far, it.far_variance) for it in known if it.far is not None]
    if any(variance <= 0 for _, variance in far):
        return max(share for share, _ in far), 0.0
    weight = sum(1 / variance for _, variance in far)
    return (sum(share / variance for share, variance in far) / weight, weight**-0.5) if far else (0.0, 0.0)


def _alike(mean: float | None, other: float | None) -> bool:
    return mean is not None and other is not None and abs(mean - other) <= _LEVEL_DOUBT * max(mean, other)


def _hidden(settings: Settings, learnt: Learnt, mean: float | None, far: float, error: float) -> float:
    """The share of values that may be far above θ, if there is reason to think so and they would outweigh all others.

    One reason is that more was measured than is usual of noise. The other is that published sums are so small that all
    values that are not 0 may be such: each adds θ to a sum of cut values. A public θ is somebody's word that few
    values lie above it: noise alone is not a reason to doubt that.
    """
    theta, top = learnt.theta, settings.grid.top
    if learnt.excess is None or learnt.above is None or mean is None or theta >= top:
        return 0.0
    if isinstance(settings.threshold, PublicThreshold) and learnt.above <= NOT_NOISE * learnt.above_stderr:
        return 0.0
    share, rate = min(max(far, 0.0) + _FAR_DOUBT * error, 1.0), max(mean, 0.0)
    possible = min(share, rate / theta) * (top - theta)
    reason = far > _FAR_DOUBT * error or rate <= theta * share
    return share if reason and possible > _OUTWEIGHS * (rate + learnt.excess + theta / _OUTWEIGHS) else 0.0


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
    known = usual.weighed(learnt.lengths[:below], learnt.squares[:below], learnt.doubts[:below]) if below else usual
    return Smoothing(layout, known.ending(block, between.squares[-1]))


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
