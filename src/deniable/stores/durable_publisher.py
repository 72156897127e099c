"""A publisher that survives its process, and never publishes one position twice with different values.

Two releases of one position under the same noise would differ by the data. So before values are published, the state
file announces how many there are and a keyed digest of them:

    idle ── announce on disk ──▶ announced ── publish, deliver ──▶ delivered ── announce the next batch, or close ──▶ …
                                     │
                                     └─ the process ends ──▶ replaying: only the same values are taken, and published
                                                             exactly as they would have been ──▶ idle

After a crash the announced batch is published again or for the first time. Earlier batches were delivered.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import Failure, InvalidData, InvalidParameter, RandomnessFault
from deniable.ledger import Ledger, key_of
from deniable.locking import in_turn
from deniable.stores.batch_publisher import BatchPublisher, Deliver
from deniable.stores.state_file import StateFile
from deniable.streams.central.person_stream import PersonStream, restore_stream
from deniable.streams.central.publisher import Publisher


class DurablePublisher(BatchPublisher):
    """A stream that goes on where the last run ended, also after a crash. The file at `path` is locked until `close`.

    `publisher` is a new one with the settings of the stream. If there is a state already, its own publisher continues,
    and other settings are refused. The file is as secret as the data: it holds values and the key of the noise.

    `publish` hands private values to a function, and counts them as delivered when that returns. `push_many` returns
    them: they count as delivered with the next call, or with `close`. If an exception leaves the `with` block before
    that, the values have to come again. A `ledger` of the operator is charged once for the stream, before its first
    value is published; whoever goes on with the stream does not pay again.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> path = pathlib.Path(tempfile.mkdtemp(), "state.json")
    >>> with DurablePublisher(path, dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)) as stream:
    ...     stream.push_many([5, 6, 7]).size
    1
    >>> with DurablePublisher(path, dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)) as stream:
    ...     stream.first, stream.push_many([8, 9]).size
    (1, 2)
    """

    def __init__(
        self, path: str | PathLike[str], publisher: Publisher | PersonStream, *, ledger: Ledger | None = None
    ) -> None:
        self._file = StateFile(path)
        try:
            record = self._file.record
            super().__init__(publisher if record is None else _restored(record, publisher), ledger=ledger)
            self._announced: dict[str, Any] | None = None if record is None else record["announced"]
            self._key = _key_of(self.publisher)
        except BaseException:
            self._file.close()
            raise
        self._gathered: list[NDArray[Any]] = []  # announced values that have come again
        self._undelivered = self._failed = self._closed = False

    @property
    def replaying(self) -> int:
        """How many values have to come again first, because an interrupted run had announced them."""
        return 0 if self._announced is None else int(self._announced["count"])

    @in_turn
    def push_many(self, values: Any) -> NDArray[Any]:
        """Publish values. Those that an interrupted run had announced are compared before anything leaves.

        While values come again, the answer is empty until all of them have come.
        """
        return self._push(np.asarray(values))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._undelivered:
            self._failed = True
        self.close()

    def _deliver(self, values: NDArray[Any], stamps: NDArray[Any] | None, deliver: Deliver) -> None:
        try:
            super()._deliver(values, stamps, deliver)
        except BaseException:
            self._failed = self._undelivered
            raise
        self._undelivered = False

    def _push(self, values: NDArray[Any]) -> NDArray[Any]:
        if self._closed:
            raise Failure("this publisher is closed. Nothing was published. Open the state file again.")
        if self._failed:
            raise Failure(
                "the last values were announced, and it is not certain that they were delivered. Nothing more was "
                "published. Open the state file again, and send them again first."
            )
        self._undelivered = False  # whoever sends more has delivered what came before
        self.publisher.check(values)  # refused values are neither announced nor gathered
        if self._unpaid is not None:
            if self._file.record is None:  # a stream that is paid for can be gone on with
                self._file.write(self.publisher.state(), announced=None)
            gathered = sum(part.size for part in self._gathered)
            self._pay(gathered + values.size, key_of("stream", self._key))
        try:
            if self._announced is not None:
                return self._replay(values, self._announced["digest"])
            if not values.size:
                return self.publisher.push_many(values)
            before = self.publisher.state()
            self._announce(before, values)
            try:
                return self.publisher.push_many(values)
            except RandomnessFault:  # another copy went on: these values are not an interrupted run's
                self._file.write(before, announced=None)
                raise
        except BaseException:
            self._failed = self._undelivered  # the caller, who may go on, has not got what was announced
            raise

    def _replay(self, values: NDArray[Any], digest: str) -> NDArray[Any]:
        missing = self.replaying - sum(part.size for part in self._gathered)
        again = values[:missing].copy()  # the caller may reuse the array before the rest comes
        if values.size < missing:
            self._gathered.append(again)
            return self.publisher.push_many(np.zeros(0, dtype=np.int64))
        repeated = [*self._gathered, again]
        if self._digest(*repeated) != digest:
            self._gathered, self._stamps, self._newest = [], [], None  # a replay begins its run
            raise InvalidData(
                f"an interrupted run had announced {self.replaying:,} other values for these positions",
                "Send the same values again, or start anew with a new state file and new noise.",
            )
        if values.size > missing:  # delivered together, so announced together, from the state of before
            repeated.append(values[missing:])
            self._announce(self.publisher.state(), *repeated)
        self._undelivered = True
        self._announced, self._gathered = None, []
        return np.concatenate([self.publisher.push_many(part) for part in repeated])

    def _announce(self, state: dict[str, Any], *parts: NDArray[Any]) -> None:
        """Write down which values are about to be published, before any of them is."""
        count = sum(part.size for part in parts)
        self._file.write(state, announced={"count": count, "digest": self._digest(*parts)})
        self._undelivered = True

    def _close(self) -> float:
        """Everything announced was delivered: the next run starts after it. Otherwise the announcement stays."""
        if self._closed:
            return 0.0
        self._closed = True
        try:
            if self._announced is None and not self._failed:
                self._file.write(self.publisher.state(), announced=None)
        finally:
            self._file.close()
        return 0.0

    def _advice(self) -> str:
        return "Repair it and go on from there."

    def _digest(self, *parts: NDArray[Any]) -> str:
        """Of the steps of the grid, which is what noise is added to: floats of large numbers would be alike."""
        digest = hashlib.blake2b(key=self._key, person=b"announced")
        for part in parts:
            numbers = part if part.dtype.names is None else part["value"]
            digest.update(self.publisher.settings.grid.units(numbers).astype("<i8").tobytes())
            if part.dtype.names is not None:
                digest.update(json.dumps(part["person"].tolist()).encode())
        return digest.hexdigest()


def _restored(record: dict[str, Any], publisher: Publisher | PersonStream) -> Publisher | PersonStream:
    restored = restore_stream(record["state"], replay=record.get("announced") is not None)
    if (restored.settings, restored.simulation) != (publisher.settings, publisher.simulation):
        raise InvalidParameter("the settings", "are not those of the state file", "Give the same, or a new file.")
    return restored


def _key_of(publisher: Publisher | PersonStream) -> bytes:
    key = publisher.state()["key"]
    if key is None:
        raise InvalidParameter("source", "is a simulation's, whose key is not kept", "Use key=, or no state file.")
    return bytes.fromhex(key)
