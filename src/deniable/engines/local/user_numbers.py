"""A number for every user, in the order in which they are met: what tables that grow compare instead of ids.

Ids are found by a digest under a secret of this process (open addressing), and compared whole.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.mechanisms._compiled import compiled
from deniable.stores.collector.key_digests import DIGEST_KEY_BYTES, Digests, digests
from deniable.stores.collector.key_order import offsets_and_data
from deniable.stores.collector.upload_columns import RowColumns, no_texts

_FIRST_USERS, _FIRST_ID_BYTES = 1 << 10, 1 << 14


class UserNumbers:
    """Users by their ids.

    >>> numbers = UserNumbers()
    >>> numbers.of(pa.array(["b", "a", "b"])).tolist(), numbers.of(pa.array(["c", "a"])).tolist()
    ([0, 1, 0], [2, 1])
    >>> numbers.names(np.array([2, 0])).tolist()
    ['c', 'b']
    """

    def __init__(self) -> None:
        self._secret, self._count = secrets.token_bytes(DIGEST_KEY_BYTES), 0
        self._digests = np.zeros(_FIRST_USERS, dtype=np.uint64)
        self._ends = np.zeros(_FIRST_USERS + 1, dtype=np.int64)
        self._data = np.zeros(_FIRST_ID_BYTES, dtype=np.uint8)
        self._table = np.full(2 * _FIRST_USERS, -1, dtype=np.int64)

    @property
    def bytes(self) -> int:
        """How long all ids are together."""
        return int(self._ends[self._count])

    def of(self, uids: pa.Array) -> Integers:
        """The number of every user; who was not met gets the next."""
        ends, data = offsets_and_data(uids)
        given = np.empty(len(uids), dtype=np.int64)
        self._make_room(len(uids), int(ends[-1] - ends[0]))
        self._count = _number(
            self._digests_of(uids), ends, data, self._count, self._digests, self._ends, self._data, self._table, given
        )
        return given

    def names(self, numbers: Integers) -> NDArray[np.generic]:
        """The ids of users."""
        offsets = pa.py_buffer(self._ends[: self._count + 1])
        ids = pa.LargeStringArray.from_buffers(self._count, offsets, pa.py_buffer(self._data))
        return np.asarray(ids.take(pa.array(numbers)).to_numpy(zero_copy_only=False))

    def _digests_of(self, uids: pa.Array) -> Digests:
        nothing = np.zeros(len(uids), dtype=np.int64)
        rows = RowColumns(nothing, uids, no_texts(len(uids)), no_texts(len(uids)))
        return digests(self._secret, nothing.astype(np.uint64), rows)

    def _make_room(self, users: int, size: int) -> None:
        while self._count + users > self._digests.size:
            self._digests = np.concatenate([self._digests, np.zeros_like(self._digests)])
            self._ends = np.concatenate([self._ends, np.zeros(self._ends.size - 1, dtype=np.int64)])
            self._table = np.full(2 * self._digests.size, -1, dtype=np.int64)
            _enter(self._digests, self._count, self._table)
        while self.bytes + size > self._data.size:
            self._data = np.concatenate([self._data, np.zeros_like(self._data)])


@compiled
def _enter(digests: Any, count: Any, table: Any) -> None:
    mask = np.uint64(table.size - 1)
    for user in range(count):
        at = digests[user] & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = user


@compiled
def _number(
    wanted: Any, ends: Any, data: Any, count: Any, digests: Any, held_ends: Any, held: Any, table: Any, given: Any
) -> Any:
    """Find every id, or put it behind the others; returns how many there are then."""
    mask = np.uint64(table.size - 1)
    for row in range(given.size):
        first, length = ends[row], ends[row + 1] - ends[row]
        at, match = wanted[row] & mask, np.int64(-1)
        while match < 0 and table[at] >= 0:
            user = table[at]
            begin = held_ends[user]
            same = digests[user] == wanted[row] and held_ends[user + 1] - begin == length
            byte = 0
            while same and byte < length:
                same = held[begin + byte] == data[first + byte]
                byte += 1
            if same:
                match = user
            else:
                at = (at + np.uint64(1)) & mask
        if match < 0:
            match = np.int64(count)
            table[at], digests[count] = match, wanted[row]
            begin = held_ends[count]
            for byte in range(length):
                held[begin + byte] = data[first + byte]
            held_ends[count + 1] = begin + length
            count += 1
        given[row] = match
    return count
