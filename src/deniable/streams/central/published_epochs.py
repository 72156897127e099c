"""A release from public facts alone: settings, what each epoch learnt, and the published values. No secret is needed.

Whoever reads a store while its publisher runs has these and nothing else. Sums of blocks are added up from published
values: the last value of a block makes it add up to its noisy sum, so they are the publisher's own up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.streams.central.perturber import Perturber
from deniable.streams.central.release import release
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_forecast import PlanChoice, StreamPlan
from deniable.streams.central.warmup import Learnt
from deniable.streams.released.released_stream import Released
from deniable.streams.structure.block_layout import BlockLayout


@dataclass(frozen=True, slots=True)
class EpochFacts:
    """Where an epoch begins, how many values it was planned for, and the private answers that it is published with.

    `plan` is what followed from these: another version or machine might choose another.

    >>> EpochFacts.read(EpochFacts(0, 1024, Learnt(7), (64, 16, "tree")).describe()).learnt.theta
    7
    """

    begin: int
    length: int
    learnt: Learnt
    plan: PlanChoice
    key: str | None = None
    """Whose epoch it is, if every key has learnt its own."""
    share: str | None = None
    """Of ε, what the epoch's values spend on the next epoch. None in streams from before that was chosen."""

    def describe(self) -> dict[str, Any]:
        """All of it as JSON."""
        return asdict(self)

    @classmethod
    def read(cls, facts: dict[str, Any]) -> EpochFacts:
        """What `describe` described."""
        return cls(
            facts["begin"],
            facts["length"],
            Learnt.read(facts["learnt"]),
            tuple(facts["plan"]),
            facts.get("key"),
            facts.get("share"),
        )

    def settings(self, stream: Settings) -> Settings:
        """What the epoch is published with."""
        if not stream.renew:
            return stream
        share = stream.former_share(self.length) if self.share is None else Fraction(self.share)
        return stream.epoch(self.length, share)


class PublishedBlocks:
    """What is known of an epoch's blocks from outside."""

    def __init__(self, plan: StreamPlan, epsilon: float, learnt: Learnt, steps: NDArray[Any]) -> None:
        self.plan, self.learnt = plan, learnt
        self.perturber: Perturber = plan.perturber(epsilon, learnt.theta)
        self.layout: BlockLayout = plan.layout
        self._complete = int(self.layout.locate(np.array([steps.size]))[0][0])
        self._steps = steps

    @property
    def chunk(self) -> int:
        """The number of the open chunk."""
        return self._complete // self.layout.blocks

    def totals(self) -> Integers:
        """The noisy sums of complete blocks."""
        if not self._complete:
            return np.zeros(0, dtype=np.int64)
        edges = self.layout.position(np.arange(self._complete + 1))
        sums = np.add.reduceat(self._steps[: edges[-1]], edges[:-1])
        return np.asarray(np.rint(sums).astype(np.int64))

    def noisy_mean(self) -> float | None:
        """The mean of the values of complete blocks, cut at θ, with its noise."""
        count = int(self.layout.position(np.array([self._complete]))[0])
        return int(self.totals().sum()) / count if count else None


class PublishedEpochs:
    """The epochs that published values from number `first` on lie in, as a release describes them."""

    def __init__(self, settings: Settings, epochs: Sequence[EpochFacts], steps: NDArray[Any], first: int) -> None:
        stops = [*(epoch.begin for epoch in epochs[1:]), first + steps.size]
        self._parts: list[tuple[int, Learnt, PublishedBlocks]] = []
        for epoch, stop in zip(epochs, stops, strict=True):
            own = epoch.settings(settings)
            published = steps[max(epoch.begin - first, 0) : max(stop - first, 0)]
            blocks = PublishedBlocks(own.plan_of(epoch.plan), own.epsilon, epoch.learnt, published)
            self._parts.append((epoch.begin, epoch.learnt, blocks))
        self._renew = settings.renew

    @property
    def learnt(self) -> Learnt:
        """The private answers that hold now."""
        return self._parts[-1][1]

    @property
    def plan(self) -> StreamPlan:
        """Blocks and tree that hold now."""
        return self._parts[-1][2].plan

    @property
    def chunk(self) -> int:
        """The number of the open epoch or chunk."""
        return len(self._parts) - 1 if self._renew else self._parts[-1][2].chunk

    def parts(self) -> list[tuple[int, Learnt, PublishedBlocks]]:
        """Where every epoch begins, what it was published with, and its blocks."""
        return list(self._parts)


def released_from(
    settings: Settings,
    epochs: Sequence[EpochFacts],
    steps: NDArray[Any],
    *,
    first: int = 0,
    timestamps: NDArray[Any] | None = None,
    simulation: bool = False,
) -> Released:
    """Values that were published from number `first` on, in steps of the grid, as a release with its errors.

    `epochs` are all that had begun by then. Those before `first` are only counted.
    """
    known = PublishedEpochs(settings, epochs, steps, first)
    return release(steps, settings, known, first=first, timestamps=timestamps, simulation=simulation)
