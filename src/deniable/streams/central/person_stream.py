"""People as the unit of a stream: whatever one person does within an epoch is protected, not only one value.

    events (person, value) ── at most `most` of each person and epoch count, others become a stand-in ──▶ publisher

Privacy. Public are the settings, how many events there are and when, and where epochs begin; that somebody's event is
at a position can be seen, whose it is cannot. Two streams are neighbours if they differ only in what one person did
within one epoch: in the other stream all of her events there belong to nobody, or they have other values.

1. The first `most` events of a person in an epoch count. Which ones does not depend on values, nor on other persons. So
   what reaches the publisher differs in at most `most` positions.
2. An event that does not count is replaced by a number that follows from its position and from what the publisher has
   said before: the same in both streams, as long as they have said the same. Neither the number of values nor their
   positions change.
3. The publisher is ε_v-DP for one replaced value, warm-up, threshold and renewal included, also if values are chosen
   after seeing what was published (its noise is fresh for every node, and shifting values shifts the output). Replacing
   `most` values one after another costs at most most·ε_v (group privacy)  [DR14, Theorem 2.2]. It reaches that: where
   all values of a person move from 0 to θ and lie below the same nodes.
4. How many events of an epoch did not count is asked twice: one person moves it by at most `most`, when her events
   become nobody's. Each answer costs its share of ε, a 64th, with noise of that scale (sequential composition).

With ε_v = (31/32)·ε/(most·window), all that a person does within any `window` consecutive epochs costs at most ε
(w-event privacy  [KPXP14]), and within E epochs at most E·ε/window. Two different behaviours of one person, at other
positions, are each one step from her absence: 2ε. So are two persons who swap events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from deniable.accounting import Neighbours, Spending, Unit
from deniable.arrays import Floats, Integers
from deniable.errors import InvalidData, InvalidParameter
from deniable.locking import Turn, in_turn
from deniable.randomness import Source
from deniable.simulation import check_noise
from deniable.streams.central.named_publishers import ToPS, kind_of_state
from deniable.streams.central.person_bound import EVENTS, CountedPersons, PersonBound, person_events
from deniable.streams.central.person_forecast import best_most
from deniable.streams.central.published_epochs import EpochFacts, released_from
from deniable.streams.central.publisher import Publisher
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.uncounted_events import UncountedEvents
from deniable.streams.central.warmup import Learnt
from deniable.streams.released.released_stream import Released
from deniable.streams.structure.fence import copy_refused
from deniable.streams.structure.state_values import seal, unseal
from deniable.streams.structure.value_grid import Grid

_PERSON_STATE_VERSION = 3
_MOST_FILLED = 7 / 8  # where more of a warm-up was replaced, its mean would be divided by too little
PERSON_KIND = "person"


@dataclass(frozen=True, slots=True)
class PersonSettings:
    """Everything public about a stream of persons: ε per person, the bound, the stand-in and the publisher's settings.

    >>> import deniable as dn
    >>> dn.streams.PersonStream(1.0, 100, most=2, warmup=1000, horizon=1000).settings.publisher.epsilon
    0.484375
    """

    epsilon: float
    bound: PersonBound
    fill: float
    publisher: Settings

    @property
    def grid(self) -> Grid:
        """The steps of values."""
        return self.publisher.grid

    @property
    def warmup(self) -> int:
        """How many values are never published."""
        return self.publisher.warmup

    @property
    def horizon(self) -> int:
        """Values of a chunk."""
        return self.publisher.horizon


class PersonStream:
    """A publisher for events of people: ε protects everything that one person does within an epoch.

    `most` values of each person count per epoch of `epoch` events (by default `horizon`; 0: until `begin_epoch`), and
    ε covers `window` consecutive epochs. Instead of `most`, give `events`, the number of events that is expected of a
    person within an epoch, or shares of persons by number: `most` then has the least predicted error.

    Values that do not count are replaced: by `fill` in the warm-up, and later by the mean that the publisher has
    learnt, if it has learnt one. Answers are for what people did: the interval covers how far stand-ins may be off.
    `method` and all other settings are those of the publisher, whose ε per value is 31/32 of ε/(most·window); the rest
    tells how many events did not count. Rules that need a δ are refused. State, threads and copies are as for
    `Publisher`; the state also holds how many values of each person have counted.

    >>> stream = PersonStream(1.0, 100, most=2, warmup=3, horizon=64)
    >>> stream.push_many([5, 6, 7, 8], ["ann", "bob", "ann", "ann"]).size
    1
    >>> stream.spends.unit.value, float(stream.spends.epsilon)
    ('everything a person does within an epoch of a stream', 1.0)
    """

    kind: ClassVar[str] = PERSON_KIND

    def __init__(
        self,
        epsilon: float,
        bound: float,
        *,
        most: int | None = None,
        events: float | Mapping[int, float] | None = None,
        epoch: int | None = None,
        window: int = 1,
        fill: float | None = None,
        method: type[Publisher] = ToPS,
        **settings: Any,
    ) -> None:
        check_noise(epsilon, simulation=bool(settings.get("simulation", False)))
        horizon = settings.get("horizon", 1 << 20)
        if (most is None) == (events is None):
            raise InvalidParameter("most", "and events exclude each other", "Give one of them.")
        if most is None and events is not None:
            most = best_most(epsilon, horizon, events, window=window)
        limit = PersonBound(most, horizon if epoch is None else epoch, window)  # type: ignore[arg-type]
        make: Any = method
        publisher: Publisher = make(limit.value_epsilon(epsilon), bound, **settings)
        if publisher.settings.delta:
            raise InvalidParameter(
                "threshold", "has a δ, which grows faster than ε with several values", "Use one without, like ToPS."
            )
        low = publisher.settings.grid.low
        stand_in = low if fill is None else publisher.settings.grid.value(publisher.settings.grid.unit(fill))
        made = PersonSettings(epsilon, limit, stand_in, publisher.settings)
        self._set_up(made, publisher, CountedPersons(limit.most))

    def _set_up(self, settings: PersonSettings, publisher: Publisher, counted: CountedPersons) -> None:
        self.settings, self.publisher = settings, publisher
        self._counted = counted
        self._position = self._epochs = 0  # events taken, and epochs begun
        self._stand_in: float | None = None  # in steps; None: it is `fill`
        source = publisher._source.stream("other", "uncounted")  # noise of its own, by the same key
        self._uncounted = UncountedEvents(settings.bound.count_epsilon(settings.epsilon), settings.bound.most, source)
        self._turn = Turn()

    def __repr__(self) -> str:
        limit = self.settings.bound
        return f"PersonStream(epsilon={self.settings.epsilon:g} per person, most={limit.most}; {self.publisher!r})"

    # What it costs ---------------------------------------------------------------------------------------------------

    @property
    def spends(self) -> Spending:
        """What `window` consecutive epochs cost a person: (ε, 0)."""
        return self.epoch_spends.times(self.settings.bound.window)

    @property
    def epoch_spends(self) -> Spending:
        """What one epoch costs a person: ε/window, or less by rounding."""
        cost = self.settings.bound.epoch_epsilon(self.settings.epsilon)
        return Spending(Unit.PERSON, Neighbours.PERSON, cost)

    @property
    @in_turn
    def epochs(self) -> int:
        """How many epochs have begun."""
        return self._epochs

    @in_turn
    def epochs_after(self, events: int) -> int:
        """How many epochs will have begun after so many more events: what a ledger has to pay for."""
        limit = self.settings.bound
        if not events or limit.epoch == 0:
            return max(self._epochs, int(events > 0))
        return max(self._epochs, (self._position + events - 1) // limit.epoch + 1)

    @property
    @in_turn
    def spent(self) -> Spending | None:
        """What all epochs so far cost a person who took part in each: they add up. None before the first event."""
        return self.epoch_spends.times(self._epochs) if self._epochs else None

    # Publishing ------------------------------------------------------------------------------------------------------

    def push(self, value: float, person: int | str | None) -> float | None:
        """Take one event. Returns the private stand-in of its value, or None during the warm-up."""
        published = self.push_many([value], [person])
        return published[0].item() if published.size else None

    def push_many(self, values: Any, persons: Any = None) -> NDArray[Any]:
        """Take many events. Returns private values for those after the warm-up. If one is refused, all are.

        `persons` has an id for every value, an integer or a text, or None if the person is unknown: such an event never
        counts. Instead of both, you can pass an array made by `person_events`.
        """
        events = values if persons is None else person_events(persons, values)
        return self._push(_checked_events(events))

    @in_turn
    def _push(self, events: NDArray[Any]) -> NDArray[Any]:
        numbers, persons = events["value"], events["person"].tolist()
        self.publisher.check(numbers)
        units = self.settings.grid.units(numbers)
        parts, start = [], 0
        while start < units.size:
            stop = start + self._segment(units.size - start)
            parts.append(self._push_segment(units[start:stop], persons[start:stop]))
            start = stop
        return np.concatenate(parts) if parts else self.publisher.push_many(np.zeros(0, dtype=np.int64))

    def _segment(self, events: int) -> int:
        """How many of the next events have the same epoch and lie on the same side of the warm-up's end."""
        ends = [events, self.settings.bound.room(self._position), self.settings.warmup - self._position]
        return min(end for end in ends if end is not None and end > 0)

    def _push_segment(self, units: Integers, persons: list[str | None]) -> NDArray[Any]:
        if self._epochs == 0 or self.settings.bound.room(self._position) == self.settings.bound.epoch:
            self._begin_epoch()
        elif self._position == self.settings.warmup:
            self._learn_stand_in()
        counts, remember = self._counted.judge(persons)
        filled = np.where(counts, units, self._stand_ins(units.size))
        published = self.publisher.push_many(self.settings.grid.values(filled))
        remember()
        self._uncounted.add(counts)
        self._position += units.size
        if self._position == self.settings.warmup:
            self._uncounted.ask(self._epochs, "warm-up", whole=False)
        return published

    def _stand_ins(self, events: int) -> Integers:
        """Whole steps around the stand-in, whose mean it is. They follow from public positions alone."""
        mean = self.settings.grid.unit(self.settings.fill) if self._stand_in is None else self._stand_in
        steps: Floats = np.floor(mean * np.arange(self._position, self._position + events + 1, dtype=np.float64))
        return np.clip(np.diff(steps).astype(np.int64), 0, self.settings.grid.top)

    def _learn_stand_in(self) -> None:
        """The mean of what counted: `fill` stood for the rest of the warm-up, and is taken out again."""
        learnt = self.publisher.learnt
        if learnt is not None and learnt.mean is not None:
            share = min(self._uncounted.filled, _MOST_FILLED) if len(self.publisher.epoch_facts()) == 1 else 0.0
            filled = share * self.settings.grid.unit(self.settings.fill)
            self._stand_in = min(max((float(learnt.mean) - filled) / (1 - share), 0.0), float(self.settings.grid.top))

    @in_turn
    def begin_epoch(self) -> None:
        """Begin the next epoch, if settings say epoch=0. When you do so must not depend on data."""
        if self.settings.bound.epoch:
            raise InvalidParameter("epoch", "has a fixed number of events", "Use epoch=0 to begin epochs by hand.")
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        if self._epochs:
            self._uncounted.ask(self._epochs, "epoch", whole=True)
            self._uncounted.begin()
        self._epochs += 1
        self._counted.forget()
        self._learn_stand_in()

    # As a publisher --------------------------------------------------------------------------------------------------

    @property
    def simulation(self) -> bool:
        """Whether this run protects nobody."""
        return self.publisher.simulation

    @property
    def plan(self) -> StreamPlan:
        """Blocks and tree of the publisher."""
        return self.publisher.plan

    @property
    def warming_up(self) -> bool:
        """Whether values are still consumed without being published."""
        return self.publisher.warming_up

    @property
    def learnt(self) -> Learnt | None:
        """The private answers of the warm-up, once there are any."""
        return self.publisher.learnt

    @property
    def notice(self) -> str | None:
        """A warning from published numbers, if any: the stream presses against θ, or has moved."""
        return self.publisher.notice

    def epoch_facts(self, after: int = 0) -> list[EpochFacts]:
        """What is public about the publisher's epochs, and the share of events that do not count, as last measured."""
        epoch, warmup = self.settings.bound.epoch, self.settings.warmup
        share = self._uncounted.share_after(epoch / warmup if epoch and warmup else math.inf)
        facts = self.publisher.epoch_facts(after)
        return [replace(it, learnt=replace(it.learnt, uncounted=share)) for it in facts]

    @property
    def published(self) -> int:
        """How many values were published."""
        return self.publisher.published

    @property
    def consumed(self) -> int:
        """How many events were taken in, the warm-up included."""
        return self.publisher.consumed

    @property
    def released(self) -> Released:
        """Everything published so far, with its standard errors, which are those of the noise for whole persons."""
        return self.release_of(self.publisher.released.values)

    def release_of(self, steps: NDArray[Any], **facts: Any) -> Released:
        """Values that were published and kept by the caller, with errors. See `Publisher.release_of`."""
        known = self.epoch_facts()
        if not known:
            return self.publisher.release_of(steps, **facts)
        return released_from(self.publisher.settings, known, steps, simulation=self.simulation, **facts)

    def check(self, values: Any) -> None:
        """Refuse values, or events, that `push_many` would refuse, and do nothing else."""
        events = isinstance(values, np.ndarray) and values.dtype.names is not None
        self.publisher.check(_checked_events(values)["value"] if events else values)

    def forget(self) -> None:
        """Keep nothing that is published from now on."""
        self.publisher.forget()

    @in_turn
    def flush(self) -> float:
        """End the stream. See `Publisher.flush`."""
        return self.publisher.flush()

    # State -----------------------------------------------------------------------------------------------------------

    @in_turn
    def state(self) -> dict[str, Any]:
        """Everything needed to continue elsewhere, as JSON. As secret as the data: it also holds ids of people."""
        inner = self.publisher.state()
        settings = self.settings
        return seal(
            {
                "version": _PERSON_STATE_VERSION,
                "kind": self.kind,
                "key": inner["key"],
                "epsilon": settings.epsilon,
                "bound": asdict(settings.bound),
                "fill": settings.fill,
                "position": self._position,
                "epochs": self._epochs,
                "stand_in": self._stand_in,
                "counted": self._counted.state(),
                "uncounted": self._uncounted.state(),
                "publisher": inner,
            }
        )

    @classmethod
    def restore(cls, state: dict[str, Any], *, source: Source | None = None) -> PersonStream:
        """The stream that `state()` described. See `Publisher.restore`."""
        return cls._restored(state, source)

    @classmethod
    def _restored(cls, state: dict[str, Any], source: Source | None = None, *, replay: bool = False) -> PersonStream:
        state = unseal(state, _PERSON_STATE_VERSION)
        if state.get("kind") != cls.kind:
            raise InvalidParameter("state", "is not that of a PersonStream", "Use dn.streams.restore for publishers.")
        publisher = kind_of_state(state["publisher"])._restored(state["publisher"], source, replay=replay)
        bound = PersonBound(**state["bound"])
        made = cls.__new__(cls)
        settings = PersonSettings(state["epsilon"], bound, state["fill"], publisher.settings)
        made._set_up(settings, publisher, CountedPersons(bound.most, state["counted"]))
        made._position, made._epochs, made._stand_in = state["position"], state["epochs"], state["stand_in"]
        made._uncounted.resume(state["uncounted"])
        return made

    def __reduce__(self) -> NoReturn:
        raise copy_refused()


def _checked_events(events: Any) -> NDArray[Any]:
    if isinstance(events, np.ndarray) and events.dtype.names == ("person", "value"):
        return events
    if np.size(events) == 0:
        return person_events([], np.zeros(0, dtype=np.int64))
    raise InvalidData(EVENTS, "Give persons= next to the values.")


def stream_to_repeat(state: dict[str, Any]) -> Publisher | PersonStream:
    """The stream that the state in a store describes. The store alone may ask: what it publishes next is in its log.

    Whoever went on from the state and pushed other values would publish them under the same noise. So nobody else can
    go on from a state that was continued, and a store makes sure that of all its copies only the newest does.
    """
    if isinstance(state, dict) and state.get("kind") == PERSON_KIND:
        return PersonStream._restored(state, replay=True)
    return kind_of_state(state)._restored(state, replay=True)
