"""Estimated frequencies of cells made possible: nothing negative, the right total, one table for all views.

* `norm_sub`: the nearest table without negative entries and with a given total.
* `maximum_entropy`: the table of all attributes that assumes least, given frequencies of cells of some of them:
  iterative proportional fitting, which is the multiplicative weighted update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers

SWEEPS = 25
CLOSE = 1e-4


def norm_sub(table: Floats, total: float) -> Floats:
    """The nearest nonnegative table with a given total.

    Negative entries become zero, and all others give up the same amount, until both conditions hold. Tables that are
    stacked along the first axis are processed separately.

    >>> norm_sub(np.array([[0.7, 0.5, -0.2]]), 1.0).round(3).tolist()
    [[0.6, 0.4, 0.0]]
    """
    kept = np.ones(table.shape, dtype=bool)
    while True:
        count = np.maximum(kept.sum(axis=1, keepdims=True), 1)
        shift = (np.where(kept, table, 0.0).sum(axis=1, keepdims=True) - total) / count
        shifted = np.where(kept, table - shift, 0.0)
        if not (shifted < 0).any():
            return np.asarray(shifted)
        kept &= shifted > 0


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """Frequencies of the combinations of cells of some axes of a table."""

    axes: tuple[int, ...]
    cells: tuple[Integers, ...]
    """For each of these axes the cell of every piece of it."""
    frequencies: Floats


def maximum_entropy(sizes: Sequence[Floats], known: Sequence[Marginal], start: Floats | None = None) -> Floats:
    """The table over all axes with the given frequencies, as close to `start` (else to evenness) as it can be.

    `sizes` are the shares of the domain that the pieces of each axis cover.
    """
    table = start
    if table is None:
        table = np.ones([size.size for size in sizes])
        for axis, size in enumerate(sizes):
            table = table * size.reshape([-1 if axis == other else 1 for other in range(len(sizes))])
    for _ in range(SWEEPS):
        worst = 0.0
        for marginal in known:
            now = table.sum(axis=tuple(axis for axis in range(len(sizes)) if axis not in marginal.axes))
            for axis, cells in enumerate(marginal.cells):
                now = np.add.reduceat(now, np.flatnonzero(np.diff(cells, prepend=-1)), axis=axis)
            worst = max(worst, float(np.abs(marginal.frequencies - now).sum()))
            factor = np.where(now > 0, marginal.frequencies / np.where(now > 0, now, 1.0), 0.0)
            for axis, cells in enumerate(marginal.cells):
                factor = factor.take(cells, axis=axis)
            shape = [sizes[axis].size if axis in marginal.axes else 1 for axis in range(len(sizes))]
            table = np.asarray(table * factor.reshape(shape))
        if worst < CLOSE:
            break
    return table
