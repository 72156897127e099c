"""A plan for one table: a weight on cells of views, such that every report's contribution is right on average.

A question about one row is a product of functions of its attributes, Π f_j(t_j): an indicator for a predicate, v ↦ v
for a sum, one where an attribute is free. Choose weights α with Σ_v α_v(cell_v(t)) = f(t) for every row t. Then a
report (view v, y) contributes

    w(y) = (1/π_v) · Σ_c α_v(c) · (S(y, c) − q_v)/(p_v − q_v),        E[w] = f(t),

S = 1 where y supports cell c. In a product design α factorises over the axes, each factor a weighting of one tree.
Where a design has several groups, each answers the question on its own, and the answers are averaged. In a table with
many rows the weight axis multiplies by how many rows the report stands for; a design with several parts multiplies
their contributions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from deniable.errors import InvalidParameter
from deniable.mechanisms import LocalHashing
from deniable.queries.tree_weights import Floats, Weights, greedy, optimal
from deniable.randomness import Integers
from deniable.tables.bulk import cell_numbers
from deniable.tables.schema import Table
from deniable.tables.views import EMBEDDED, ROUNDED, VALUE, WEIGHT, Axis, Design, Group
from deniable.trees import Tree

Rule = Callable[[Tree, Floats, list[float]], Weights]
RULES: dict[str, Rule] = {
    "greedy": lambda tree, function, _costs: greedy(tree, function),
    "optimal": lambda tree, function, costs: optimal(tree, function, costs),
}
MOST_CELLS = 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ViewWeights:
    """The cells of one view that carry weight."""

    view: int
    cells: Integers
    """Numbers of the cells."""
    weights: Floats
    """α_v(c)/π_v of each."""
    p: float
    q: float
    buckets: int
    """How many buckets the view hashes to; 0 for randomized response and for a view of one cell."""


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """What every view of a table contributes to a product of functions; views not listed contribute nothing."""

    table: str
    parts: tuple[tuple[ViewWeights, ...], ...]
    rule: str

    def __str__(self) -> str:
        lines = [f"table {self.table}, {self.rule} weights"]
        for number, part in enumerate(self.parts):
            cells = sum(view.cells.size for view in part)
            lines.append(f"part {number}: {len(part)} views, {cells:,} cells")
        return "\n".join(lines)


def plan(table: Table, design: Design, functions: Mapping[str, Floats], rule: str = "optimal") -> TablePlan:
    """Weights for the product of the given functions, each an array over its attribute's domain."""
    if rule not in RULES:
        raise InvalidParameter("weights", "are unknown", f"Use one of {', '.join(RULES)}.")
    for name, function in functions.items():
        if name not in table.private or function.shape != (table.domains[table.private.index(name)].size,):
            raise InvalidParameter(f"the function of {name!r}", "does not fit the domain", "Give one value per place.")
    parts = []
    for part, groups in enumerate(design.parts):
        views: list[ViewWeights] = []
        for place, group in enumerate(groups):
            first = design.offset(part, place)
            views += _group_weights(table, design, group, first, functions, RULES[rule])
        parts.append(tuple(views))
    return TablePlan(table.name, tuple(parts), rule)


def _group_weights(
    table: Table, design: Design, group: Group, first: int, functions: Mapping[str, Floats], rule: Rule
) -> list[ViewWeights]:
    """The views of one group. Its reports alone estimate f: π within the group is what the weights are divided by."""
    factors = [
        _axis_weights(table, axis, levels, functions, rule)
        for axis, levels in zip(group.axes, group.levels, strict=True)
    ]
    used = [
        [place for place, level in enumerate(levels) if np.any(factor[level])]
        for factor, levels in zip(factors, group.levels, strict=True)
    ]
    made = []
    for places in product(*used):
        levels = tuple(choices[place] for choices, place in zip(group.levels, places, strict=True))
        nodes = [np.flatnonzero(factor[level]) for factor, level in zip(factors, levels, strict=True)]
        if np.prod([float(one.size) for one in nodes]) > MOST_CELLS:
            raise InvalidParameter("the question", "needs too many cells of one view", "Ask with fewer attributes.")
        grid = [axis.ravel() for axis in np.meshgrid(*nodes, indexing="ij")]
        weights = np.ones(grid[0].size)
        for factor, level, node in zip(factors, levels, grid, strict=True):
            weights = weights * factor[level][node]
        local = 0
        for choices, place in zip(group.levels, places, strict=True):
            local = local * len(choices) + place
        oracle = design.oracle(group.cells(levels))
        hashing = isinstance(oracle, LocalHashing) and design.epsilon < np.inf
        made.append(
            ViewWeights(
                view=first + local,
                cells=cell_numbers(group, levels, grid),
                weights=weights * group.views,
                p=1.0 if oracle is None else float(oracle.p),
                q=0.0 if oracle is None else float(oracle.q),
                buckets=oracle.g if hashing and isinstance(oracle, LocalHashing) else 0,
            )
        )
    return made


def _axis_weights(
    table: Table, axis: Axis, levels: tuple[int, ...], functions: Mapping[str, Floats], rule: Rule
) -> Weights:
    costs = [1.0 if level in levels else np.inf for level in range(axis.tree.levels)]
    function = axis_function(table, axis, functions)
    return rule(axis.tree, function, costs) if all(map(np.isfinite, costs)) else optimal(axis.tree, function, costs)


def axis_function(table: Table, axis: Axis, functions: Mapping[str, Floats]) -> Floats:
    """The factor of the question that an axis answers, as an array over the axis."""
    attribute = table.private[axis.attribute] if axis.attribute >= 0 else ""
    if axis.kind in (VALUE, EMBEDDED):
        values = functions.get(attribute, np.ones(table.domains[axis.attribute].size))
        return values if axis.kind == VALUE else np.concatenate((values[::-1], values))
    if axis.kind == ROUNDED:
        return np.ones(2)
    weight = np.array([0.0, (table.many or 1) / table.tau])
    return weight if axis.kind == WEIGHT else np.repeat(weight, 2)
