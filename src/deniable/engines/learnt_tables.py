"""What reports say about where the rows of a grid are, asked once per table."""

from __future__ import annotations

from deniable.engines.engine import Engine
from deniable.queries.grids.learnt_density import Learnt
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.revised_plan import revised


class LearntTables:
    """What was learnt of each table of a grid, from counts of its cells. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.by_table: dict[str, Learnt] = {}

    def revised(self, plan: Plan) -> Plan:
        """The plan that the reports suggest for the same question; where nothing is assumed, the plan as it is."""
        engine = self._engine
        for name, bias in zip(plan.question.tables, plan.biases, strict=bool(plan.biases)):
            if bias.system.views and name in engine.stores and name not in self.by_table:
                from deniable.queries.grids.smoothness_evidence import Evidence  # grids only

                evidence = Evidence.of(engine.collection, name, plan.users)
                counts = engine.cell_counts(name, evidence.views)
                reports = engine.stores[name].view_counts(engine.collection.design_of(name).views)
                self.by_table[name] = evidence.learnt(counts, reports)
        return revised(plan, self.by_table)
