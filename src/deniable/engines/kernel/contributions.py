"""The loops of queries: what every report contributes to each column.

A plan becomes flat arrays: for each view its rows of cells and how it answers (randomized response or hashing), and
for each row the columns it counts for. Reports are divided among threads. Nothing is done in Python per report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers, Words32
from deniable.mechanisms._compiled import compiled, compiled_sum
from deniable.mechanisms._support import hash_mix
from deniable.mechanisms.hashing import mixed_cells
from deniable.queries.weights.table_plan import PartPlan

T = TypeVar("T")
MOST_LISTED = 2**16
MOST_LISTED_VIEWS = 2**22
SMALLEST_SHARE = 10_000
"""Fewer reports are not worth a thread."""


@compiled_sum
def _supported(seed: Any, low: Any, width: Any, keys: Any, weights: Any) -> Any:
    """The sum of the weights of cells whose hash lies in the reported bucket; branch-free, so that it vectorises."""
    total = 0.0
    for cell in range(keys.size):
        distance = np.uint32(hash_mix(np.uint32(seed ^ keys[cell])) - low)
        total += weights[cell] if distance < width else 0.0
    return total


@compiled
def _contribute(
    view: Any,
    seed: Any,
    y: Any,
    slot_of: Any,
    hashed: Any,
    g: Any,
    lowest: Any,
    widths: Any,
    rows_of: Any,
    row_starts: Any,
    keys: Any,
    weights: Any,
    column_starts: Any,
    columns: Any,
    coefficients: Any,
    bases: Any,
    out: Any,
) -> None:
    for report in range(view.size):
        slot = slot_of[view[report]]
        for column in range(out.shape[1]):
            out[report, column] = bases[slot, column]
        first, last = rows_of[slot], rows_of[slot + 1]
        if not hashed[slot]:
            low, high = first, last  # one cell per row here, sorted: find the reported one
            while low < high:
                middle = (low + high) // 2
                if keys[row_starts[middle]] < y[report]:
                    low = middle + 1
                else:
                    high = middle
            if low < last and keys[row_starts[low]] == y[report]:
                for entry in range(column_starts[low], column_starts[low + 1]):
                    out[report, columns[entry]] += coefficients[entry]
            continue
        if lowest.size:
            start, width = lowest[y[report]], widths[y[report]]
        else:
            # ⌊hash · g / 2^32⌋ = y exactly when ⌈y·2^32/g⌉ ≤ hash < ⌈(y+1)·2^32/g⌉.
            target = np.uint64(y[report])
            first_hash = ((target << np.uint64(32)) + g - np.uint64(1)) // g
            next_hash = (((target + np.uint64(1)) << np.uint64(32)) + g - np.uint64(1)) // g
            start, width = np.uint32(first_hash), np.uint32(next_hash - first_hash)
        for row in range(first, last):
            low, high = row_starts[row], row_starts[row + 1]
            if high == low + 1:
                distance = np.uint32(hash_mix(np.uint32(np.uint32(seed[report]) ^ keys[low])) - start)
                supported = weights[low] if distance < width else 0.0
            else:
                supported = _supported(np.uint32(seed[report]), start, width, keys[low:high], weights[low:high])
            if supported != 0.0:
                for entry in range(column_starts[row], column_starts[row + 1]):
                    out[report, columns[entry]] += coefficients[entry] * supported


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A part of a plan as flat arrays. Slot 0 stands for all views without weight."""

    arrays: tuple[Any, ...]
    columns: int
    used: Integers | None = None
    """If there are too many views to list a slot for each: the views of the plan, sorted by slot."""

    @classmethod
    def of(cls, part: PartPlan, view_count: int, scales: Floats | None = None) -> Program:
        """Flatten a plan for reports whose views are numbered below `view_count`.

        `scales` multiply what each view of the plan contributes, for example by expected over counted reports.
        """
        width = part.constants.size
        used = None
        if view_count > MOST_LISTED_VIEWS:
            part = replace(part, views=tuple(sorted(part.views, key=lambda view: view.view)))
            used = np.array([view.view for view in part.views], dtype=np.int64)
            slot_of = np.arange(len(part.views) + 1, dtype=np.int32)
        else:
            slot_of = np.zeros(view_count, dtype=np.int32)
            slot_of[[view.view for view in part.views]] = np.arange(1, len(part.views) + 1)
        bases = np.tile(part.constants, (len(part.views) + 1, 1))
        starts, keys, weights, column_starts, columns, coefficients = [], [], [], [], [], []
        cells = entries = 0
        for slot, view in enumerate(part.views, 1):
            signal = (view.p - view.q) / (1.0 if scales is None else scales[slot - 1])
            keys.append(mixed_cells(view.cells) if view.buckets else view.cells.astype(np.uint32))
            weights.append(view.weights)
            starts.append(view.row_starts[:-1] + cells)
            columns.append(view.columns)
            coefficients.append(view.coefficients / signal)
            column_starts.append(view.column_starts[:-1] + entries)
            totals = np.add.reduceat(view.weights, view.row_starts[:-1])[
                np.repeat(np.arange(view.row_starts.size - 1), np.diff(view.column_starts))
            ]
            np.add.at(bases[slot], view.columns, -view.q / signal * view.coefficients * totals)
            cells, entries = cells + view.cells.size, entries + view.columns.size
        buckets = max((view.buckets for view in part.views), default=0)
        row_counts = [0, 0, *(view.row_starts.size - 1 for view in part.views)]
        arrays = (
            slot_of,
            np.array([False, *(view.buckets > 0 for view in part.views)]),
            np.uint64(buckets),
            *_buckets(buckets),
            np.cumsum(row_counts),
            _joined([*starts, np.array([cells])], np.int64),
            _joined(keys, np.uint32),
            _joined(weights, np.float64),
            _joined([*column_starts, np.array([entries])], np.int64),
            _joined(columns, np.int64),
            _joined(coefficients, np.float64),
            bases,
        )
        return cls(arrays, width, used)

    @property
    def slot_of(self) -> NDArray[np.int32]:
        """The slot of every view: 1 for the first view of the plan, 0 for those without weight."""
        slots: NDArray[np.int32] = self.arrays[0]
        return slots

    def contributions(self, view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]) -> Floats:
        """(1/π_v) · Σ_c α_v(c) · (S(y, c) − q)/(p − q) of every report, for every column; on one core."""
        out = np.empty((view.size, self.columns))
        if self.used is not None and self.used.size:
            index = np.minimum(np.searchsorted(self.used, view), self.used.size - 1)
            view = np.where(self.used[index] == view, index + 1, 0)
        _contribute(view, seed, y, *self.arrays, out)
        return out


def _buckets(g: int) -> tuple[Words32, Words32]:
    """Where each bucket begins and how wide it is; empty if there are too many to list.

    All views of a table that hash do so into the same number of buckets.
    """
    if g > MOST_LISTED:
        return np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.uint32)
    edges = (np.arange(g + 1, dtype=np.uint64) * np.uint64(2**32) + np.uint64(max(g - 1, 0))) // np.uint64(max(g, 1))
    return edges[:-1].astype(np.uint32), np.diff(edges).astype(np.uint32)


def _joined(arrays: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate([array.astype(kind, copy=False) for array in arrays]) if arrays else np.zeros(0, dtype=kind)


def shared_out(size: int, work: Callable[[int, int], T]) -> list[T]:
    """The results of `work(first, end)` for all of 0..size, a share on each core."""
    threads = max(1, min(os.cpu_count() or 1, size // SMALLEST_SHARE))
    cuts = np.linspace(0, size, threads + 1).astype(np.int64).tolist()
    if threads == 1:
        return [work(0, size)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))
