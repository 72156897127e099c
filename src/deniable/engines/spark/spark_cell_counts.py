"""Counts of a table's cells in Spark, which do not depend on a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.engines.kernel.cell_counts import counted
from deniable.engines.kernel.cell_pairs import Pairs, by_view, counted_pairs, pair_count
from deniable.engines.kernel.supports import supports_of
from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.packed_reports import Packing
from deniable.engines.spark.report_validation import SparkStore
from deniable.engines.spark.task_sums import Batches, added
from deniable.tables.designs.views import Design, View


def cell_counts(store: SparkStore, packing: Packing, views: Sequence[View]) -> Floats:
    """Estimated rows in each cell. See `kernel.cell_counts`."""
    length = sum(view.cells for view in views)
    return _added(store, packing, lambda view, seed, y: counted(views, view, seed, y), length)


def cell_pairs(store: SparkStore, packing: Packing, design: Design) -> Pairs:
    """How many reports support two cells at once. See `kernel.cell_pairs`."""
    pairs = _added(store, packing, lambda view, seed, y: counted_pairs(design, view, seed, y), pair_count(design))
    return by_view(design, np.rint(pairs).astype(np.int64))


def supports(store: SparkStore, packing: Packing, view: View, cells: Integers) -> Integers:
    """How many reports of a view support each cell, and how many it has. See `kernel.supports`."""
    total = _added(store, packing, lambda *reports: supports_of(view, cells, *reports), cells.size + 1)
    return np.rint(total).astype(np.int64)


def _added(store: SparkStore, packing: Packing, count: Callable[..., Any], length: int) -> Floats:
    """The sum over all reports of what `count` makes of the views, seeds and y of some."""
    columns = packing.columns(store.frame, 0)
    reports = store.frame.select(*(column.alias(name) for name, column in columns.items()))

    def work(batches: Batches) -> Floats:
        total = np.zeros(length)
        for batch in batches:
            total += count(*packing.reports(batch, 0))
        return total

    with spark_errors("counting cells"):
        return added(reports, work, length)
