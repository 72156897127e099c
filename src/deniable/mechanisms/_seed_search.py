"""The seed whose largest bucket sum is largest, and the one whose smallest is smallest, of many seeds.

`extreme_sums` adds up all cells under each seed. Here cells are added from the heaviest to the lightest, and a seed is
dropped as soon as what is left cannot lift any of its buckets beyond what has been found before: after a few cells
most of them are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms._support import FEW_BUCKETS, extreme_sums, small_buckets
from deniable.mechanisms.hashing import cell_keys

_SEEDS_TOGETHER = 512
_STEP = 4
"""Cells that are added before seeds are dropped."""
_SEEDS_A_TASK = 1 << 20
"""Seeds between two looks at what others have found."""


@compiled
def _improved(
    first: int,
    count: int,
    keys: Any,
    factors: Any,
    values: Any,
    left_above: Any,
    left_below: Any,
    buckets: Any,
    least: Any,
    most: Any,
) -> Any:
    """The smallest and largest bucket sum under `count` seeds from `first`, where they are beyond `least` and `most`.

    The values are in the order of their size; the sums of the positive and the negative ones from each on are known.
    """
    cells = keys.size
    totals = np.empty((np.int64(buckets), _SEEDS_TOGETHER))
    high, low = np.empty(_SEEDS_TOGETHER), np.empty(_SEEDS_TOGETHER)
    chosen, seeds = np.empty(_SEEDS_TOGETHER, dtype=np.int64), np.empty(_SEEDS_TOGETHER, dtype=np.uint32)
    offsets, flat = np.arange(_SEEDS_TOGETHER), totals.ravel()
    for start in range(first, first + count, _SEEDS_TOGETHER):
        alive: int = min(_SEEDS_TOGETHER, first + count - start)
        for number in range(alive):
            seeds[number] = np.uint32(start + number)
        totals[:] = 0.0
        high[:] = 0.0
        low[:] = 0.0
        for cell in range(cells):
            small_buckets(seeds[:alive], keys[cell], factors[cell], buckets, offsets, chosen, _SEEDS_TOGETHER)
            value = values[cell]
            if value > 0:
                for number in range(alive):
                    total = flat[chosen[number]] + value
                    flat[chosen[number]] = total
                    high[number] = max(high[number], total)
            else:
                for number in range(alive):
                    total = flat[chosen[number]] + value
                    flat[chosen[number]] = total
                    low[number] = min(low[number], total)
            if cell % _STEP == _STEP - 1 or cell == cells - 1:
                # No bucket was ever fuller than `high`, so that none can end above it and all that is left.
                above, below = left_above[cell + 1], left_below[cell + 1]
                kept, moved = 0, 0
                for number in range(alive):
                    if high[number] + above > most or low[number] + below < least:
                        kept += 1
                if 4 * kept > 3 * alive:
                    continue
                for number in range(alive):
                    if high[number] + above > most or low[number] + below < least:
                        if moved < number:
                            seeds[moved] = seeds[number]
                            high[moved], low[moved] = high[number], low[number]
                            for bucket in range(np.int64(buckets)):
                                totals[bucket, moved] = totals[bucket, number]
                        moved += 1
                alive = moved
                if alive == 0:
                    break
        for number in range(alive):
            for bucket in range(np.int64(buckets)):
                least = min(least, totals[bucket, number])
                most = max(most, totals[bucket, number])
    return least, most


def search_seeds(
    cells: Integers, values: Floats, buckets: int, count: int, beyond: tuple[float, float], *, slack: float = 0.0
) -> tuple[float, float]:
    """The least and the most that the cells of one bucket add up to under the seeds below `count`.

    Only sums beyond the two given ones are looked for; where there are none, these are returned. Sums that are within
    `slack` of what no seed can exceed end the search.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    keys, factors = cell_keys(cells[order])
    ordered = values[order]
    above = np.append(np.cumsum(np.maximum(ordered, 0.0)[::-1])[::-1], 0.0)
    below = np.append(np.cumsum(np.minimum(ordered, 0.0)[::-1])[::-1], 0.0)
    least, most = beyond

    def chunk(first: int) -> tuple[float, float]:
        size = min(_SEEDS_A_TASK, count - first)
        if buckets < min(FEW_BUCKETS, 4 * keys.size):
            low, high = _improved(first, size, keys, factors, ordered, above, below, np.uint32(buckets), least, most)
            return low, high
        seeds = np.arange(first, first + size, dtype=np.uint32)
        lows, highs = extreme_sums(seeds, keys, factors, ordered, buckets)
        return float(lows.min()), float(highs.max())

    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        for firsts in _some(iter(range(0, count, _SEEDS_A_TASK)), threads):
            for low, high in pool.map(chunk, firsts):
                least, most = min(least, low), max(most, high)
            if least <= below[0] + slack and most >= above[0] - slack:
                break
    return least, most


def _some(numbers: Iterator[int], size: int) -> Iterator[list[int]]:
    while some := list(islice(numbers, size)):
        yield some
