"""HIO: every combination of levels of all attributes, equally likely."""

from __future__ import annotations

from deniable.tables.designs.axes import values, weight
from deniable.tables.designs.views import Group, all_levels
from deniable.tables.schema.attributes import Table


def hio(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One report per row and part.  [XDW20, Section 3.1.2]"""
    return ((all_levels(*values(table, fanout), *weight(table)),),)
