"""How many hashed reports support each cell: the one loop that touches every report and every cell.

The inner loop runs over reports, in blocks that stay in the nearest cache, on 32-bit integers only, so that the
compiler turns it into vector instructions: a fraction of a nanosecond per pair. Threads share the reports.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers, Words32
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms.hashing import LAST_FACTOR, MIDDLE_FACTOR, SPREAD_SHIFT

_LOOP_REPORTS = 2048
_MIDDLE, _LAST, _SHIFT = np.uint32(MIDDLE_FACTOR), np.uint32(LAST_FACTOR), np.uint32(SPREAD_SHIFT)


@compiled
def hash_cell(seed: np.uint32, key: np.uint32, factor: np.uint32) -> np.uint32:
    """The hash of a cell for compiled loops; every step is cut to 32 bits, which keeps the vectors narrow."""
    x = np.uint32(np.uint32(seed ^ key) * factor)
    x = np.uint32(x ^ (x >> _SHIFT))
    x = np.uint32(x * _MIDDLE)
    x = np.uint32(x ^ (x >> _SHIFT))
    return np.uint32(x * _LAST)


@compiled
def _count(seeds: Words32, lows: Words32, widths: Words32, keys: Words32, factors: Words32, counts: Integers) -> None:
    for start in range(0, seeds.size, _LOOP_REPORTS):
        stop = min(start + _LOOP_REPORTS, seeds.size)
        for cell in range(keys.size):
            key, factor = keys[cell], factors[cell]
            hits = np.uint32(0)
            for report in range(start, stop):
                distance = np.uint32(hash_cell(seeds[report], key, factor) - lows[report])
                hits = np.uint32(hits + np.uint32(distance < widths[report]))
            counts[cell] += hits


def bucket_ranges(chosen: NDArray[Any], buckets: int) -> tuple[Words32, Words32]:
    """Where the hashes of each chosen bucket begin, and how many there are."""
    # hash · g / 2^32 has the floor y exactly when ⌈y·2^32/g⌉ ≤ hash < ⌈(y+1)·2^32/g⌉.
    edges = -(-(np.arange(buckets + 1, dtype=np.int64) << 32) // buckets)
    return edges[chosen].astype(np.uint32), np.diff(edges)[chosen].astype(np.uint32)


def support_counts(seeds: Words32, chosen: Integers, buckets: int, keys: Words32, factors: Words32) -> Integers:
    """For each cell, given by its key and factor, how many reports (seed, chosen bucket) have it in their bucket."""
    lows, widths = bucket_ranges(chosen, buckets)
    threads = min(os.cpu_count() or 1, -(-seeds.size // _LOOP_REPORTS))
    cuts = np.linspace(0, seeds.size, threads + 1).astype(np.int64)
    partial = np.zeros((threads, keys.size), dtype=np.int64)
    with ThreadPoolExecutor(threads) as pool:
        for done in [
            pool.submit(_count, seeds[a:b], lows[a:b], widths[a:b], keys, factors, partial[t])
            for t, (a, b) in enumerate(pairwise(cuts.tolist()))
        ]:
            done.result()
    counts: Integers = partial.sum(axis=0)
    return counts


FEW_BUCKETS = 1 << 16
_TOTALS_BLOCK = 256


@compiled
def small_buckets(
    seeds: Words32,
    key: np.uint32,
    factor: np.uint32,
    buckets: np.uint32,
    offsets: Integers,
    chosen: Integers,
    block: np.int64,
) -> None:
    """Where the total of a cell's bucket is under each seed: ⌊hash · g / 2^32⌋ in 32 bits, as g is below 2^16."""
    half = np.uint32(16)
    for number in range(seeds.size):
        hashed = hash_cell(seeds[number], key, factor)
        carry = np.uint32(np.uint32((hashed & np.uint32(0xFFFF)) * buckets) >> half)
        bucket = np.uint32(np.uint32(np.uint32((hashed >> half) * buckets) + carry) >> half)
        chosen[number] = np.int64(bucket) * block + offsets[number]


@compiled
def _extreme_of_few(
    seeds: Words32, keys: Words32, factors: Words32, values: Floats, buckets: np.uint32, least: Floats, most: Floats
) -> None:
    """`extreme_sums` where buckets are hardly more than cells: totals of all of them, block by block of seeds."""
    totals, offsets = np.empty(np.int64(buckets) * _TOTALS_BLOCK), np.arange(_TOTALS_BLOCK)
    chosen = np.empty(_TOTALS_BLOCK, dtype=np.int64)
    for start in range(0, seeds.size, _TOTALS_BLOCK):
        some = seeds[start : start + _TOTALS_BLOCK]
        totals[:] = 0.0
        for cell in range(keys.size):
            small_buckets(some, keys[cell], factors[cell], buckets, offsets, chosen, _TOTALS_BLOCK)
            value = values[cell]
            for number in range(some.size):
                totals[chosen[number]] += value
        low, high = least[start : start + some.size], most[start : start + some.size]
        low[:] = totals[: some.size]
        high[:] = totals[: some.size]
        for bucket in range(1, np.int64(buckets)):
            for number in range(some.size):
                total = totals[bucket * _TOTALS_BLOCK + number]
                low[number] = min(low[number], total)
                high[number] = max(high[number], total)


@compiled
def _extreme_of_many(
    seeds: Words32, keys: Words32, factors: Words32, values: Floats, totals: Floats, least: Floats, most: Floats
) -> None:
    """`extreme_sums` where most buckets are empty: only those that have a cell are looked at."""
    buckets = np.uint64(totals.size)
    taken = np.zeros(totals.size, dtype=np.int64)
    where = np.empty(keys.size, dtype=np.int64)
    for number in range(seeds.size):
        used = 0
        for cell in range(keys.size):
            hashed = hash_cell(seeds[number], keys[cell], factors[cell])
            bucket = np.int64((np.uint64(hashed) * buckets) >> np.uint64(32))
            if taken[bucket] != number + 1:
                taken[bucket] = number + 1
                totals[bucket] = 0.0
                where[used] = bucket
                used += 1
            totals[bucket] += values[cell]
        low = high = 0.0 if used < totals.size else totals[where[0]]
        for index in range(used):
            low = min(low, totals[where[index]])
            high = max(high, totals[where[index]])
        least[number], most[number] = low, high


def extreme_sums(
    seeds: Words32, keys: Words32, factors: Words32, values: Floats, buckets: int
) -> tuple[Floats, Floats]:
    """The smallest and the largest sum of the values in one bucket, for every seed. An empty bucket has the sum 0."""
    least, most = np.empty(seeds.size), np.empty(seeds.size)
    if buckets < min(FEW_BUCKETS, 4 * keys.size):
        _extreme_of_few(seeds, keys, factors, values, np.uint32(buckets), least, most)
    else:
        _extreme_of_many(seeds, keys, factors, values, np.zeros(buckets), least, most)
    return least, most
