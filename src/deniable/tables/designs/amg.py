"""AMG: AHIO's groups over the finest cells only (augmented marginal release)."""

from __future__ import annotations

from deniable.tables.designs.axes import aggregatable, augmented, values
from deniable.tables.designs.mg import mg
from deniable.tables.designs.views import Group, leaves
from deniable.tables.schema.attributes import Table


def amg(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One group per attribute that can be summed; MG if there are none.  [XDW20, Section 7]"""
    base = values(table, fanout)
    groups = tuple(leaves(*base, augmented(table, attribute)) for attribute in aggregatable(table))
    return (groups,) if groups else mg(table, fanout)
