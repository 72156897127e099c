"""The engine of a Spark cluster: Spark reads, joins and brings users together, the same kernel adds on executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.kernel.cell_pairs import Pairs
from deniable.engines.kernel.user_sums import Columns
from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.kept_frames import KeptJoins
from deniable.engines.spark.packed_reports import Packing
from deniable.engines.spark.report_validation import SparkStore
from deniable.engines.spark.spark_cell_counts import cell_counts, cell_pairs, supports
from deniable.engines.spark.spark_moments import spark_moments
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.plan import Plan
from deniable.tables.designs.views import View
from deniable.tables.schema.report_format import ANSWER_COLUMNS
from deniable.tables.specification.specification import Specification


@dataclass(frozen=True, slots=True, eq=False)
class SparkEngine:
    """Validated reports as DataFrames. See `engines.engine.Engine`."""

    collection: Specification
    stores: Mapping[str, SparkStore]
    refused: Mapping[str, Counter[str]]
    simulation: bool = False
    _joins: KeptJoins = field(default_factory=KeptJoins, init=False, repr=False)

    def moments(self, plan: Plan, dimensions: Mapping[str, DimensionTable], *, counted: bool = True) -> Moments:
        """The moments of a plan, from all reports."""
        return spark_moments(plan, self.stores, dimensions, self._joins, counted=counted)

    def cell_counts(self, table: str, views: Sequence[View]) -> Floats:
        """Estimated rows in each cell of some views."""
        return cell_counts(self.stores[table], Packing.of(self.collection, table), views)

    def supports(self, table: str, view: View, cells: Integers) -> Integers:
        """How many reports support each cell, and how many the view has."""
        return supports(self.stores[table], Packing.of(self.collection, table), view, cells)

    def cell_pairs(self, table: str) -> Pairs:
        """How many reports of a table support two cells at once."""
        return cell_pairs(self.stores[table], Packing.of(self.collection, table), self.collection.design_of(table))

    def id_reports(self, table: str) -> tuple[list[Any], Columns]:
        """All ids of a table, and their reports, brought to the driver: they are as few as the ids."""
        packing = Packing.of(self.collection, table)
        with spark_errors(f"reading table {table!r}"):
            rows = packing.unpacked(self.stores[table].frame).select("uid", "slot", *ANSWER_COLUMNS).toArrow()
        rows = rows.sort_by([("uid", "ascending"), ("slot", "ascending")])
        view, seed, y = (np.asarray(rows[name].combine_chunks()) for name in ANSWER_COLUMNS)
        return rows["uid"].to_pylist()[:: packing.slots], (view.astype(np.uint32), seed.astype(np.uint32), y)

    def close(self) -> None:
        """Give back what Spark keeps of the reports. Questions are still answered, slowly."""
        self._joins.close()
        for store in self.stores.values():
            store.close()
