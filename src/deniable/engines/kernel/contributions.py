"""The loops of queries: what every report contributes to each column.

A plan becomes flat arrays: for each view its rows of cells and how its oracle supports them, and for each row the
columns it counts for. Reports are divided among threads. Nothing is done in Python per report.
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
from deniable.engines.kernel import plain_loops
from deniable.engines.kernel.plain_loops import MASKED, NAMED
from deniable.engines.kernel.view_loops import place_contributions
from deniable.engines.reports.view_order import ViewOrder, can_be_ordered
from deniable.mechanisms._compiled import compiled, compiled_sum
from deniable.mechanisms._support import bucket_ranges, hash_cell
from deniable.mechanisms.frequency_oracle import ComputedCells, FrequencyOracle, HashedCells, MaskedCells
from deniable.mechanisms.hashing import cell_keys
from deniable.queries.weights.table_plan import PartPlan, ViewWeights

T = TypeVar("T")
MOST_LISTED_VIEWS = 2**22
SMALLEST_SHARE = 10_000
"""Fewer reports are not worth a thread."""
MANY_OF_A_VIEW, MANY_CELLS = 200, 20
"""From so many reports and cells of an average view on, reports are sorted by view first."""
MOST_SUPPORTS = 2**22
"""Reports × cells of a block whose supports are computed by an oracle of its own."""


@compiled_sum
def _supported(seed: Any, low: Any, width: Any, keys: Any, factors: Any, weights: Any) -> Any:
    """The sum of the weights of cells whose hash lies in the reported bucket; branch-free, so that it vectorises."""
    total = 0.0
    for cell in range(keys.size):
        distance = np.uint32(hash_cell(seed, keys[cell], factors[cell]) - low)
        total += weights[cell] if distance < width else 0.0
    return total


@compiled
def _contribute(
    view: Any,
    seed: Any,
    y: Any,
    slot_of: Any,
    bucket_starts: Any,
    lowest: Any,
    widths: Any,
    rows_of: Any,
    row_starts: Any,
    keys: Any,
    factors: Any,
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
        if bucket_starts[slot] == MASKED:
            for row in range(first, last):
                supported = 0.0
                for cell in range(row_starts[row], row_starts[row + 1]):
                    supported += weights[cell] * np.float64((y[report] >> keys[cell]) & 1)
                if supported != 0.0:
                    for entry in range(column_starts[row], column_starts[row + 1]):
                        out[report, columns[entry]] += coefficients[entry] * supported
            continue
        if bucket_starts[slot] == NAMED:
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
        bucket = bucket_starts[slot] + np.int64(y[report])
        start, width = lowest[bucket], widths[bucket]
        for row in range(first, last):
            low, high = row_starts[row], row_starts[row + 1]
            if high == low + 1:
                distance = np.uint32(hash_cell(np.uint32(seed[report]), keys[low], factors[low]) - start)
                supported = weights[low] if distance < width else 0.0
            else:
                supported = _supported(
                    np.uint32(seed[report]), start, width, keys[low:high], factors[low:high], weights[low:high]
                )
            if supported != 0.0:
                for entry in range(column_starts[row], column_starts[row + 1]):
                    out[report, columns[entry]] += coefficients[entry] * supported


@dataclass(frozen=True, slots=True, eq=False)
class ComputedView:
    """A view whose oracle the compiled loop does not know: its supports are asked of the oracle, in blocks."""

    slot: int
    oracle: FrequencyOracle
    cells: Integers
    weights: Floats
    """Cells × columns."""

    def add(self, out: Floats, slots: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]) -> None:
        """Add what the reports of the view contribute to every column."""
        reports = np.flatnonzero(slots == self.slot)
        block = max(1, MOST_SUPPORTS // self.cells.size)
        for first in range(0, reports.size, block):
            mine = reports[first : first + block]
            supports = self.oracle.supports(self.cells[None, :], seed[mine, None], y[mine, None])
            out[mine] += supports.astype(np.float64) @ self.weights


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A part of a plan as flat arrays. Slot 0 stands for all views without weight."""

    arrays: tuple[Any, ...]
    columns: int
    computed: tuple[ComputedView, ...] = ()
    used: Integers | None = None
    """If there are too many views to list a slot for each: the views of the plan, sorted by slot."""
    plain: bool = False
    """Whether numpy computes them; see `plain_loops`."""

    @classmethod
    def of(cls, part: PartPlan, view_count: int, scales: Floats | None = None, *, plain: bool = False) -> Program:
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
        starts, keys, factors, weights, column_starts, columns, coefficients = [], [], [], [], [], [], []
        computed, row_counts = [], [0, 0]
        cells = entries = 0
        for slot, view in enumerate(part.views, 1):
            signal = (view.p - view.q) / (1.0 if scales is None else scales[slot - 1])
            totals = np.add.reduceat(view.weights, view.row_starts[:-1])[
                np.repeat(np.arange(view.row_starts.size - 1), np.diff(view.column_starts))
            ]
            np.add.at(bases[slot], view.columns, -view.q / signal * view.coefficients * totals)
            if isinstance(view.oracle.support, ComputedCells):
                numbers, _, weights_of = view.by_cell()
                computed.append(ComputedView(slot, view.oracle, numbers, weights_of.dense(width) / signal))
                row_counts.append(0)
                continue
            view_keys, view_factors = _keys(view)
            keys.append(view_keys)
            factors.append(view_factors)
            weights.append(view.weights)
            starts.append(view.row_starts[:-1] + cells)
            columns.append(view.columns)
            coefficients.append(view.coefficients / signal)
            column_starts.append(view.column_starts[:-1] + entries)
            row_counts.append(view.row_starts.size - 1)
            cells, entries = cells + view.cells.size, entries + view.columns.size
        arrays = (
            slot_of,
            *_bucket_edges([view.oracle for view in part.views]),
            np.cumsum(row_counts),
            _joined([*starts, np.array([cells])], np.int64),
            _joined(keys, np.uint32),
            _joined(factors, np.uint32),
            _joined(weights, np.float64),
            _joined([*column_starts, np.array([entries])], np.int64),
            _joined(columns, np.int64),
            _joined(coefficients, np.float64),
            bases,
        )
        return cls(arrays, width, tuple(computed), used, plain)

    @property
    def slot_of(self) -> NDArray[np.int32]:
        """The slot of every view: 1 for the first view of the plan, 0 for those without weight."""
        slots: NDArray[np.int32] = self.arrays[0]
        return slots

    def contributions(self, view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]) -> Floats:
        """(1/π_v) · Σ_c α_v(c) · (S(y, c) − q)/(p − q) of every report, for every column; on one core."""
        if self.used is not None and self.used.size:
            index = np.minimum(np.searchsorted(self.used, view), self.used.size - 1)
            view = np.where(self.used[index] == view, index + 1, 0)
        if self.plain:
            out = plain_loops.contribute(view, seed, y, self.arrays)
        else:
            out = self._by_view(view, seed, y) if self._has_many(view.size) else self._one_by_one(view, seed, y)
        for computed in self.computed:
            computed.add(out, self.slot_of[view], seed, y)
        return out

    def slot_ranges(self, order: ViewOrder) -> tuple[Integers, Integers]:
        """Where the reports of every slot begin and end in the order of views; those of slot 0 are elsewhere."""
        used = np.flatnonzero(self.slot_of)
        views = np.zeros(used.size + 1, dtype=np.int64)
        views[self.slot_of[used]] = used
        starts, ends = order.starts[views], order.starts[views + 1]
        ends[0] = starts[0]
        return starts, ends

    def _has_many(self, reports: int) -> bool:
        """Whether it pays to sort reports by view: there are many of each, to be compared with many cells."""
        slots, cells = int(self.arrays[1].size) - 1, int(self.arrays[6].size)
        if not slots or self.used is not None or not can_be_ordered(reports, self.slot_of.size):
            return False
        return reports >= MANY_OF_A_VIEW * slots and cells >= MANY_CELLS * slots

    def _one_by_one(self, view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]) -> Floats:
        out = np.empty((view.size, self.columns))
        _contribute(_read_as(np.uint32, view), _read_as(np.uint32, seed), _read_as(np.int64, y), *self.arrays, out)
        return out

    def _by_view(self, view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]) -> Floats:
        order = ViewOrder.of(view, seed, y, self.slot_of.size)
        out = np.tile(self.arrays[-1][0][:, None], (1, view.size))
        place_contributions(order.seed, order.y, order.positions, *self.slot_ranges(order), *self.arrays[1:], out)
        return out.T


def _read_as(kind: type, column: NDArray[Any]) -> NDArray[Any]:
    """A column of reports as one kind of array, wherever it is from: a loop is compiled anew for each kind."""
    read: NDArray[Any] = np.ascontiguousarray(column, dtype=kind).view()
    read.flags.writeable = False
    return read


def _keys(view: ViewWeights) -> tuple[Words32, Words32]:
    """What the compiled loop compares with a report: cells as they are, or the keys and factors of their hash."""
    if isinstance(view.oracle.support, HashedCells):
        return cell_keys(view.cells)
    return view.cells.astype(np.uint32), np.zeros(view.cells.size, dtype=np.uint32)


def _bucket_edges(oracles: Sequence[FrequencyOracle]) -> tuple[Integers, Words32, Words32]:
    """Where each slot's buckets are listed (or `NAMED` or `MASKED`), where buckets begin, and how wide they are.

    ⌊hash · g / 2^32⌋ = y exactly when ⌈y·2^32/g⌉ ≤ hash < ⌈(y+1)·2^32/g⌉.
    """
    starts, lowest, widths = [NAMED], [np.zeros(0, dtype=np.uint32)], [np.zeros(0, dtype=np.uint32)]
    listed: dict[int, int] = {}
    for oracle in oracles:
        if not isinstance(oracle.support, HashedCells):
            starts.append(MASKED if isinstance(oracle.support, MaskedCells) else NAMED)
            continue
        buckets = oracle.support.buckets
        if buckets not in listed:
            listed[buckets] = sum(edges.size for edges in lowest)
            low, width = bucket_ranges(np.arange(buckets), buckets)
            lowest.append(low)
            widths.append(width)
        starts.append(listed[buckets])
    return np.array(starts, dtype=np.int64), np.concatenate(lowest), np.concatenate(widths)


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
