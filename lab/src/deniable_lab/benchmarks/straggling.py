"""How long a job takes on many cores when parts are uneven and some machines are slow: a simulation of a scheduler.

Tasks start in turn, each on a core that is free, as Spark's scheduler starts those of a stage; the stage ends with its
last task. Sizes of parts follow from how many users fall into each, which a hash decides; slow machines take a multiple
of the time.

With speculation, a core for which no task is left may take a copy of a running one, and the first of both counts. As in
Spark, a copy starts if half of all tasks have ended, if the task has taken longer than 1.5 times their median, and if
it has no other copy yet. It runs on another machine. Which free core takes it is drawn, so it may be a slow one.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Floats

MULTIPLIER, QUANTILE = 1.5, 0.5
"""A copy starts after so many medians, when so large a share of tasks has ended."""


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
    return scheduled_seconds(work, factors, range(stage.cores), speculative=speculative, seed=seed)


def drawn(stage: Stage, seed: int) -> tuple[Floats, Floats]:
    """How long every task takes on a usual core, and how many times as long on each core."""
    random = np.random.default_rng(seed)
    sizes: Floats = np.exp(random.normal(0.0, stage.skew, stage.tasks)) if stage.skew else np.ones(stage.tasks)
    work = stage.mean_task_s * sizes / sizes.mean()
    return work, np.where(random.random(stage.cores) < stage.slow_share, stage.slowdown, 1.0)


@dataclass(slots=True)
class _Running:
    """A task that has begun: where and when its attempts began, and whether one of them has ended."""

    size: float
    start: float
    cores: list[int] = field(default_factory=list)
    ended: bool = False


def scheduled_seconds(
    work: Floats, factors: Floats, machines: Sequence[int], *, speculative: bool, seed: int = 0
) -> float:
    """When the last of these tasks ends on these cores; `machines` says where each core is."""
    scheduler = _Scheduler(work.tolist(), factors.tolist(), machines, np.random.default_rng([seed, 1]))
    return round(scheduler.end(speculative=speculative), 9)


class _Scheduler:
    def __init__(
        self, sizes: list[float], factors: list[float], machines: Sequence[int], random: np.random.Generator
    ) -> None:
        self._sizes, self._factors, self._machines = sizes, factors, machines
        self._order: list[int] = random.permutation(len(factors)).tolist()
        """Free cores; the last one is taken first."""
        self._ends: list[tuple[float, int, int]] = []
        """Ends of attempts to come: when, of which task, on which core; and times to look again, with no task."""
        self._tasks: list[_Running] = []
        self._alone = 0
        """Tasks before this one have ended or have a copy."""
        self._durations: list[float] = []

    def end(self, *, speculative: bool) -> float:
        """Run all tasks."""
        now = 0.0
        self._start_tasks(now)
        while len(self._durations) < len(self._sizes):
            now, task, core = heapq.heappop(self._ends)
            if task >= 0 and core in self._tasks[task].cores:  # otherwise its other attempt was faster
                self._finish(self._tasks[task], now, core)
                self._start_tasks(now)
            if speculative and self._order and len(self._durations) >= QUANTILE * len(self._sizes):
                self._start_copies(now)
        return now

    def _start_tasks(self, now: float) -> None:
        while self._order and len(self._tasks) < len(self._sizes):
            task = _Running(self._sizes[len(self._tasks)], now)
            self._tasks.append(task)
            self._begin(len(self._tasks) - 1, self._order.pop(), now)

    def _begin(self, number: int, core: int, now: float) -> None:
        task = self._tasks[number]
        task.cores.append(core)
        heapq.heappush(self._ends, (now + task.size * self._factors[core], number, core))

    def _finish(self, task: _Running, now: float, core: int) -> None:
        """The first attempt counts, and the other one is ended."""
        insort(self._durations, now - task.start if core == task.cores[0] else task.size * self._factors[core])
        task.ended = True
        self._order.extend(task.cores)
        task.cores.clear()

    def _start_copies(self, now: float) -> None:
        limit = MULTIPLIER * self._durations[len(self._durations) // 2]
        for number in range(self._alone, len(self._tasks)):
            task = self._tasks[number]
            if task.ended or len(task.cores) > 1:
                self._alone += number == self._alone
                continue
            if task.start + limit > now:  # those behind it began later
                heapq.heappush(self._ends, (task.start + limit, -1, -1))
                return
            machine = self._machines[task.cores[0]]
            core = next((free for free in reversed(self._order) if self._machines[free] != machine), None)
            if core is not None:
                self._order.remove(core)
                self._begin(number, core, now)


def lost_share(stage: Stage, *, speculative: bool, repeats: int = 20) -> float:
    """The mean share of time that skew and stragglers cost, over a cluster without either."""
    ideal = stage.tasks * stage.mean_task_s / stage.cores
    times = [seconds(stage, speculative=speculative, seed=seed) for seed in range(repeats)]
    return float(np.mean(times)) / ideal - 1
