"""What was published, in segments: sealed ones are Parquet files, the open one is appended to and can be read any time.

    published/00000000.parquet   sealed: never changed again
    published/00000001.open      frames: epochs as JSON, and values with their timestamps

Everything here is public. The open segment need not be on the disk before values leave, because it is computed again
from the log. A reader takes sealed segments one after another, and then the open one of the next number.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.errors import InvalidData
from deniable.files import settle
from deniable.sealing import damaged
from deniable.stores.live.frames import Chain, append, open_to_append
from deniable.stores.live.segment_arrays import SegmentArrays
from deniable.streams.central.published_epochs import EpochFacts
from deniable.streams.central.stream_keys import encoded_keys
from deniable.streams.released.release_file import READ_ERRORS

_EPOCH, _VALUES = b"E", b"V"
METADATA_KEY = b"deniable.segment"


@dataclass(frozen=True, slots=True)
class PublishedValues:
    """Consecutive published values from number `first` on, their timestamps if there are any, and epochs."""

    first: int
    values: Floats
    timestamps: NDArray[Any] | None = None
    epochs: tuple[EpochFacts, ...] = ()
    keys: NDArray[Any] | None = None
    """The key of every value, if there is one stream per key."""


def segment_path(folder: Path, number: int, *, sealed: bool) -> Path:
    """The file of a segment."""
    return folder / f"{number:08}.{'parquet' if sealed else 'open'}"


def frames_of(chain: Chain, published: PublishedValues) -> bytes:
    """Values as frames: epochs that begin with them first."""
    frames = [chain.frame(_EPOCH, json.dumps(epoch.describe()).encode()) for epoch in published.epochs]
    if published.values.size:
        facts: dict[str, Any] = {"first": published.first, "n": published.values.size}
        stamps = b""
        if published.timestamps is not None:
            whole = np.ascontiguousarray(published.timestamps)
            facts["t"], stamps = whole.dtype.str, whole.tobytes()
        codes = b""
        if published.keys is not None:
            numbers, facts["k"] = encoded_keys(published.keys)
            codes = numbers.astype("<i8", copy=False).tobytes()
        numbers = published.values.astype("<f8", copy=False)
        content = (json.dumps(facts).encode(), b"\n", numbers.tobytes(), codes, stamps)
        frames.append(chain.frame(_VALUES, b"".join(content)))
    return b"".join(frames)


@dataclass(frozen=True, slots=True)
class FrameContents:
    """What frames of an open segment hold, one array per frame."""

    epochs: list[EpochFacts] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    stamps: list[NDArray[Any]] = field(default_factory=list)
    keys: list[NDArray[Any]] = field(default_factory=list)

    @classmethod
    def read(cls, data: bytes, chain: Chain) -> tuple[FrameContents, int]:
        """What the whole frames hold that these bytes begin with, and where the last of them ends."""
        contents, end = cls(), 0
        for frame in chain.read(data):
            end = frame.end
            if frame.kind == _EPOCH:
                contents.epochs.append(EpochFacts.read(json.loads(bytes(frame.content))))
            else:
                contents._add(bytes(frame.content))
        return contents, end

    def _add(self, content: bytes) -> None:
        line = content.index(b"\n")
        facts = json.loads(content[:line])
        self.values.append(np.frombuffer(content, "<f8", facts["n"], line + 1))
        behind = line + 1 + 8 * facts["n"]
        if "k" in facts:
            self.keys.append(np.array(facts["k"], dtype=object)[np.frombuffer(content, "<i8", facts["n"], behind)])
            behind += 8 * facts["n"]
        if "t" in facts:
            self.stamps.append(np.frombuffer(content, facts["t"], facts["n"], behind))


def read_frames(data: bytes, chain: Chain, first: int) -> tuple[PublishedValues, int]:
    """What the whole frames of an open segment hold, and where the last of them ends."""
    contents, end = FrameContents.read(data, chain)
    stamps = np.concatenate(contents.stamps) if contents.stamps else None
    keys = np.concatenate(contents.keys) if contents.keys else None
    values = np.concatenate([np.zeros(0), *contents.values])
    return PublishedValues(first, values, stamps, tuple(contents.epochs), keys), end


class OpenSegment:
    """The segment that is appended to."""

    def __init__(self, folder: Path, number: int, first: int) -> None:
        self.path = segment_path(folder, number, sealed=False)
        self.number, self.first = number, first
        self._chain = Chain(f"segment {number}")
        self._descriptor = -1
        self._kept = SegmentArrays()
        self.length = 0  # bytes

    @property
    def count(self) -> int:
        """How many values it has."""
        return self._kept.count

    def content(self) -> PublishedValues:
        """Everything that it holds."""
        values = self._kept.values.whole()
        stamps, keys = self._kept.stamps.whole(), self._kept.keys.whole()
        return PublishedValues(
            self.first, np.zeros(0) if values is None else values, stamps, tuple(self._kept.epochs), keys
        )

    def begin(self) -> None:
        """Make the file, empty."""
        self._descriptor = open_to_append(self.path, mode=0o644, length=0)

    def resume(self, length: int) -> bytes:
        """Go on with a file whose first `length` bytes are on the disk. Returns the whole frames that it has beyond.

        Those are computed again, and have to be the same. What is not whole is cut off.
        """
        data = self.path.read_bytes() if self.path.exists() else b""
        ends = [0, *(frame.end for frame in Chain(f"segment {self.number}").read(data))]
        if length not in ends:
            raise damaged("open segment of the store")
        self._keep(read_frames(data[:length], self._chain, self.first)[0])
        self.length = length
        self._descriptor = open_to_append(self.path, mode=0o644, length=ends[-1])
        return data[length : ends[-1]]

    def restore(self, recomputed: bytes, there: bytes) -> None:
        """Append what is missing of the bytes that were computed again. A whole frame that differs was published.

        Frames are checked when they are read, so one that differs was hardly damaged: another version computed it.
        """
        if not recomputed.startswith(there):
            raise InvalidData(
                "the last batches in the open segment of the store are not what this version computes for them",
                "If the store was written by another version or on another kind of machine, open it there once, close "
                "it, and go on here. Otherwise it is damaged: use a whole copy that nobody has gone on from, or start "
                "a new one with new noise.",
                cost="Nothing was published",
            )
        append(self._descriptor, recomputed[len(there) :])

    def append(self, published: PublishedValues) -> bytes:
        """Publish values. They can be read as soon as this returns."""
        frames = self.frames(published)
        if frames:
            append(self._descriptor, frames)
        return frames

    def frames(self, published: PublishedValues) -> bytes:
        """The next bytes of the file, which the caller writes."""
        frames = frames_of(self._chain, published)
        self.length += len(frames)
        self._keep(published)
        return frames

    def _keep(self, published: PublishedValues) -> None:
        self._kept.add(published.values, published.timestamps, published.keys, published.epochs)

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def write_sealed(folder: Path, number: int, published: PublishedValues, about: dict[str, Any]) -> None:
    """Write a sealed segment, whole or not at all. One that is there already has to hold the same."""
    path = segment_path(folder, number, sealed=True)
    if path.exists():
        there = read_sealed(folder, number)
        if there.values.tobytes() != published.values.tobytes() or there.first != published.first:
            raise damaged("last segment of the store")
        return
    facts = {**about, "first": published.first, "epochs": [epoch.describe() for epoch in published.epochs]}
    columns = {"position": _column(np.arange(published.first, published.first + published.values.size))}
    if published.keys is not None:
        columns["key"] = pa.array(published.keys, pa.string()).dictionary_encode()
    if published.timestamps is not None:
        columns["timestamp"] = _column(published.timestamps)
    table = pa.table({**columns, "value": _column(published.values)})
    table = table.replace_schema_metadata({METADATA_KEY: json.dumps(facts).encode()})
    sink = pa.BufferOutputStream()
    # Positions count up, and blocks repeat a number: a third of the time and a fortieth of the size of the defaults.
    encoding = {"position": "DELTA_BINARY_PACKED"}
    pq.write_table(
        table, sink, compression="zstd", compression_level=1, use_dictionary=["key"], column_encoding=encoding
    )
    new = path.with_suffix(".new")
    with suppress(FileNotFoundError):
        os.unlink(new)  # noqa: PTH108 - as the other calls, to be counted in tests
    descriptor = open_to_append(new, mode=0o644)
    try:
        append(descriptor, sink.getvalue().to_pybytes())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(new, path)  # noqa: PTH105
    settle(folder)


def _column(array: NDArray[Any]) -> pa.Array:
    """An array as a column. Arrow itself would import pandas for that, if it is there: seconds, between two values."""
    kinds = {"<i8": pa.int64(), "<f8": pa.float64(), "<M8[us]": pa.timestamp("us")}
    if (kind := kinds.get(array.dtype.str)) is None:
        return pa.array(array)
    return pa.Array.from_buffers(kind, array.size, [None, pa.py_buffer(np.ascontiguousarray(array).view(np.uint8))])


def read_sealed(folder: Path, number: int) -> PublishedValues:
    """A sealed segment."""
    try:
        with pq.ParquetFile(segment_path(folder, number, sealed=True)) as file:
            table = file.read()
            facts = json.loads((table.schema.metadata or {})[METADATA_KEY])
        stamps = table["timestamp"].to_numpy() if "timestamp" in table.column_names else None
        epochs = tuple(EpochFacts.read(epoch) for epoch in facts["epochs"])
        keys = np.array(table["key"].to_pylist(), dtype=object) if "key" in table.column_names else None
        return PublishedValues(facts["first"], table["value"].to_numpy(), stamps, epochs, keys)
    except FileNotFoundError:
        raise
    except (KeyError, ValueError, TypeError, *READ_ERRORS):
        raise _damaged_segment(number) from None


def _damaged_segment(number: int) -> InvalidData:
    return InvalidData(f"segment {number:,} of the stream is damaged", "Restore it from a copy of the folder.")


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """What the footer of a sealed segment says."""

    number: int
    first: int
    count: int
    epochs: tuple[EpochFacts, ...]


def sealed_footer(folder: Path, number: int) -> SealedSegment | None:
    """The footer of a sealed segment; None if it is not sealed."""
    try:
        with pq.ParquetFile(segment_path(folder, number, sealed=True)) as file:
            facts = json.loads((file.schema_arrow.metadata or {})[METADATA_KEY])
            count = file.metadata.num_rows
        epochs = tuple(EpochFacts.read(epoch) for epoch in facts["epochs"])
        return SealedSegment(number, facts["first"], count, epochs)
    except FileNotFoundError:
        return None
    except (KeyError, ValueError, TypeError, *READ_ERRORS):
        raise _damaged_segment(number) from None


def newest_segment(folder: Path) -> int:
    """The highest number of a segment; −1 if there is none."""
    return max((int(file.stem) for file in folder.glob("*") if file.stem.isdecimal()), default=-1)
