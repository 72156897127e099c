"""64 bits for every key.

A digest is SipHash-1-3 under the store's secret, over table and round, slot and id: nobody outside can choose ids whose
digests agree. Digests only say where to look. Whether two keys are equal is always decided by comparing them.
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


def of_parts(secret: bytes, parts: Sequence[Part], which: NDArray[np.int64]) -> Digests:
    """The number of the part of every row."""
    numbers = np.array([part_number(secret, part) for part in parts], dtype=np.uint64)
    return numbers[which] if parts else np.empty(0, dtype=np.uint64)
