"""A publisher after its warm-up: steps of the grid in, private steps out, block by block.

Every value is cut at θ and added to the open block. Inside a block the answer is the smoother's rate; at the end of a
block it is whatever makes the block add up to its noisy sum. In blocks of one value it is that value plus its noise.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.randomness import Source
from deniable.streams.central.perturber import LeafNoise
from deniable.streams.central.published_epochs import EpochFacts
from deniable.streams.central.published_roughness import BlockDifferences, Knot
from deniable.streams.central.smoother_choice import BlockPredictions
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.warmup import Learnt
from deniable.streams.released.windows import PRESSED, Truncation
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.growing_array import GrowingArray
from deniable.streams.structure.smoother import SLAB, Smoother, publish_blocks, published_values
from deniable.streams.structure.state_values import packed, unpacked

_AHEAD = 4096  # noise fetched together for blocks of one value that come one by one


_ALIVE: WeakSet[BlockPublisher] = WeakSet()


def _throw_noise_away() -> None:
    """A fork has a copy of the noise that lies ready. It is dropped, and new noise is refused (`check_process`)."""
    for publisher in _ALIVE:
        publisher._ready = []
        publisher.push = publisher._push_in_a_fork  # type: ignore[method-assign]
        publisher.push_many = publisher._push_many_in_a_fork  # type: ignore[method-assign]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_throw_noise_away)


class BlockPublisher:
    """The open block, the noise of its chunk, the smoother's prediction, and the noisy sums of complete blocks."""

    def __init__(
        self,
        plan: StreamPlan,
        epsilon: float,
        learnt: Learnt,
        bound: int,
        source: Source,
        *,
        keep: bool,
        fit_smoother: bool = False,
    ) -> None:
        self.plan, self.learnt, self._source = plan, learnt, source
        self._cut = min(learnt.theta, bound)  # an uncapped θ may lie above the bound
        self._bound = bound
        self.perturber = plan.perturber(epsilon, learnt.theta)
        self._layout = plan.layout
        self._initial_rate = learnt.theta / 2 if learnt.mean is None else learnt.mean
        self._totals = GrowingArray()  # noisy sums of complete blocks, if they are kept
        self.noisy_sum = 0  # of all complete blocks
        predictions = BlockPredictions(plan, self._initial_rate) if fit_smoother and plan.block > 1 else None
        self._differences = BlockDifferences(predictions)  # of neighbouring ones, if they have more than one value
        self._keep = keep
        self._block = 0  # number of the open block, through all chunks
        self._newest: float | None = None  # noisy mean of the last complete block
        self._sum = self._over = 0  # its cut values, and how many
        self._length = self._layout.length(0)
        self._rate = self._initial_rate
        self._memory = plan.smoother.begin(self._rate, plan.block)
        self._ended = False
        self._missing = 0.0  # what the end of the stream added to the last value
        self._noise: tuple[int, LeafNoise] | None = None
        self._ready: list[int] = []  # noise of the next blocks of one value, last first
        _ALIVE.add(self)

    @property
    def published(self) -> int:
        """How many values were answered."""
        return int(self._layout.position(np.array([self._block]))[0]) + self._over

    @property
    def chunk(self) -> int:
        """The number of the open chunk."""
        return self._block // self._layout.blocks

    @property
    def layout(self) -> BlockLayout:
        """Chunks and blocks, with the end of the stream if it has one inside a block."""
        return replace(self._layout, end=self.published if self._ended and self._over else None)

    def parts(self) -> list[tuple[int, Learnt, BlockPublisher]]:
        """A single stretch, from the first value on."""
        return [(0, self.learnt, self)]

    def facts(self, after: int) -> list[EpochFacts]:
        """What is public about the only epoch."""
        return [] if after else [EpochFacts(0, self.plan.horizon, self.learnt, self.plan.choice)]

    def totals(self) -> Integers:
        """The noisy sums of complete blocks, if they were kept."""
        return self._totals.array()

    def notice(self) -> str | None:
        """What the last complete block of several values says about θ, if it presses against it."""
        if self._newest is None or self.plan.block == 1:
            return None
        ends = self._layout.position(np.array([self._block - 1, self._block]))
        noise = self.plan.noise_model(self.perturber.node_variance, 0.0).variance(ends[:1], ends[1:])[0]
        truncation = Truncation(self.learnt.theta, self._bound, level=self.learnt.mean)
        pressed = truncation.pressed(np.array([self._newest]), math.sqrt(noise) / int(ends[1] - ends[0]))
        return PRESSED if pressed[0] else None

    def noisy_mean(self) -> float | None:
        """The mean of the values of complete blocks, cut at θ, with its noise."""
        count = int(self._layout.position(np.array([self._block]))[0])
        return self.noisy_sum / count if count else None

    def knots(self) -> list[Knot]:
        """How much neighbouring blocks differ beyond their noise, once no more will come."""
        return self._differences.knots(self.plan, self.perturber.node_variance)

    def smoother_after(self, following: StreamPlan, node_variance: float) -> Smoother:
        """The smoother for the next epoch, by how well each would have predicted the blocks of this one."""
        predictions = self._differences.predictions
        if predictions is None:
            return self.plan.smoother
        return predictions.best(self.plan, self.perturber.node_variance, following, node_variance)

    def forget(self) -> None:
        """Keep nothing of what was published, now and later."""
        self._keep = False
        self._totals.clear()

    def values(self) -> NDArray[Any]:
        """Everything that was published, if it was kept."""
        smoother = self.plan.smoother
        result = published_values(self.totals(), self._layout, smoother, self._initial_rate, self._over)
        if self._missing:
            result[-1] += self._missing
        return result

    # Publishing ----------------------------------------------------------------------------------------------------

    def push(self, unit: int) -> float:
        """Publish one value."""
        if unit > self._cut:
            unit = self._cut
        over = self._over + 1
        if over < self._length:
            self._over = over
            self._sum += unit
            return self._rate
        if not self._ready:
            if self.plan.block > 1:
                return self._close(unit)
            ahead = min(_AHEAD, self._layout.blocks - self._block % self._layout.blocks)
            self._ready = self._leaves(self._block, ahead).tolist()[::-1]
        single = unit + self._ready.pop()
        self._block += 1
        self.noisy_sum += single
        if self._keep:
            self._totals.append(single)
        return single

    def _push_in_a_fork(self, unit: int) -> float:
        """Refuse at once, not only at the end of a block. A simulation goes on."""
        self._source.check_process()
        return BlockPublisher.push(self, unit)

    def _push_many_in_a_fork(self, units: Integers) -> NDArray[Any]:
        self._source.check_process()
        return BlockPublisher.push_many(self, units)

    def push_many(self, units: Integers) -> NDArray[Any]:
        """Publish many values: integers if blocks have one value, floats otherwise."""
        cut = np.minimum(units, self._cut)
        if self.plan.block > 1:
            return self._publish_blocks(cut)
        self._ready = []
        return self._publish_single_values(cut)

    def end(self) -> float:
        """Close the open block early, if there is one. Returns what has to be added to the last published value."""
        self._ended = True
        if not self._over:
            return 0
        self._missing = self._sum + int(self._leaves(self._block, 1)[0]) - self._over * self._rate
        return self._missing

    def _leaves(self, block: int, count: int) -> Integers:
        """Noise of `count` blocks of one chunk."""
        chunk, leaf = divmod(block, self._layout.blocks)
        if self._noise is None or self._noise[0] != chunk:
            self._noise = (chunk, self.perturber.noise(self._source, chunk))
        return self._noise[1].leaves(leaf, leaf + count)

    def _close(self, unit: int) -> float:
        """The last value of the open block is answered with what its noisy sum lacks."""
        total = self._sum + unit + int(self._leaves(self._block, 1)[0])
        result = total - (self._length - 1) * self._rate
        self._advance(np.array([total]), np.array([self._length]))
        return result

    def _advance(self, totals: Integers, lengths: Integers) -> Floats:
        """Remember complete blocks, and predict. Returns the rates that held inside these blocks."""
        rates, self._memory = self.plan.smoother.follow(self._memory, totals, lengths)
        inside = np.concatenate(([self._rate], rates[:-1]))
        self._rate = float(rates[-1])
        self._block += totals.size
        self._sum = self._over = 0
        self._length = self._layout.length(self._block)
        self.noisy_sum += int(totals.sum())
        self._newest = float(totals[-1] / lengths[-1])
        self._differences.extend(totals)
        if self._keep:
            self._totals.extend(totals)
        return inside

    def _publish_single_values(self, cut: Integers) -> Integers:
        parts, start = [], 0
        while start < cut.size:
            count = min(cut.size - start, self._layout.blocks - self._block % self._layout.blocks)
            parts.append(cut[start : start + count] + self._leaves(self._block, count))
            self._block += count
            start += count
            self.noisy_sum += int(parts[-1].sum())
            if self._keep:
                self._totals.extend(parts[-1])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _publish_blocks(self, cut: Integers) -> Floats:
        result = np.empty(cut.size)
        start, block = 0, self.plan.block
        while start < cut.size:
            regular = self._over == 0 and self._length == block
            # Blocks of full length that are complete in these values and in this chunk, a slab at a time.
            until_short = self._layout.blocks - self._block % self._layout.blocks
            if self._layout.length(self._layout.blocks - 1) != block:
                until_short -= 1
            count = min((cut.size - start) // block, until_short, max(SLAB // block, 1)) if regular else 0
            if count:
                stop = start + count * block
                totals = cut[start:stop].reshape(count, block).sum(1) + self._leaves(self._block, count)
                rates = self._advance(totals, np.full(count, block))
                result[start:stop] = publish_blocks(totals, rates, block)
            else:
                stop = min(start + self._length - self._over, cut.size)
                self._extend(cut[start:stop], result[start:stop])
            start = stop
        return result

    def _extend(self, cut: Integers, out: Floats) -> None:
        """Part of one block, possibly up to its end."""
        out[:] = self._rate
        if self._over + cut.size < self._length:
            self._sum += int(cut.sum())
            self._over += cut.size
            return
        self._sum += int(cut[:-1].sum())
        out[-1] = self._close(int(cut[-1]))

    # State ---------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        return {
            "block": self._block,
            "noisy_sum": self.noisy_sum,
            "differences": self._differences.state(),
            "sum": self._sum,
            "over": self._over,
            "missing": self._missing,
            "rate": self._rate,
            "memory": self._memory,
            "totals": packed(self.totals()) if self._keep else None,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        if self._keep:
            self._totals.extend(unpacked(state["totals"]))
        self._block, self._sum, self._over = state["block"], state["sum"], state["over"]
        self.noisy_sum = state["noisy_sum"]
        self._differences.resume(state["differences"])
        self._missing, self._rate, self._memory = state["missing"], state["rate"], state["memory"]
        self._length = self._layout.length(self._block)
        self._ended = state["ended"]


def state_before(*, keep: bool) -> dict[str, Any]:
    """This part of a state before anything can be published."""
    nothing: dict[str, Any] = {
        "block": 0,
        "noisy_sum": 0,
        "differences": None,
        "sum": 0,
        "over": 0,
        "missing": 0.0,
        "rate": 0.0,
        "memory": [],
    }
    return {**nothing, "totals": "" if keep else None}
