"""Fitting a grid to a workload: which views, how fine, and how often each is drawn, from public facts alone.

The error that is minimised is the one that answers will have (`grid_weights.py`): variance and squared bias under the
stated smoothness, summed over the columns of all questions, each column relative to the most that one row adds to it.

* Candidates are views of the attributes that questions use together, of their pairs, and of each alone.
* How fine: borders where questions change, if these are few, or even cells, or points where something is summed;
  whichever leaves the least error if its view answers alone.
* How often: given the weights, the variance is Σ_v s_v/π_v, s_v what view v's weights spend; it is least for
  π_v ∝ √s_v. Weights and probabilities are improved in turn. Views that are hardly drawn any more are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from deniable.arrays import Floats
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.grid_weights import System, solve_grid
from deniable.queries.grids.smoothness import SEPARATE
from deniable.queries.weights.table_plan import Column, Product
from deniable.tables.designs.grid import grid
from deniable.tables.designs.views import Axis, Design
from deniable.tables.schema.attributes import Categorical, Private, Table
from deniable.tables.schema.grid_views import Cells, Cut, GridView, Points
from deniable.tables.specification.specification import Specification

LADDER = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
"""Numbers of even cells that are tried."""
MOST_BORDERS = 24
MOST_TRIED_CELLS = 400
"""Limit for a view that is tried."""
MOST_TRIED_PATTERNS = 2_500
"""Limit for all views together."""
HARDLY = 0.004
"""A view with a smaller part of the reports is dropped."""
DRAWING_ROUNDS = 6
CHANCE_STEPS = 400
"""Probabilities are rounded to multiples of one over this."""
SAMPLED_COLUMNS = 60
"""A question with more columns is represented by this many, evenly spaced."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadColumn:
    """One column that a table has to answer well."""

    column: Column
    importance: float
    users: float
    """The effective number of users for its variance: smaller than the real one in a join."""


def fitted_views(
    table: Table, epsilon: float, adaptive: bool, items: Sequence[WorkloadColumn], *, examples: bool = False
) -> tuple[GridView, ...]:
    """The views of least error for some columns of a table; `epsilon` is that of a report.

    Where columns are only `examples` of others, borders do not follow theirs.
    """
    asked = _attributes_used(table, items)
    sets = sorted({*asked, *_smaller(asked)}, key=lambda names: (len(names), names))
    chances = dict.fromkeys(sets, 1 / len(sets))
    views: dict[tuple[str, ...], GridView] = {}
    for _ in range(2):
        known: dict[object, GridView] = {}
        views = {
            names: _finest(table, epsilon, adaptive, names, asked, chances[names], known, examples) for names in chances
        }
        chances = _divided(table, epsilon, adaptive, views, items)
    parts = {names: max(round(chance * CHANCE_STEPS), 1) for names, chance in chances.items()}
    return tuple(GridView(views[names].axes, weight) for names, weight in parts.items())


def _attributes_used(table: Table, items: Sequence[WorkloadColumn]) -> dict[tuple[str, ...], list[WorkloadColumn]]:
    """The sets of attributes that columns use, with the columns; one without any counts for the first attribute."""
    by_names: dict[tuple[str, ...], list[WorkloadColumn]] = {}
    for item in items:
        names = {
            name
            for product in item.column
            for functions in (product.conditions, product.measures)
            for name, values in functions.items()
            if np.ptp(values) > 0
        }
        ordered = tuple(name for name in table.private if name in names) or table.private[:1]
        by_names.setdefault(ordered, []).append(item)
    return by_names


def _smaller(sets: Mapping[tuple[str, ...], list[WorkloadColumn]]) -> set[tuple[str, ...]]:
    """Pairs and single attributes of the given sets."""
    return {part for names in sets for size in (1, 2) for part in combinations(names, size)}


def _finest(
    table: Table,
    epsilon: float,
    adaptive: bool,
    names: tuple[str, ...],
    asked: Mapping[tuple[str, ...], list[WorkloadColumn]],
    chance: float,
    known: dict[object, GridView],
    examples: bool,
) -> GridView:
    """How to cut a view's attributes, if the view alone answers the columns about them."""
    mine = asked.get(names) or [item for other, group in asked.items() if set(names) <= set(other) for item in group]
    mine = [_restricted(item, names) for item in mine]
    key = (round(np.log2(chance), 1), *(_signature(table, name, mine) for name in names))
    if key in known:  # the same question about attributes alike in all that matters
        return GridView(dict(zip(names, known[key].axes.values(), strict=True)))
    best: tuple[float, GridView] | None = None
    for cuts in _candidates(table, names, mine, examples):
        view = GridView(dict(zip(names, cuts, strict=True)))
        system = _system(table, epsilon, adaptive, [view], mine)
        if system is None:
            continue
        error = _error(system, mine, [chance])
        if best is None or error < best[0] - 1e-9 * abs(best[0]):
            best = (error, view)
    if best is None:
        coarse = {name: Cells(min(table.domains[table.private.index(name)].size, 2)) for name in names}
        return GridView(coarse)
    known[key] = best[1]
    return best[1]


def _restricted(item: WorkloadColumn, names: tuple[str, ...]) -> WorkloadColumn:
    """A column with nothing but the functions of some attributes."""
    column = tuple(
        replace(
            product,
            conditions={name: values for name, values in product.conditions.items() if name in names},
            measures={name: values for name, values in product.measures.items() if name in names},
        )
        for product in item.column
    )
    return replace(item, column=column)


def _signature(table: Table, name: str, items: Sequence[WorkloadColumn]) -> object:
    """What the choice of an attribute's cut depends on."""
    domain = table.domains[table.private.index(name)]
    functions = tuple(
        (item.importance, item.users, *(_function(product, name, domain).tobytes() for product in item.column))
        for item in items
    )
    return (isinstance(domain, Categorical), domain.size, functions)


def _function(product: Product, name: str, domain: Private) -> Floats:
    function: Floats = np.ones(domain.size) * product.conditions.get(name, 1.0) * product.measures.get(name, 1.0)
    return function


def _candidates(
    table: Table, names: tuple[str, ...], items: Sequence[WorkloadColumn], examples: bool
) -> list[tuple[Cut, ...]]:
    """Cuts to try: all attributes on the same step of the ladder, or along the borders of what is asked."""
    options: list[tuple[list[Cut], list[Cut], list[Cut]]] = []
    for name in names:
        domain = table.domains[table.private.index(name)]
        functions = np.array([_function(product, name, domain) for item in items for product in item.column])
        changes = [0, *(np.flatnonzero(np.any(np.diff(functions, axis=1) != 0, axis=0)) + 1).tolist()]
        borders: list[Cut] = [Cells(tuple(changes))] if 1 < len(changes) <= MOST_BORDERS and not examples else []
        if isinstance(domain, Categorical):
            options.append(([Cells(domain.size) for _ in LADDER], borders, []))
            continue
        steps: list[Cut] = [Cells(min(step, domain.size)) for step in LADDER]
        summed = any(
            name in product.measures and np.ptp(product.measures[name]) > 0 for item in items for product in item.column
        )
        points: list[Cut] = [Points(min(step, domain.size)) for step in LADDER] if summed else []
        options.append((steps, borders, points))
    candidates = [tuple(steps[number] for steps, _, _ in options) for number in range(len(LADDER))]
    if any(points for _, _, points in options):
        candidates += [
            tuple(points[number] if points else steps[number] for steps, _, points in options)
            for number in range(len(LADDER))
        ]
    if any(borders for _, borders, _ in options):
        for number in range(len(LADDER)):
            candidates.append(tuple(borders[0] if borders else steps[number] for steps, borders, _ in options))
    if len(names) > 1:  # one attribute finer than the others
        for number in range(1, len(LADDER)):
            for fine in range(len(names)):
                coarse = max(number - 2, 0)
                candidates.append(
                    tuple(cuts[0][number if position == fine else coarse] for position, cuts in enumerate(options))
                )
    return list(dict.fromkeys(candidates))


def _system(
    table: Table, epsilon: float, adaptive: bool, views: Sequence[GridView], items: Sequence[WorkloadColumn]
) -> System | None:
    """Views and columns under the prior; None if there are too many cells."""
    design = Design(grid(table, views), epsilon, adaptive=adaptive)
    asked = Asked.of(table, design, [item.column for item in items])
    cells = []
    for view in design:
        apart = [axis.tree.size for axis in view.group.axes if not _merged(table, axis)]
        if math.prod(apart) > MOST_TRIED_CELLS:
            return None
        cells.append(CellView.of(table, view, asked))
        if cells[-1].means.size > MOST_TRIED_CELLS:
            return None
    return System.of(asked, cells)


def _merged(table: Table, axis: Axis) -> bool:
    """Whether most cells of an axis share their weights."""
    known = axis.attribute >= 0 and isinstance(table.domains[axis.attribute], Categorical)
    return known and axis.tree.size > SEPARATE


def _error(system: System, items: Sequence[WorkloadColumn], chances: Sequence[float]) -> float:
    """The sum over columns of variance and squared bias, by their importance."""
    total = 0.0
    for users, columns in _by_users(items).items():
        part = replace(system, crossed=system.crossed[:, columns])
        explained = np.einsum("uc,uc->c", part.crossed, part.weights(users, chances))
        total -= float(sum(items[column].importance * explained[position] for position, column in enumerate(columns)))
    return total  # plus the error without any report, which does not depend on views


def _by_users(items: Sequence[WorkloadColumn]) -> dict[float, list[int]]:
    columns: dict[float, list[int]] = {}
    for column, item in enumerate(items):
        columns.setdefault(item.users, []).append(column)
    return columns


def _divided(
    table: Table,
    epsilon: float,
    adaptive: bool,
    views: Mapping[tuple[str, ...], GridView],
    items: Sequence[WorkloadColumn],
) -> dict[tuple[str, ...], float]:
    """How often to draw each view if all of them answer together."""
    names = list(views)
    system = _system(table, epsilon, adaptive, [views[attributes] for attributes in names], items)
    chances = np.full(len(names), 1 / len(names))
    if system is None or system.prior.shape[0] > MOST_TRIED_PATTERNS:
        return dict(zip(names, chances.tolist(), strict=True))
    for _ in range(DRAWING_ROUNDS):
        spent = np.zeros(len(names))
        for users, columns in _by_users(items).items():
            part = replace(system, crossed=system.crossed[:, columns])
            importance = np.array([items[column].importance for column in columns]) / users
            spending = part.spending(part.weights(users, chances.tolist()))
            spent += np.array([float(of_view @ importance) for of_view in spending])
        chances = np.sqrt(np.maximum(spent, 0.0))
        if not chances.sum():
            return {names[0]: 1.0}
        chances = np.maximum(chances / chances.sum(), HARDLY / 4)
        chances /= chances.sum()
    kept = chances >= min(HARDLY, float(chances.max()))
    total = float(chances[kept].sum())
    return {
        attributes: float(chance) / total for attributes, chance, keep in zip(names, chances, kept, strict=True) if keep
    }


def importance_of(column: Column) -> float:
    """One over the square of the most that one row adds to a column."""
    most = sum(
        abs(product.coefficient)
        * float(
            np.prod(
                [
                    np.abs(values).max()
                    for functions in (product.conditions, product.measures)
                    for values in functions.values()
                ]
            )
        )
        for product in column
    )
    return 1 / max(most, 1e-300) ** 2


def in_joins(collection: Specification, question: Mapping[str, Sequence[Column]], users: float) -> dict[str, float]:
    """For each table of a question, the effective number of users for the variance of its columns."""
    if len(question) == 1:
        return dict.fromkeys(question, users)
    effective = dict.fromkeys(question, users)
    for _ in range(2):
        solved = {
            name: solve_grid(collection[name], collection.design_of(name), columns, effective[name])
            for name, columns in question.items()
        }
        for name in question:
            others = [other for table, other in solved.items() if table != name]
            effective[name] = users * min(float(np.prod([other.truth / other.second for other in others])), 1.0)
    return effective
