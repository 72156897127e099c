"""Which smoother would have predicted published blocks best, by least squares, at no cost.

Several smoothers predict every block of an epoch from the blocks before it. Both have noise, and how much of the mean
square of prediction − block is noise follows from the plan. What is left is how far a prediction is off because the
stream changes; the noise that it will have in the next epoch is added. The least sum wins.

Privacy: all of this reads noisy sums of blocks, which are published, and public settings. So the smoother of the next
epoch is a function of what was published, as the values are that it predicts: post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.smoother import (
    Exponential,
    MovingAverage,
    Recent,
    Smoother,
    SmootherMemory,
    Taps,
)

FITTED_SMOOTHERS: tuple[Smoother, ...] = (
    Recent(),
    Exponential(0.5),
    Exponential(0.25),
    MovingAverage(4),
    MovingAverage(16),
)
"""A gain of 1, 1/2, 1/4, 1/16 for the newest block.

Longer averages would lower the error by at most a sixteenth, and would follow a jump of the level far too late.
"""
MERGED = 3
"""Blocks are also merged in twos and in fours: those of the next epoch are often larger."""
_FEWEST_BLOCKS, _SAMPLE = 8, 16


class BlockPredictions:
    """Sums of squares of what each candidate's predictions of noisy block sums were off by, for runs of 1, 2, 4 blocks.

    The first candidate is the smoother that the epoch is published with.

    >>> from deniable.streams import Expectation, choose_plan
    >>> plan = choose_plan(1.0, 1 << 16, expectation=Expectation(), block=256, fanout=16)
    >>> predictions = BlockPredictions(plan, initial=0.0)
    >>> predictions.follow(0, 1000.0 * np.arange(256))
    >>> predictions.best(plan, 0.0, plan, 0.0)
    Recent()
    """

    def __init__(self, plan: StreamPlan, initial: float) -> None:
        self.candidates = (plan.smoother, *(other for other in FITTED_SMOOTHERS if other != plan.smoother))
        self._lengths = [plan.block << scale for scale in range(MERGED)]
        self._memory: list[list[SmootherMemory]] = [
            [smoother.begin(initial, length) for smoother in self.candidates] for length in self._lengths
        ]
        self._rates = np.full((MERGED, len(self.candidates)), initial)
        self._squares, self._apart = (np.zeros((MERGED, len(self.candidates))) for _ in range(2))
        self._counts = np.zeros(MERGED, dtype=np.int64)

    def follow(self, scale: int, sums: Floats) -> None:
        """Predict the next runs of 2^scale blocks, one after another."""
        if not sums.size or scale >= MERGED:
            return
        lengths = np.full(sums.size, self._lengths[scale])
        totals, means, first = sums.astype(np.int64), sums / lengths, np.zeros(sums.size)
        for number, smoother in enumerate(self.candidates):
            rates, self._memory[scale][number] = smoother.follow(self._memory[scale][number], totals, lengths)
            before = np.concatenate((self._rates[scale, number : number + 1], rates[:-1]))
            squares = np.square(before - means)
            first = squares if number == 0 else first
            self._rates[scale, number] = rates[-1]
            self._squares[scale, number] += squares.sum()
            self._apart[scale, number] += np.square(squares - first).sum()
        self._counts[scale] += sums.size

    def best(self, plan: StreamPlan, node_variance: float, following: StreamPlan, its_node_variance: float) -> Smoother:
        """The smoother of least predicted error for the next epoch, published with the plan `following`.

        Another one than the epoch's has to be better by more than the standard error of the comparison.
        """
        times = following.block / plan.block
        scale = min(max(round(math.log2(times)), 0), MERGED - 1)
        count = int(self._counts[scale])
        if count < _FEWEST_BLOCKS or following.block == 1:
            return self.candidates[0]
        errors, doubts = np.empty(len(self.candidates)), np.sqrt(self._apart[scale]) / count
        for number, smoother in enumerate(self.candidates):
            noise = _noise(plan, scale, smoother)
            changes = max(self._squares[scale, number] / count - node_variance * noise.of_difference, 0.0)
            errors[number] = changes + its_node_variance * _noise(following, 0, smoother).of_rate
        return self.candidates[int(np.argmin(errors + doubts))]

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        arrays = {"rates": self._rates, "squares": self._squares, "apart": self._apart, "counts": self._counts}
        return {
            "memory": [list(row) for row in self._memory],
            **{name: array.tolist() for name, array in arrays.items()},
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._memory = [list(row) for row in state["memory"]]
        self._rates, self._squares, self._apart = (np.array(state[name]) for name in ("rates", "squares", "apart"))
        self._counts = np.array(state["counts"], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _PredictionNoise:
    """Variances of the noise of a predicted rate, and of its difference to the block's own, for nodes of variance 1."""

    of_rate: float
    of_difference: float


@lru_cache(maxsize=512)
def _noise(plan: StreamPlan, scale: int, smoother: Smoother) -> _PredictionNoise:
    """For runs of 2^scale blocks, on average over some of them."""
    runs, blocks = BlockLayout(plan.horizon, plan.block << scale), plan.layout.blocks
    edges = np.unique(np.linspace(1, max(runs.blocks - 1, 1), _SAMPLE).astype(np.int64))
    taps: Taps = smoother.taps(runs, edges, np.ones(edges.size, dtype=np.int64))
    length = runs.position(edges + 1) - runs.position(edges)
    block = [(edges + 1, -1.0 / length), (edges, 1.0 / length)]

    def variance(weighted: Any) -> float:
        at = np.minimum(np.stack([edge for edge, _ in weighted]) << scale, blocks)
        weights = np.stack([np.broadcast_to(weight, edges.shape) for _, weight in weighted])
        shared = plan.tree.covariance(*(np.broadcast_to(ends, (len(at), *at.shape)) for ends in (at[:, None], at)))
        return float(np.einsum("ik,jk,ijk->k", weights, weights, shared).mean())

    return _PredictionNoise(variance(taps[0]), variance([*taps[0], *block]))
