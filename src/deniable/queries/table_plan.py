"""A plan for one table: weights on cells of views, such that every report's contribution is right on average.

A question about one row is a sum of products of functions of its attributes, Σ κ · Π f_j(t_j): an indicator for a
predicate, v ↦ v for a sum, one where an attribute is free. Choose weights α with Σ_v α_v(cell_v(t)) = f(t) for every
row t. Then a report (view v, y) contributes

    w(y) = (1/π_v) · Σ_c α_v(c) · (S(y, c) − q_v)/(p_v − q_v),        E[w] = f(t),

S = 1 where y supports cell c. In a product design α factorises over the axes, each factor a weighting of one tree.
Where a design has several groups, each answers the question on its own, and the answers are averaged. In a table with
many rows the weight axis multiplies by how many rows the report stands for; a design with several parts multiplies
their contributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from deniable.errors import QueryRefused
from deniable.mechanisms import LocalHashing
from deniable.queries.axis_weights import Layer, Rule, weigh
from deniable.queries.row_products import Rows, row_products
from deniable.queries.tree_weights import Floats
from deniable.randomness import Integers
from deniable.tables.bulk import cell_numbers
from deniable.tables.schema import Table
from deniable.tables.views import EMBEDDED, ROUNDED, VALUE, WEIGHT, Axis, Design, Group

if TYPE_CHECKING:
    from deniable.queries.grid_weights import Bias

MOST_CELLS = 20_000_000
ENOUGH = 100
"""So many reports of a view must be expected for their number to be counted on."""
DIRECT, DESIGNED = "direct", "designed"
SUMS = (DIRECT, DESIGNED)
"""How a sum is taken: by the values' own tree, or by the rounded values that AHIO, EHIO and SR-HIO collect for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """coefficient · Π_j condition_j(t_j) · measure_j(t_j), each an array over an attribute's domain; missing is one."""

    coefficient: float
    conditions: Mapping[str, Floats]
    measures: Mapping[str, Floats]
    family: int = 0
    """Products of one family are the same question for different groups: their weights are chosen together."""


Column = tuple[Product, ...]
"""What one column of contributions estimates: a sum of products."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewWeights:
    """The cells of one view that carry weight, for all columns at once.

    Weights are kept as rows, each a weighting of cells, and combinations of rows: columns that are the same question
    for different groups share most of their work. Both include 1/π.
    """

    view: int
    levels: tuple[int, ...]
    cells: Integers
    """Numbers of the cells, row after row."""
    weights: Floats
    """The weight of each in its row."""
    shares: Floats
    """The share of rows that would lie in each if rows were spread evenly over the domains."""
    row_starts: Integers
    columns: Integers
    """Columns that a row counts for, row after row."""
    coefficients: Floats
    """How much it counts for each."""
    column_starts: Integers
    probability: float
    p: float
    q: float
    cell_count: int
    buckets: int
    """How many buckets the view hashes to; 0 for randomized response and for a view of one cell: there every row is
    one cell, and cells are sorted."""

    def by_cell(self) -> tuple[Integers, Floats, Rows]:
        """The distinct cells, the share of evenly spread rows in each, and its weights by column."""
        distinct, first, place = np.unique(self.cells, return_index=True, return_inverse=True)
        cells = Rows(self.row_starts, place, self.weights)
        _, (which, columns), values = row_products([cells, Rows(self.column_starts, self.columns, self.coefficients)])
        return distinct, self.shares[first], Rows.summed(which, columns, values, distinct.size)


@dataclass(frozen=True, slots=True, eq=False)
class PartPlan:
    """What reports of one part contribute to each column; views not listed contribute the constants only."""

    constants: Floats
    """What every report adds to each column, whatever it says."""
    views: tuple[ViewWeights, ...]
    supports: tuple[str, ...]
    """For each group of views in use, its axes with the number of nodes that carry weight, level by level."""

    def countable(self, slots: int, reports: float) -> bool:
        """Whether a view's reports are divided by how many there are instead of how many were to be expected.

        Views are drawn apart from all data, so that is unbiased too, and it spares the noise of the drawing; but every
        view must have some. With one report per user only: then views divide the users into strata.
        """
        return slots == 1 and bool(self.views) and reports * min(one.probability for one in self.views) >= ENOUGH

    @property
    def cells_per_report(self) -> float:
        """How many cells the average report is compared with."""
        return sum(one.probability * one.cells.size for one in self.views)

    @property
    def share(self) -> float:
        """The share of reports that say something."""
        return sum(one.probability for one in self.views)


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """What every report of a table contributes to the columns of a question."""

    table: str
    parts: tuple[PartPlan, ...]
    asked: tuple[Column, ...]
    bias: Bias | None = None
    """What the weights of a grid leave to an assumption; nothing if they reproduce what is asked."""

    @property
    def columns(self) -> int:
        """How many columns of contributions there are."""
        return len(self.asked)

    def __str__(self) -> str:
        lines = []
        for number, part in enumerate(self.parts):
            name = f"table {self.table}" + (f", part {number + 1}" if len(self.parts) > 1 else "")
            lines.append(
                f"{name}: {len(part.views):,} views, {part.share:.1%} of the reports, "
                f"{part.cells_per_report:,.1f} cells per report"
            )
            lines += [f"  {one}" for one in part.supports]
        return "\n".join(lines)


def plan_table(table: Table, design: Design, columns: Sequence[Column], rule: Rule, sums: str = DIRECT) -> TablePlan:
    """Weights for columns of contributions. A design of several parts takes columns of one product each."""
    if len(design.parts) > 1 and any(len(column) != 1 for column in columns):
        raise ValueError("a design of several parts multiplies: give it one product per column")
    parts = []
    for part, groups in enumerate(design.parts):
        constants = np.zeros(len(columns))
        views: list[ViewWeights] = []
        supports: list[str] = []
        for place in range(len(groups)):
            chosen = _of_group(table, groups, place, columns, sums)
            if not any(chosen):
                continue
            added, found, used = _group_weights(table, design, part, place, chosen, rule, sums)
            constants += added
            views += found
            supports += [used] if used else []
        parts.append(PartPlan(constants, tuple(views), tuple(supports)))
    return TablePlan(table.name, tuple(parts), tuple(columns))


def rounded_attribute(table: Table, design: Design, one: Product, sums: str) -> str | None:
    """The measured attribute whose rounded value a product is read off, if any."""
    found = (_rounding(table, group, one, sums) for part in design.parts for group in part)
    return next((name for name in found if name is not None), None)


def _of_group(
    table: Table, groups: tuple[Group, ...], place: int, columns: Sequence[Column], sums: str
) -> list[list[Product]]:
    """The products that a group answers, with its share: all groups alike, or the one group that rounds the sum."""
    chosen: list[list[Product]] = []
    for column in columns:
        mine = []
        for one in column:
            able = [number for number, group in enumerate(groups) if _rounding(table, group, one, sums) is not None]
            answering = able or list(range(len(groups)))
            if place in answering:
                share = one.coefficient / len(answering)
                mine.append(Product(share, one.conditions, one.measures, one.family))
        chosen.append(mine)
    return chosen


def _rounding(table: Table, group: Group, one: Product, sums: str) -> str | None:
    """The measured attribute that an axis of the group rounds for this purpose; the first one, if there are several."""
    if sums == DIRECT:
        return None
    for axis in group.axes:
        if axis.rounds_value:
            name = table.private[axis.attribute]
            if name in one.measures and _affine(one.measures[name]):
                return name
    return None


def _affine(values: Floats) -> bool:
    """Whether values rise in equal steps: only then is the average of two ends right."""
    line = np.linspace(values[0], values[-1], values.size)
    return bool(np.allclose(values, line, rtol=1e-12, atol=1e-12 * max(1.0, float(np.abs(values).max()))))


def _group_weights(
    table: Table, design: Design, part: int, place: int, columns: list[list[Product]], rule: Rule, sums: str
) -> tuple[Floats, list[ViewWeights], str]:
    """Constants and views of one group; π is the chance of the group times that of a view in it."""
    group, groups = design.parts[part][place], len(design.parts[part])
    products = [(number, one) for number, column in enumerate(columns) for one in column]
    owners = np.array([number for number, _ in products], dtype=np.int64)
    coefficients = np.array([one.coefficient for _, one in products])
    rounded = [_rounding(table, group, one, sums) for _, one in products]
    wanted = [
        [_axis_function(table, axis, one, name) for (_, one), name in zip(products, rounded, strict=True)]
        for axis in group.axes
    ]
    constants = np.zeros(len(columns))
    if rule.spreads_constants:
        # What is the same for every row is known without any report.
        known = [all((one[number] == one[number][0]).all() for one in wanted) for number in range(len(products))]
        for number in np.flatnonzero(known).tolist():
            value = np.prod([one[number][0] for one in wanted])
            constants[owners[number]] += coefficients[number] * value
        kept = [number for number, one in enumerate(known) if not one]
        if not kept:
            return constants, [], ""
        owners, coefficients = owners[kept], coefficients[kept]
        products, wanted = [products[number] for number in kept], [[one[n] for n in kept] for one in wanted]
    axes = weigh(design, group, wanted, [one.family for _, one in products], rule)
    made: list[ViewWeights] = []
    used = [[number for number, layer in enumerate(axis) if layer.active.any()] for axis in axes]
    for choice in product(*used):
        levels = tuple(choices[number] for choices, number in zip(group.levels, choice, strict=True))
        layers = [axis[number] for axis, number in zip(axes, choice, strict=True)]
        # Which combinations of patterns each product needs, and how much of each; then the same for columns.
        rows, patterns, shares = row_products([layer.shares for layer in layers])
        if not rows.size:
            continue
        sizes = [layer.patterns.height for layer in layers]
        distinct, which = np.unique(np.ravel_multi_index(patterns, sizes), return_inverse=True)
        counts = Rows.summed(which, owners[rows], shares * coefficients[rows], distinct.size)
        chosen = [
            layer.patterns.take(one) for layer, one in zip(layers, np.unravel_index(distinct, sizes), strict=True)
        ]
        if not any(levels) and rule.spreads_constants:
            # The cell of everything: every report lies in it, so every report may say so.
            whole = np.prod([one.totals() for one in chosen], axis=0)
            np.add.at(constants, counts.columns, counts.values * np.repeat(whole, counts.counts))
            continue
        local = 0
        for choices, one in zip(group.levels, choice, strict=True):
            local = local * len(choices) + one
        made.append(_view(design, group, levels, design.offset(part, place) + local, groups, chosen, counts))
    return constants, made, _support(table, group, axes)


def _view(
    design: Design,
    group: Group,
    levels: tuple[int, ...],
    number: int,
    groups: int,
    patterns: list[Rows],
    counts: Rows,
) -> ViewWeights:
    """The cells of one view, from the patterns of nodes that each row combines."""
    if np.prod([one.counts.astype(np.float64) for one in patterns], axis=0).sum() > MOST_CELLS:
        raise QueryRefused("the question needs too many cells of one view", "Ask with fewer attributes at a time.")
    rows, nodes, weights = row_products(patterns)
    oracle = design.oracle(group.cells(levels))
    hashing = isinstance(oracle, LocalHashing) and design.epsilon < np.inf
    made = ViewWeights(
        view=number,
        levels=levels,
        cells=cell_numbers(group, levels, nodes),
        weights=weights * (group.views * groups),
        shares=_shares(group, levels, nodes),
        row_starts=np.searchsorted(rows, np.arange(counts.height + 1)),
        columns=counts.columns,
        coefficients=counts.values,
        column_starts=counts.starts,
        probability=1 / (group.views * groups),
        p=1.0 if oracle is None else float(oracle.p),
        q=0.0 if oracle is None else float(oracle.q),
        cell_count=group.cells(levels),
        buckets=oracle.g if hashing and isinstance(oracle, LocalHashing) else 0,
    )
    if hashing:
        return made
    # A report that names its cell is looked up: one row per cell, sorted.
    cells, shares, entries = made.by_cell()
    return replace(
        made,
        cells=cells,
        weights=np.ones(cells.size),
        shares=shares,
        row_starts=np.arange(cells.size + 1),
        columns=entries.columns,
        coefficients=entries.values,
        column_starts=entries.starts,
    )


def _shares(group: Group, levels: tuple[int, ...], nodes: list[Integers]) -> Floats:
    """The share of evenly spread rows in each cell; the coins of rounded values are counted as even, too."""
    shares: Floats = np.ones(nodes[0].size)
    for axis, level, node in zip(group.axes, levels, nodes, strict=True):
        width = axis.tree.width(level)
        shares *= (np.minimum((node + 1) * width, axis.tree.size) - node * width) / axis.tree.size
    return shares


def _axis_function(table: Table, axis: Axis, one: Product, rounded: str | None) -> Floats:
    """The factor of a product that an axis answers, as an array over the axis."""
    weight = np.array([0.0, (table.many or 1) / table.tau])
    if axis.kind == WEIGHT:
        return weight
    name = table.private[axis.attribute]
    size = table.domains[axis.attribute].size
    condition = one.conditions.get(name, np.ones(size))
    measure = one.measures.get(name, np.ones(size))
    ends = measure[[0, -1]] if name == rounded else np.ones(2)
    if axis.kind == VALUE:
        return np.ascontiguousarray(condition if name == rounded else condition * measure)
    if axis.kind == EMBEDDED:
        low, high = (condition * ends[0], condition * ends[1]) if name == rounded else (condition * measure,) * 2
        return np.concatenate((low[::-1], high))
    return ends if axis.kind == ROUNDED else np.concatenate((0.0 * ends, weight[1] * ends))


def _support(table: Table, group: Group, axes: list[list[Layer]]) -> str:
    """The nodes that carry weight, axis by axis and level by level, from the coarsest on."""
    found = []
    for axis, layers in zip(group.axes, axes, strict=True):
        name = axis.kind if axis.attribute < 0 else table.private[axis.attribute]
        kind = "" if axis.kind in (VALUE, WEIGHT) else f" {axis.kind}"
        found.append(f"{name}{kind} {'+'.join(str(layer.nodes) for layer in layers)}")
    return ", ".join(found)
