"""A publisher that survives its process, and never publishes one position with two values.

Two releases of one position under the same noise would differ by the data. So a batch is on the disk, in a private log,
before its noise is used. The noise is a function of (key, epoch, chunk, node), and everything published follows from
the last state, the log and the key:

    batch ── log, on the disk ──▶ noise ──▶ open segment ──▶ deliver
               │
               └─ the process ends anywhere ──▶ open again: the log is computed anew, byte for byte, and compared with
                                                what the open segment holds; the stream goes on behind it

From time to time the state is written and a new log begun; a full segment is sealed as a Parquet file.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.disk_faults import writing
from deniable.errors import Failure, InvalidData, InvalidParameter, RandomnessFault
from deniable.files import settle
from deniable.ledger import Ledger, key_of
from deniable.locking import in_turn
from deniable.sealing import damaged
from deniable.stores.batch_publisher import Accepted, BatchPublisher, Deliver
from deniable.stores.keyed_stream import KeyedStream, restore_any
from deniable.stores.live.copy_note import CopyNote
from deniable.stores.live.folder_files import StoreFolder, StoreSettings
from deniable.stores.live.segments import OpenSegment, PublishedValues, write_sealed
from deniable.stores.live.value_log import LoggedBatch, ValueLog
from deniable.stores.sources.batch import Batch
from deniable.stores.state_file import StateFile
from deniable.streams.central.keyed_publisher import KeyedPublisher
from deniable.streams.central.person_bound import person_events
from deniable.streams.central.person_stream import PersonStream
from deniable.streams.central.publisher import Publisher
from deniable.streams.central.stream_keys import encoded_keys

SEGMENT_VALUES = 1 << 20
LOG_BYTES = 1 << 24
LOG_BATCHES = 1 << 13
PART_VALUES = 1 << 16
"""A segment is sealed, the log is begun anew, and a batch is cut, when it has so many. A log that has to be published
again takes a second or two: 8,192 small batches, or as many values as a segment has."""


class DurablePublisher(BatchPublisher):
    """A stream in a folder that continues where the last run ended, also after a crash. Locked until `close`.

    `publisher` is a new one with the settings of the stream. If there is a store already, its own publisher continues,
    so `publisher` may be left out; other settings are refused. Everything that was taken was published, in the folder,
    and can be read there by `StoredStream` at any time: nothing has to be sent again. `position` says which value comes
    next, and `mark` the same in terms of the source, if it has its own.

    `private/` in the folder is as secret as the data: it holds values and the key of the noise. A `ledger` of the
    operator is charged once for the stream, before its first value is taken. With a `KeyedPublisher` the store has one
    stream per key.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "meter")
    >>> with DurablePublisher(folder, dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)) as stream:
    ...     stream.push_many([5, 6, 7]).size
    1
    >>> with DurablePublisher(folder) as stream:
    ...     stream.position, stream.first, stream.push_many([8, 9]).size
    (3, 1, 2)
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        publisher: Publisher | PersonStream | KeyedPublisher | None = None,
        *,
        ledger: Ledger | None = None,
        on_bad: str | None = None,
        segment_values: int = SEGMENT_VALUES,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        self.folder = StoreFolder(Path(folder))
        made = KeyedStream(publisher) if isinstance(publisher, KeyedPublisher) else publisher
        self._segment_values, self._log_bytes = segment_values, log_bytes
        self._process = os.getpid()
        self._failed = self._closed = False
        self._note: CopyNote
        self._log: ValueLog
        self._open: OpenSegment
        if made is None and not self.folder.exists:
            raise InvalidParameter("publisher", "is missing, and there is no store yet", "Give one to begin a stream.")
        with writing(f"the store {self.folder.path.name!r}", "Nothing was published"):
            self.folder.make()
        self._file = StateFile(self.folder.checkpoint)
        try:
            with writing(f"the store {self.folder.path.name!r}", "Nothing was published"):
                if (record := self._file.record) is not None:
                    self._resume(record, made, ledger, on_bad)
                elif made is not None:
                    self._begin(made, ledger, on_bad or "stop")
        except BaseException:
            self._let_go()
            raise

    # Opening ---------------------------------------------------------------------------------------------------------

    def _begin(self, publisher: Publisher | PersonStream | KeyedStream, ledger: Ledger | None, on_bad: str) -> None:
        if self.folder.holds_values:
            raise InvalidData(
                "the store has published values, and its private state is missing", "Restore it, or use another folder."
            )
        super().__init__(publisher, ledger=ledger, on_bad=on_bad)
        publisher.forget()  # the store keeps what is published
        self._key = _key_of(publisher)
        self.settings = StoreSettings.of(secrets.token_hex(16), publisher, on_bad)
        self.settings.write(self.folder)
        self._note = CopyNote(self.settings.name)
        self.position, self._total, self._epochs = 0, 0, 0
        self._positioned, self.mark = False, None
        self._open = OpenSegment(self.folder.published, 0, 0)
        self._open.begin()
        settle(self.folder.published)
        self._begin_log(0)
        self._checkpoint()

    def _resume(
        self,
        record: dict[str, Any],
        publisher: Publisher | PersonStream | KeyedStream | None,
        ledger: Ledger | None,
        on_bad: str | None,
    ) -> None:
        restored = restore_any(record["state"])
        if publisher is not None and (restored.settings, restored.simulation) != (
            publisher.settings,
            publisher.simulation,
        ):
            raise InvalidParameter("the settings", "are not those of the store", "Give the same, or a new folder.")
        self.settings = StoreSettings.read(self.folder)
        if on_bad is not None and on_bad != self.settings.on_bad:
            raise InvalidParameter("on_bad", f"is {self.settings.on_bad!r} in the store", "Give the same.")
        super().__init__(restored, ledger=ledger, on_bad=self.settings.on_bad)
        restored.forget()
        facts = record["store"]
        if facts["name"] != self.settings.name:
            raise damaged("store")
        self._key = _key_of(restored)
        self.position, self.bad = facts["position"], facts["bad"]
        self._total, self._epochs, self._positioned = facts["total"], facts["epochs"], facts["positioned"]
        self.mark = facts.get("mark")
        if facts["newest"] is not None:
            kind, text = facts["newest"]
            self._newest = np.frombuffer(bytes.fromhex(text), kind)[0]
        self._note = CopyNote(self.settings.name)
        self._log = ValueLog(self.folder.log(facts["log"]), facts["log"], self._key)
        self._log_number = facts["log"]
        batches = list(self._log.read())
        self._note.check(self._total + sum(batch.units.size for batch in batches))
        self._log.go_on()
        self._recompute(batches, facts)
        self._clean_up()
        self.first, self.taken, self.published = self.publisher.published, 0, 0
        if self._open.count >= self._segment_values:
            self._seal()

    def _recompute(self, batches: list[LoggedBatch], facts: dict[str, Any]) -> None:
        """Publish what the log holds again, byte for byte, and append what the open segment lacks."""
        segment = OpenSegment(self.folder.published, facts["segment"], facts["first"])
        self._open = segment
        there = segment.resume(facts["length"])
        again = b"".join(segment.frames(self._publish_logged(batch)) for batch in batches)
        segment.restore(again, there)

    def _clean_up(self) -> None:
        """Remove what an interrupted run left behind: logs and open segments of before."""
        for file in self.folder.private.glob("*.log"):
            if file != self._log.path:
                os.unlink(file)  # noqa: PTH108 - as the other calls, to be counted in tests
        for file in self.folder.published.glob("*.open"):
            if file != self._open.path:
                os.unlink(file)  # noqa: PTH108
        for file in self.folder.published.glob("*.new"):
            os.unlink(file)  # noqa: PTH108

    # Publishing ------------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """How many values all runs together have taken, the warm-up included."""
        return self._total

    @property
    def _begun(self) -> bool:
        return self._total > 0

    @in_turn
    def publish(self, batch: Batch, deliver: Deliver) -> None:
        """Publish a batch. If a value is refused, the values before it are published first."""
        for first in range(0, max(len(batch.values), 1), PART_VALUES):
            part = batch if len(batch.values) <= PART_VALUES else batch.part(first, first + PART_VALUES)
            if part.positions is not None and not self._positioned and not self._total:
                self.position = None  # the first value says where positions begin
            self._publish(part, deliver)
            self._positioned = self._positioned or part.positions is not None

    @in_turn
    def push_many(self, values: Any, positions: Any = None, keys: Any = None) -> NDArray[Any]:
        """Publish values, and return the private ones. Values at `positions` that were taken before are skipped.

        `keys` has the key of every value, if the store has one stream per key.
        """
        released: list[NDArray[Any]] = [np.zeros(0)]
        array = np.asarray(values)
        if not self.lenient:
            self.publisher.check(array)  # refused as a whole, before anything is taken
        places = None if positions is None else np.asarray(positions, dtype=np.int64)
        persons = array["person"].tolist() if array.dtype.names else None
        numbers = array["value"] if array.dtype.names else array
        for first in range(0, numbers.size, PART_VALUES):
            part = slice(first, first + PART_VALUES)
            batch = Batch(
                numbers[part],
                persons=None if persons is None else persons[part],
                positions=None if places is None else places[part],
                keys=None if keys is None else list(keys[part]),
            )
            self._publish(batch, lambda values, _: released.append(values), checked=not self.lenient)
        return np.concatenate(released)

    def _take(self, accepted: Accepted) -> PublishedValues:
        """Log, then publish. This counts."""
        self._check_usable()
        batch = self._logged(accepted)  # refused values are not
        if batch.units.size:
            self._pay(batch.units.size, key_of("stream", self._key))
        self._failed = True  # until all of it is done
        with writing(f"the store {self.folder.path.name!r}", "Nothing more was published"):
            self._log.append(batch)
            self._note.write(self._total + batch.units.size)
            published = self._publish_logged(batch)
            self._open.append(published)
            if self._open.count >= self._segment_values:
                self._seal()
            elif self._log.full(self._log_bytes, LOG_BATCHES) or published.epochs:  # to learn an epoch again takes long
                self._checkpoint_and_begin_log()
        self._failed = False
        return published

    def _logged(self, accepted: Accepted) -> LoggedBatch:
        values, persons, keys = accepted.values, None, None
        if isinstance(self.publisher, KeyedStream):
            values, keys = values["value"], encoded_keys(values["key"])
        elif values.dtype.names is not None:
            self.publisher.check(values)
            values, persons = values["value"], values["person"].tolist()
        units = self.publisher.settings.grid.units(values)
        return LoggedBatch(units, accepted.timestamps, persons, accepted.position, accepted.bad, keys, accepted.mark)

    def _publish_logged(self, batch: LoggedBatch) -> PublishedValues:
        """Noise for a batch that is on the disk."""
        first, stamps = self.publisher.published, batch.timestamps
        values = self.publisher.settings.grid.values(batch.units)
        keys = None
        if isinstance(self.publisher, KeyedStream):
            numbers, names = batch.keys or (np.zeros(0, dtype=np.int64), [])
            private = self.publisher.keyed.push_many((numbers, names), values)
            released, keys = private.value.astype(np.float64), private.key
            stamps = None if stamps is None else stamps[private.index]
        else:
            events = values if batch.persons is None else person_events(batch.persons, values)
            released = self.publisher.push_many(events).astype(np.float64)
            stamps = None if stamps is None else stamps[batch.units.size - released.size :]
        epochs = tuple(self.publisher.epoch_facts(self._epochs))
        self._epochs += len(epochs)
        self._total += batch.units.size
        self.mark = self.mark if batch.mark is None else batch.mark
        self._count(Accepted(batch.units, batch.timestamps, batch.position or 0, batch.bad), released.size)
        return PublishedValues(first, released, stamps, epochs, keys)

    def _deliver(self, accepted: Accepted, deliver: Deliver) -> None:
        published = self._take(accepted)
        deliver(published.values, published.timestamps)

    def _check_usable(self) -> None:
        if self._closed:
            raise Failure("this publisher is closed. Nothing was published. Open the store again.")
        if os.getpid() != self._process:
            raise RandomnessFault(
                "this is a fork of the process that opened the store, and both would publish. Nothing was published. "
                "Publish in that process."
            )
        if self._failed:
            raise Failure(
                "the last values are in the log, and it is not certain that they were published. Nothing more was "
                "published. Open the store again: it goes on behind them."
            )

    # State -----------------------------------------------------------------------------------------------------------

    def _begin_log(self, number: int) -> None:
        self._log_number = number
        self._log = ValueLog(self.folder.log(number), number, self._key)
        self._log.begin()
        settle(self.folder.private)

    def _checkpoint_and_begin_log(self) -> None:
        """Write the state down, so that the log can begin anew, and remove the old one."""
        self._open.sync()
        old = self._log
        self._begin_log(self._log_number + 1)
        self._checkpoint()
        old.remove()

    def _seal(self) -> None:
        """Write the open segment as a Parquet file, and begin another."""
        segment = self._open
        about = {"stream": self.settings.name, "number": segment.number}
        write_sealed(self.folder.published, segment.number, segment.content(), about)
        old = self._log
        segment.close()
        self._open = OpenSegment(self.folder.published, segment.number + 1, segment.first + segment.count)
        self._open.begin()
        settle(self.folder.published)
        self._epochs = max(self._epochs - 1, 0)  # every segment says which epoch it begins in
        self._begin_log(self._log_number + 1)
        self._checkpoint()
        old.remove()
        with suppress(FileNotFoundError):
            os.unlink(segment.path)  # noqa: PTH108 - as the other calls, to be counted in tests

    def _checkpoint(self) -> None:
        newest = None
        if self._newest is not None:
            stamp = np.asarray(self._newest)
            newest = [stamp.dtype.str, stamp.tobytes().hex()]
        facts = {
            "name": self.settings.name,
            "segment": self._open.number,
            "first": self._open.first,
            "length": self._open.length,
            "log": self._log_number,
            "position": self.position,
            "positioned": self._positioned,
            "total": self._total,
            "bad": self.bad,
            "epochs": self._epochs,
            "newest": newest,
            "mark": self.mark,
        }
        self._file.write(self.publisher.state(), store=facts)

    def _close(self) -> float:
        """Everything that was taken is in the store. The next run starts behind it."""
        if self._closed:
            return 0.0
        self._closed = True
        try:
            if not self._failed and os.getpid() == self._process and self._log.bytes:
                with writing(f"the store {self.folder.path.name!r}", "Everything that was taken is in its log"):
                    self._checkpoint_and_begin_log()
        finally:
            self._let_go()
        return 0.0

    def _let_go(self) -> None:
        for part in ("_log", "_open", "_note"):
            if hasattr(self, part):
                getattr(self, part).close()
        self._file.close()

    def _advice(self) -> str:
        return "Repair it and go on from there, or use another --on-bad in a new store."


def charge_stream(ledger: Ledger, publisher: Publisher | KeyedPublisher) -> None:
    """Charge a new stream now, instead of before its first value. It is charged once, also if a store does it again."""
    stream = KeyedStream(publisher) if isinstance(publisher, KeyedPublisher) else publisher
    BatchPublisher(stream, ledger=ledger)._pay(1, key_of("stream", _key_of(stream)))


def _key_of(publisher: Publisher | PersonStream | KeyedStream) -> bytes:
    key = publisher.state()["key"]
    if key is None:
        raise InvalidParameter("source", "is a simulation's, whose key is not kept", "Use key=, or no store.")
    return bytes.fromhex(key)
