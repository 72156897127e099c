"""A plan for one table: weights on cells of views, such that every report's contribution is right on average.

A question about one row is a sum of products of functions of its attributes, Σ κ · Π f_j(t_j): an indicator for a
predicate, v ↦ v for a sum, one where an attribute is free. Weights α have Σ_v α_v(cell_v(t)) = f(t) for every row t.
Then a report (view v, y) contributes

    w(y) = (1/π_v) · Σ_c α_v(c) · (S(y, c) − q_v)/(p_v − q_v),        E[w] = f(t),

S = 1 where y supports cell c. `product_weights.py` chooses them, and for grids `grid_weights.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms.frequency_oracle import FrequencyOracle
from deniable.queries.weights.row_products import Rows, ascending, row_products
from deniable.wording import counted

ENOUGH = 100
"""A view must be expected to have this many reports before they are divided by their number."""
DIRECT, DESIGNED = "direct", "designed"
SUMS = (DIRECT, DESIGNED)
"""How a sum is taken: by the values' own tree, or by the rounded values that AHIO, EHIO and SR-HIO collect for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """coefficient · Π_j condition_j(t_j) · measure_j(t_j), each an array over an attribute's domain; missing is one."""

    coefficient: float
    conditions: Mapping[str, Floats]
    measures: Mapping[str, Floats]
    family: int = 0
    """Products of one family are the same question for different groups: their weights are chosen together."""
    once: bool = False
    """Whether everybody counts once in a table with many rows, whatever her rows are."""


Column = tuple[Product, ...]
"""What one column of contributions estimates: a sum of products."""


class CellWeights(NamedTuple):
    """A view's weights on its distinct cells."""

    cells: Integers
    shares: Floats
    """The share of rows that would lie in each cell if rows were spread evenly over the domains."""
    weights: Rows
    """Of each cell, by column."""

    def means(self, columns: int) -> Floats:
        """The mean weight of evenly spread rows, for every column."""
        return self.summed(self.weights.values * np.repeat(self.shares, self.weights.counts), columns)

    def summed(self, values: Floats, columns: int) -> Floats:
        """Values of all weights added up over cells, for every column."""
        return np.bincount(self.weights.columns, values, minlength=columns).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ViewWeights:
    """The cells of one view that carry weight, for all columns at once.

    Weights are kept as rows, each a weighting of cells, and combinations of rows: columns that are the same question
    for different groups share most of their work. Both include 1/π.
    """

    view: int
    levels: tuple[int, ...]
    cells: Integers
    """Numbers of the cells, row after row."""
    weights: Floats
    """The weight of each in its row."""
    shares: Floats
    """The share of rows that would lie in each if rows were spread evenly over the domains."""
    row_starts: Integers
    columns: Integers
    """Columns that a row counts for, row after row."""
    coefficients: Floats
    """How much it counts for each."""
    column_starts: Integers
    probability: float
    p: float
    q: float
    cell_count: int
    oracle: FrequencyOracle
    """Where its reports name their cell, every row is one cell, and cells are sorted."""

    def by_cell(self) -> CellWeights:
        """The same weights, cell by cell."""
        if ascending(self.cells):
            distinct, first, which = self.cells, np.arange(self.cells.size), np.arange(self.cells.size)
        else:
            distinct, first, which = np.unique(self.cells, return_index=True, return_inverse=True)
        cells = Rows(self.row_starts, which, self.weights)
        _, (which, columns), values = row_products([cells, Rows(self.column_starts, self.columns, self.coefficients)])
        return CellWeights(distinct, self.shares[first], Rows.summed(which, columns, values, distinct.size))

    def weighted_columns(self) -> Integers:
        """The columns for which some cell has a weight other than zero."""
        rows = np.arange(self.row_starts.size - 1)
        weighted = np.bincount(np.repeat(rows, np.diff(self.row_starts)), self.weights != 0.0, minlength=rows.size) > 0
        counts = weighted[np.repeat(rows, np.diff(self.column_starts))] & (self.coefficients != 0.0)
        return np.unique(self.columns[counts])


@dataclass(frozen=True, slots=True, eq=False)
class PartPlan:
    """What reports of one part contribute to each column; views not listed contribute the constants only."""

    constants: Floats
    """What every report adds to each column, whatever it says."""
    views: tuple[ViewWeights, ...]
    supports: tuple[str, ...]
    """For each group of views in use, its axes with the number of nodes that carry weight, level by level."""

    def countable(self, slots: int, reports: float) -> bool:
        """Whether a view's contributions are divided by the number of its reports instead of the expected number.

        Views are drawn independently of all data, so that is unbiased too, and it avoids the noise of the drawing. But
        every view must have some. This needs one report per user, so that views divide users into strata.
        """
        return slots == 1 and bool(self.views) and reports * min(view.probability for view in self.views) >= ENOUGH

    @property
    def cells_per_report(self) -> float:
        """How many cells the average report is compared with."""
        return sum(view.probability * view.cells.size for view in self.views)

    @property
    def share(self) -> float:
        """The share of reports that carry weight."""
        return sum(view.probability for view in self.views)


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """What every report of a table contributes to the columns of a question."""

    table: str
    parts: tuple[PartPlan, ...]
    asked: tuple[Column, ...]

    @property
    def columns(self) -> int:
        """How many columns of contributions there are."""
        return len(self.asked)

    def __str__(self) -> str:
        lines = []
        for number, part in enumerate(self.parts):
            name = f"table {self.table}" + (f", part {number + 1}" if len(self.parts) > 1 else "")
            lines.append(
                f"{name}: {counted(len(part.views), 'view')}, {part.share:.1%} of the reports, "
                f"{part.cells_per_report:,.1f} cells per report"
            )
            lines += [f"  {support}" for support in part.supports]
        return "\n".join(lines)
