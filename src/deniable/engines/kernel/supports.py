"""How many reports of a view support each of some cells: what a walk down a tree of prefixes asks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.engines.reports.user_blocks import Store
from deniable.mechanisms._support import support_counts
from deniable.mechanisms.frequency_oracle import HashedCells
from deniable.mechanisms.hashing import cell_keys
from deniable.tables.designs.views import View
from deniable.tables.schema.report_format import ANSWER_COLUMNS


def supports(store: Store, view: View, cells: Integers) -> Integers:
    """The supports of all reports in a store, and after them how many reports the view has."""
    total = np.zeros(cells.size + 1, dtype=np.int64)
    for block in store.read(ANSWER_COLUMNS):
        total += supports_of(view, cells, *(np.asarray(block.reports[name]) for name in ANSWER_COLUMNS))
    return total


def supports_of(view: View, cells: Integers, views: NDArray[Any], seeds: NDArray[Any], y: NDArray[Any]) -> Integers:
    """The supports of some reports. They add up over reports."""
    mine = np.flatnonzero(views == view.number)
    chosen, count = np.asarray(y[mine], dtype=np.int64), np.array([mine.size])
    if not cells.size:
        return count
    if isinstance(view.oracle.support, HashedCells):
        buckets = view.oracle.support.buckets
        drawn = np.ascontiguousarray(seeds[mine], dtype=np.uint32)
        return np.concatenate((support_counts(drawn, chosen, buckets, *cell_keys(cells)), count))
    named, times = np.unique(chosen, return_counts=True)  # a report names its cell
    index = np.minimum(np.searchsorted(named, cells), max(named.size - 1, 0))
    hits = np.where(named[index] == cells, times[index], 0) if named.size else np.zeros(cells.size, dtype=np.int64)
    return np.concatenate((hits, count))
