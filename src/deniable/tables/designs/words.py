"""Words: a view for every length of prefixes, of a table whose private attribute is a text."""

from __future__ import annotations

from deniable.tables.designs.views import VALUE, Axis, Group
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.text import LAST_LEVEL_CHANCE, text_of
from deniable.trees import Tree


def words(table: Table) -> tuple[tuple[Group, ...], ...]:
    """One group per level: a report shows a prefix of one length.  [BNST17, WLJ21]

    Level b of the tree has the prefixes of b bytes. People are divided among levels, as PEM divides them: that costs
    less than a division of ε.
    """
    domain = text_of(table.domains[0])
    assert domain is not None  # noqa: S101 - the caller has looked
    axis = Axis(VALUE, Tree(domain.size, 256), 0)
    *others, last = domain.levels
    chances = [*((level, 1) for level in others), (last, LAST_LEVEL_CHANCE)]
    return (tuple(Group((axis,), ((level,),), chance) for level, chance in chances),)


def has_words(table: Table) -> bool:
    """Whether a table's private attribute is a text."""
    return any(text_of(domain) is not None for domain in table.domains)
