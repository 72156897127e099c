"""What a database asks of an engine, whichever holds the reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from deniable.arrays import Floats, Integers
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.kernel.cell_pairs import Pairs
from deniable.engines.kernel.user_sums import Columns
from deniable.engines.reports.user_blocks import ReportFacts
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.plan import Plan
from deniable.tables.designs.views import View
from deniable.tables.specification.specification import Specification


@runtime_checkable
class Engine(Protocol):
    """Holds the validated reports of a collection, and adds up what answers are made of.

    To add an engine, write a class with these members and pass an instance: `connect(engine=MyEngine(…))`. It reads
    reports wherever they are, refuses those that cannot be right (`report_table.validate`, or `row_faults` and
    `complete_users` piece by piece), joins tables on the user id, and sends users through `kernel.user_sums.Summing`.
    `local/local_engine.py` and `spark/spark_engine.py` are the two that exist. Engines differ in who reads, joins and
    adds; their sums agree up to rounding. Several threads may ask one at a time.
    """

    @property
    def collection(self) -> Specification:
        """The specification that the reports were made under."""

    @property
    def stores(self) -> Mapping[str, ReportFacts]:
        """For each table with reports, in the order of the specification, what is known of those that were kept."""

    @property
    def refused(self) -> Mapping[str, Counter[str]]:
        """For each table, how many reports were refused, by reason."""

    @property
    def simulation(self) -> bool:
        """Whether the reports are a simulation and protect nobody."""

    def moments(self, plan: Plan, dimensions: Mapping[str, DimensionTable], *, counted: bool = True) -> Moments:
        """The moments of a plan, for every combination of groups, from all reports.

        With `counted`, views are divided by their number of reports where that is possible (`PartPlan.countable`).
        """

    def cell_counts(self, table: str, views: Sequence[View]) -> Floats:
        """Estimated rows in each cell of some views of a table: all cells of the first view, then of the second."""

    def cell_pairs(self, table: str) -> Pairs:
        """For each view of a table, how many reports support two cells at once. It is asked once per table at most.

        Only tables whose users send one report, with few cells (`kernel.cell_pairs.has_few_pairs`).
        """

    def close(self) -> None:
        """Give back what is kept of the reports, in memory and on disks. Nobody asks afterwards."""


@runtime_checkable
class CountsSupports(Protocol):
    """What an engine needs besides, for questions that look for words."""

    def supports(self, table: str, view: View, cells: Integers) -> Integers:
        """How many reports of a view support each of some cells, and after them how many reports it has."""


@runtime_checkable
class ReadsIds(Protocol):
    """What an engine needs besides, for questions that join another population through a private attribute."""

    def id_reports(self, table: str) -> tuple[list[Any], Columns]:
        """All ids of a table, and their reports: all slots of the first id, then of the second."""
