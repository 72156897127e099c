"""AHIO: a random attribute is chosen to be summed, and its rounded value joins the others (augment, then perturb)."""

from __future__ import annotations

from deniable.tables.designs.axes import aggregatable, augmented, values
from deniable.tables.designs.hio import hio
from deniable.tables.designs.views import Group, all_levels
from deniable.tables.schema.attributes import Table


def ahio(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One group per attribute that can be summed; HIO if there are none.  [XDW20, Section 3.3.1]"""
    base = values(table, fanout)
    groups = tuple(all_levels(*base, augmented(table, attribute)) for attribute in aggregatable(table))
    return (groups,) if groups else hio(table, fanout)
