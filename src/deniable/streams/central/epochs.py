"""A publisher whose θ follows the stream: epochs, each with its own θ, blocks and tree, learnt from the one before.

Privacy: a value lies in one epoch. A share of ε pays for what the next epoch is told about this one, the rest for the
epoch's tree; the two add up to at most ε (sequential composition). Epochs look at their own values alone, and at what
was told before (parallel composition).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.randomness import Source
from deniable.streams.central.block_publisher import BlockPublisher
from deniable.streams.central.evidence import EpochSums
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.threshold import PredictedError
from deniable.streams.central.warmup import Learnt, learn, plan_after
from deniable.streams.structure.state_values import packed


class Epochs:
    """The open epoch, sums from which the next one is learnt, and the epochs before. It works as a `BlockPublisher`."""

    def __init__(self, settings: Settings, learnt: Learnt, source: Source, *, keep: bool) -> None:
        self._settings, self._source, self._keep = settings, source, keep
        self._finished: list[tuple[Learnt, BlockPublisher]] = []
        self._begin(learnt)

    def _begin(self, learnt: Learnt) -> None:
        """Open the next epoch."""
        number, top = len(self._finished), self._settings.grid.top
        epoch = self._settings.epoch(number)
        source = self._source.stream("epoch", number).recomputable()
        self.learnt = learnt
        self._open = BlockPublisher(plan_after(epoch, learnt), epoch.epsilon, learnt, top, source, keep=self._keep)
        rule = self._settings.threshold
        rule = rule if isinstance(rule, PredictedError) else PredictedError()
        self._sums = EpochSums(rule, top, min(learnt.theta, top), epoch.horizon)

    def _renew(self) -> None:
        """The epoch has all its values: learn from them, and open the next one."""
        number = len(self._finished)
        cost = self._settings.renewal_cost
        source = self._source.stream("epoch", number, "renewal")
        learnt = learn(self._sums, self._settings.epoch(number + 1), cost, source, self.learnt)
        self._finished.append((self.learnt, self._open))
        self._begin(learnt)

    @property
    def plan(self) -> StreamPlan:
        """Blocks and tree of the open epoch."""
        return self._open.plan

    @property
    def published(self) -> int:
        """How many values were answered."""
        return self._settings.epoch_begin(len(self._finished)) + self._open.published

    @property
    def chunk(self) -> int:
        """The number of the open epoch."""
        return len(self._finished)

    def parts(self) -> list[tuple[int, Learnt, BlockPublisher]]:
        """Where every epoch begins, what it was published with, and its blocks."""
        epochs = [*self._finished, (self.learnt, self._open)]
        return [(self._settings.epoch_begin(number), *epoch) for number, epoch in enumerate(epochs)]

    def forget(self) -> None:
        """Keep nothing of what was published, now and later."""
        self._keep = False
        for _, _, blocks in self.parts():
            blocks.forget()

    def values(self) -> NDArray[Any]:
        """Everything that was published, if it was kept."""
        return np.concatenate([blocks.values() for _, _, blocks in self.parts()])

    def push(self, unit: int) -> float:
        """Publish one value."""
        result = self._open.push(unit)
        self._sums.add(unit)
        if self._sums.taken == self._sums.length:
            self._renew()
        return result

    def push_many(self, units: Integers) -> NDArray[Any]:
        """Publish many values."""
        results = []
        while True:
            part, units = np.split(units, [self._sums.length - self._sums.taken])
            results.append(self._open.push_many(part))
            self._sums.extend(part)
            if self._sums.taken == self._sums.length:
                self._renew()
            if not units.size:
                return np.concatenate(results)

    def end(self) -> float:
        """Close the open block early, if there is one. Returns what has to be added to the last published value."""
        return self._open.end()

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        finished = [
            {"learnt": asdict(learnt), "totals": packed(blocks.totals()) if self._keep else None}
            for learnt, blocks in self._finished
        ]
        return {**self._open.state(), "epochs": finished, "sums_of_epoch": self._sums.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        learnt = [Learnt.read(facts) for facts in (*(epoch["learnt"] for epoch in state["epochs"]), state["learnt"])]
        for number, epoch in enumerate(state["epochs"]):
            blocks = self._open
            ended = {"block": blocks.plan.layout.blocks, "sum": 0, "over": 0, "missing": 0.0, "rate": 0.0, "memory": []}
            blocks.resume({**ended, "totals": epoch["totals"], "ended": False})
            self._finished.append((self.learnt, blocks))
            self._begin(learnt[number + 1])
        self._open.resume(state)
        self._sums.resume(state["sums_of_epoch"])


def begin(settings: Settings, learnt: Learnt, source: Source, *, keep: bool) -> BlockPublisher | Epochs:
    """What publishes from now on."""
    if settings.renew:
        return Epochs(settings, learnt, source, keep=keep)
    plan, top = plan_after(settings, learnt), settings.grid.top
    return BlockPublisher(plan, settings.epsilon, learnt, top, source, keep=keep)
