"""Collisions of every cell of one set with every cell of another, exactly: a look-up and an addition for 512 pairs.

Under one seed, the 512 columns of a set fall into g buckets. Each bucket is a mask of 512 bits: which columns are in
it. A row in bucket v collides with exactly the columns of mask v, so that its mask is looked up, not computed, and
added to the row's 512 counters. Counters are bit planes: three masks of one weight become one of it and one of twice
the weight in five operations, however many of the 512 bits are set. Sixteen seeds leave one mask of weight 16, sixteen
of these one of weight 256, and so on. Comparing the bits of two hashes would take three times as many operations.

All 2^32 seeds of 512 · 196 pairs take about a quarter of an hour for each g, whatever g is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from deniable.arrays import Integers, Words32
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms._support import hash_cell
from deniable_lab.benchmarks.bit_planes import MOST_BUCKETS, aligned_zeros, bucket_of

COLUMNS = 512
_WEIGHTS = 4
_AT_A_TIME = 1 << _WEIGHTS
_STAGES = 16 // _WEIGHTS
BLOCK = _AT_A_TIME**_STAGES
"""Seeds after which the planes are read out."""
_WORDS = COLUMNS // 64
_MASK_BYTES = COLUMNS // 8
_TABLE_BYTES = MOST_BUCKETS * _MASK_BYTES


def _three_to_two(builder: Any, first: Any, second: Any, third: Any) -> tuple[Any, Any]:
    """Three masks of one weight as a mask of that weight, and one of twice the weight."""
    differ = builder.xor(first, second)
    carry = builder.or_(builder.and_(first, second), builder.and_(differ, third))
    return builder.xor(differ, third), carry


def _sixteen_to_one(builder: Any, planes: list[Any], masks: list[Any]) -> Any:
    """Add sixteen masks to the planes of weights 1, 2, 4 and 8; what is left over has weight 16."""
    for weight in range(len(planes)):
        carries = []
        for first, second in zip(masks[::2], masks[1::2], strict=True):
            planes[weight], carry = _three_to_two(builder, planes[weight], first, second)
            carries.append(carry)
        masks = carries
    return masks[0]


def _adding(looked_up: bool) -> Any:
    """Add sixteen masks to the planes at an address: at equal distances, or at offsets in sixteen tables."""

    def add(typing: Any, masks: Any, where: Any, planes: Any, left: Any) -> Any:  # noqa: ARG001 - as numba calls it
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            source, where, state, target = arguments
            byte, word, vector = ir.IntType(8), ir.IntType(16), ir.VectorType(ir.IntType(64), _WORDS)

            def pointer(address: Any, more: Any, kind: Any) -> Any:
                return builder.inttoptr(builder.add(address, more), kind.as_pointer())

            def at(address: Any, bytes_on: int, kind: Any) -> Any:
                return pointer(address, ir.Constant(address.type, bytes_on), kind)

            def mask(number: int) -> Any:
                if not looked_up:
                    more = builder.mul(where, ir.Constant(where.type, number))
                    return builder.load(pointer(source, more, vector), typ=vector, align=_MASK_BYTES)
                offset = builder.load(at(where, 2 * number, word), typ=word)
                base = builder.add(source, ir.Constant(source.type, number * _TABLE_BYTES))
                return builder.load(
                    pointer(base, builder.zext(offset, base.type), vector), typ=vector, align=_MASK_BYTES
                )

            slots = [at(state, number * _MASK_BYTES, vector) for number in range(_WEIGHTS)]
            loaded = [builder.load(slot, typ=vector, align=_MASK_BYTES) for slot in slots]
            rest = _sixteen_to_one(builder, loaded, [mask(number) for number in range(_AT_A_TIME)])
            for slot, plane in zip(slots, loaded, strict=True):
                builder.store(plane, slot, align=_MASK_BYTES)
            builder.store(rest, at(target, 0, vector), align=_MASK_BYTES)
            return ir.Constant(byte, 0)

        address = types.uint64
        return types.uint8(address, address, address, address), generate

    return intrinsic(add)


_add_looked_up: Any = _adding(looked_up=True)
_add_in_line: Any = _adding(looked_up=False)


def _turn(builder: Any, vectors: list[Any]) -> list[Any]:
    """Eight vectors of bytes as eight planes: bit i of a byte of plane p is bit p of that byte of vector i."""

    def constant(value: int) -> Any:
        return ir.Constant(vectors[0].type, [value] * _WORDS)

    for step, low in ((4, 0x0F), (2, 0x33), (1, 0x55)):
        kept, shift = constant(int.from_bytes(bytes([low]) * 8)), constant(step)
        turned = list(vectors)
        for number in range(8):
            if number & step:
                continue
            first, second = vectors[number], vectors[number + step]
            change = builder.and_(builder.xor(builder.lshr(first, shift), second), kept)
            turned[number + step] = builder.xor(second, change)
            turned[number] = builder.xor(first, builder.shl(change, shift))
        vectors = turned
    return vectors


def _halves(builder: Any, planes: list[Any]) -> list[Any]:
    """The eight masks of columns whose buckets have these three bits; the first plane is the last bit."""
    masks: list[Any] = []
    for plane in planes:
        other = builder.not_(plane)
        without = [builder.and_(mask, other) for mask in masks] or [other]
        masks = without + ([builder.and_(mask, plane) for mask in masks] or [plane])
    return masks


def _split_columns(typing: Any, taken: Any, table: Any) -> Any:  # noqa: ARG001 - as numba calls it
    """Write the mask of every bucket, given the buckets of 512 columns as bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        source, target = arguments
        vector = ir.VectorType(ir.IntType(64), _WORDS)

        def at(address: Any, number: int) -> Any:
            moved = builder.add(address, ir.Constant(address.type, number * _MASK_BYTES))
            return builder.inttoptr(moved, vector.as_pointer())

        planes = _turn(builder, [builder.load(at(source, part), typ=vector, align=_MASK_BYTES) for part in range(8)])
        low, high = _halves(builder, planes[:3]), _halves(builder, planes[3:6])
        for bucket in range(MOST_BUCKETS):
            mask = builder.and_(low[bucket % 8], high[bucket // 8])
            builder.store(mask, at(target, bucket), align=_MASK_BYTES)
        return ir.Constant(ir.IntType(8), 0)

    return types.uint8(types.uint64, types.uint64), generate


_split: Any = intrinsic(_split_columns)


@compiled
def _columns(seed: Any, keys: Any, factors: Any, buckets: Any, taken: Any) -> None:
    """The buckets of all columns under one seed."""
    if buckets == np.uint32(MOST_BUCKETS):
        for column in range(COLUMNS):
            taken[column] = np.uint8(hash_cell(seed, keys[column], factors[column]) >> np.uint32(26))
    else:
        for column in range(COLUMNS):
            taken[column] = np.uint8(bucket_of(hash_cell(seed, keys[column], factors[column]), buckets))


@compiled
def _rows(seed: Any, keys: Any, factors: Any, buckets: Any, offsets: Any) -> None:
    """Where the masks of all rows are under sixteen seeds."""
    for row in range(keys.size):
        key, factor = keys[row], factors[row]
        for number in range(_AT_A_TIME):
            hashed = hash_cell(np.uint32(seed + np.uint32(number)), key, factor)
            offsets[row, number] = np.uint16(np.uint32(bucket_of(hashed, buckets) * np.uint32(_MASK_BYTES)))


@compiled
def _read_out(planes: Any, left: Any, counts: Any) -> None:
    """Add what the planes hold to the counts, and empty them."""
    for row in range(counts.shape[0]):
        for word in range(_WORDS):
            for bit in range(64):
                value = np.int64((left[_STAGES - 1, 0, row, word] >> np.uint64(bit)) & np.uint64(1)) << (
                    _WEIGHTS * _STAGES
                )
                for stage in range(_STAGES):
                    for plane in range(_WEIGHTS):
                        held = (planes[stage, row, plane, word] >> np.uint64(bit)) & np.uint64(1)
                        value += np.int64(held) << (_WEIGHTS * stage + plane)
                counts[row, (bit % 8 * _WORDS + word) * 8 + bit // 8] += value
    planes[:] = np.uint64(0)


@compiled
def _count(starts: Any, rows: Any, columns: Any, buckets: Any, scratch: Any, counts: Any) -> None:
    taken, tables, offsets, planes, left = scratch
    table, state, rest = tables.ctypes.data, planes.ctypes.data, left.ctypes.data
    where, column_buckets = offsets.ctypes.data, taken.ctypes.data
    count, mask = rows[0].size, np.uint64(_MASK_BYTES)
    of_row, of_seeds = np.uint64(_WEIGHTS * _MASK_BYTES), np.uint64(2 * _AT_A_TIME)
    line = np.uint64(count) * mask
    for start in starts:
        for group in range(BLOCK // _AT_A_TIME):
            seed = np.uint32(start + np.uint32(group * _AT_A_TIME))
            for number in range(_AT_A_TIME):
                _columns(np.uint32(seed + np.uint32(number)), columns[0], columns[1], buckets, taken)
                _split(column_buckets, table + np.uint64(number * _TABLE_BYTES))
            _rows(seed, rows[0], rows[1], buckets, offsets)
            to = rest + np.uint64(group % _AT_A_TIME) * line
            for row in range(count):
                at = np.uint64(row)
                _add_looked_up(table, where + at * of_seeds, state + at * of_row, to + at * mask)
            done = group + 1
            for stage in range(1, _STAGES):
                if done % _AT_A_TIME:
                    break
                done //= _AT_A_TIME
                begin = rest + np.uint64((stage - 1) * _AT_A_TIME) * line
                to = rest + np.uint64(stage * _AT_A_TIME + (done - 1) % _AT_A_TIME) * line
                held = state + np.uint64(stage * count) * of_row
                for row in range(count):
                    at = np.uint64(row)
                    _add_in_line(begin + at * mask, line, held + at * of_row, to + at * mask)
        _read_out(planes, left, counts)


def cross_collisions(
    starts: Words32, rows: tuple[Words32, Words32], columns: tuple[Words32, Words32], buckets: int
) -> Integers:
    """For every row and every one of 512 columns, the seeds under which both share one of g buckets.

    Rows and columns are keys and factors of cells. Each start stands for the `BLOCK` seeds from it.
    """
    if not (2 <= buckets <= MOST_BUCKETS and columns[0].size == COLUMNS):
        raise ValueError(f"{buckets} buckets and {columns[0].size} columns cannot be counted")
    count = rows[0].size
    counts = np.zeros((count, COLUMNS), dtype=np.int64)
    words = np.uint64
    scratch = (
        aligned_zeros((COLUMNS,), np.uint8),
        aligned_zeros((_AT_A_TIME, MOST_BUCKETS, _WORDS), words),
        aligned_zeros((count, _AT_A_TIME), np.uint16),
        aligned_zeros((_STAGES, count, _WEIGHTS, _WORDS), words),
        aligned_zeros((_STAGES, _AT_A_TIME, count, _WORDS), words),
    )
    _count(starts, rows, columns, np.uint32(buckets), scratch, counts)
    return counts
