"""How long a job takes on many cores when parts are uneven and some machines are slow: a simulation of a scheduler.

A task goes to the core that is free first, as Spark's scheduler does within a stage; the stage ends with its last
task. Sizes of parts follow from how many users fall into each, which a hash decides; slow machines take a multiple of
the time. With speculation a task that takes longer than 1.5 times the median is started again on a free core.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats

SPECULATION = 1.5


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a job."""

    tasks: int
    cores: int
    mean_task_s: float
    skew: float
    """Standard deviation of the logarithm of a part's size."""
    slow_share: float
    """Share of cores that are slow."""
    slowdown: float


def seconds(stage: Stage, *, speculative: bool, seed: int) -> float:
    """How long the stage takes.

    >>> even = Stage(tasks=100, cores=10, mean_task_s=1.0, skew=0.0, slow_share=0.0, slowdown=1.0)
    >>> seconds(even, speculative=False, seed=0)
    10.0
    """
    work, factors = drawn(stage, seed)
    return scheduled_seconds(work, factors, speculative=speculative)


def drawn(stage: Stage, seed: int) -> tuple[Floats, Floats]:
    """How long every task takes on a usual core, and how many times as long on each core."""
    random = np.random.default_rng(seed)
    sizes: Floats = np.exp(random.normal(0.0, stage.skew, stage.tasks)) if stage.skew else np.ones(stage.tasks)
    work = stage.mean_task_s * sizes / sizes.mean()
    return work, np.where(random.random(stage.cores) < stage.slow_share, stage.slowdown, 1.0)


def scheduled_seconds(work: Floats, factors: Floats, *, speculative: bool) -> float:
    """When the last of these tasks ends on these cores."""
    free = [(0.0, core) for core in range(factors.size)]
    limit = SPECULATION * float(np.median(work))
    ends = []
    for size in work.tolist():
        start, core = heapq.heappop(free)
        end = start + size * factors[core]
        if speculative and end - start > max(limit, size):  # noticed at the limit, and run again on a usual core
            end = min(end, start + max(limit, size) + size)
        heapq.heappush(free, (end, core))
        ends.append(end)
    return round(float(max(ends)), 9)


def lost_share(stage: Stage, *, speculative: bool, repeats: int = 20) -> float:
    """The mean share of time that skew and stragglers cost, over a cluster without either."""
    ideal = stage.tasks * stage.mean_task_s / stage.cores
    times = [seconds(stage, speculative=speculative, seed=seed) for seed in range(repeats)]
    return float(np.mean(times)) / ideal - 1
