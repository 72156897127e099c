"""A publisher whose θ follows the stream: epochs, each with its own θ, blocks and tree, learnt from the one before.

Privacy: a value lies in one epoch. A share of ε pays for what the next epoch is told about this one, the rest for the
epoch's tree; the two add up to at most ε (sequential composition). Epochs look at their own values alone, and at what
was told before (parallel composition). When an epoch ends, and which of its values are asked about, follows from what
it published (`LevelShift`). The share is chosen before the epoch's first value comes, from settings and earlier answers
(`renewal_share`). So, given everything published before, an epoch is a mechanism with fixed ε of its tree and fixed ε
of its questions, whose sum is at most ε: for two streams that differ in one value, no output is more than e^ε times as
likely, factor by factor. Epochs before that value have the same law, and so have those after it, given what is told.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.randomness import Source
from deniable.streams.central.block_publisher import BlockPublisher
from deniable.streams.central.evidence import EpochSums
from deniable.streams.central.level_shift import LevelShift, part_length, quarter_length
from deniable.streams.central.published_epochs import EpochFacts
from deniable.streams.central.settings import ENOUGH_VALUES, SHORTEST_WARMUP, Settings, information
from deniable.streams.central.stream_forecast import PlanChoice, StreamPlan
from deniable.streams.central.threshold import PredictedError
from deniable.streams.central.warmup import Before, Learnt, learn, plan_after

_STILL = 0.25
"""A mean that has changed by less than this share of it has not changed."""
_ENOUGH_FOR_A_SHORT_EPOCH = 32
"""Values that θ can be learnt from with ε = 1 for an epoch that only leads to a longer one, in proportion with less."""
MOVED = "published sums say that the stream has moved since θ was learnt: θ is learnt again from the values that come"


@dataclass(frozen=True, slots=True, eq=False)
class _Finished:
    """An epoch that has ended, and where the next one begins."""

    learnt: Learnt
    blocks: BlockPublisher
    length: int
    end: int
    share: Fraction


class Epochs:
    """The open epoch, sums from which the next one is learnt, and the epochs before. It works as a `BlockPublisher`."""

    def __init__(self, settings: Settings, learnt: Learnt, source: Source, *, keep: bool) -> None:
        self._settings, self._source, self._keep = settings, source, keep
        self._finished: list[_Finished] = []
        self._known = information(settings.epsilon, settings.warmup)  # that θ was learnt from
        self._former = False  # whether the stream began before shares followed from what is known
        self._begin(learnt, settings.first_epoch)

    def _begin(
        self, learnt: Learnt, length: int, kept: PlanChoice | None = None, share: Fraction | None = None
    ) -> None:
        """Open the next epoch, with the plan and the share that it had if it goes on."""
        number, top = len(self._finished), self._settings.grid.top
        self._share = self._next_share(length) if share is None else share
        epoch = self._settings.epoch(length, self._share)
        source = self._source.stream("epoch", number).recomputable()
        self.learnt, self._length = learnt, length
        plan = self._plan_after(epoch, learnt) if kept is None else epoch.plan_of(kept)
        fit = self._settings.fit_smoother
        self._open = BlockPublisher(plan, epoch.epsilon, learnt, top, source, keep=self._keep, fit_smoother=fit)
        self._sums = self._new_sums(length)
        steady = length == self._settings.horizon
        self._shift = LevelShift(plan, self._open.perturber.node_variance, learnt, top, falls=steady)
        self._part, self._quarter = part_length(plan), quarter_length(plan)
        enough = ENOUGH_VALUES if self._former else _ENOUGH_FOR_A_SHORT_EPOCH
        if self._quarter < max(enough / self._cost, SHORTEST_WARMUP):
            self._part = length  # nothing could be learnt from less
        self._recent: EpochSums | None = None  # of the values since the stream has moved
        self._recent_sum = 0  # noisy sum where these values begin
        self._part_sums = [0]  # noisy sums at the ends of parts
        self._stop = min(self._part, length)

    def _next_share(self, length: int) -> Fraction:
        """Of the ε of the values that come, what they tell the epoch after: public, and fixed before they come."""
        return self._settings.former_share(length) if self._former else self._settings.share(length, self._known)

    @property
    def _cost(self) -> float:
        """ε for what is learnt from the open epoch."""
        return self._settings.renewal_cost(self._share)

    def _plan_after(self, epoch: Settings, learnt: Learnt) -> StreamPlan:
        """Blocks and tree for what was learnt, and the smoother that suits the blocks of the epoch before best."""
        plan = plan_after(epoch, learnt)
        if not self._settings.fit_smoother or not self._finished:
            return plan
        before = self._finished[-1].blocks
        if before.published < before.plan.horizon:
            return replace(plan, smoother=before.plan.smoother)  # it has ended because the stream has moved
        node_variance = plan.perturber(epoch.epsilon, learnt.theta).node_variance
        return replace(plan, smoother=before.smoother_after(plan, node_variance))

    def _new_sums(self, length: int) -> EpochSums:
        rule, top = self._settings.threshold, self._settings.grid.top
        rule = rule if isinstance(rule, PredictedError) else PredictedError()
        return EpochSums(rule, top, min(self.learnt.theta, top), length)

    def _end_part(self) -> None:
        """A part of the epoch has all its values: look at it, and end the epoch if it is time."""
        taken = self._sums.taken
        self._part_sums.append(self._open.noisy_sum)
        moved = self._shift.seen(self._part_sums, self._part, taken)
        if not moved:
            self._recent = None
        elif self._recent is None and taken + self._quarter <= self._length:
            self._recent, self._recent_sum = self._new_sums(self._quarter), self._open.noisy_sum
        if self._recent is not None and self._recent.taken == self._quarter:
            self._renew(self._recent, self._open.noisy_sum - self._recent_sum)
        elif taken == self._length:
            self._renew(self._sums, self._open.noisy_sum, late=moved)
        else:
            self._stop = min(taken + self._part, self._length)

    def _renew(self, sums: EpochSums, noisy_sum: int, *, late: bool = False) -> None:
        """Learn from the latest values of the epoch, and open the next one. `late`: the stream has moved at its end.

        The whole epoch is then a mixture of two levels, so what is learnt of it holds for a short epoch only.
        """
        number, following = len(self._finished), self._settings.next_epoch
        whole = sums is self._sums and not late
        length = (following if whole else self._settings.epoch_behind_shift)(sums.count)
        source = self._source.stream("epoch", number, "renewal")
        cost, known = self._cost, self._known
        count, end = sums.count, self._sums.taken
        noise = self._shift.noise(end - count, end) / count**2
        knots = self._open.knots() if whole else []  # a shift inside the epoch is not roughness
        mean = noisy_sum / count
        before = Before(self.learnt, mean, noise, tuple(knots), self._still(sums, mean, noise) if whole else 0.0)
        self._known = information(cost, count) + (known if before.still else 0.0)
        learnt = learn(sums, self._settings.epoch(length, self._next_share(length)), cost, source, before)
        self._finish()
        self._begin(learnt, length)

    def _still(self, sums: EpochSums, mean: float, noise: float) -> float:
        """Whether a whole epoch looks as when its θ was learnt: from how many times as much information, or 0.

        It adds up as long as nothing changes.
        """
        usual, now = self.learnt.mean, information(self._cost, sums.count)
        if usual is None or not now:
            return 0.0
        doubt = 3 * math.sqrt(noise + self.learnt.mean_variance)
        return self._known / now if abs(mean - usual) <= _STILL * max(mean, usual) + doubt else 0.0

    def _finish(self) -> None:
        end = self._start + self._open.published
        self._finished.append(_Finished(self.learnt, self._open, self._length, end, self._share))

    @property
    def _start(self) -> int:
        """How many values were published before the open epoch."""
        return self._finished[-1].end if self._finished else 0

    @property
    def plan(self) -> StreamPlan:
        """Blocks and tree of the open epoch."""
        return self._open.plan

    @property
    def published(self) -> int:
        """How many values were answered."""
        return self._start + self._open.published

    @property
    def chunk(self) -> int:
        """The number of the open epoch."""
        return len(self._finished)

    def parts(self) -> list[tuple[int, Learnt, BlockPublisher]]:
        """Where every epoch begins, what it was published with, and its blocks."""
        begins = [0, *(epoch.end for epoch in self._finished)]
        epochs = [*((epoch.learnt, epoch.blocks) for epoch in self._finished), (self.learnt, self._open)]
        return [(begin, *epoch) for begin, epoch in zip(begins, epochs, strict=True)]

    def facts(self, after: int) -> list[EpochFacts]:
        """What is public about every epoch from number `after` on."""
        if after == len(self._finished) + 1:
            return []
        lengths = [*(epoch.length for epoch in self._finished), self._length]
        shares = [*(epoch.share for epoch in self._finished), self._share]
        known = zip(self.parts(), lengths, shares, strict=True)
        facts = [
            EpochFacts(begin, length, it, blocks.plan.choice, share=str(share))
            for (begin, it, blocks), length, share in known
        ]
        return facts[after:]

    def notice(self) -> str | None:
        """What published sums say about θ now, if they say that it no longer fits."""
        return self._open.notice() if self._recent is None else MOVED

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
        if self._recent is not None:
            self._recent.add(unit)
        if self._sums.taken == self._stop:
            self._end_part()
        return result

    def push_many(self, units: Integers) -> NDArray[Any]:
        """Publish many values."""
        results = []
        while True:
            part, units = np.split(units, [self._stop - self._sums.taken])
            results.append(self._open.push_many(part))
            self._sums.extend(part)
            if self._recent is not None:
                self._recent.extend(part)
            if self._sums.taken == self._stop:
                self._end_part()
            if not units.size:
                return np.concatenate(results)

    def end(self) -> float:
        """Close the open block early, if there is one. Returns what has to be added to the last published value."""
        return self._open.end()

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        finished = [
            {
                "learnt": asdict(epoch.learnt),
                "length": epoch.length,
                "plan": list(epoch.blocks.plan.choice),
                **self._share_state(epoch.share),
                "state": epoch.blocks.state(),
            }
            for epoch in self._finished
        ]
        recent = None if self._recent is None else self._recent.state()
        sums = {"part_sums": list(self._part_sums), "recent_sum": self._recent_sum, "recent": recent}
        own = {"length": self._length, "stop": self._stop, "plan": list(self.plan.choice), "known": self._known, **sums}
        own |= self._share_state(self._share)
        return {**self._open.state(), "epochs": finished, "sums_of_epoch": self._sums.state(), "epoch": own}

    def _share_state(self, share: Fraction) -> dict[str, str]:
        return {} if self._former else {"share": str(share)}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state. A stream that began before shares followed from what is known keeps the former ones."""
        epochs, own = state["epochs"], state["epoch"]
        learnt = [Learnt.read(facts) for facts in (*(epoch["learnt"] for epoch in epochs), state["learnt"])]
        lengths = [*(epoch["length"] for epoch in epochs), own["length"]]
        plans = [epoch.get("plan") for epoch in (*epochs, own)]  # to choose them again takes long
        self._former = "share" not in own
        shares = [Fraction(it["share"]) if "share" in it else None for it in (*epochs, own)]
        self._begin(learnt[0], lengths[0], plans[0], shares[0])
        for number, epoch in enumerate(epochs):
            self._open.resume({**epoch["state"], "ended": False})
            self._finish()
            self._begin(learnt[number + 1], lengths[number + 1], plans[number + 1], shares[number + 1])
        self._open.resume(state)
        self._known = own.get("known", 0.0)
        self._sums.resume(state["sums_of_epoch"])
        self._stop, self._part_sums, self._recent_sum = own["stop"], list(own["part_sums"]), own["recent_sum"]
        if own["recent"] is not None:
            self._recent = self._new_sums(self._quarter)
            self._recent.resume(own["recent"])


def begin(settings: Settings, learnt: Learnt, source: Source, *, keep: bool) -> BlockPublisher | Epochs:
    """What publishes from now on."""
    if settings.renew:
        return Epochs(settings, learnt, source, keep=keep)
    plan, top = plan_after(settings, learnt), settings.grid.top
    return BlockPublisher(plan, settings.epsilon, learnt, top, source, keep=keep)
