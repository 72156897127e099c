"""Stored reports that are possible, in the order of ids: checked once, and merged with those that were."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Integers
from deniable.cancellation import checkpoint
from deniable.engines.collecting.stored_reports import reports_table
from deniable.mechanisms._compiled import compiled
from deniable.stores.collector.key_order import key_order, offsets_and_data
from deniable.stores.collector.upload import StoredRows
from deniable.tables.reports.report_table import possible_rows
from deniable.tables.specification.specification import Specification

_FEW = 512


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Reports that are possible, by id and slot; and how many are not."""

    table: pa.Table
    refused: Counter[str]

    def with_more(self, more: CheckedRows) -> CheckedRows:
        """Both together; no key is in both."""
        return CheckedRows(merged(self.table, more.table), self.refused + more.refused)


def warm_up() -> None:
    """Merge and compare single rows, so that what is compiled on first use is compiled now."""
    first, second = (pa.table({"uid": [uid], "slot": pa.array([0], pa.uint16())}) for uid in ("a", "b"))
    merged(_sorted(first), second)
    _match(*_key(first), *_key(second), np.zeros(1, dtype=np.bool_))


def checked_rows(
    collection: Specification,
    name: str,
    rows: StoredRows,
    known: CheckedRows | None = None,
    *,
    in_order: bool = True,
) -> CheckedRows:
    """Stored rows as a table of possible reports. What a key holds never changes: `known` ones are possible.

    Without `in_order` they may be in any order.
    """
    table = reports_table(collection, name, rows)
    known = known if known is not None and known.table.num_rows else None
    table = _sorted(table) if in_order or known is not None else table
    checkpoint()
    if known is None or not table.num_rows:
        return CheckedRows(*possible_rows(collection, name, table))
    is_known = np.zeros(table.num_rows, dtype=np.bool_)
    _match(*_key(known.table), *_key(table), is_known)
    good, refused = possible_rows(collection, name, table.filter(pa.array(~is_known)))
    checkpoint()
    return CheckedRows(merged(table.filter(pa.array(is_known)).cast(good.schema), good), refused)


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
        low = _before(ends, data, slots, more_ends, more_data, more_slots, row, low)
        positions[row] = low


@compiled
def _match(ends: Any, data: Any, slots: Any, more_ends: Any, more_data: Any, more_slots: Any, is_known: Any) -> None:
    """For every row of the second table, whether the first holds its key."""
    low = 0
    for row in range(is_known.size):
        low = _before(ends, data, slots, more_ends, more_data, more_slots, row, low)
        first, length = more_ends[row], more_ends[row + 1] - more_ends[row]
        same = low < slots.size and slots[low] == more_slots[row] and ends[low + 1] - ends[low] == length
        byte = 0
        while same and byte < length:
            same = data[ends[low] + byte] == more_data[first + byte]
            byte += 1
        is_known[row] = same


@compiled
def _before(
    ends: Any, data: Any, slots: Any, more_ends: Any, more_data: Any, more_slots: Any, row: Any, low: Any
) -> Any:
    """How many rows of the first table come before one of the second; at least `low` do."""
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
    return low
