"""SR-HIO: HIO over the attributes and all their rounded values, the paper's second baseline."""

from __future__ import annotations

from deniable.tables.designs.axes import aggregatable, rounded, values, weight
from deniable.tables.designs.views import Group, all_levels
from deniable.tables.schema.attributes import Table


def sr_hio(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One report per row and part.  [XDW20, Section 3.2]"""
    ends = [rounded(attribute) for attribute in aggregatable(table)]
    return ((all_levels(*values(table, fanout), *ends, *weight(table)),),)
