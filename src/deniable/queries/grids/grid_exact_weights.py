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
    total = np.zeros((sum(one.means.size for one in views), asked.columns))
    for place, column in enumerate(asked.owners.tolist()):
        if all(np.ptp(batch[asked.places[place, number]]) == 0 for number, batch in enumerate(asked.given)):
            continue  # known without any report
        found, precisions = [], []
        for one, span in zip(views, spans, strict=True):
            weights = _reproduced(asked, one, place)
            if weights is not None:
                centred = weights - one.means @ weights  # the rest is known without any report
                variance = float(centred @ one.noise @ centred) / float(one.view.probability)
                found.append((span, centred))
                precisions.append(1 / max(variance, 1e-300))
        if not found:
            raise QueryRefused(
                f"no view of table {table.name!r} can answer this without assuming anything",
                "Ask for ranges along its cells' borders, for sums of rounded attributes; or leave out unbiased.",
            )
        for (span, weights), precision in zip(found, precisions, strict=True):
            total[span, column] += asked.coefficients[place] * precision / sum(precisions) * weights
    return total


def _reproduced(asked: Asked, one: CellView, product: int) -> Floats | None:
    """The weights on a view's patterns that add up to a product of functions of values, if there are any."""
    weights: Floats = np.ones(1)
    axes = {len(asked.given) - 1 if axis.attribute < 0 else axis.attribute: axis for axis in one.view.group.axes}
    patterns = dict(zip(axes, one.patterns, strict=True))
    for number, batch in enumerate(asked.given):
        function = batch[asked.places[product, number]]
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
    places = np.array(axis.places)
    if axis.kind == POINTS:
        found = function[places]
        line = np.interp(np.arange(function.size), places, found)
        return found if np.abs(line - function).max() <= slack else None
    low, high = np.minimum.reduceat(function, places), np.maximum.reduceat(function, places)
    return np.asarray(low) if (high - low).max() <= slack else None
