"""A plan in the light of what reports say of where rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deniable.queries.grids.grid_weights import plan_grids
from deniable.queries.grids.learnt_density import Learnt
from deniable.queries.planning.plan import Plan


def revised(plan: Plan, learnt: Mapping[str, Learnt]) -> Plan:
    """New weights for the same question, and what they leave to an assumption, from what was learnt of each table."""
    if not plan.biases or not any(learnt.get(table.table) for table in plan.tables):
        return plan
    collection = plan.collection
    asked = [(collection[table.table], collection.design_of(table.table), table.asked) for table in plan.tables]
    solved = plan_grids(asked, plan.users, exact_first=plan.exact_first, learnt=learnt)
    return replace(
        plan,
        tables=tuple(grid.plan for grid in solved),
        biases=tuple(grid.bias for grid in solved if grid.bias is not None),
    )
