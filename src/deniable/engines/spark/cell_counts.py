"""How many rows there are in each cell of some views, as their reports in Spark tell it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Floats
from deniable.engines.cell_counts import counted
from deniable.engines.spark.adding import Batches, added
from deniable.engines.spark.faults import told
from deniable.engines.spark.packing import Packing
from deniable.engines.spark.validating import SparkStore
from deniable.tables.views import View


def cell_counts(store: SparkStore, packing: Packing, views: Sequence[View]) -> Floats:
    """The counts of all reports in a store. See `engines.cell_counts.cell_counts`."""
    length = sum(one.cells for one in views)
    columns = packing.columns(store.frame, 0)
    reports = store.frame.select(*(column.alias(name) for name, column in columns.items()))

    def work(batches: Batches) -> Floats:
        total = np.zeros(length)
        for batch in batches:
            total += counted(views, *packing.reports(batch, 0))
        return total

    with told("the frequencies of cells"):
        return added(reports, work, length)
