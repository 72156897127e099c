"""What reports of a grid will show on average if rows are where they are expected, and what answers will then assume.

Answers from a grid follow their reports (`smoothness_evidence.py`). So does a forecast that is told where rows are, by
a first look or by how many of them match: the reports that are expected are read as real ones will be.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deniable.arrays import Floats
from deniable.queries.forecasts.assumed_rows import Assumption
from deniable.queries.forecasts.matching_rows import axis_shares, tilt_of
from deniable.queries.grids.grid_cells import kron
from deniable.queries.grids.learnt_density import INTERACTIONS, Learnt
from deniable.queries.grids.smoothness_evidence import Evidence
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.revised_plan import revised
from deniable.tables.designs.views import WEIGHT, View
from deniable.tables.schema.attributes import Table
from deniable.tables.specification.specification import Specification


def expected_learnt(collection: Specification, name: str, users: float, seen: Mapping[str, Floats]) -> Learnt:
    """What reports of so many users will show of a table, given the part of rows at each value of some attributes."""
    table, design = collection[name], collection.design_of(name)
    evidence = Evidence.of(collection, name, users)
    reports = np.array([max(round(users * float(view.probability)), 1) for view in design], dtype=np.int64)
    counts = [reports[view.number] * _frequencies(view, table, seen) for view in evidence.views]
    learnt = evidence.learnt(np.concatenate(counts), reports) if counts else {}
    # Attributes are independent here because nothing is known of them together.
    return {number: known for number, known in learnt.items() if number != INTERACTIONS}


def with_matching(plan: Plan, users: float, assumed: Assumption) -> Plan:
    """The plan that answers will use if as many rows match as assumed; the same if it assumes nothing about data."""
    tilts = tilt_of(plan, assumed) if plan.biases and assumed.matching is not None else {}
    if not tilts:
        return plan
    learnt = {}
    for table in plan.tables:
        seen = {name: tilt / tilt.size for (owner, name), tilt in tilts.items() if owner == table.table}
        if seen:
            learnt[table.table] = expected_learnt(plan.collection, table.table, users, seen)
    return revised(plan, learnt)


def _frequencies(view: View, table: Table, seen: Mapping[str, Floats]) -> Floats:
    """The part of rows in each cell of a view, attributes being independent."""
    shares: Floats = np.ones(1)
    for axis in view.group.axes:
        if axis.kind == WEIGHT:
            shares = kron(shares, np.full(2, 0.5))
            continue
        domain = table.domains[axis.attribute]
        density = seen.get(table.private[axis.attribute], np.full(domain.size, 1 / domain.size))
        shares = kron(shares, axis_shares(axis, axis.tree.levels - 1, density))
    return shares
