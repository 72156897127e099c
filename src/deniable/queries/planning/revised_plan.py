"""A plan in the light of what reports say of how smooth the data is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deniable.queries.grids.smoothness_evidence import Beliefs, revised_bias
from deniable.queries.planning.plan import Plan


def revised(plan: Plan, beliefs: Mapping[str, Beliefs]) -> Plan:
    """The same weights, and what they leave to an assumption in the light of what is believed of each table."""
    biases = (
        revised_bias(bias, beliefs.get(table.table, {}))
        for table, bias in zip(plan.tables, plan.biases, strict=bool(plan.biases))
    )
    return replace(plan, biases=tuple(biases))
