"""Plans for what an answer cannot be below or above, whatever the data is like.

A range that ends inside cells holds at least the rows of the cells that lie in it, and at most those of all cells that
it touches. More generally, a product of functions that are never negative lies between the products of their least and
of their largest values on each cell. Both are constant on cells, so that reports answer them without any assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.queries.grids.grid_weights import plan_grids
from deniable.queries.grids.learnt_density import Learnt
from deniable.queries.planning.plan import Plan
from deniable.queries.weights.table_plan import Column, Product
from deniable.tables.designs.views import CELLS, Design, View
from deniable.tables.schema.attributes import Table


def bounding_plans(plan: Plan, learnt: Mapping[str, Learnt]) -> tuple[Plan, Plan] | None:
    """The same question with the least and with the largest functions that cells can answer; None if there are none."""
    if not plan.biases or (plan.term_table.coefficients < 0).any():
        return None
    sides = []
    for upper in (False, True):
        asked = []
        for table in plan.tables:
            described, design = plan.collection[table.table], plan.collection.design_of(table.table)
            columns = [
                _bounded(described, design, column, upper, learnt.get(table.table, {})) for column in table.asked
            ]
            if any(column is None for column in columns):
                return None
            asked.append((described, design, [column for column in columns if column is not None]))
        try:
            solved = plan_grids(asked, plan.users, unbiased=True, learnt=learnt)
        except QueryRefused:
            return None
        sides.append(replace(plan, tables=tuple(grid.plan for grid in solved), biases=()))
    return sides[0], sides[1]


def _bounded(table: Table, design: Design, column: Column, upper: bool, learnt: Learnt) -> Column | None:
    """A column of functions that are constant on the cells of one view for each product."""
    bounded = []
    for product in column:
        functions: dict[str, Floats] = {}
        for given in (product.conditions, product.measures):
            for name, values in given.items():
                functions[name] = functions.get(name, 1.0) * np.asarray(values, dtype=np.float64)
        if product.coefficient < 0 or any((values < 0).any() for values in functions.values()):
            return None
        gaps = [(_gap(table, view, functions, learnt), view.number) for view in design]
        _, best = min(gaps)
        bounds = {name: _on_cells(table, design.view(best), name, values) for name, values in functions.items()}
        chosen = {name: sides[1 if upper else 0] for name, sides in bounds.items()}
        bounded.append(Product(product.coefficient, chosen, {}, product.family))
    return tuple(bounded)


def _on_cells(table: Table, view: View, name: str, values: Floats) -> tuple[Floats, Floats]:
    """The least and the largest value of a function on the cell of each value; on the domain without cells."""
    attribute = table.private.index(name)
    for axis in view.group.axes:
        if axis.attribute == attribute and axis.kind == CELLS:
            starts = np.array(axis.places)
            widths = np.diff(np.append(starts, values.size))
            low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
            return np.repeat(low, widths), np.repeat(high, widths)
    return np.full(values.size, values.min()), np.full(values.size, values.max())


def _gap(table: Table, view: View, functions: Mapping[str, Floats], learnt: Learnt) -> float:
    """What a view leaves open between the bounds, where rows are as they were learnt to be."""
    low = high = 1.0
    for name, values in functions.items():
        known = learnt.get(table.private.index(name))
        mass = np.full(values.size, 1 / values.size) if known is None else known.mass
        least, largest = _on_cells(table, view, name, values)
        low, high = low * float(mass @ least), high * float(mass @ largest)
    return high - low
