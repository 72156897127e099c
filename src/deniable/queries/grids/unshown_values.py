"""Views that show every value of an attribute, of which reports hardly show any.

Local hashing counts a cell with the same error however many cells there are. So a view of all values costs little,
finds the few that hold many rows, and shows each of the others badly: a range answered by it alone is the sum of many
noisy counts. Next to a coarser view of the same attribute it is evidence rather than an answer. Weights of least error
use both, bounds come from both (`planning/bounding_plan.py`), and where an answer contradicts what the values show
without any assumption, that is given instead. `unbiased` still answers from such a view alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from deniable.mechanisms.frequency_oracle import second_moments
from deniable.tables.designs.views import CELLS, WEIGHT, Design, View
from deniable.tables.schema.attributes import Categorical, Table

UNSHOWN = 2.0
"""An even value that holds fewer standard errors of its count than this is not shown."""
COARSER = 8
"""How many cells a view of the same attribute has at least that answers instead."""


def unshown_values(table: Table, design: Design, users: float) -> frozenset[int]:
    """The numbers of the views that are evidence only, if so many users report."""
    alone = {view.number: attribute for view in design for attribute in _attribute_alone(view)}
    every = {number for number, attribute in alone.items() if _shows_all(table, design.view(number), attribute)}
    return frozenset(
        number
        for number in every
        if not _shown(design.view(number), users)
        and any(
            alone[other] == alone[number] and other not in every and design.view(other).cells >= COARSER
            for other in alone
        )
    )


def _attribute_alone(view: View) -> Iterator[int]:
    """The attribute that a view cuts into cells, if it cuts only one."""
    axes = [axis for axis in view.group.axes if axis.kind != WEIGHT]
    if len(axes) == 1 and axes[0].kind == CELLS:
        yield axes[0].attribute


def _shows_all(table: Table, view: View, attribute: int) -> bool:
    domain = table.domains[attribute]
    (size,) = (axis.tree.size for axis in view.group.axes if axis.attribute == attribute)
    return not isinstance(domain, Categorical) and size == domain.size


def _shown(view: View, users: float) -> bool:
    """Whether an even value holds more than noise."""
    noise = second_moments(view.oracle).every / (users * float(view.probability))
    return view.cells**-2 >= UNSHOWN**2 * noise
