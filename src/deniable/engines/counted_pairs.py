"""Moments by the cheaper way: from all reports, or from pairs of cells that were counted once for all questions."""

from __future__ import annotations

from collections.abc import Mapping

from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.engine import Engine
from deniable.engines.kernel.cell_pairs import Pairs, has_few_pairs
from deniable.engines.kernel.grouped_moments import moments_from_pairs
from deniable.engines.kernel.pair_sums import needs_pairs_only, pairs_suffice, pays
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.plan import Plan


class CountedPairs:
    """The pairs of cells that reports of each table support, counted when a question comes for which that pays.

    Threads may share it. Two that ask for the same table at the same time may both count it; the results are equal.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.by_table: dict[str, Pairs] = {}
        self._possible: dict[str, bool] = {}

    def moments(self, plan: Plan, dimensions: Mapping[str, DimensionTable]) -> Moments:
        """The moments of a plan."""
        name, engine = plan.tables[0].table, self._engine
        # Pairs are of reports; with rounds, what users add up to decides.
        if name in engine.stores and engine.collection.rounds is None and pairs_suffice(plan):
            design = engine.collection.design_of(name)
            if name not in self._possible:
                self._possible[name] = has_few_pairs(design, engine.stores[name].slots)
            wanted = self._possible[name] and needs_pairs_only(plan)
            if name not in self.by_table and wanted and pays(plan.tables[0].parts[0], design):
                self.by_table[name] = engine.cell_pairs(name)
            if name in self.by_table:
                return moments_from_pairs(plan, engine.stores, self.by_table[name])
        return engine.moments(plan, dimensions)
