"""The error of a stream before it is published, from public settings and stated expectations, without any data.

All figures are squared and per θ², averaged over random windows of a chunk (two independent uniform ends). They decide
the block size and the fan-out, and they are the noise part of the threshold's score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from deniable.checks import check_number
from deniable.errors import InvalidParameter
from deniable.streams.central.perturber import Perturber
from deniable.streams.released.covariance import TreeNoise
from deniable.streams.released.prediction_error import Smoothing
from deniable.streams.released.roughness import Roughness
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.hierarchy import Hierarchy, even_pairs
from deniable.streams.structure.smoother import Interpolated, Recent, Smoother, smoother_text
from deniable.streams.structure.tents import (
    LARGEST_TENT_FANOUT,
    LARGEST_TENT_LEAVES,
    Arrangement,
    Tents,
    arrangement_of,
)

_SAMPLE_WINDOWS = 1 << 11
_SAMPLE_STEPS = np.arange(1, _SAMPLE_WINDOWS + 1)
LARGEST_BLOCK = 1 << 26
Knots = tuple[tuple[float, float], ...]
"""Lengths, and Δ per θ² there; see `Roughness`."""
SMALLEST_FANOUT, LARGEST_CHOICE = 5, 64
SMALLEST_TENT_FANOUT = 7


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of the data, as shares of θ. These are assumptions, not measurements, so they cost nothing.

    `drift`: how much the mean of a run of values differs from that of the next one, apart from chance, however long the
    run. `spread`: standard deviation of single values. `tail`: by how much a value above θ exceeds θ, on average.

    >>> Expectation(drift=0.05).spread
    0.1
    """

    drift: float = 0.04
    spread: float = 0.1
    tail: float = 0.5

    def __post_init__(self) -> None:
        for name in ("drift", "spread", "tail"):
            problem, repair = "must be a share of θ, from 0 to 1", "Use 0.05 for a stream that drifts."
            check_number(name, getattr(self, name), problem, repair, smallest=0, largest=1)
        if not self.tail > 0:
            raise InvalidParameter("tail", "must be above 0", "Use 0.5 if nothing is known.")

    def difference(self, length: float) -> float:
        """Δ per θ²: the mean square of the difference between the sums of two neighbouring runs of so many values."""
        return 2 * self.spread**2 * length + (self.drift * length) ** 2

    @property
    def knots(self) -> Knots:
        """Δ per θ² at lengths of every order."""
        return tuple((float(4**power), self.difference(4**power)) for power in range(21))


PlanChoice = tuple[int, int, str] | tuple[int, int, str, str]
"""Values of a block, fan-out, and tree or tent; and the smoother where it was chosen, too."""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """How a chunk is cut into blocks, and the tree or the tents over them.

    >>> plan = choose_plan(0.5, 2**18, expectation=Expectation())
    >>> plan.block, plan.fanout, plan.tree.height
    (1024, 16, 2)
    """

    horizon: int
    block: int
    fanout: int
    consistent: bool
    smoother: Smoother
    hierarchy: str = "tree"

    @property
    def choice(self) -> PlanChoice:
        """What was chosen: the rest are settings."""
        return self.block, self.fanout, self.hierarchy, smoother_text(self.smoother)

    @property
    def layout(self) -> BlockLayout:
        """Chunks and blocks."""
        return BlockLayout(self.horizon, self.block)

    @property
    def tree(self) -> Arrangement:
        """The nodes of one chunk."""
        return arrangement_of(self.hierarchy, self.layout.blocks, self.fanout, self.consistent)

    def perturber(self, epsilon: float, theta: int) -> Perturber:
        """What adds the noise of this plan."""
        return Perturber(epsilon, theta, self.horizon, self.block, self.fanout, self.consistent, self.hierarchy)

    def model(self, theta: float, epsilon: float) -> TreeNoise:
        """The noise of answers from complete blocks, with continuous Laplace variances."""
        complete: Any = Interpolated(self.smoother, 0, 1 << 62)
        return replace(self.noise_model(2 * (theta * self.tree.height / epsilon) ** 2, 0.0), smoother=complete)

    def noise_model(self, node_variance: float, initial_variance: float) -> TreeNoise:
        """The noise of this plan, for nodes of a given variance."""
        facts = (self.fanout, self.consistent, node_variance, initial_variance, self.smoother, self.hierarchy)
        return TreeNoise(self.layout, *facts)

    def noise(self, epsilon: float) -> float:
        """Squared noise of a random window per θ²."""
        return _mean_noise(self) / epsilon**2

    def smoothing(self, knots: Knots) -> float:
        """Squared error of a random window per θ² from what happens inside blocks."""
        if self.block == 1:
            return 0.0
        starts, stops = even_pairs(_SAMPLE_STEPS, self.horizon)
        lengths, squares = zip(*knots, strict=True)
        return float(Smoothing(self.layout, Roughness(lengths, squares)).variance(starts, stops).mean())


@dataclass(frozen=True, slots=True)
class WindowForecast:
    """The error to expect for windows of one length: standard errors of their sums, from noise and from predictions."""

    length: int
    noise: float
    smoothing: float

    @property
    def total(self) -> float:
        """Noise and smoothing together."""
        return math.hypot(self.noise, self.smoothing)


def forecast(
    plan: StreamPlan, epsilon: float, theta: float, lengths: Sequence[int], expectation: Expectation
) -> list[WindowForecast]:
    """The errors of window sums at a given θ, averaged over windows inside a chunk that start after its first block.

    >>> plan = choose_plan(0.5, 2**18, expectation=Expectation())
    >>> (day,) = forecast(plan, 0.5, 60.0, [86_400], Expectation())
    >>> round(day.noise), round(day.smoothing)
    (1057, 591)
    """
    model = plan.model(theta, epsilon)
    runs, squares = zip(*expectation.knots, strict=True)
    smoothing = Smoothing(plan.layout, Roughness(runs, tuple(square * theta**2 for square in squares)))
    result = []
    for length in lengths:
        room = max(plan.horizon - length, 0)
        first = min(plan.block, room)
        starts = first + (np.arange(_SAMPLE_WINDOWS) * 0.6180339887498949 % 1 * (room - first + 1)).astype(np.int64)
        noise, error = (float(part.variance(starts, starts + length).mean()) for part in (model, smoothing))
        result.append(WindowForecast(length, math.sqrt(noise), math.sqrt(error)))
    return result


@lru_cache(maxsize=256)
def choose_plan(
    epsilon: float,
    horizon: int,
    *,
    expectation: Expectation,
    knots: Knots | None = None,
    block: int | None = None,
    fanout: int | None = None,
    consistent: bool = True,
    smoother: Smoother | None = None,
    largest: int = LARGEST_BLOCK,
    hierarchy: str = "tree",
    bound: int = 1,
) -> StreamPlan:
    """The block size and fan-out of least predicted error. What is given stays. `knots` replace `expectation`.

    `hierarchy`: "tree", "tent", or "auto" for whichever is predicted to be better at random windows; `bound` is the
    largest θ, in steps, that tents have to serve.

    Every power of two is tried as a block, and for each height the smallest fan-out that reaches all leaves. The choice
    reads public settings only, so it is public too. θ cancels.

    >>> choose_plan(0.5, 2**18, expectation=Expectation(drift=0.3)).block
    128
    """
    smoother = smoother or Recent()
    kinds = _kinds(hierarchy, consistent=consistent)
    if block is not None and fanout is not None and len(kinds) == 1:
        return StreamPlan(horizon, block, fanout, consistent, smoother, kinds[0])
    if block is not None:
        blocks = [block]
    elif math.isinf(epsilon):
        blocks = [1]
    else:
        blocks = [2**power for power in range(min(horizon, largest, LARGEST_BLOCK).bit_length())]
    best: tuple[float, StreamPlan] | None = None
    for size in reversed(blocks):
        leaves = -(-horizon // size)
        plans = [
            StreamPlan(horizon, size, width, consistent, smoother, kind)
            for kind in kinds
            for width in ([fanout] if fanout is not None else _FANOUTS[kind](leaves))
        ]
        if hierarchy == "auto":
            plans = [plan for plan in plans if plan.hierarchy == "tree" or _fits(plan, epsilon, bound)]
        if not plans:
            continue
        plan = min(plans, key=lambda candidate: _rough_noise(candidate.tree))
        error = plan.noise(epsilon) + plan.smoothing(expectation.knots if knots is None else knots)
        if best is None or error < best[0]:
            best = (error, plan)
        elif error > 4 * best[0]:  # smaller blocks have only more noise
            break
    if best is None:
        raise InvalidParameter("horizon", "is too long for these settings", "Use hierarchy='tree', or larger blocks.")
    return best[1]


def paper_block(epsilon: float, horizon: int, fanout: int) -> int:
    """b^s with s the integer argmin over 0 … h − 1 of  [WCZ21, Eq. (7)]

    (b − 1)·(log_b r − s)³·2/ε² + b^(2s)/4 · 1/9        (θ² cancels)
    """
    height = Hierarchy(horizon, fanout).height
    if math.isinf(epsilon):
        return 1

    def error(s: int) -> float:
        return (fanout - 1) * (height - s) ** 3 * 2 / epsilon**2 + float(fanout) ** (2 * s) / 36

    return int(fanout ** min(range(height), key=error))


def _fanouts(leaves: int) -> list[int]:
    """For each height the smallest fan-out that reaches all leaves, if it can be the best."""
    if leaves <= SMALLEST_FANOUT:
        return [max(leaves, 2)]
    result: list[int] = []
    height = 1
    while True:
        fanout = math.ceil(leaves ** (1 / height) - 1e-9)
        fanout += fanout**height < leaves
        if fanout < SMALLEST_FANOUT:
            return result
        if fanout <= LARGEST_CHOICE:
            result.append(fanout)
        height += 1


def _tent_fanouts(leaves: int) -> list[int]:
    """As for trees, and a little wider, which leaves fewer cells at the top. Narrow ones were never the best."""
    if leaves > LARGEST_TENT_LEAVES:
        return []
    widths = [width for width in _fanouts(leaves) if width >= SMALLEST_TENT_FANOUT]
    return sorted({wider for width in widths for wider in (width, width + width // 8)})


_FANOUTS = {"tree": _fanouts, "tent": _tent_fanouts}


def _kinds(hierarchy: str, *, consistent: bool) -> list[str]:
    if hierarchy == "auto":
        return ["tree", "tent"] if consistent else ["tree"]
    arrangement_of(hierarchy, 1, 2)  # for its checks
    return [hierarchy]


def _fits(plan: StreamPlan, epsilon: float, bound: int) -> bool:
    """Whether tents are possible here, and are tents."""
    leaves, fanout = plan.layout.blocks, plan.fanout
    possible = 3 <= fanout < leaves <= LARGEST_TENT_LEAVES and fanout <= LARGEST_TENT_FANOUT
    return possible and Tents(leaves, fanout).fits(epsilon, bound)


def _rough_noise(tree: Arrangement) -> float:
    """Variance of a random range of whole blocks per (θ/ε)²."""
    return 2 * tree.height**2 * tree.mean_variance()


@lru_cache(maxsize=256)
def _mean_noise(plan: StreamPlan) -> float:
    starts, stops = even_pairs(_SAMPLE_STEPS, plan.horizon)
    return float(plan.model(1.0, 1.0).variance(starts, stops).mean())
