"""A publisher of many keys as a store sees it: events of a key and a value in, private values with their keys out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.accounting import Spending
from deniable.errors import InvalidData
from deniable.streams.central.keyed_publisher import KeyedPublisher
from deniable.streams.central.person_stream import PersonStream, stream_to_repeat
from deniable.streams.central.published_epochs import EpochFacts
from deniable.streams.central.publisher import Publisher
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_keys import KeyedValues, key_name
from deniable.streams.central.warmup import Learnt


class KeyedStream:
    """What `DurablePublisher` asks of a publisher, answered by a `KeyedPublisher`."""

    kind: ClassVar[str] = KeyedPublisher.kind
    notice: ClassVar[str | None] = None

    def __init__(self, keyed: KeyedPublisher) -> None:
        self.keyed = keyed

    @property
    def settings(self) -> Settings:
        """The settings of every key."""
        return self.keyed.settings

    @property
    def simulation(self) -> bool:
        """Whether this run protects nobody."""
        return self.keyed.simulation

    @property
    def spends(self) -> Spending:
        """ε for one replaced value of one key."""
        return self.keyed.spends

    @property
    def learnt(self) -> Learnt | None:
        """What all keys share, if they share it and it is known."""
        return self.keyed.learnt

    @property
    def warming_up(self) -> bool:
        """Whether nothing can be published yet."""
        return self.keyed.published == 0 and self.keyed.learnt is None

    @property
    def published(self) -> int:
        """How many values all keys together have published."""
        return self.keyed.published

    @property
    def consumed(self) -> int:
        """How many values the shared warm-up has."""
        return self.keyed.warmed

    def forget(self) -> None:
        """It keeps nothing."""

    def check(self, values: Any) -> None:
        """Refuse values, or events, that would be refused, and do nothing else."""
        events = isinstance(values, np.ndarray) and values.dtype.names is not None
        self.settings.grid.units(values["value"] if events else values)

    def keys_with(self, keys: Iterable[Any]) -> int:
        """How many keys there would be, if these came."""
        known = self.keyed._number
        return len(known) + len({name for name in map(key_name, keys) if name not in known})

    def push_many(self, events: NDArray[Any]) -> KeyedValues:
        """Publish events that `keyed_events` made."""
        return self.keyed.push_many(events["key"], events["value"])

    def epoch_facts(self, after: int = 0) -> list[EpochFacts]:
        """What is public about the streams of keys, from number `after` on."""
        return self.keyed.facts(after)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return self.keyed.state()


def keyed_events(keys: Iterable[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Keys and their values as one array of events.

    >>> keyed_events(["north", 7], np.array([1, 2]))["key"].tolist()
    ['north', '7']
    """
    names = [key_name(key) for key in keys]
    if len(names) != values.size:
        raise InvalidData("there must be one key for every value", "Give as many keys as values.")
    events = np.empty(len(names), dtype=[("key", object), ("value", values.dtype)])
    events["key"], events["value"] = np.array([*names, None], dtype=object)[:-1], values
    return events


def restore_any(state: dict[str, Any]) -> Publisher | PersonStream | KeyedStream:
    """The stream that a state of a store describes. What its log holds is pushed again."""
    if isinstance(state, dict) and state.get("kind") == KeyedPublisher.kind:
        return KeyedStream(KeyedPublisher._restored(state, replay=True))
    return stream_to_repeat(state)
