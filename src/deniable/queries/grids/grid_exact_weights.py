"""Weights on the cells of a grid that reproduce what is asked, so that nothing has to be assumed: `unbiased`.

A view can answer alone what is constant on its cells (linear between points). Each such view answers exactly on
average, and the answers are averaged by their variances.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.queries.grids.grid_cells import Asked, CellView, kron
from deniable.tables.designs.views import POINTS, WEIGHT, Axis
from deniable.tables.schema.attributes import Table

EXACT = 1e-9


def exact_weights(table: Table, asked: Asked, views: Sequence[CellView], spans: Sequence[slice]) -> Floats:
    """For every column weights that reproduce it, from all views that can."""
    total = np.zeros((sum(view.means.size for view in views), asked.columns))
    for product, column in enumerate(asked.owners.tolist()):
        if all(np.ptp(batch[asked.function_numbers[product, number]]) == 0 for number, batch in enumerate(asked.given)):
            continue  # known without any report
        answers, precisions = [], []
        for view, span in zip(views, spans, strict=True):
            weights = _reproduced(asked, view, product)
            if weights is not None:
                centred = weights - view.means @ weights  # the rest is known without any report
                variance = float(centred @ view.noise @ centred) / float(view.view.probability)
                answers.append((span, centred))
                precisions.append(1 / max(variance, 1e-300))
        if not answers:
            raise QueryRefused(
                f"no view of table {table.name!r} can answer this without assuming anything",
                "Ask for ranges along its cells' borders, for sums of rounded attributes; or leave out unbiased.",
            )
        for (span, weights), precision in zip(answers, precisions, strict=True):
            total[span, column] += asked.coefficients[product] * precision / sum(precisions) * weights
    return total


def _reproduced(asked: Asked, view: CellView, product: int) -> Floats | None:
    """The weights on a view's patterns that add up to a product of functions of values, if there are any."""
    weights: Floats = np.ones(1)
    axes = {len(asked.given) - 1 if axis.attribute < 0 else axis.attribute: axis for axis in view.view.group.axes}
    patterns = dict(zip(axes, view.patterns, strict=True))
    for number, batch in enumerate(asked.given):
        function = batch[asked.function_numbers[product, number]]
        if number not in axes:
            if np.ptp(function) > EXACT * np.abs(function).max(initial=0.0):
                return None
            weights = weights * function[0]
            continue
        cells = _on_cells(axes[number], function)
        if cells is None:
            return None
        mine = patterns[number]
        weights = kron(weights, cells[[int(np.argmax(mine == pattern)) for pattern in range(int(mine.max()) + 1)]])
    return weights


def _on_cells(axis: Axis, function: Floats) -> Floats | None:
    """The value of a function on each cell, or at each point, if these determine it."""
    slack = EXACT * float(np.abs(function).max(initial=1e-300))
    if axis.kind == WEIGHT:
        return function
    borders = np.array(axis.places)
    if axis.kind == POINTS:
        values = function[borders]
        line = np.interp(np.arange(function.size), borders, values)
        return values if np.abs(line - function).max() <= slack else None
    low, high = np.minimum.reduceat(function, borders), np.maximum.reduceat(function, borders)
    return np.asarray(low) if (high - low).max() <= slack else None
