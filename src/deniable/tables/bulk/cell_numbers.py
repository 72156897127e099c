"""Nodes on the axes of a view → numbers of cells, as `Group.number` gives them on a device, for arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Integers
from deniable.mechanisms.hashing import CELL_OFFSET, mix_array
from deniable.tables.designs.views import NUMBERED_CELLS, Group


def cell_numbers(group: Group, levels: tuple[int, ...], nodes: Sequence[Integers]) -> Integers:
    """The numbers of cells of one view, given by the nodes they have on each axis: `Group.number` for arrays."""
    if group.cells(levels) > NUMBERED_CELLS:
        return folded(nodes)
    number = np.zeros_like(nodes[0])
    for axis, level, node in zip(group.axes, levels, nodes, strict=True):
        number = number * axis.tree.cells(level) + node
    return number


def folded(nodes: Sequence[Integers]) -> Integers:
    """`views.fold` of every row."""
    number = np.zeros(nodes[0].size, dtype=np.uint32)
    for node in nodes:
        number = mix_array(number + node.astype(np.uint32) + np.uint32(CELL_OFFSET))
    return number.astype(np.int64)
