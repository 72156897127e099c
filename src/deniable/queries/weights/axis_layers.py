"""One level of an axis: the weights of many functions, as few patterns that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Booleans, Floats, Integers
from deniable.queries.weights.row_products import Rows

FEW_FUNCTIONS = 4
"""Up to this many functions of an axis are weighed separately; more share what most of them have in common."""
NEGLIGIBLE_WEIGHT = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One level of an axis: patterns of weights on its nodes, and of which patterns each product is made."""

    patterns: Rows
    """Each pattern's weights on nodes."""
    shares: Rows
    """Each product's share of patterns."""

    @property
    def active(self) -> Booleans:
        """Which products have weight on this level."""
        active: Booleans = self.shares.counts > 0
        return active

    @property
    def nodes(self) -> int:
        """How many nodes carry weight for some product."""
        used = np.zeros(int(self.patterns.columns.max(initial=-1)) + 1, dtype=bool)
        used[self.patterns.columns] = True
        return int(np.count_nonzero(used))


def layer_of(weights: Floats, indices: Integers) -> Layer:
    """The patterns of one level: the weightings themselves if they are few, else single nodes and what is common."""
    least = NEGLIGIBLE_WEIGHT * max(float(weights.max(initial=0.0)), -float(weights.min(initial=0.0)))
    counts = (weights > least) | (weights < -least)
    if weights.shape[0] <= FEW_FUNCTIONS:
        used = np.any(counts, axis=1)
        return Layer(Rows.of(np.where(counts, weights, 0.0)), Rows.of(np.eye(used.size) * used[:, None]).take(indices))
    common = np.zeros(weights.shape[1])
    filled = np.flatnonzero(
        2 * np.count_nonzero(counts, axis=0) >= weights.shape[0]
    )  # the median of the others is zero
    listed = np.where(counts[:, filled], weights[:, filled], 0.0)
    common[filled] = np.median(listed, axis=0)
    counts[:, filled] = np.abs(listed - common[filled]) > least
    rows, columns = np.nonzero(counts)
    values = weights[rows, columns]
    values = np.where(np.abs(values) > least, values, 0.0) - common[columns]
    nodes, which = np.unique(columns, return_inverse=True)
    patterns = Rows(np.arange(nodes.size + 1), nodes, np.ones(nodes.size))
    if common.any():
        everywhere = np.flatnonzero(common)
        patterns = Rows(
            np.append(patterns.starts, nodes.size + everywhere.size),
            np.concatenate((nodes, everywhere)),
            np.concatenate((patterns.values, common[everywhere])),
        )
        height = weights.shape[0]
        rows = np.concatenate((rows, np.arange(height)))
        order = np.argsort(rows, kind="stable")  # what is common comes last in each row
        rows, which = rows[order], np.concatenate((which, np.full(height, nodes.size)))[order]
        values = np.concatenate((values, np.ones(height)))[order]
    shares = Rows(np.searchsorted(rows, np.arange(weights.shape[0] + 1)), which, values)
    return Layer(patterns, shares.take(indices))
