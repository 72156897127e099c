"""Weights on the cells of a grid that reproduce what is asked, so that nothing has to be assumed.

A view can answer alone what is constant on its cells (linear between points). Each such view answers exactly on
average, and the answers are averaged by their variances. Then whatever views agree on takes noise away
(`view_agreement.py`). Where cells reproduce a column, nothing else is used; `unbiased` refuses the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Booleans, Floats
from deniable.queries.grids.grid_cells import Asked, CellView, kron
from deniable.queries.grids.view_agreement import adds_up, least_noise
from deniable.tables.designs.views import POINTS, WEIGHT, Axis

EXACT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ExactWeights:
    """Weights that reproduce columns, from all views that can."""

    exact: Booleans
    """The columns that are reproduced; the others have no weights."""
    weights: tuple[Floats, ...]
    """For each view patterns × columns."""

    @classmethod
    def none(cls, asked: Asked, views: Sequence[CellView]) -> ExactWeights:
        """No column is reproduced, except by chance."""
        return cls(
            np.zeros(asked.columns, dtype=bool), tuple(np.zeros((view.means.size, asked.columns)) for view in views)
        )


def exact_weights(asked: Asked, views: Sequence[CellView], evidence: frozenset[int] = frozenset()) -> ExactWeights:
    """For every column weights that reproduce it, where there are any; views that are evidence only have none."""
    total = [np.zeros((view.means.size, asked.columns)) for view in views]
    exact = np.ones(asked.columns, dtype=bool)
    readers = [_Reader.of(asked, view) for view in views]
    complete = [adds_up(view) for view in views]
    constant = asked.constant_products
    for product, column in enumerate(asked.owners.tolist()):
        if constant[product] or not exact[column]:
            continue  # known without any report, or some other product is not reproduced
        answers, precisions = [], []
        for number, (view, reader) in enumerate(zip(views, readers, strict=True)):
            weights = None if view.view.number in evidence else reader.reproduced(product)
            if weights is not None:
                if complete[number]:
                    weights = weights - view.means @ weights  # the rest is known without any report
                variance = float(weights @ view.noise @ weights) / float(view.view.probability)
                answers.append((number, weights))
                precisions.append(1 / max(variance, 1e-300))
        exact[column] = bool(answers)
        for (number, weights), precision in zip(answers, precisions, strict=True):
            total[number][:, column] += asked.coefficients[product] * precision / sum(precisions) * weights
    asked_for = exact & ~asked.known
    if not asked_for.any():
        return ExactWeights(exact, tuple(np.zeros_like(weights) for weights in total))
    return ExactWeights(exact, least_noise(views, [np.where(asked_for, weights, 0.0) for weights in total]))


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """A view that is asked for products, function by function."""

    asked: Asked
    axes: dict[int, tuple[Axis, list[int]]]
    """For each ground that the view cuts its axis, and a cell of every pattern."""
    known: dict[tuple[int, int], Floats | None] = field(default_factory=dict)
    """By ground and function what its patterns, or the function's only value, are."""

    @classmethod
    def of(cls, asked: Asked, view: CellView) -> _Reader:
        axes = {}
        for axis, pattern in zip(view.view.group.axes, view.patterns, strict=True):
            first = [int(np.argmax(pattern == number)) for number in range(int(pattern.max()) + 1)]
            axes[len(asked.given) - 1 if axis.attribute < 0 else axis.attribute] = (axis, first)
        return cls(asked, axes)

    def reproduced(self, product: int) -> Floats | None:
        """The weights on a view's patterns that add up to a product of functions of values, if there are any."""
        weights: Floats = np.ones(1)
        functions = self.asked.function_numbers[product].tolist()
        scale = 1.0
        for ground in (*(number for number in range(len(functions)) if number not in self.axes), *self.axes):
            mine = self._of(ground, functions[ground])
            if mine is None:
                return None
            if ground in self.axes:
                weights = kron(weights, mine)
            else:
                scale *= float(mine[0])
        return weights * scale

    def _of(self, ground: int, number: int) -> Floats | None:
        if (ground, number) not in self.known:
            function = self.asked.given[ground][number]
            if ground in self.axes:
                axis, first = self.axes[ground]
                cells = on_axis(axis, function)
                self.known[ground, number] = None if cells is None else cells[first]
            else:
                same = np.ptp(function) <= EXACT * np.abs(function).max(initial=0.0)
                self.known[ground, number] = function[:1] if same else None
        return self.known[ground, number]


def on_axis(axis: Axis, function: Floats) -> Floats | None:
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
