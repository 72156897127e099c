"""Weights on the cells of a product design, from weights on the trees of its axes.

The weights of a view's cells factorise over its axes, each factor a weighting of one tree (`axis_weights.py`). Where a
design has several groups, each answers the question on its own, and the answers are averaged. In a table with many
rows the weight axis multiplies by how many rows the report stands for; a design with several parts multiplies their
contributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product as combinations_of

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.errors import QueryRefused
from deniable.mechanisms.frequency_oracle import NamedCell
from deniable.queries.question.listed_words import ListedWords
from deniable.queries.weights.axis_layers import Layer
from deniable.queries.weights.axis_weights import Rule, weigh
from deniable.queries.weights.row_products import Rows, row_products
from deniable.queries.weights.table_plan import DIRECT, Column, PartPlan, Product, TablePlan, ViewWeights
from deniable.queries.weights.word_weights import plan_words
from deniable.tables.bulk.cell_numbers import cell_numbers
from deniable.tables.designs.views import EMBEDDED, ROUNDED, VALUE, WEIGHT, Axis, Design, Group
from deniable.tables.schema.attributes import Table

MOST_VIEW_CELLS = 20_000_000


def plan_table(table: Table, design: Design, columns: Sequence[Column], rule: Rule, sums: str = DIRECT) -> TablePlan:
    """Weights for columns of contributions. A design of several parts takes columns of one product each."""
    if isinstance(table.domains[0], ListedWords):
        return plan_words(table, design, columns)
    if len(design.parts) > 1 and any(len(column) != 1 for column in columns):
        raise ValueError("a design of several parts multiplies: give it one product per column")
    parts = []
    for part, groups in enumerate(design.parts):
        constants = np.zeros(len(columns))
        views: list[ViewWeights] = []
        supports: list[str] = []
        for number in range(len(groups)):
            chosen = _of_group(table, groups, number, columns, sums)
            if not any(chosen):
                continue
            added, group_views, used = _group_weights(table, design, part, number, chosen, rule, sums)
            constants += added
            views += group_views
            supports += [used] if used else []
        parts.append(PartPlan(constants, tuple(views), tuple(supports)))
    return TablePlan(table.name, tuple(parts), tuple(columns))


def rounded_attribute(table: Table, design: Design, product: Product, sums: str) -> str | None:
    """The measured attribute whose rounded value a product is read off, if any."""
    names = (_rounding(table, group, product, sums) for part in design.parts for group in part)
    return next((name for name in names if name is not None), None)


def _of_group(
    table: Table, groups: tuple[Group, ...], number: int, columns: Sequence[Column], sums: str
) -> list[list[Product]]:
    """The products that a group answers, with its share: all groups alike, or the one group that rounds the sum."""
    chosen: list[list[Product]] = []
    for column in columns:
        mine = []
        for product in column:
            able = [other for other, group in enumerate(groups) if _rounding(table, group, product, sums) is not None]
            answering = able or list(range(len(groups)))
            if number in answering:
                share = product.coefficient / len(answering)
                mine.append(replace(product, coefficient=share))
        chosen.append(mine)
    return chosen


def _rounding(table: Table, group: Group, product: Product, sums: str) -> str | None:
    """The measured attribute that an axis of the group rounds for this purpose; the first one, if there are several."""
    if sums == DIRECT:
        return None
    for axis in group.axes:
        if axis.rounds_value:
            name = table.private[axis.attribute]
            if name in product.measures and _affine(product.measures[name]):
                return name
    return None


def _affine(values: Floats) -> bool:
    """Whether values rise in equal steps: only then is the average of two ends right."""
    line = np.linspace(values[0], values[-1], values.size)
    return bool(np.allclose(values, line, rtol=1e-12, atol=1e-12 * max(1.0, float(np.abs(values).max()))))


def _group_weights(
    table: Table, design: Design, part: int, position: int, columns: list[list[Product]], rule: Rule, sums: str
) -> tuple[Floats, list[ViewWeights], str]:
    """Constants and views of one group; π is the chance of the group times that of a view in it."""
    group, groups = design.parts[part][position], len(design.parts[part])
    products = [(column, product) for column, members in enumerate(columns) for product in members]
    owners = np.array([column for column, _ in products], dtype=np.int64)
    coefficients = np.array([product.coefficient for _, product in products])
    rounded = [_rounding(table, group, product, sums) for _, product in products]
    wanted = [
        [_axis_function(table, axis, product, name) for (_, product), name in zip(products, rounded, strict=True)]
        for axis in group.axes
    ]
    constants = np.zeros(len(columns))
    if rule.spreads_constants:
        # What is the same for every row is known without any report.
        known = [
            all((functions[number] == functions[number][0]).all() for functions in wanted)
            for number in range(len(products))
        ]
        for number in np.flatnonzero(known).tolist():
            value = np.prod([functions[number][0] for functions in wanted])
            constants[owners[number]] += coefficients[number] * value
        kept = [number for number, is_known in enumerate(known) if not is_known]
        if not kept:
            return constants, [], ""
        owners, coefficients = owners[kept], coefficients[kept]
        products, wanted = [products[number] for number in kept], [[functions[n] for n in kept] for functions in wanted]
    axes, product_of = weigh(design, group, wanted, [product.family for _, product in products], rule)
    owners, coefficients = owners[product_of], coefficients[product_of]
    made: list[ViewWeights] = []
    used = [[number for number, layer in enumerate(axis) if layer.active.any()] for axis in axes]
    for choice in combinations_of(*used):
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
            layer.patterns.take(combination)
            for layer, combination in zip(layers, np.unravel_index(distinct, sizes), strict=True)
        ]
        if not any(levels) and rule.spreads_constants:
            # The cell of everything: every report lies in it, so every report may say so.
            whole = np.prod([patterns.totals() for patterns in chosen], axis=0)
            np.add.at(constants, counts.columns, counts.values * np.repeat(whole, counts.counts))
            continue
        local = 0
        for choices, level in zip(group.levels, choice, strict=True):
            local = local * len(choices) + level
        made.append(_view(design, group, levels, design.offset(part, position) + local, groups, chosen, counts))
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
    if np.prod([rows.counts.astype(np.float64) for rows in patterns], axis=0).sum() > MOST_VIEW_CELLS:
        raise QueryRefused("the question needs too many cells of one view", "Ask with fewer attributes at a time.")
    rows, nodes, weights = row_products(patterns)
    oracle = design.oracle(group.cells(levels))
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
        p=float(oracle.p),
        q=float(oracle.q),
        cell_count=group.cells(levels),
        oracle=oracle,
    )
    if not isinstance(oracle.support, NamedCell):
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
    """The share of evenly spread rows in each cell; rounded values count as evenly distributed, too."""
    shares: Floats = np.ones(nodes[0].size)
    for axis, level, node in zip(group.axes, levels, nodes, strict=True):
        width, size = min(axis.tree.width(level), axis.tree.size), axis.tree.size
        shares *= width / size
        if size % width:  # the last node is narrower
            shares[node == size // width] *= size % width / width
    return shares


def _axis_function(table: Table, axis: Axis, product: Product, rounded: str | None) -> Floats:
    """The factor of a product that an axis answers, as an array over the axis."""
    weight = np.array([1.0, 1.0] if product.once else [0.0, float(table.many or 1)]) / table.tau
    if axis.kind == WEIGHT:
        return weight
    name = table.private[axis.attribute]
    size = table.domains[axis.attribute].size
    condition = product.conditions.get(name, np.ones(size))
    measure = product.measures.get(name, np.ones(size))
    ends = measure[[0, -1]] if name == rounded else np.ones(2)
    if axis.kind == VALUE:
        return np.ascontiguousarray(condition if name == rounded else condition * measure)
    if axis.kind == EMBEDDED:
        low, high = (condition * ends[0], condition * ends[1]) if name == rounded else (condition * measure,) * 2
        return np.concatenate((low[::-1], high))
    return ends if axis.kind == ROUNDED else np.concatenate((0.0 * ends, weight[1] * ends))


def _support(table: Table, group: Group, axes: list[list[Layer]]) -> str:
    """The nodes that carry weight, axis by axis and level by level, from the coarsest on."""
    axes_shown = []
    for axis, layers in zip(group.axes, axes, strict=True):
        name = axis.kind if axis.attribute < 0 else table.private[axis.attribute]
        kind = "" if axis.kind in (VALUE, WEIGHT) else f" {axis.kind}"
        axes_shown.append(f"{name}{kind} {'+'.join(str(layer.nodes) for layer in layers)}")
    return ", ".join(axes_shown)
