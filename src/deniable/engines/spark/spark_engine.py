"""The engine of a Spark cluster: Spark reads, joins and brings users together, the same kernel adds on executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deniable.arrays import Floats
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.kernel.cell_pairs import Pairs
from deniable.engines.spark.kept_frames import KeptJoins
from deniable.engines.spark.packed_reports import Packing
from deniable.engines.spark.report_validation import SparkStore
from deniable.engines.spark.spark_cell_counts import cell_counts, cell_pairs
from deniable.engines.spark.spark_moments import spark_moments
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.plan import Plan
from deniable.tables.designs.views import View
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

    def cell_pairs(self, table: str) -> Pairs:
        """How many reports of a table support two cells at once."""
        return cell_pairs(self.stores[table], Packing.of(self.collection, table), self.collection.design_of(table))

    def close(self) -> None:
        """Give back what Spark keeps of the reports. Questions are still answered, slowly."""
        self._joins.close()
        for store in self.stores.values():
            store.close()
