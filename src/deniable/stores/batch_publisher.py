"""One run of a stream: batches in, private values out, in order, up to the first value that is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidData
from deniable.ledger import Ledger
from deniable.locking import Turn, in_turn
from deniable.stores.sources.batch import Batch, Unreadable
from deniable.streams.central.person_bound import person_events
from deniable.streams.central.person_stream import PersonStream
from deniable.streams.central.publisher import Publisher

Deliver = Callable[[NDArray[Any], NDArray[Any] | None], None]
"""Takes private values, and their timestamps if there are any, to wherever they are published."""


class BatchPublisher:
    """Publishes batch after batch through `publisher`, which lives as long as this process.

    `first` is the number of the first value that this run publishes; `taken` and `published` count the values of this
    run. Timestamps must not go back. Threads take turns, and `deliver` is called within the turn. A `ledger` of the
    operator is charged once for the stream, before its first value is taken; of a stream of persons, for every epoch.

    >>> import numpy as np
    >>> import deniable as dn
    >>> run = BatchPublisher(dn.streams.ToPS(1.0, 100, warmup=2, horizon=64))
    >>> published = []
    >>> run.publish(Batch(np.array([5, 6, 7])), lambda values, timestamps: published.extend(values))
    >>> run.taken, run.published, len(published)
    (3, 1, 1)
    """

    def __init__(self, publisher: Publisher | PersonStream, *, ledger: Ledger | None = None) -> None:
        self.publisher = publisher
        self._unpaid = ledger
        self._paid_epochs = publisher.epochs if isinstance(publisher, PersonStream) else 0
        self.first = publisher.published
        self.taken = self.published = 0
        self._newest: Any = None  # timestamp
        self._stamps: list[NDArray[Any]] = []  # of values that were taken and not answered yet
        self._turn = Turn()

    @property
    def replaying(self) -> int:
        """How many values have to come again first, because an interrupted run had announced them."""
        return 0

    @in_turn
    def publish(self, batch: Batch, deliver: Deliver) -> None:
        """Publish a batch. If a value is refused, the values before it are published first."""
        count, reason = self._acceptable(batch)
        if count:
            values = batch.values[:count]
            if values.dtype == object:  # a value further on is missing; these are numbers
                values = np.array(values.tolist())
            if isinstance(self.publisher, PersonStream):
                values = person_events((batch.persons or [None] * len(batch.values))[:count], values)
            self._deliver(values, None if batch.timestamps is None else batch.timestamps[:count], deliver)
        if reason:
            cost = "Nothing of it was taken or published; the values before it were"
            raise InvalidData(f"{batch.unit} {batch.number(count):,} was refused: {reason}", self._advice(), cost=cost)

    @in_turn
    def close(self) -> float:
        """End the run. Returns what has to be added to the last published value, if that can still be changed."""
        return self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def advised(self, refusal: Unreadable) -> Unreadable:
        """The same refusal, with what to do after this run."""
        return Unreadable(refusal.entry, self._advice())

    def _deliver(self, values: NDArray[Any], stamps: NDArray[Any] | None, deliver: Deliver) -> None:
        released = self._push(values)
        if stamps is not None:  # of values that were taken: others may come again
            self._stamps.append(stamps)
            self._newest = stamps[-1]
        self.taken += values.size
        self.published += released.size
        times = None if stamps is None else np.concatenate(self._stamps)
        if not self.replaying:
            self._stamps = []
        deliver(released, None if times is None else times[times.size - released.size :])

    def _push(self, values: NDArray[Any]) -> NDArray[Any]:
        self._pay(values.size)
        return self.publisher.push_many(values)

    def _pay(self, events: int, key: str = "") -> None:
        """Charge the stream, or each epoch that so many events begin, unless that was done."""
        if self._unpaid is None:
            return
        if isinstance(self.publisher, PersonStream):
            for epoch in range(self._paid_epochs, self.publisher.epochs_after(events)):
                what = f"stream of persons, epoch {epoch + 1:,}"
                self._unpaid.charge(self.publisher.epoch_spends, what=what, key=key and f"{key}-{epoch}")
                self._paid_epochs = epoch + 1
        else:
            what = f"stream {self.publisher.kind!r}, at most {self.publisher.settings.horizon:,} values a chunk"
            self._unpaid.charge(self.publisher.spends, what=what, key=key)
            self._unpaid = None

    def _close(self) -> float:
        return 0.0 if self.publisher.warming_up else self.publisher.flush()

    def _advice(self) -> str:
        if self.published:
            return "Repair it, and go on with it in a new stream: to publish earlier values again would spend ε again."
        return "Repair it and begin again: nothing has been published."

    def _acceptable(self, batch: Batch) -> tuple[int, str]:
        """How many values from the start on can be published, and what is wrong with the next one, if there is one."""
        count, reason = len(batch.values), ""
        try:
            self.publisher.check(batch.values)
        except InvalidData as refusal:
            count = _first_refused(self.publisher, batch.values)
            reason = "it has no value" if batch.values[count] is None else str(refusal).split(". ")[0]
        if batch.timestamps is not None:
            ordered, wrong = _first_out_of_order(batch.timestamps, self._newest)
            if ordered < count:
                return ordered, wrong
        return count, reason


def _first_refused(publisher: Publisher | PersonStream, values: NDArray[Any]) -> int:
    """The index of the first value that the publisher refuses, by bisection."""
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            publisher.check(values[good:middle].tolist())
            good = middle
        except InvalidData:
            bad = middle
    return good


def _first_out_of_order(timestamps: NDArray[Any], newest: Any) -> tuple[int, str]:
    """The index of the first timestamp that is missing or goes back, and which of the two it is."""
    if newest is not None and (timestamps.dtype.kind == "M") != (np.asarray(newest).dtype.kind == "M"):
        return 0, "its timestamp is of another type than those before it"
    missing = np.isnat(timestamps) if timestamps.dtype.kind == "M" else np.isnan(timestamps)
    there = int(missing.argmax()) if missing.any() else len(timestamps)
    back = (timestamps[1:] < timestamps[:-1]).nonzero()[0]
    ordered = int(back[0]) + 1 if back.size else len(timestamps)
    if newest is not None and timestamps[0] < newest:
        ordered = 0
    if there <= ordered:
        return there, "its timestamp is missing, or neither a number nor like 2024-01-31T12:00"
    return ordered, "its timestamp goes back"
