"""64 bits for every key, and filters that say which keys a run of the store may hold.

A digest is SipHash-1-3 under the store's secret, over table and round, slot and id: nobody outside can choose ids whose
digests agree. Digests only say where to look. Whether two keys are equal is always decided by comparing them.

A filter (Bloom's, in blocks of 512 bits) has 20 bits for each key and sets 8. One key in about 5,000 that a run does
not hold passes its filter, and costs a look at a page; a key that it holds always passes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms._compiled import compiled
from deniable.stores.collector.key_order import offsets_and_data
from deniable.stores.collector.upload import Part
from deniable.stores.collector.upload_columns import RowColumns

Digests = NDArray[np.uint64]
DIGEST_KEY_BYTES = 16
_BITS_PER_KEY, _BITS_SET, _BLOCK_BITS, _WORDS = 20, 8, 512, 8


def part_number(secret: bytes, part: Part) -> int:
    """64 bits for a table and round."""
    text = f"{part[1]}\n{part[0]}".encode()
    return int.from_bytes(hashlib.blake2b(text, key=secret, digest_size=8).digest(), "little")


def digests(secret: bytes, part_numbers: Digests, rows: RowColumns) -> Digests:
    """The digest of every key; `part_numbers` are those of its table and round."""
    ends, data = offsets_and_data(rows.uids)
    key = np.frombuffer(secret, dtype="<u8")
    given = np.empty(len(rows), dtype=np.uint64)
    _digest(key[0], key[1], part_numbers, rows.slots.astype(np.uint64), ends, data, given)
    return given


@compiled
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    v0 += v1
    v1 = v0 ^ (v1 << np.uint64(13) | v1 >> np.uint64(51))
    v0 = v0 << np.uint64(32) | v0 >> np.uint64(32)
    v2 += v3
    v3 = v2 ^ (v3 << np.uint64(16) | v3 >> np.uint64(48))
    v0 += v3
    v3 = v0 ^ (v3 << np.uint64(21) | v3 >> np.uint64(43))
    v2 += v1
    v1 = v2 ^ (v1 << np.uint64(17) | v1 >> np.uint64(47))
    v2 = v2 << np.uint64(32) | v2 >> np.uint64(32)
    return v0, v1, v2, v3


@compiled
def _digest(k0: Any, k1: Any, parts: Any, slots: Any, ends: Any, data: Any, given: Any) -> None:
    for row in range(given.size):
        v0, v1 = k0 ^ np.uint64(0x736F6D6570736575), k1 ^ np.uint64(0x646F72616E646F6D)
        v2, v3 = k0 ^ np.uint64(0x6C7967656E657261), k1 ^ np.uint64(0x7465646279746573)
        length = ends[row + 1] - ends[row]
        words = 3 + length // 8
        for number in range(words):
            if number == 0:
                word = parts[row]
            elif number == 1:
                word = slots[row]
            else:  # eight bytes of the id; the last word has its length on top
                first = ends[row] + 8 * (number - 2)
                word = np.uint64(0)
                for byte in range(min(8, ends[row + 1] - first)):
                    word |= np.uint64(data[first + byte]) << np.uint64(8 * byte)
                if number == words - 1:
                    word ^= np.uint64(length) << np.uint64(56)
            v3 ^= word
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0 ^= word
        v2 ^= np.uint64(0xFF)
        for _ in range(3):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        given[row] = v0 ^ v1 ^ v2 ^ v3


class RunFilters:
    """The filters of all runs, side by side."""

    def __init__(self) -> None:
        self._words = np.empty(0, dtype=np.uint64)
        self._starts = np.zeros(1, dtype=np.int64)

    def append(self, words: Digests) -> None:
        """Add the filter of the next run."""
        self._words = np.concatenate([self._words, words])
        self._starts = np.append(self._starts, self._words.size)

    def may_hold(self, wanted: Digests) -> list[tuple[int, int]]:
        """(which key, which run), wherever a run may hold a key."""
        passed = np.zeros((wanted.size, self._starts.size - 1), dtype=np.bool_)
        _pass(self._words, self._starts, wanted, passed)
        keys, runs = np.nonzero(passed)
        return list(zip(keys.tolist(), runs.tolist(), strict=True))


def run_filter(held: Digests) -> Digests:
    """The filter of a run with these keys.

    >>> filters = RunFilters()
    >>> filters.append(run_filter(np.array([7, 8], dtype=np.uint64)))
    >>> filters.may_hold(np.array([9, 8], dtype=np.uint64))
    [(1, 0)]
    """
    blocks = max(1, -(-_BITS_PER_KEY * held.size // _BLOCK_BITS))
    words = np.zeros(blocks * _WORDS, dtype=np.uint64)
    _fill(words, held)
    return words


@compiled
def _place(digest: Any, blocks: Any) -> Any:
    """The first word of the key's block, and bits that say which of the block are set."""
    block = (digest >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)
    return np.int64(block) * _WORDS, digest * np.uint64(0x9E3779B97F4A7C15) ^ digest >> np.uint64(29)


@compiled
def _bit(spread: Any, number: Any) -> Any:
    """The word and the bit of the block that a key sets as its so-manieth."""
    at = spread * np.uint64(2 * number + 1) + (spread >> np.uint64(32)) * np.uint64(number)
    at = at >> np.uint64(23) & np.uint64(_BLOCK_BITS - 1)
    return np.int64(at >> np.uint64(6)), np.uint64(1) << (at & np.uint64(63))


@compiled
def _fill(words: Any, held: Any) -> None:
    blocks = words.size // _WORDS
    for row in range(held.size):
        first, spread = _place(held[row], blocks)
        for number in range(_BITS_SET):
            word, bit = _bit(spread, number)
            words[first + word] |= bit


@compiled
def _pass(words: Any, starts: Any, wanted: Any, passed: Any) -> None:
    for run in range(starts.size - 1):
        blocks = (starts[run + 1] - starts[run]) // _WORDS
        for row in range(wanted.size):
            first, spread = _place(wanted[row], blocks)
            first += starts[run]
            number = 0
            while number < _BITS_SET:
                word, bit = _bit(spread, number)
                if not words[first + word] & bit:
                    break
                number += 1
            passed[row, run] = number == _BITS_SET


def of_parts(secret: bytes, parts: Sequence[Part], which: NDArray[np.int64]) -> Digests:
    """The number of the part of every row."""
    numbers = np.array([part_number(secret, part) for part in parts], dtype=np.uint64)
    return numbers[which] if parts else np.empty(0, dtype=np.uint64)
