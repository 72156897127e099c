"""What a publisher releases: published values, with everything that answers for windows need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from deniable.streams.central.block_publisher import BlockPublisher
from deniable.streams.central.settings import Settings
from deniable.streams.central.warmup import Learnt
from deniable.streams.released.prediction_error import Smoothing, measured_smoothing
from deniable.streams.released.released_stream import SIMULATION, Released
from deniable.streams.released.windows import Truncation


def release(
    steps: NDArray[Any],
    settings: Settings,
    learnt: Learnt,
    blocks: BlockPublisher,
    *,
    first: int,
    timestamps: NDArray[Any] | None,
    simulation: bool,
) -> Released:
    """The values that were published from number `first` on, in steps of the grid, with their errors."""
    tail = settings.expectation.tail
    truncation = Truncation(learnt.theta, settings.grid.top, learnt.above, learnt.above_stderr, tail)
    plan, node = blocks.plan, blocks.perturber.node_variance
    noise = replace(plan.noise_model(node, learnt.mean_variance), layout=blocks.layout)
    smoothing = _smoothing(settings, learnt, blocks)
    about = _about(settings, learnt, blocks) | ({SIMULATION: True} if simulation else {})
    return Released(steps, noise, settings.grid, about, truncation, smoothing, timestamps, first)


def _smoothing(settings: Settings, learnt: Learnt, blocks: BlockPublisher) -> Smoothing | None:
    if blocks.plan.block == 1:
        return None
    expected, theta = settings.expectation, learnt.theta
    return measured_smoothing(
        blocks.totals(),
        blocks.layout,
        node_variance=blocks.perturber.node_variance,
        spread=(expected.spread * theta) ** 2 if learnt.spread is None else learnt.spread,
        expected_drift=(expected.drift * theta) ** 2,
    )


def _about(settings: Settings, learnt: Learnt, blocks: BlockPublisher) -> dict[str, Any]:
    """Public facts, under the paper's letters."""
    facts: dict[str, Any] = {"method": settings.method, "epsilon": settings.epsilon}
    if settings.delta:
        facts["delta"] = settings.delta
    plan = blocks.plan
    facts |= {"theta": float(settings.grid.value(learnt.theta)), "warmup": settings.warmup}
    if plan.hierarchy != "tree":
        facts["hierarchy"] = plan.hierarchy
    return facts | {"r": plan.horizon, "b": plan.fanout, "s": plan.block, "chunk": blocks.chunk}
