"""MG: the finest cells only (marginal release)."""

from __future__ import annotations

from deniable.tables.designs.axes import values, weight
from deniable.tables.designs.views import Group, leaves
from deniable.tables.schema.attributes import Table


def mg(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One report per row and part.  [XDW20, Section 7]"""
    return ((leaves(*values(table, fanout), *weight(table)),),)
