"""What reports say about how smooth the data of a grid is, asked once per table."""

from __future__ import annotations

from deniable.engines.engine import Engine
from deniable.queries.grids.smoothness_evidence import Beliefs, Evidence
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.revised_plan import revised


class SmoothnessBeliefs:
    """Beliefs about each table of a grid, from counts of its cells. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.by_table: dict[str, Beliefs] = {}

    def revised(self, plan: Plan) -> Plan:
        """The same weights, with the model errors that the reports suggest; other designs assume nothing."""
        engine = self._engine
        for table in plan.tables:
            if table.bias is not None and table.bias.system.views and table.table not in self.by_table:
                evidence = Evidence.of(engine.collection, table.table)
                counts = engine.cell_counts(table.table, evidence.views)
                reports = engine.stores[table.table].view_counts(engine.collection.design_of(table.table).views)
                self.by_table[table.table] = evidence.beliefs(counts, reports)
        return revised(plan, self.by_table)
