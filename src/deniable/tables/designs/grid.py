"""Grid: the views that a specification lists, each with its own probability."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.tables.designs.axes import weight
from deniable.tables.designs.views import CELLS, POINTS, Axis, Group, leaves
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.grid_views import Cells, Cut, GridView
from deniable.trees import Tree


def grid(table: Table, views: Sequence[GridView]) -> tuple[tuple[Group, ...], ...]:
    """One group per view, all of one part: a report draws one of them."""
    groups = []
    for view in views:
        axes = [_axis(table, name, cut) for name, cut in view.axes.items()]
        groups.append(leaves(*axes, *weight(table), chance=view.weight))
    return (tuple(groups),)


def _axis(table: Table, name: str, cut: Cut) -> Axis:
    attribute = table.private.index(name)
    places = cut.places(table.domains[attribute].size)
    count = len(places)
    return Axis(CELLS if isinstance(cut, Cells) else POINTS, Tree(count, max(count, 2)), attribute, places)
