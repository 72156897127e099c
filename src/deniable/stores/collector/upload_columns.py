"""Uploads as columns, and their form in a file: what many requests bring is judged, stored and read without a loop.

    CRC-32 of the rest                                       4 bytes, little-endian
    rows                                                     4 bytes
    slot, bytes of the id, of the report, of the text        4 numbers of 4 bytes for each row
    ids in UTF-8, reports, texts                             one after another

A text is "=" and the public attributes; it is empty where there are none.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.stores.collector.key_order import key_order, offsets_and_data
from deniable.stores.collector.upload import Part, StoredRows, Upload

_NUMBERS, _HEAD = 4, 8
_NO_TEXT, _TEXT = b"", b"="
Bytes = NDArray[np.uint8]


class DamagedContent(ValueError):
    """Bytes that are not what was written."""


@dataclass(frozen=True, slots=True, eq=False)
class RowColumns:
    """Rows of one table and round."""

    slots: Integers
    uids: pa.Array
    """As UTF-8 bytes, like the next two: they sort alike everywhere."""
    reports: pa.Array
    texts: pa.Array

    def __len__(self) -> int:
        return int(self.slots.size)

    def take(self, rows: Integers) -> RowColumns:
        """Some rows, in this order."""
        return RowColumns(self.slots[rows], *(_taken(column, rows) for column in (self.uids, self.reports, self.texts)))

    def slice(self, first: int, last: int) -> RowColumns:
        """The rows from one number to before another."""
        columns = (column.slice(first, last - first) for column in (self.uids, self.reports, self.texts))
        return RowColumns(self.slots[first:last], *columns)

    def sorted(self) -> RowColumns:
        """The same rows in the order of ids and slots."""
        return self.take(key_order(self.uids, self.slots))

    def key(self, row: int) -> tuple[bytes, int]:
        """The id and the slot of a row."""
        return self.uids[row].as_py(), int(self.slots[row])

    def before(self, key: tuple[bytes, int]) -> int:
        """How many rows come before a key; rows must be sorted."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.key(middle) < key else (low, middle)
        return low

    def stored(self) -> StoredRows:
        """As readers get them."""
        ends, _ = offsets_and_data(self.texts)
        publics = pa.nulls(len(self), pa.string())
        if ends[0] != ends[-1]:
            plain = pc.binary_replace_slice(self.texts, 0, len(_TEXT), b"").cast(pa.string())
            publics = pc.if_else(pc.equal(pc.binary_length(self.texts), 0), pa.scalar(None, pa.string()), plain)
        return StoredRows(self.uids.cast(pa.string()), self.reports, publics)


def joined(rows: Iterable[RowColumns]) -> RowColumns:
    """Rows of the same table and round, one after another."""
    listed = list(rows)
    if len(listed) == 1:
        return listed[0]
    if not listed:
        none = pa.array([], pa.binary())
        return RowColumns(np.empty(0, dtype=np.int64), none, none, none)
    columns = zip(*((each.uids, each.reports, each.texts) for each in listed), strict=True)
    return RowColumns(np.concatenate([each.slots for each in listed]), *map(pa.concat_arrays, columns))


@dataclass(frozen=True, slots=True, eq=False)
class UploadColumns(Sequence[Upload]):
    """A sequence of uploads that is kept as columns."""

    parts: tuple[Part, ...]
    which: Integers
    """The number of the part (table and round) of every upload."""
    rows: RowColumns

    @classmethod
    def of(cls, uploads: Sequence[Upload]) -> UploadColumns:
        """Uploads as columns, if they are not yet.

        >>> columns = UploadColumns.of([Upload("users", 0, "7", 0, b"report")])
        >>> list(columns)
        [Upload(table='users', round=0, uid='7', slot=0, report=b'report', public=None)]
        """
        if isinstance(uploads, UploadColumns):
            return uploads
        numbers: dict[Part, int] = {}
        which = np.array([numbers.setdefault(upload[:2], len(numbers)) for upload in uploads], dtype=np.int64)
        return cls(
            tuple(numbers),
            which,
            RowColumns(
                np.array([upload.slot for upload in uploads], dtype=np.int64),
                pa.array([upload.uid.encode() for upload in uploads], pa.binary()),
                pa.array([upload.report for upload in uploads], pa.binary()),
                texts_of([upload.public for upload in uploads]),
            ),
        )

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Upload: ...
    @overload
    def __getitem__(self, index: slice) -> list[Upload]: ...
    def __getitem__(self, index: int | slice) -> Upload | list[Upload]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        uid, slot = self.rows.key(index)
        report, text = self.rows.reports[index].as_py(), self.rows.texts[index].as_py()
        table, number = self.parts[self.which[index]]
        return Upload(table, number, uid.decode(), slot, report, text[1:].decode() if text else None)


def texts_of(publics: Sequence[str | None]) -> pa.Array:
    """Public attributes as they are kept."""
    return pa.array([_NO_TEXT if public is None else _TEXT + public.encode() for public in publics], pa.binary())


def no_texts(rows: int) -> pa.Array:
    """So many rows without public attributes."""
    return pa.BinaryArray.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(bytes(4 * (rows + 1))), pa.py_buffer(b"")]
    )


def _bytes_of(column: pa.Array) -> tuple[NDArray[np.int32], Bytes]:
    """The length of each value of a column, and all of them."""
    ends, data = offsets_and_data(column)
    return ends[1:] - ends[:-1], data[ends[0] : ends[-1]]


def _taken(column: pa.Array, rows: Integers) -> pa.Array:
    """Some values of a column of bytes. Values of one length, as most are, need no offsets."""
    lengths, data = _bytes_of(column)
    length = int(lengths[0]) if lengths.size else 0
    if not rows.size or (lengths != length).any():
        return column.take(pa.array(rows))
    values = data.reshape(lengths.size, length)[rows]
    ends = np.arange(rows.size + 1, dtype=np.int64) * length
    if ends[-1] > np.iinfo(np.int32).max:
        return column.take(pa.array(rows))
    return pa.BinaryArray.from_buffers(
        pa.binary(), rows.size, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(values)]
    )


def packed(rows: RowColumns) -> bytes:
    """Rows as bytes.

    >>> content = packed(UploadColumns.of([Upload("users", 0, "7", 3, b"report")]).rows)
    >>> unpacked(content).key(0)
    (b'7', 3)
    """
    numbers = np.empty((len(rows), _NUMBERS), dtype="<u4")
    numbers[:, 0] = rows.slots
    parts: list[Any] = [len(rows).to_bytes(4, "little"), numbers]
    for position, column in enumerate((rows.uids, rows.reports, rows.texts), start=1):
        numbers[:, position], data = _bytes_of(column)
        parts.append(data)
    content = b"".join(parts)
    return zlib.crc32(content).to_bytes(4, "little") + content


def unpacked(content: bytes) -> RowColumns:
    """The rows of `packed` bytes."""
    first = _HEAD + 4 * _NUMBERS * int.from_bytes(content[4:_HEAD], "little")
    if zlib.crc32(memoryview(content)[4:]) != int.from_bytes(content[:4], "little") or first > len(content):
        raise DamagedContent("the check value is another one")
    numbers = np.frombuffer(content, dtype="<u4", count=(first - _HEAD) // 4, offset=_HEAD).reshape(-1, _NUMBERS)
    columns, at, buffer = [], first, pa.py_buffer(content)
    for position in range(1, _NUMBERS):
        ends = np.zeros(numbers.shape[0] + 1, dtype=np.int32)
        np.cumsum(numbers[:, position], out=ends[1:])
        data = buffer.slice(at, int(ends[-1]))
        columns.append(pa.BinaryArray.from_buffers(pa.binary(), numbers.shape[0], [None, pa.py_buffer(ends), data]))
        at += int(ends[-1])
    if at != len(content):
        raise DamagedContent("the lengths do not add up")
    return RowColumns(numbers[:, 0].astype(np.int64), *columns)
