"""What is about to be published, on the disk before its noise is used: a private file of mode 0600.

A record holds a batch as the publisher gets it: steps of the grid, timestamps, persons, and where the source stands
after it. With the state before the first record and the noise's key, everything that was published since can be
computed again, byte for byte. So the log is all that has to reach the disk before a batch leaves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.sealing import damaged
from deniable.stores.live.frames import Chain, append, open_to_append

_RECORD = b"B"


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """Values that are about to be published, in steps of the grid, and what came with them.

    `position` is where the source stands after them, if it has positions. `bad` counts values that were not as
    declared, and were skipped or replaced before.
    """

    units: Integers
    timestamps: NDArray[Any] | None = None
    persons: list[str | None] | None = None
    position: int | None = None
    bad: int = 0
    keys: tuple[Integers, list[str]] | None = None
    """Of every value the number of its key in a list of names, if there is one stream per key."""
    mark: Any = None
    """Where the source stands after them, in its own terms."""

    def to_bytes(self) -> bytes:
        """A line of JSON, and the arrays."""
        facts: dict[str, Any] = {"n": self.units.size}
        stamps = b""
        if self.timestamps is not None:
            whole = np.ascontiguousarray(self.timestamps)
            facts["t"], stamps = whole.dtype.str, whole.tobytes()
        if self.persons is not None:
            facts["who"] = self.persons
        if self.position is not None:
            facts["p"] = self.position
        if self.bad:
            facts["bad"] = self.bad
        if self.mark is not None:
            facts["m"] = self.mark
        codes = b""
        if self.keys is not None:
            facts["k"], codes = self.keys[1], self.keys[0].astype("<i8", copy=False).tobytes()
        head = json.dumps(facts, separators=(",", ":")).encode()
        return b"".join((head, b"\n", self.units.astype("<i8", copy=False).tobytes(), codes, stamps))

    @classmethod
    def from_bytes(cls, content: memoryview) -> LoggedBatch:
        """What `to_bytes` wrote."""
        data = bytes(content)
        line = data.index(b"\n")
        facts = json.loads(data[:line])
        start, count = line + 1, facts["n"]
        units = np.frombuffer(data, "<i8", count, start).astype(np.int64)
        keys = None
        if "k" in facts:
            start += 8 * count
            keys = (np.frombuffer(data, "<i8", count, start).astype(np.int64), facts["k"])
        stamps = np.frombuffer(data, facts["t"], count, start + 8 * count) if "t" in facts else None
        return cls(units, stamps, facts.get("who"), facts.get("p"), facts.get("bad", 0), keys, facts.get("m"))


class ValueLog:
    """The log number `number` of a stream. `append` returns once a batch is on the disk."""

    def __init__(self, path: Path, number: int, key: bytes) -> None:
        self.path = path
        self._name, self._key = f"values {number}", key
        self._chain = Chain(self._name, key)
        self._descriptor = -1
        self.bytes = self.batches = 0

    def read(self) -> Iterator[LoggedBatch]:
        """Every whole batch that is in the file."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            raise damaged("log of the store") from None
        for frame in self._chain.read(data):
            self.bytes = frame.end
            self.batches += 1
            try:
                yield LoggedBatch.from_bytes(frame.content)
            except (ValueError, KeyError, TypeError):
                raise damaged("log of the store") from None

    def go_on(self) -> None:
        """Open the log behind the last whole batch that was read; whatever was not whole is cut off.

        What was read may not be on the disk yet, so it is waited for before anything is published from it.
        """
        self._descriptor = open_to_append(self.path, mode=0o600, length=self.bytes)
        os.fsync(self._descriptor)

    def begin(self) -> None:
        """Make the file, empty. Its name is not on the disk before its folder is settled."""
        self._descriptor = open_to_append(self.path, mode=0o600, length=0)

    def append(self, batch: LoggedBatch) -> None:
        """Write a batch down, and wait until it is on the disk."""
        frame = self._chain.frame(_RECORD, batch.to_bytes())
        append(self._descriptor, frame)
        self.bytes += len(frame)
        self.batches += 1
        os.fsync(self._descriptor)

    def full(self, most_bytes: int, most_batches: int) -> bool:
        """Whether it is time for a new one."""
        return self.bytes >= most_bytes or self.batches >= most_batches

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def remove(self) -> None:
        """Close and remove the file, because a state behind it is on the disk."""
        self.close()
        os.unlink(self.path)  # noqa: PTH108 - as the other calls, to be counted in tests
