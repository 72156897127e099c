"""SC: every attribute on its own, each in a report of its own (split and conjunction)."""

from __future__ import annotations

from deniable.tables.designs.axes import values, weight
from deniable.tables.designs.views import Group, all_levels
from deniable.tables.schema.attributes import Table


def sc(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One report per row and part.  [XDW20, Section 4.1]"""
    return tuple((all_levels(axis),) for axis in (*values(table, fanout), *weight(table)))
