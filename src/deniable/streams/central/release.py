"""What a publisher releases: published values, with everything that answers for windows need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from numpy.typing import NDArray

from deniable.streams.central.far_tail import power_of
from deniable.streams.central.hindsight import LEVEL_DOUBT, Blocks, Part, as_later, in_hindsight
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

_CYCLES = 0.2
"""How much the mean of a run of values, shorter than a block, may differ from the next one's, as a share of it."""
_SHORTEST_CYCLE, _KNOWN_UP_TO = 5, 4
"""Cycles of 2^5 values and more are expected, unless runs a fourth as long or longer were compared."""
_STAND_IN_DOUBT = 0.5
"""How far stand-ins may be off on average, as a share of the mean: values of persons with many events differ."""
_FEWEST_COUNTED = 1 / 8
_FAR_DOUBT = 2.0
"""Standard errors that Laplace noise exceeds upwards three times in a hundred."""
_SUSPECTED = 1.3
"""Standard errors from which on a count of far values is a reason to doubt: noise alone exceeds them once in ten."""
_OUTWEIGHS = 10.0
"""Answers say so where values that noise may hide would add so many times what is there, and θ for every value."""


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
    for part, hidden in zip(reversed(parts), reversed(_hidden_shares(settings, parts)), strict=True):
        begin, learnt, blocks = part
        noise = replace(
            blocks.plan.noise_model(blocks.perturber.node_variance, learnt.mean_variance), layout=blocks.layout
        )
        mean = blocks.noisy_mean()
        level = learnt.theta / 4 if mean is None else min(max(mean, 0.0), learnt.theta)
        truncation = replace(_truncation(settings, learnt), hidden=hidden, uncounted=_uncounted_error(learnt, level))
        seen = None if after is None else (after[1] if seen is None else seen)
        if after is not None and truncation.excess is not None:
            if after[1].theta >= 2 * learnt.theta:
                truncation, seen = in_hindsight(truncation, blocks, after, noise), after[1]
            elif _alike(mean, after[2].noisy_mean()):
                truncation = as_later(truncation, result[-1].truncation, seen, mean)
            else:
                seen = None
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
    return mean is not None and other is not None and abs(mean - other) <= LEVEL_DOUBT * max(mean, other)


def _hidden(settings: Settings, learnt: Learnt, mean: float | None, far: float, error: float) -> float:
    """The share of values that may be far above θ, if there is reason to think so and they would outweigh all others.

    One reason is that more was measured than noise mostly explains. The other is that published sums are so small that
    all values that are not 0 may be such: each adds θ to a sum of cut values. A public θ is somebody's word that few
    values lie above it: noise alone is not a reason to doubt that.
    """
    theta, top = learnt.theta, settings.grid.top
    if learnt.excess is None or learnt.above is None or mean is None or theta >= top:
        return 0.0
    if isinstance(settings.threshold, PublicThreshold) and learnt.above <= NOT_NOISE * learnt.above_stderr:
        return 0.0
    share, rate = min(max(far, 0.0) + _FAR_DOUBT * error, 1.0), max(mean, 0.0)
    possible = min(share, rate / theta) * (top - theta)
    reason = far > _SUSPECTED * error or rate <= theta * share
    return share if reason and possible > _OUTWEIGHS * (rate + learnt.excess) + theta else 0.0


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
