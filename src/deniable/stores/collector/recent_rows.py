"""The rows that arrived last, in memory: which keys are among them, and whether the same was sent.

Columns in buffers that grow, and a table of row numbers by digest (open addressing). A batch is first put behind the
rows that are there, and looked up row by row by a compiled loop; then the caller keeps it, or some of it, or nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers
from deniable.mechanisms._compiled import compiled
from deniable.stores.collector.key_digests import Digests
from deniable.stores.collector.key_order import offsets_and_data
from deniable.stores.collector.upload_columns import RowColumns

_FIRST_ROWS, _FIRST_BYTES = 1 << 10, 1 << 14


class _Column:
    """Numbers that are appended to."""

    def __init__(self, kind: Any, size: int) -> None:
        self.all: NDArray[Any] = np.zeros(size, dtype=kind)

    def put(self, values: NDArray[Any], at: int) -> None:
        """Write values from a place on, and make room for them."""
        while at + values.size > self.all.size:
            self.all = np.concatenate([self.all, np.zeros_like(self.all)])
        self.all[at : at + values.size] = values


class _ByteColumn:
    """Byte strings that are appended to."""

    def __init__(self) -> None:
        self.ends, self.data = _Column(np.int64, _FIRST_ROWS), _Column(np.uint8, _FIRST_BYTES)

    def put(self, column: Any, at: int) -> None:
        """Write the values of an Arrow column from a row on."""
        ends, data = offsets_and_data(column)
        first = int(self.ends.all[at])
        self.data.put(data[ends[0] : ends[-1]], first)
        self.ends.put(ends[1:].astype(np.int64) - int(ends[0]) + first, at + 1)


class RecentRows:
    """Rows by their digest, part, slot and id.

    >>> from deniable.stores.collector.upload_columns import UploadColumns
    >>> from deniable.stores.collector.upload import Upload
    >>> rows = UploadColumns.of([Upload("t", 0, "7", 0, report) for report in (b"a", b"b", b"a")]).rows
    >>> recent, numbers = RecentRows(), np.full(3, 5, dtype=np.uint64)
    >>> first, same = recent.offer(numbers, numbers, rows)
    >>> first.tolist(), same.tolist()
    ([-1, 0, 0], [False, False, True])
    >>> recent.keep(np.array([True, False, False]))
    >>> len(recent)
    1
    """

    def __init__(self) -> None:
        self._count = self._offered = 0
        self._table = np.full(2 * _FIRST_ROWS, -1, dtype=np.int32)
        self._digests, self._parts = _Column(np.uint64, _FIRST_ROWS), _Column(np.uint64, _FIRST_ROWS)
        self._slots = _Column(np.int64, _FIRST_ROWS)
        self._uids, self._reports, self._texts = _ByteColumn(), _ByteColumn(), _ByteColumn()
        self._filled = np.empty(0, dtype=np.int64)
        self._batch: tuple[Digests, Digests, RowColumns] | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """How long ids, reports and texts are together."""
        return sum(int(column.ends.all[self._count]) for column in (self._uids, self._reports, self._texts))

    def clear(self) -> None:
        """Forget all rows, and keep the room that they had."""
        self._count = self._offered = 0
        self._table.fill(-1)
        self._batch = None

    def offer(self, digests: Digests, parts: Digests, rows: RowColumns) -> tuple[Integers, Booleans]:
        """For every row the first with its key, here or before it in the batch: its number, -1 if there is none.

        Also whether that one holds the same report and text. The batch waits for `keep`.
        """
        self._batch, self._offered = (digests, parts, rows), len(rows)
        self._append(digests, parts, rows)
        first, same = np.empty(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
        self._filled = np.empty(len(rows), dtype=np.int64)
        _look_up(*self._columns(), self._table, self._count, first, same, self._filled)
        return first, same

    def keep(self, kept: Booleans) -> None:
        """Keep these rows of the batch that was offered; they have keys that are new and differ."""
        if self._batch is None:
            return
        batch, self._batch = self._batch, None
        if kept.all():
            self._count += self._offered
            return
        self._table[self._filled[self._filled >= 0]] = -1  # the last that were put in, so nothing behind them is lost
        chosen = np.flatnonzero(kept)
        if chosen.size:
            digests, parts, rows = batch
            self.offer(digests[chosen], parts[chosen], rows.take(chosen))
            self._batch = None
            self._count += int(chosen.size)

    def _append(self, digests: Digests, parts: Digests, rows: RowColumns) -> None:
        at = self._count
        self._digests.put(digests, at)
        self._parts.put(parts, at)
        self._slots.put(rows.slots, at)
        for column, given in ((self._uids, rows.uids), (self._reports, rows.reports), (self._texts, rows.texts)):
            column.put(given, at)
        needed = 2 * (at + len(rows))
        if needed > self._table.size:
            self._table = np.full(1 << (needed - 1).bit_length(), -1, dtype=np.int32)
            _insert(self._digests.all, at, self._table)

    def _columns(self) -> tuple[Any, ...]:
        fixed = (self._digests.all, self._parts.all, self._slots.all)
        texts = (self._uids, self._reports, self._texts)
        return (*fixed, *(array for column in texts for array in (column.ends.all, column.data.all)))


@compiled
def _insert(digests: Any, count: Any, table: Any) -> None:
    mask = np.uint64(table.size - 1)
    for row in range(count):
        at = digests[row] & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = row


@compiled
def _equal(ends: Any, data: Any, row: Any, other: Any) -> Any:
    length = ends[row + 1] - ends[row]
    if length != ends[other + 1] - ends[other]:
        return False
    byte = 0
    while byte < length and data[ends[row] + byte] == data[ends[other] + byte]:
        byte += 1
    return byte == length


@compiled
def _look_up(
    digests: Any,
    parts: Any,
    slots: Any,
    uid_ends: Any,
    uids: Any,
    report_ends: Any,
    reports: Any,
    text_ends: Any,
    texts: Any,
    table: Any,
    before: Any,
    first: Any,
    same: Any,
    filled: Any,
) -> None:
    """Find the row with the same key, or put this one where it will be found."""
    mask = np.uint64(table.size - 1)
    for number in range(first.size):
        row, match = before + number, -1
        at = digests[row] & mask
        while match < 0 and table[at] >= 0:
            held = table[at]
            if (
                digests[held] == digests[row]
                and parts[held] == parts[row]
                and slots[held] == slots[row]
                and _equal(uid_ends, uids, held, row)
            ):
                match = held
            else:
                at = (at + np.uint64(1)) & mask
        first[number], filled[number] = match, -1
        if match >= 0:
            same[number] = _equal(report_ends, reports, match, row) and _equal(text_ends, texts, match, row)
        else:
            table[at], filled[number] = row, np.int64(at)
