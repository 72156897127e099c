"""One run of a stream: batches in, private values out, in order, up to the first value that is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidData, InvalidParameter
from deniable.ledger import Ledger
from deniable.locking import Turn, in_turn
from deniable.stores.bad_values import BadValues
from deniable.stores.keyed_stream import KeyedStream, keyed_events
from deniable.stores.sources.batch import Batch, Unreadable
from deniable.stores.sources.number_columns import NO_POSITION
from deniable.streams.central.person_bound import person_events
from deniable.streams.central.person_stream import PersonStream
from deniable.streams.central.publisher import Publisher

Deliver = Callable[[NDArray[Any], NDArray[Any] | None], None]
"""Takes private values, and their timestamps if there are any, to wherever they are published."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Values that can be published, their timestamps, where their source stands after them, and how many were bad.

    `mark` is where it stands in its own terms, if it says so.
    """

    values: NDArray[Any]
    timestamps: NDArray[Any] | None
    position: int
    bad: int = 0
    mark: Any = None


class BatchPublisher:
    """Publishes batch after batch through `publisher`, which lives as long as this process.

    `first` is the number of the first value that this run publishes; `taken` and `published` count the values of this
    run. Timestamps must not go back. `position` is where the source stands: the next position that it should give, or
    how many values it gave. Values at earlier positions are skipped, and a gap is refused. `on_bad` says what becomes
    of values that are not as declared (`BadValues`), and `bad` counts them.

    Threads take turns, and `deliver` is called within the turn. A `ledger` of the operator is charged once for the
    stream, before its first value is taken; of a stream of persons, for every epoch.

    >>> import numpy as np
    >>> import deniable as dn
    >>> run = BatchPublisher(dn.streams.ToPS(1.0, 100, warmup=2, horizon=64))
    >>> published = []
    >>> run.publish(Batch(np.array([5, 6, 7])), lambda values, timestamps: published.extend(values))
    >>> run.taken, run.published, len(published)
    (3, 1, 1)
    """

    def __init__(
        self, publisher: Publisher | PersonStream | KeyedStream, *, ledger: Ledger | None = None, on_bad: str = "stop"
    ) -> None:
        self.publisher = publisher
        self._unpaid = ledger
        self._paid_epochs = publisher.epochs if isinstance(publisher, PersonStream) else 0
        self.first = publisher.published
        self.taken = self.published = 0
        self.position: int | None = None
        self.bad = 0
        self._on_bad = BadValues(on_bad)
        self._newest: Any = None  # timestamp
        self._turn = Turn()

    @in_turn
    def publish(self, batch: Batch, deliver: Deliver) -> None:
        """Publish a batch. If a value is refused, the values before it are published first."""
        self._publish(batch, deliver)

    def _publish(self, batch: Batch, deliver: Deliver, *, checked: bool = False) -> None:
        """`checked`: the values are as declared, which was looked at before."""
        batch, refusal = new_part(batch, self.position)
        ends = np.arange(len(batch.values)) + (self.position or 0) if batch.positions is None else batch.positions
        batch, bad, count, reason = self._looked_at(batch, checked=checked)
        if count or bad:
            values = batch.values[:count]
            if values.dtype == object:  # a value further on is missing; these are numbers
                values = np.array(values.tolist())
            values = self._events(batch, values)
            stamps = None if batch.timestamps is None else batch.timestamps[:count]
            end = int(ends[-1] if count == len(batch.values) else ends[count - 1]) + 1
            mark = None if reason or refusal else batch.mark
            self._deliver(Accepted(values, stamps, end, bad, mark), deliver)
        if reason:
            cost = "Nothing of it was taken or published; the values before it were"
            raise InvalidData(f"{batch.unit} {batch.number(count):,} was refused: {reason}", self._advice(), cost=cost)
        if refusal:
            cost = "Nothing of it was taken or published; the values before it were"
            raise InvalidData(refusal, "Send what is missing first.", cost=cost)

    @in_turn
    def refusal(self, batch: Batch) -> str:
        """Why some value of a batch would be refused; empty if none would. Nothing is taken."""
        batch, refusal = new_part(batch, self.position)
        batch, _, count, reason = self._looked_at(batch)
        return refusal or (f"{batch.unit} {batch.number(count):,} was refused: {reason}" if reason else "")

    @property
    def lenient(self) -> bool:
        """Whether the run goes on after a bad value."""
        return self._on_bad.lenient

    @in_turn
    def close(self) -> float:
        """End the run. Returns what has to be added to the last published value, if that can still be changed."""
        return self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()

    def advised(self, refusal: Unreadable) -> Unreadable:
        """The same refusal, with advice on how to continue after this run."""
        return Unreadable(refusal.entry, self._advice())

    def _events(self, batch: Batch, values: NDArray[Any]) -> NDArray[Any]:
        """The first values of a batch, with their persons or keys."""
        if isinstance(self.publisher, PersonStream):
            return person_events((batch.persons or [None] * len(batch.values))[: values.size], values)
        if isinstance(self.publisher, KeyedStream):
            return keyed_events((batch.keys or [])[: values.size], values)
        return values

    def _deliver(self, accepted: Accepted, deliver: Deliver) -> None:
        released = self._push(accepted)
        self._count(accepted, released.size)
        stamps = accepted.timestamps
        deliver(released, None if stamps is None else stamps[stamps.size - released.size :])

    def _count(self, accepted: Accepted, released: int) -> None:
        """Values were taken. Others may come again."""
        if accepted.timestamps is not None and accepted.timestamps.size:
            self._newest = accepted.timestamps[-1]
        self.position = accepted.position
        self.bad += accepted.bad
        self.taken += accepted.values.size
        self.published += released

    def _push(self, accepted: Accepted) -> NDArray[Any]:
        if isinstance(self.publisher, KeyedStream):
            raise InvalidParameter("publisher", "has keys, which only a store keeps", "Use DurablePublisher.")
        self._pay(accepted.values.size)
        return self.publisher.push_many(accepted.values)

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
        ends = isinstance(self.publisher, KeyedStream) or self.publisher.warming_up
        return 0.0 if ends else self.publisher.flush()  # type: ignore[union-attr]

    def _advice(self) -> str:
        if self.published:
            return "Repair it, and go on with it in a new stream: to publish earlier values again would spend ε again."
        return "Repair it, or choose --on-bad, and begin again: nothing has been published."

    def _looked_at(self, batch: Batch, *, checked: bool = False) -> tuple[Batch, int, int, str]:
        """A batch after the rule for bad values, how many were bad, how many can be published, and what is wrong."""
        if not len(batch.values):
            return batch, 0, 0, ""
        if self._begun and (batch.timestamps is None) != (self._newest is None):
            return batch, 0, 0, "either all values of a stream have a timestamp, or none"
        bad = 0
        if self._on_bad.lenient:
            if batch.timestamps is not None and _other_kind(batch.timestamps, self._newest):
                return batch, 0, 0, _OTHER_TIMES
            batch, bad = self._on_bad.settled(batch, self.publisher.settings.grid, self._newest)
        count, reason = self._acceptable(batch, checked=checked) if len(batch.values) else (0, "")
        return batch, bad, count, reason

    @property
    def _begun(self) -> bool:
        """Whether the stream has values already."""
        return self.taken > 0

    def _acceptable(self, batch: Batch, *, checked: bool) -> tuple[int, str]:
        """How many values from the start on can be published, and what is wrong with the next one, if there is one."""
        count, reason = len(batch.values), ""
        try:
            if not checked:
                self.publisher.check(batch.values)
        except InvalidData as refusal:
            count = _first_refused(self.publisher, batch.values)
            reason = "it has no value" if batch.values[count] is None else str(refusal).split(". ")[0]
        if batch.timestamps is not None:
            ordered, wrong = _first_out_of_order(batch.timestamps, self._newest)
            if ordered < count:
                return ordered, wrong
        return count, reason


def new_part(batch: Batch, position: int | None) -> tuple[Batch, str]:
    """The part of a batch that was not taken before, up to a gap, and what is wrong with the value behind that."""
    if batch.positions is None:
        return batch, ""
    newest = np.concatenate(([-1 << 62 if position is None else position - 1], batch.positions))
    unseen = np.flatnonzero(batch.positions > np.maximum.accumulate(newest)[:-1])
    missing = np.flatnonzero(batch.positions == NO_POSITION)
    steps = np.diff(batch.positions[unseen], prepend=newest[0])
    jumps = np.flatnonzero(steps != 1)
    if position is None and jumps.size and jumps[0] == 0:  # the first value of all says where positions begin
        jumps = jumps[1:]
    gap = int(unseen[jumps[0]]) if jumps.size else len(batch.values)
    absent = int(missing[0]) if missing.size else len(batch.values)
    stop = min(gap, absent)
    refusal = ""
    if stop < len(batch.values):
        refusal = f"{batch.unit} {batch.number(stop):,} was refused: "
        refusal += (
            "its position is missing or not a whole number" if absent <= gap else "positions before it are missing"
        )
    return batch.chosen(unseen[unseen < stop]), refusal


def _first_refused(publisher: Publisher | PersonStream | KeyedStream, values: NDArray[Any]) -> int:
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


_OTHER_TIMES = "its timestamp is of another type than those before it"


def _other_kind(timestamps: NDArray[Any], newest: Any) -> bool:
    """Whether these are points in time and those before were numbers, or the other way round."""
    return newest is not None and (timestamps.dtype.kind == "M") != (np.asarray(newest).dtype.kind == "M")


def _first_out_of_order(timestamps: NDArray[Any], newest: Any) -> tuple[int, str]:
    """The index of the first timestamp that is missing or goes back, and which of the two it is."""
    if _other_kind(timestamps, newest):
        return 0, _OTHER_TIMES
    missing = np.isnat(timestamps) if timestamps.dtype.kind == "M" else np.isnan(timestamps)
    there = int(missing.argmax()) if missing.any() else len(timestamps)
    back = (timestamps[1:] < timestamps[:-1]).nonzero()[0]
    ordered = int(back[0]) + 1 if back.size else len(timestamps)
    if newest is not None and timestamps[0] < newest:
        ordered = 0
    if there <= ordered:
        return there, "its timestamp is missing, or neither a number nor like 2024-01-31T12:00"
    return ordered, "its timestamp goes back"
