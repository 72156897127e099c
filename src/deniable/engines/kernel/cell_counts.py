"""How many rows there are in each cell of some views, as estimated from the reports of these views.

No question, no groups and no error: only what `smoothness_evidence` asks of a table, by the oracles' own estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.engines.kernel.cell_pairs import of_each_view
from deniable.engines.reports.user_blocks import Store
from deniable.tables.designs.views import View
from deniable.tables.schema.report_format import ANSWER_COLUMNS


def cell_counts(store: Store, views: Sequence[View]) -> Floats:
    """The counts of all reports in a store: all cells of the first view, then of the second."""
    total = np.zeros(sum(view.cells for view in views))
    for block in store.read(ANSWER_COLUMNS):
        total += counted(views, *(np.asarray(block.reports[name]) for name in ANSWER_COLUMNS))
    return total


def counted(views: Sequence[View], view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any]) -> Floats:
    """The counts of some reports. They add up over reports."""
    counts = [which.oracle.estimate_cells(seed[mine], y[mine]) for which, mine in of_each_view(views, view)]
    return np.concatenate([np.zeros(0), *counts])
