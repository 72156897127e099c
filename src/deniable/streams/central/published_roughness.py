"""How rough a stream is at lengths of blocks and more, from the noisy sums of blocks, at no cost.

Neighbouring runs of 1, 2, 4, … blocks are compared while an epoch is published. Their noise is known, and what they
differ by beyond it is the stream's (see `Roughness`). The blocks of the next epoch follow from it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.streams.central.smoother_choice import BlockPredictions
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.structure.growing_array import GrowingArray
from deniable.streams.structure.state_values import packed, unpacked

_TOGETHER = 1 << 10  # blocks that are compared at once
_RUN_DOUBLINGS = _TOGETHER.bit_length() - 1
_FEWEST_PAIRS, _SAMPLE = 4, 64

Knot = tuple[float, float, float]
"""A length of runs, Δ there in squared steps, and the variance of the noise of its root."""


class BlockDifferences:
    """Sums of squared differences of neighbouring runs of blocks, by the length of the runs: 1, 2, 4, … blocks.

    The same runs are predicted by every smoother, if the next epoch's is chosen by that.
    """

    def __init__(self, predictions: BlockPredictions | None = None) -> None:
        self.predictions = predictions
        self._waiting = GrowingArray()
        self._squares, self._pairs = np.zeros(_RUN_DOUBLINGS), np.zeros(_RUN_DOUBLINGS, dtype=np.int64)

    def extend(self, totals: Integers) -> None:
        """Take the noisy sums of the next blocks."""
        while totals.size:
            room = _TOGETHER - len(self._waiting)
            self._waiting.extend(totals[:room])
            totals = totals[room:]
            if len(self._waiting) == _TOGETHER:
                self._compare()

    def _compare(self) -> None:
        runs = self._waiting.array().astype(np.float64)
        self._waiting.clear()
        for scale in range(_RUN_DOUBLINGS):
            if self.predictions is not None:
                self.predictions.follow(scale, runs)
            pairs = runs[: runs.size // 2 * 2].reshape(-1, 2)
            self._squares[scale] += np.square(pairs[:, 0] - pairs[:, 1]).sum()
            self._pairs[scale] += len(pairs)
            runs = pairs.sum(1)

    def knots(self, plan: StreamPlan, node_variance: float) -> list[Knot]:
        """Δ where there are some pairs. Nothing more is compared after this."""
        self._compare()
        model = plan.noise_model(node_variance, 0.0)
        result = []
        for scale in range(_RUN_DOUBLINGS):
            pairs, length = int(self._pairs[scale]), plan.block << scale
            if pairs < _FEWEST_PAIRS:
                break
            middle = (2 * np.arange(0, pairs, max(pairs // _SAMPLE, 1)) + 1) * length
            noise = _difference_noise(model, middle, length)
            # Squares of noise vary by about twice their mean: what is left of that may be taken for the stream's.
            doubt = math.sqrt(3 / pairs) * noise
            result.append((float(length), max(float(self._squares[scale]) / pairs - noise, 0.0), doubt))
        return result

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        return {
            "waiting": packed(self._waiting.array()),
            "squares": self._squares.tolist(),
            "pairs": self._pairs.tolist(),
            "predictions": None if self.predictions is None else self.predictions.state(),
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._waiting.extend(unpacked(state["waiting"]))
        self._squares, self._pairs = np.array(state["squares"]), np.array(state["pairs"], dtype=np.int64)
        if self.predictions is not None and state.get("predictions") is not None:
            self.predictions.resume(state["predictions"])


def _difference_noise(model: Any, middle: Integers, length: int) -> float:
    """Variance of the noise of the difference of two runs that meet in the middle, on average."""
    left, right, both = (
        model.variance(*ends)
        for ends in ((middle - length, middle), (middle, middle + length), (middle - length, middle + length))
    )
    noise: Floats = 2 * left + 2 * right - both
    return float(noise.mean())
