"""The order of rows by user id and slot, for many rows at once.

Ids are compared by eight bytes each, as numbers, from where they begin to differ. What these leave open, mostly the
slots of one user, is put in order by a compiled loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.mechanisms._compiled import compiled

_LONGEST_TIE = 64
Bytes = NDArray[np.uint8]


def offsets_and_data(column: pa.Array) -> tuple[NDArray[np.int32], Bytes]:
    """Where each value of a column begins and ends in its bytes, and these."""
    _, offsets, data = column.buffers()
    first, last = column.offset, column.offset + len(column) + 1
    none = np.zeros(1, dtype=np.int32)
    ends = none if offsets is None or not offsets.size else np.frombuffer(offsets, dtype=np.int32)[first:last]
    return ends, np.frombuffer(data if data is not None else b"", dtype=np.uint8)


def key_order(uids: pa.Array, slots: Integers) -> Integers:
    """The numbers of rows in the order of ids (as bytes) and slots.

    >>> key_order(pa.array([b"b", b"ab", b"a", b"b"], pa.binary()), np.array([1, 0, 5, 0])).tolist()
    [2, 1, 3, 0]
    """
    ends, data = offsets_and_data(uids)
    words = np.empty(len(uids), dtype=np.uint64)
    _words(ends, data, words)
    order = np.argsort(words).astype(np.int64)
    if _resolve(words, ends, data, slots, order, _LONGEST_TIE):
        return order
    keys = pa.table({"uid": uids, "slot": slots})
    by_both = pc.sort_indices(keys, sort_keys=[("uid", "ascending"), ("slot", "ascending")])
    return np.asarray(by_both.to_numpy().astype(np.int64))


@compiled
def _words(ends: Any, data: Any, words: Any) -> None:
    """Eight bytes of every id, behind the bytes that all begin with."""
    common = ends[1] - ends[0] if words.size else 0
    for row in range(1, words.size):
        common = min(common, ends[row + 1] - ends[row])
        byte = 0
        while byte < common and data[ends[row] + byte] == data[ends[0] + byte]:
            byte += 1
        common = byte
    for row in range(words.size):
        word = np.uint64(0)
        for byte in range(8):
            at = ends[row] + common + byte
            word = word << np.uint64(8) | (np.uint64(data[at]) if at < ends[row + 1] else np.uint64(0))
        words[row] = word


@compiled
def _is_before(ends: Any, data: Any, slots: Any, row: Any, other: Any) -> Any:
    length, others = ends[row + 1] - ends[row], ends[other + 1] - ends[other]
    for byte in range(min(length, others)):
        mine, its = data[ends[row] + byte], data[ends[other] + byte]
        if mine != its:
            return mine < its
    return length < others or (length == others and slots[row] < slots[other])


@compiled
def _resolve(words: Any, ends: Any, data: Any, slots: Any, order: Any, longest: Any) -> Any:
    """Sort rows with the same word by insertion; says no if there are too many of one."""
    first = 0
    for position in range(1, order.size):
        row = order[position]
        if words[row] != words[order[first]]:
            first = position
        elif position - first > longest:
            return False
        else:
            at = position
            while at > first and _is_before(ends, data, slots, row, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
    return True
