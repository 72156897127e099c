"""A collector's store as an engine that grows with it: what was read once is not read, checked or sorted again.

    settled   reports in runs of the store, which never change      only new runs are read, and merged
    recent    reports in no run yet                                 only the newest are read; all, after a run was added

Both are kept valid and in the order of ids, and an engine is made of the two together. What has to be done for all
reports then is one copy of their columns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Integers
from deniable.cancellation import checkpoint
from deniable.engines.collecting.stored_reports import CollectorFolder, joined_rounds, reports_table
from deniable.engines.local.local_engine import LocalEngine
from deniable.engines.local.opening import open_validated
from deniable.mechanisms._compiled import compiled
from deniable.stores.collector.key_order import key_order, offsets_and_data
from deniable.stores.collector.upload import CollectorStore, StoredRows, StoreMark
from deniable.tables.reports.report_table import complete_users, possible_rows

_FEW = 512
_MOST_ID_BYTES = 2**30


@dataclass(slots=True)
class _Checked:
    """Reports that are possible, by id and slot; and how many are not."""

    table: pa.Table
    refused: Counter[str]

    def with_more(self, more: _Checked) -> _Checked:
        """Both together; no key is in both."""
        return _Checked(merged(self.table, more.table), self.refused + more.refused)


@dataclass(slots=True)
class _Part:
    """What is known of a table and round."""

    settled: _Checked
    recent: _Checked
    mark: StoreMark | None = None
    both: _Checked | None = None


class GrowingStore:
    """Engines over everything that a store holds, one after another. Only one thread may ask for them."""

    def __init__(self, folder: CollectorFolder, store: CollectorStore) -> None:
        self._folder, self._store = folder, store
        self._parts: dict[tuple[str, int], _Part] = {}

    @staticmethod
    def suits(folder: CollectorFolder, store: CollectorStore) -> bool:
        """Whether a store says what is new, and no column's type depends on other reports."""
        plain = not any(table.public for table in folder.collection.tables)
        return plain and not folder.simulation and store.since(folder.collection.tables[0].name, 0, None) is not None

    def engine(self) -> LocalEngine | None:
        """An engine over what is committed now; None if ids take too much room."""
        collection, refused = self._folder.collection, dict[str, Counter[str]]()
        grown = {part: self._grown(part) for part in sorted(self._store.summary().counts)}
        if sum(checked.table["uid"].nbytes for checked in grown.values()) > _MOST_ID_BYTES:
            self._parts = {}
            return None
        kept = joined_rounds({part: checked.table for part, checked in grown.items()})
        for name, table in kept.items():
            refused[name] = Counter()
            for (of, _), checked in grown.items():
                refused[name] += checked.refused if of == name else Counter()
            if collection.rounds is not None or collection.reports_per_user(name) > 1:
                kept[name], incomplete = complete_users(collection, name, table)
                refused[name] += incomplete
            checkpoint()
        return open_validated(collection, kept, refused)

    def _grown(self, part: tuple[str, int]) -> _Checked:
        """The reports of a table and round."""
        known = self._parts.get(part)
        growth = self._store.since(*part, None if known is None else known.mark)
        assert growth is not None  # noqa: S101 - `suits` has asked
        if known is None:
            nothing = self._checked(part[0], StoredRows.of((), (), ()))
            known = self._parts[part] = _Part(nothing, nothing)
        if known.both is None or growth.replaces_recent or len(growth.recent.uids):
            known.both, known.mark = None, None  # until all of it has succeeded, nothing is known
            settled, recent = (self._checked(part[0], rows) for rows in (growth.settled, growth.recent))
            settled = known.settled.with_more(settled)
            recent = recent if growth.replaces_recent else known.recent.with_more(recent)
            both = settled.with_more(recent)
            self._parts[part] = _Part(settled, recent, growth.mark, both)
            return both
        known.mark = growth.mark
        return known.both

    def _checked(self, name: str, rows: StoredRows) -> _Checked:
        """Stored rows as a table of possible reports, in order."""
        table = reports_table(self._folder.collection, name, rows)
        checkpoint()
        good, refused = possible_rows(self._folder.collection, name, table)
        checkpoint()
        return _Checked(_sorted(good), refused)


def _key(table: pa.Table) -> tuple[Any, Any, Integers]:
    """Ends and bytes of ids, and slots."""
    return *offsets_and_data(table["uid"].combine_chunks()), np.asarray(table["slot"]).astype(np.int64)


def _sorted(table: pa.Table) -> pa.Table:
    table = table.combine_chunks()
    order = key_order(table["uid"].combine_chunks(), np.asarray(table["slot"]).astype(np.int64))
    return table.take(pa.array(order)).combine_chunks()


def merged(table: pa.Table, more: pa.Table) -> pa.Table:
    """Two tables of reports that are in order, as one that is.

    >>> first, second = ({"uid": ["a", "c"], "slot": [0, 1]}, {"uid": ["b", "c"], "slot": [0, 0]})
    >>> merged(pa.table(first), pa.table(second))["uid"].to_pylist()
    ['a', 'b', 'c', 'c']
    """
    if not more.num_rows or not table.num_rows:
        return table if table.num_rows else more
    positions = np.empty(more.num_rows, dtype=np.int64)
    _find(*_key(table), *_key(more), positions)
    if more.num_rows <= _FEW:  # pieces are copied, not rows
        pieces, before = [], 0
        for row, position in enumerate(positions.tolist()):
            pieces += [table.slice(before, position - before), more.slice(row, 1)]
            before = position
        return pa.concat_tables([*pieces, table.slice(before)]).combine_chunks()
    order = np.insert(np.arange(table.num_rows), positions, np.arange(table.num_rows, table.num_rows + more.num_rows))
    return pa.concat_tables([table, more]).combine_chunks().take(pa.array(order)).combine_chunks()


@compiled
def _find(ends: Any, data: Any, slots: Any, more_ends: Any, more_data: Any, more_slots: Any, positions: Any) -> None:
    """For every row of the second table, how many of the first come before it."""
    low = 0
    for row in range(positions.size):
        high, first, length = slots.size, more_ends[row], more_ends[row + 1] - more_ends[row]
        while low < high:
            middle = (low + high) // 2
            held = ends[middle + 1] - ends[middle]
            byte = 0
            while byte < min(held, length) and data[ends[middle] + byte] == more_data[first + byte]:
                byte += 1
            if byte < min(held, length):
                before = data[ends[middle] + byte] < more_data[first + byte]
            else:
                before = held < length or (held == length and slots[middle] < more_slots[row])
            if before:
                low = middle + 1
            else:
                high = middle
        positions[row] = low
