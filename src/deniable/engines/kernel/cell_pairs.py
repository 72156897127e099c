"""How many reports of a view support two cells at once: all that questions about one table need to know of them.

Counting takes as long as answering one question about some dozens of columns. The counts are kept, and later questions
read no reports at all (`pair_sums.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers, Words32
from deniable.engines.kernel.contributions import MOST_SUPPORTS, shared_out
from deniable.engines.reports.user_blocks import Store
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms._support import bucket_ranges, hash_cell
from deniable.mechanisms.frequency_oracle import ComputedCells, FrequencyOracle, HashedCells, MaskedCells, NamedCell
from deniable.mechanisms.hashing import cell_keys
from deniable.tables.designs.views import Design, View
from deniable.tables.schema.report_format import ANSWER_COLUMNS

Pairs = Mapping[int, Integers]
"""For each view cells × cells, symmetric: the reports that support both. On the diagonal those that support a cell."""

MOST_PAIRS = 2**22
"""Limit for all views of a table together."""
MOST_PAIRED_VIEWS = 2**10


@compiled
def _count(seeds: Any, lows: Any, widths: Any, keys: Any, factors: Any, pairs: Any) -> None:
    """Add every report's pairs of supported cells below the diagonal."""
    distances, supported = np.empty(keys.size, dtype=np.uint32), np.empty(keys.size, dtype=np.int64)
    for report in range(seeds.size):
        for cell in range(keys.size):  # alone, so that it vectorises
            distances[cell] = np.uint32(hash_cell(seeds[report], keys[cell], factors[cell]) - lows[report])
        hits = 0
        for cell in range(keys.size):  # free of branches, as those could not be foreseen
            supported[hits] = cell
            hits += distances[cell] < widths[report]
        for first in range(hits):
            for second in range(first + 1):
                pairs[supported[first], supported[second]] += 1


@compiled
def _count_masked(masks: Any, cells: Any, size: Any, pairs: Any) -> None:
    """The same for masks, of which `size` bits are set."""
    supported = np.empty(cells + 1, dtype=np.int64)
    for report in range(masks.size):
        hits = 0
        for cell in range(cells):
            supported[hits] = cell
            hits += (masks[report] >> cell) & 1
        for first in range(min(hits, size)):
            for second in range(first + 1):
                pairs[supported[first], supported[second]] += 1


def has_few_pairs(design: Design, slots: int) -> bool:
    """Whether the pairs of a table's cells can be counted: users send one report, of few views with few cells."""
    return slots == 1 and design.views <= MOST_PAIRED_VIEWS and pair_count(design) <= MOST_PAIRS


def cell_pairs(store: Store, design: Design) -> Pairs:
    """The pairs of all reports in a store."""
    total = np.zeros(pair_count(design), dtype=np.int64)
    for block in store.read(ANSWER_COLUMNS):
        total += counted_pairs(design, *(np.asarray(block.reports[name]) for name in ANSWER_COLUMNS))
    return by_view(design, total)


def pair_count(design: Design) -> int:
    """How many pairs the cells of all views make."""
    return sum(view.cells**2 for view in design)


def counted_pairs(design: Design, view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]) -> Integers:
    """The pairs of some reports: those of the first view, row after row, then of the second. They add up."""
    pairs = [np.zeros(0, dtype=np.int64)]
    for which, mine in of_each_view(list(design), view):
        pairs.append(_supported_pairs(which.oracle, seed[mine].astype(np.uint32, copy=False), y[mine]).ravel())
    return np.concatenate(pairs)


def _supported_pairs(oracle: FrequencyOracle, seeds: Words32, y: NDArray[Any]) -> Integers:
    """Cells × cells, below and on the diagonal: the reports that support both."""
    match oracle.support:
        case NamedCell():
            return np.diag(np.bincount(y, minlength=oracle.k))
        case HashedCells(buckets):
            return _hashed_pairs(oracle.k, buckets, seeds, y)
        case MaskedCells(size):
            return _masked_pairs(oracle.k, size, y)
        case ComputedCells():
            total = np.zeros((oracle.k, oracle.k), dtype=np.int64)
            block = max(1, MOST_SUPPORTS // oracle.k)
            for first in range(0, y.size, block):
                mine = slice(first, first + block)
                supports = oracle.supports(np.arange(oracle.k)[None, :], seeds[mine, None], y[mine, None])
                total += np.tril(supports.T.astype(np.float64) @ supports).astype(np.int64)
            return total


def by_view(design: Design, pairs: Integers) -> Pairs:
    """Counted pairs as matrices."""
    matrices, start = {}, 0
    for view in design:
        lower = pairs[start : start + view.cells**2].reshape(view.cells, view.cells)
        matrices[view.number] = lower + np.tril(lower, -1).T
        start += view.cells**2
    return matrices


def of_each_view(views: Sequence[View], view: NDArray[Any]) -> Iterator[tuple[View, Integers]]:
    """For each of some views, the positions of its reports among all reports."""
    ranks = np.full(max((described.number for described in views), default=0) + 1, len(views), dtype=np.uint16)
    ranks[[described.number for described in views]] = np.arange(len(views))  # short numbers sort fast
    known = np.where(view < ranks.size, ranks[np.minimum(view, ranks.size - 1)], np.uint16(len(views)))
    order = np.argsort(known, kind="stable")
    cuts = np.searchsorted(known[order], np.arange(len(views) + 1)).tolist()
    for rank, described in enumerate(views):
        yield described, order[cuts[rank] : cuts[rank + 1]]


def _hashed_pairs(cells: int, buckets: int, seeds: Words32, chosen: NDArray[Any]) -> Integers:
    lows, widths = bucket_ranges(chosen, buckets)
    keys, factors = cell_keys(np.arange(cells))

    def work(first: int, end: int) -> Integers:
        mine = np.zeros((cells, cells), dtype=np.int64)
        _count(seeds[first:end], lows[first:end], widths[first:end], keys, factors, mine)
        return mine

    total: Integers = np.sum(shared_out(seeds.size, work), axis=0)
    return total


def _masked_pairs(cells: int, size: int, masks: NDArray[Any]) -> Integers:
    masks = np.ascontiguousarray(masks, dtype=np.int64)

    def work(first: int, end: int) -> Integers:
        mine = np.zeros((cells, cells), dtype=np.int64)
        _count_masked(masks[first:end], cells, size, mine)
        return mine

    total: Integers = np.sum(shared_out(masks.size, work), axis=0)
    return total
