"""Which of two users a report supports, read as a server reads it: from the public design alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from deniable.arrays import Integers
from deniable.audit.output import ABSENT, Column
from deniable.audit.people import LOWEST, NOTHING
from deniable.collection import Collection
from deniable.tables.designs.views import View
from deniable.tables.schema.attributes import Table

_NO_CELL = -1
_FEW_VIEWS = 4_096
"""Of more views than this in one batch only some are read: an attacker, too, has limited time."""


def supported_users(
    collection: Collection, table: str, pair: tuple[str, str], report: Mapping[str, Column]
) -> Integers:
    """0 for neither, 1 for the first user, 2 for the second, 3 for both: whose cell a report supports."""
    design, known = collection.design_of(table), collection[table]
    supported = np.zeros(report["y"].size, dtype=np.int64)
    for number in np.unique(report["view"])[:_FEW_VIEWS]:
        if not 0 <= number < design.views:
            continue
        rows = np.flatnonzero((report["view"] == number) & (report["y"] != ABSENT))
        view = design.view(int(number))
        for bit, person in enumerate(pair):
            cell = _cell(view, known, person)
            if view.cells > 1 and cell != _NO_CELL:
                supported[rows] += (1 << bit) * view.oracle.supports(cell, report["seed"][rows], report["y"][rows])
    return supported


def _cell(view: View, table: Table, person: str) -> int:
    """The cell of a user all of whose rows lie at one end of every domain; none where it is drawn at random."""
    coordinates = []
    for axis, level in zip(view.group.axes, view.levels, strict=True):
        if axis.tree.cells(level) == 1:
            coordinates.append(0)
            continue
        if axis.attribute >= 0 and person == NOTHING:
            return _NO_CELL
        size = table.domains[axis.attribute].size if axis.attribute >= 0 else 2
        end = 0 if person == LOWEST else size - 1
        value, chance = axis.located(end, size) if axis.attribute >= 0 else (0, Fraction(0))
        if axis.rounds_value and chance not in (0, 1):
            return _NO_CELL
        coordinates.append(int(axis.coordinate(value, bool(chance), person != NOTHING)))
    return view.group.number(view.levels, tuple(coordinates))
