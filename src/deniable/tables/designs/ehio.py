"""EHIO: a random attribute is chosen to be summed, and its rounded value doubles its domain (embed, then perturb)."""

from __future__ import annotations

from deniable.tables.designs.axes import aggregatable, embedded, values, weight
from deniable.tables.designs.hio import hio
from deniable.tables.designs.views import Group, all_levels
from deniable.tables.schema.attributes import Table


def ehio(table: Table, fanout: int) -> tuple[tuple[Group, ...], ...]:
    """One group per attribute that can be summed; HIO if there are none.  [XDW20, Section 3.3.2]

    A value rounded to the lower end is mirrored below the domain: it gets position m − 1 − v of 2m, others m + v. (In
    the values' own units that is 2·A_min − t − 1; the text swaps the ends of mirrored ranges.)
    """
    groups = []
    for attribute in aggregatable(table):
        axes = values(table, fanout)
        axes[attribute] = embedded(table, attribute, fanout)
        groups.append(all_levels(*axes, *weight(table)))
    return (tuple(groups),) if groups else hio(table, fanout)
