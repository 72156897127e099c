"""Which users have answered: one 64-bit key per user, in sorted arrays that are merged as they grow."""

from __future__ import annotations

import re
import secrets
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Booleans, Integers, Words
from deniable.errors import InvalidData
from deniable.mechanisms._compiled import compiled
from deniable.streams.structure.state_values import packed, unpacked

_SMALL = 1 << 16
_WRITTEN_INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")
_PRIME = 0x100000001B3


class AnsweredIds:
    """The users that a server has heard from. Each takes eight bytes, whatever the id is.

    An integer id is its own key, and so is a text of up to 18 digits that is written as an integer: 7 and "7" are one
    user. Any other text is hashed with a secret drawn for this object. Two of n users share a key with a chance of
    about n²/2^65 (3 in a million for ten million). The report of the second one is then refused.
    """

    def __init__(self) -> None:
        self._secret = np.uint64(secrets.randbits(64))
        self._recent: set[int] = set()
        self._runs: list[Words] = []

    def state(self) -> dict[str, Any]:
        """Everything that is remembered, as JSON: integer ids as they are; of texts, the hashes and their secret."""
        self._settle()
        keys = np.sort(np.concatenate((np.zeros(0, dtype=np.uint64), *self._runs)))
        return {"secret": f"{int(self._secret):016x}", "keys": packed(keys)}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> AnsweredIds:
        """The users that `state` described."""
        made = cls()
        made._secret = np.uint64(int(state["secret"], 16))
        made.add(unpacked(state["keys"], np.uint64))
        return made

    def __len__(self) -> int:
        return len(self._recent) + sum(run.size for run in self._runs)

    def keys(self, ids: Any) -> Words:
        """The keys of a column of ids: integers or texts."""
        column = ids if isinstance(ids, (pa.Array, pa.ChunkedArray)) else pa.array(ids)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if column.null_count:
            raise InvalidData("a report has no user id", "Give every report one, or none at all.")
        if pa.types.is_integer(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64).view(np.uint64)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise InvalidData("user ids must be integers or texts", "Convert them first.")
        keys = self._hashed(column.cast(pa.large_string()))
        written = np.asarray(pc.match_substring_regex(column, f"^({_WRITTEN_INTEGER.pattern})$"))
        if written.any():
            numbers = column.filter(pa.array(written)).cast(pa.int64())
            keys[written] = np.asarray(numbers).view(np.uint64)
        return keys

    def key(self, uid: int | str) -> int:
        """The key of one user."""
        if isinstance(uid, int) or _WRITTEN_INTEGER.fullmatch(uid):
            return int(uid) % 2**64
        return int(self._hashed(pa.array([uid], pa.large_string()))[0])

    def _hashed(self, texts: Any) -> Words:
        _, offsets, data = texts.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
        letters = np.zeros(1, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
        keys = np.empty(len(texts), dtype=np.uint64)
        if keys.size:
            _hash(letters, ends, self._secret, keys)
        return keys

    def fresh(self, keys: Words) -> Booleans:
        """Which of these users are new. Of equal keys only the first is."""
        self._settle()
        ordered, first = np.unique(keys, return_index=True)  # looked up in order, which suits the cache
        new = np.ones(ordered.size, dtype=np.bool_)
        for run in self._runs:
            new &= run[np.minimum(np.searchsorted(run, ordered), run.size - 1)] != ordered
        result = np.zeros(keys.size, dtype=np.bool_)
        result[first[new]] = True
        return result

    def is_fresh(self, key: int) -> bool:
        """Whether one user has not answered yet."""
        if key in self._recent:
            return False
        number = np.uint64(key)
        return not any(run[min(int(np.searchsorted(run, number)), run.size - 1)] == number for run in self._runs)

    def add(self, keys: Words) -> None:
        """Remember users, none of whom was known."""
        if keys.size:
            self._settle()
            self._merge(np.sort(keys))

    def add_one(self, key: int) -> None:
        """Remember one user."""
        self._recent.add(key)
        if len(self._recent) >= _SMALL:
            self._settle()

    def _settle(self) -> None:
        if self._recent:
            run = np.sort(np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent)))
            self._recent = set()
            self._merge(run)

    def _merge(self, run: Words) -> None:
        """Keep runs of falling sizes, each more than twice the next: there are few, and they are rarely merged."""
        while self._runs and self._runs[-1].size <= 2 * run.size:
            run = np.concatenate((self._runs.pop(), run))
            run.sort(kind="stable")  # a merge: both parts are sorted
        self._runs.append(run)


@compiled
def _hash(letters: NDArray[np.uint8], ends: Integers, secret: np.uint64, keys: Words) -> None:
    for text in range(keys.size):
        state = secret
        for letter in range(ends[text], ends[text + 1]):
            state = np.uint64((state ^ np.uint64(letters[letter])) * np.uint64(_PRIME))
            state = np.uint64(state ^ (state >> np.uint64(29)))
        state = np.uint64((state ^ (state >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD))
        keys[text] = np.uint64(state ^ (state >> np.uint64(33)))
