"""Collisions of all pairs of a few cells, exactly: hashes as bit planes, pairs as three operations for 64 seeds.

The hash of every cell is computed once per seed, not once per pair. Its first six bits go into six words, one bit for
each of 64 seeds. Two cells share one of 2^e buckets under the seeds at which the first e words agree, so that six
exclusive ors and counts of bits give the collisions for g = 2, 4, …, 64. For many pairs see `bucket_masks.py`.

The bucket of g = m·2^j without its last bit is that of g = m·2^(j − 1): the six bits of the bucket for the largest of
these g give the collisions for all of them, for every odd m as for m = 1. All g from 2 to 64 take 32 such counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from deniable.arrays import Integers, Words32
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms._support import hash_cell

PLANES = 6
MOST_BUCKETS = 2**PLANES
BLOCK = 1 << 14
"""Seeds whose planes are held at a time."""
_LANES = BLOCK // 64
_TILE = 2  # cells whose planes stay in the fastest cache
_HALF = np.uint32(0xFFFF)
_ONE, _TWO, _FOUR = np.uint64(1), np.uint64(2), np.uint64(4)
_ONES, _TWOS, _FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)


def _count_bits(typing: Any, word: Any) -> Any:  # noqa: ARG001 - as numba calls it
    """How many bits of a 64-bit word are set: one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001 - as numba calls it
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_bits: Any = intrinsic(_count_bits)


@compiled
def bucket_of(hashed: Any, buckets: Any) -> Any:
    """⌊hashed · g / 2^32⌋ for g ≤ 64 in 32 bits, which keeps the vectors narrow."""
    high, low = np.uint32(hashed >> np.uint32(16)), np.uint32(hashed & _HALF)
    carry = np.uint32(np.uint32(low * buckets) >> np.uint32(16))
    return np.uint32(np.uint32(np.uint32(high * buckets) + carry) >> np.uint32(16))


@compiled
def _exchange(first: Any, second: Any, shift: Any, kept: Any) -> Any:
    """One step of turning eight by eight bits."""
    change = ((first >> shift) ^ second) & kept
    return first ^ (change << shift), second ^ change


@compiled
def _fill(start: Any, key: Any, factor: Any, buckets: Any, first: Any, planes: Any) -> None:
    """The planes of one cell under the seeds from `start`. Their order is the same for every cell."""
    for seed in range(BLOCK):
        first[seed] = np.uint8(bucket_of(hash_cell(np.uint32(start + np.uint32(seed)), key, factor), buckets))
    words = first.view(np.uint64)
    for lane in range(_LANES):
        a, b, c, d = words[lane], words[_LANES + lane], words[2 * _LANES + lane], words[3 * _LANES + lane]
        e, f = words[4 * _LANES + lane], words[5 * _LANES + lane]
        g, h = words[6 * _LANES + lane], words[7 * _LANES + lane]
        a, e = _exchange(a, e, _FOUR, _FOURS)
        b, f = _exchange(b, f, _FOUR, _FOURS)
        c, g = _exchange(c, g, _FOUR, _FOURS)
        d, h = _exchange(d, h, _FOUR, _FOURS)
        a, c = _exchange(a, c, _TWO, _TWOS)
        b, d = _exchange(b, d, _TWO, _TWOS)
        e, g = _exchange(e, g, _TWO, _TWOS)
        f, h = _exchange(f, h, _TWO, _TWOS)
        a, b = _exchange(a, b, _ONE, _ONES)
        c, d = _exchange(c, d, _ONE, _ONES)
        e, f = _exchange(e, f, _ONE, _ONES)
        planes[0, lane], planes[1, lane], planes[2, lane] = f, e, d
        planes[3, lane], planes[4, lane], planes[5, lane] = c, b, a


@compiled
def _pair(one_planes: Any, other_planes: Any, counts: Any) -> None:
    """Add the seeds of a block under which the first e bits of two cells agree, for each e."""
    same1 = same2 = same3 = same4 = same5 = same6 = np.uint64(0)
    for lane in range(_LANES):
        same = ~(one_planes[0, lane] ^ other_planes[0, lane])
        same1 += _bits(same)
        same &= ~(one_planes[1, lane] ^ other_planes[1, lane])
        same2 += _bits(same)
        same &= ~(one_planes[2, lane] ^ other_planes[2, lane])
        same3 += _bits(same)
        same &= ~(one_planes[3, lane] ^ other_planes[3, lane])
        same4 += _bits(same)
        same &= ~(one_planes[4, lane] ^ other_planes[4, lane])
        same5 += _bits(same)
        same &= ~(one_planes[5, lane] ^ other_planes[5, lane])
        same6 += _bits(same)
    counts[0] += np.int64(same1)
    counts[1] += np.int64(same2)
    counts[2] += np.int64(same3)
    counts[3] += np.int64(same4)
    counts[4] += np.int64(same5)
    counts[5] += np.int64(same6)


@compiled
def _count(starts: Any, keys: Any, factors: Any, buckets: Any, first: Any, planes: Any, counts: Any) -> None:
    for start in starts:
        for cell in range(keys.size):
            _fill(start, keys[cell], factors[cell], buckets, first, planes[cell])
        for tile in range(0, keys.size, _TILE):
            for other in range(keys.size):
                for cell in range(max(tile, other + 1), min(tile + _TILE, keys.size)):
                    _pair(planes[cell], planes[other], counts[cell * (cell - 1) // 2 + other])


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros at an address that whole vectors are loaded from at once."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size].view(dtype).reshape(shape)


def doubled(odd: int) -> list[int]:
    """An odd number and its doubles, up to the most buckets.

    >>> doubled(5), doubled(1)
    ([5, 10, 20, 40], [2, 4, 8, 16, 32, 64])
    """
    return [g for g in (odd << shift for shift in range(PLANES + 1)) if 2 <= g <= MOST_BUCKETS]


def collisions(starts: Words32, keys: Words32, factors: Words32, odd: int = 1) -> Integers:
    """For every pair of cells (second before first) and g = `doubled(odd)`, the seeds under which both share a bucket.

    Each start stands for the `BLOCK` seeds from it.
    """
    counts = np.zeros((keys.size * (keys.size - 1) // 2, PLANES), dtype=np.int64)
    first, planes = aligned_zeros((BLOCK,), np.uint8), aligned_zeros((keys.size, PLANES, _LANES), np.uint64)
    numbers = doubled(odd)
    _count(starts, keys, factors, np.uint32(numbers[-1]), first, planes, counts)
    return np.asarray(counts[:, PLANES - len(numbers) :])
