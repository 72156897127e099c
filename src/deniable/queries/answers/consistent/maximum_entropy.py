"""Questions about more attributes than any view has, answered from the table over all of them that assumes least.

Its marginals are the frequencies of the cells of views about one and two of the attributes (`possible_frequencies.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.queries.answers.consistent.possible_frequencies import Marginal, maximum_entropy
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.grid_weights import Bias
from deniable.queries.planning.plan import Plan
from deniable.tables.designs.views import CELLS, WEIGHT

MOST_PIECES = 10_000
MOST_COMBINED_PIECES = 200_000


def by_maximum_entropy(plan: Plan, bias: Bias) -> Callable[[Floats], Floats] | None:
    """How a question about more than two attributes follows from the frequencies of cells of one and two of them."""
    asked = bias.asked
    relevant = sorted(asked.relevant_grounds)
    if len(relevant) <= 2 or any(set(relevant) <= set(view.functions) for view in bias.system.views):
        return None
    able = [
        (view, span)
        for view, span in zip(bias.system.views, bias.system.spans, strict=True)
        if set(view.functions) <= set(relevant)
        and all(axis.kind in (CELLS, WEIGHT) for axis in view.view.group.axes)
        and all((pattern == np.arange(pattern.size)).all() for pattern in view.patterns)
    ]
    # Single attributes are cut finely: where that makes too many pieces, pairs have to do.
    for used in (able, [(view, span) for view, span in able if len(view.functions) > 1]):
        if {ground for view, _ in used for ground in view.functions} != set(relevant):
            return None
        starts = [_pieces(asked, ground, [view for view, _ in used], len(relevant)) for ground in relevant]
        if math.prod(pieces.size for pieces in starts) <= MOST_COMBINED_PIECES:
            break
    else:
        return None
    shares = [asked.grounds[ground].shares for ground in relevant]
    sizes = [np.add.reduceat(share, start) for share, start in zip(shares, starts, strict=True)]
    averaged = [
        np.add.reduceat(asked.functions[ground] * share, start, axis=1) / size
        for ground, share, start, size in zip(relevant, shares, starts, sizes, strict=True)
    ]

    def whole(frequencies: Floats) -> Floats:
        groups, moments = plan.term_table.groups, plan.term_table.moments
        answers = np.zeros((frequencies.shape[0], groups * moments))
        start: Floats | None = None
        for draw, mine in enumerate(frequencies):
            known = []
            for view, span in used:
                axes = tuple(relevant.index(ground) for ground in view.functions)
                cells = tuple(
                    np.argmax(view.functions[ground] > 0, axis=0)[starts[axis]]
                    for ground, axis in zip(view.functions, axes, strict=True)
                )
                shape = [functions.shape[0] for functions in view.functions.values()]
                known.append(Marginal(axes, cells, mine[span].reshape(shape)))
            table = maximum_entropy(sizes, known, start)
            start = np.maximum(table, 1e-12) if start is None else start
            products = np.ones(asked.owners.size) * asked.coefficients
            for product in range(asked.owners.size):
                value: Any = table
                for axis, ground in enumerate(relevant):
                    value = np.tensordot(averaged[axis][asked.function_numbers[product, ground]], value, axes=(0, 0))
                rest = [
                    asked.means[ground][asked.function_numbers[product, ground]]
                    for ground in range(len(asked.grounds))
                    if ground not in relevant
                ]
                products[product] *= float(value) * float(np.prod(rest))
            columns = np.bincount(asked.owners, products, minlength=asked.columns)
            for outcome in range(groups * moments):
                for term in plan.terms(*divmod(outcome, moments)):
                    answers[draw, outcome] += term.coefficient * columns[term.columns[0]]
        return answers.reshape(-1, groups, moments)

    return whole


def _pieces(asked: Asked, ground: int, views: Sequence[CellView], attributes: int) -> Any:
    """Where the pieces of an attribute start: at the borders of cells, and where the question changes, if rarely."""
    inside = [np.argmax(view.functions[ground] > 0, axis=0) for view in views if ground in view.functions]
    for functions in ([*inside, *asked.functions[ground]], inside):
        changes = np.any([np.diff(function, prepend=function[0] - 1) != 0 for function in functions], axis=0)
        if changes.sum() <= MOST_PIECES ** (1 / attributes):
            break
    return np.flatnonzero(changes)
