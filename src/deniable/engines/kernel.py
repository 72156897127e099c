"""The one loop of queries: what every report contributes to a plan.

The plan's views become flat arrays: for each view where its cells begin and end, how it answers (one cell, randomized
response, hashing), and for each cell its weight. Reports are shared out over threads; nothing is done in Python per
report.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms._compiled import compiled, compiled_sum
from deniable.mechanisms._support import hash_mix
from deniable.mechanisms.hashing import mixed_cells
from deniable.queries.table_plan import ViewWeights

Floats = NDArray[np.float64]


@compiled_sum
def _supported(seed: Any, low: Any, width: Any, keys: Any, weights: Any) -> Any:
    """The sum of the weights of cells whose hash lies in the reported bucket; branch-free, so that it vectorises."""
    total = 0.0
    for place in range(keys.size):
        distance = np.uint32(hash_mix(np.uint32(seed ^ keys[place])) - low)
        total += weights[place] if distance < width else 0.0
    return total


@compiled
def _contribute(
    view: Any, seed: Any, y: Any, slot_of: Any, starts: Any, keys: Any, weights: Any, buckets: Any, base: Any, out: Any
) -> None:
    for report in range(view.size):
        slot = slot_of[view[report]]
        if slot < 0:
            continue
        total = base[slot]
        if buckets[slot] == 0:
            low, high = starts[slot], starts[slot + 1]
            while low < high:  # cells of these views are sorted: find the reported one
                middle = (low + high) // 2
                if keys[middle] < y[report]:
                    low = middle + 1
                else:
                    high = middle
            if low < starts[slot + 1] and keys[low] == y[report]:
                total += weights[low]
        else:
            # hash · g / 2^32 has the floor y exactly when ⌈y·2^32/g⌉ ≤ hash < ⌈(y+1)·2^32/g⌉.
            g, target = np.uint64(buckets[slot]), np.uint64(y[report])
            low = ((target << np.uint64(32)) + g - np.uint64(1)) // g
            high = (((target + np.uint64(1)) << np.uint64(32)) + g - np.uint64(1)) // g
            cells = slice(starts[slot], starts[slot + 1])
            total += _supported(
                np.uint32(seed[report]), np.uint32(low), np.uint32(high - low), keys[cells], weights[cells]
            )
        out[report] = total


def contributions(
    views: tuple[ViewWeights, ...], view_count: int, view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]
) -> Floats:
    """(1/π_v) · Σ_c α_v(c) · (S(y, c) − q)/(p − q) of every report; zero where its view carries no weight."""
    slot_of = np.full(view_count, -1, dtype=np.int32)
    starts, keys, weights, base = [0], [], [], []
    buckets = np.array([one.buckets for one in views], dtype=np.int64)
    for slot, one in enumerate(views):
        slot_of[one.view] = slot
        signal = one.p - one.q
        order = np.argsort(one.cells, kind="stable")
        cells = one.cells[order]
        keys.append(mixed_cells(cells) if one.buckets else cells.astype(np.uint32))
        weights.append(one.weights[order] / signal)
        base.append(-one.q * float(one.weights.sum()) / signal)
        starts.append(starts[-1] + cells.size)
    out = np.zeros(view.size)
    if not views or not view.size:
        return out
    flat: list[Any] = [
        slot_of,
        np.array(starts, dtype=np.int64),
        np.concatenate(keys),
        np.concatenate(weights),
        buckets,
        np.array(base),
    ]
    threads = max(1, min(os.cpu_count() or 1, view.size // 10_000))
    cuts = np.linspace(0, view.size, threads + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        parts = [(view[a:b], seed[a:b], y[a:b], *flat, out[a:b]) for a, b in pairwise(cuts)]
        for done in [pool.submit(lambda part: _contribute(*part), part) for part in parts]:
            done.result()
    return out
