"""Which sums of a question are known without any report: their error is exactly zero, without rounding.

A column of a table is known where it asks for the same of every row and no view carries weight for it, as in COUNT(*)
of a table with one row per user. A moment is known where all its terms take known columns only; what is public in them
is known anyway. Errors of other moments are computed. Errors of these are not: a difference of two equal numbers,
computed in two ways, would be zero on one processor and a last bit on another.
"""

from __future__ import annotations

import numpy as np

from deniable.arrays import Booleans, Floats
from deniable.queries.planning.plan import Plan
from deniable.queries.weights.table_plan import Column, TablePlan
from deniable.tables.schema.attributes import Table


def known_moments(plan: Plan) -> Booleans:
    """private groups × moments: whether the sum is the same whatever reports say."""
    known = np.ones(plan.term_table.size, dtype=bool)
    for table, columns in zip(plan.tables, plan.term_table.columns.T, strict=True):
        known &= known_columns(table, plan.collection[table.table])[columns]
    return np.asarray(plan.term_table.summed(~known) == 0)


def known_columns(plan: TablePlan, table: Table) -> Booleans:
    """The columns of a table that are known; none where users have different numbers of rows."""
    if table.many is not None:
        return np.zeros(plan.columns, dtype=bool)
    known = np.array([same_for_all_rows(column) for column in plan.asked], dtype=bool)
    if known.any():
        for part in plan.parts:
            for view in part.views:
                known[view.weighted_columns()] = False
    return known


def same_for_all_rows(column: Column) -> bool:
    """Whether all its products are constant in every attribute."""
    return all(
        bool(np.all(values == values[0]))
        for product in column
        for functions in (product.conditions, product.measures)
        for values in functions.values()
    )


def without_known(covariance: Floats, known: Booleans) -> Floats:
    """groups × moments × moments: covariances, zero wherever a moment is known."""
    return np.where(known[:, :, None] | known[:, None, :], 0.0, covariance)
