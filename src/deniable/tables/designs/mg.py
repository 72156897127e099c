"""MG: the finest cells only (marginal release)."""

from __future__ import annotations

from deniable.tables.designs.axes import values, weight
from deniable.tables.schema import Table
from deniable.tables.views import Group, leaves


def mg(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One report per row and part.  [XDW20, Section 7]"""
    return ((leaves(*values(table, fanout), *weight(table)),),)
