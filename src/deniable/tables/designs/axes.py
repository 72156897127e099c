"""The axes that designs are made of."""

from __future__ import annotations

from deniable.tables.designs.views import EMBEDDED, ROUNDED, VALUE, WEIGHT, WEIGHT_AND_ROUNDED, Axis
from deniable.tables.schema.attributes import Categorical, Table
from deniable.trees import Tree


def values(table: Table, fanout: int) -> list[Axis]:
    """One axis per private attribute. A categorical tree has two levels: everything, and each value."""
    return [
        Axis(VALUE, Tree(domain.size, domain.size if isinstance(domain, Categorical) else fanout), attribute)
        for attribute, domain in enumerate(table.domains)
    ]


def aggregatable(table: Table) -> list[int]:
    """The attributes that can be summed, by their index among the private ones."""
    return [attribute for attribute, domain in enumerate(table.domains) if domain.aggregatable]


def rounded(attribute: int) -> Axis:
    """The attribute rounded at random to one of its two ends."""
    return Axis(ROUNDED, Tree(2, 2), attribute)


def embedded(table: Table, attribute: int, fanout: int) -> Axis:
    """The attribute and its rounding in one, on a domain twice as large [XDW20, Section 3.3.2]."""
    return Axis(EMBEDDED, Tree(2 * table.domains[attribute].size, fanout), attribute)


def weight(table: Table) -> list[Axis]:
    """How many rows the user has, rounded at random to none or `many`; nothing for a table with one row per user."""
    return [] if table.many is None else [Axis(WEIGHT, Tree(2, 2))]


def augmented(table: Table, attribute: int) -> Axis:
    """The rounded attribute; in a table with many rows jointly with the weight (double rounding) [XDW20, Section 5]."""
    return rounded(attribute) if table.many is None else Axis(WEIGHT_AND_ROUNDED, Tree(4, 4), attribute)
