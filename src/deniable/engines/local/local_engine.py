"""The engine of one machine: Arrow reads, DuckDB evaluates public conditions, the kernel adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from deniable.arrays import Floats, Integers
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.kernel.cell_counts import cell_counts
from deniable.engines.kernel.cell_pairs import Pairs, cell_pairs
from deniable.engines.kernel.supports import supports
from deniable.engines.kernel.user_sums import Columns, Summing
from deniable.engines.local.block_moments import block_moments
from deniable.engines.reports.user_blocks import Store, StoreWithIds, id_reports
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.kept_plans import KeptOfPlans
from deniable.queries.planning.plan import Plan
from deniable.tables.designs.views import View
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.specification.specification import Specification


@dataclass(frozen=True, slots=True, eq=False)
class LocalEngine:
    """Reports in memory, or in files that are read block by block for every question. See `engines.engine.Engine`."""

    collection: Specification
    stores: Mapping[str, Store]
    refused: Mapping[str, Counter[str]]
    simulation: bool = False
    key: str = USER_COLUMN
    """What the column of user ids was called when rows were collected."""
    _prepared: KeptOfPlans[Summing] = field(default_factory=KeptOfPlans, repr=False)
    """What the loops need of the latest plans."""

    def moments(self, plan: Plan, dimensions: Mapping[str, DimensionTable], *, counted: bool = True) -> Moments:
        """The moments of a plan, from all reports."""
        return block_moments(
            plan, self.stores, dimensions, counted=counted, prepared=self._prepared if counted else None
        )

    def cell_counts(self, table: str, views: Sequence[View]) -> Floats:
        """Estimated rows in each cell of some views."""
        return cell_counts(self.stores[table], views)

    def supports(self, table: str, view: View, cells: Integers) -> Integers:
        """How many reports support each cell, and how many the view has."""
        return supports(self.stores[table], view, cells)

    def cell_pairs(self, table: str) -> Pairs:
        """How many reports of a table support two cells at once."""
        return cell_pairs(self.stores[table], self.collection.design_of(table))

    def id_reports(self, table: str) -> tuple[list[Any], Columns]:
        """All ids of a table, and their reports."""
        return id_reports(cast("StoreWithIds", self.stores[table]))

    def close(self) -> None:
        """Nothing to give back: temporary copies of files are removed with the last reference to them."""
