"""The k smallest decompositions of a whole predicate, averaged: range consistency as the paper has it.

A decomposition of a predicate on several attributes is the product of one decomposition of each attribute's part. It
has Π_j l_j nodes, where attribute j contributes l_j, and its weight is proportional to 1/Π_j l_j  [XDW20, Section 6].
The k smallest products are found best first, without a look at the other k^d.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from deniable.arrays import Floats
from deniable.queries.weights.tree_weights import Weights, greedy, optimal, set_decompositions
from deniable.trees import Tree


@dataclass(frozen=True, slots=True)
class Option:
    """One way to write a function of an axis as weights on its tree."""

    size: int
    """How many nodes it takes, at least 1."""
    weights: Weights


def axis_options(tree: Tree, function: Floats, costs: Sequence[float], k: int) -> list[Option]:
    """The k smallest decompositions of a set of values, smallest first; of any other function the greedy one.

    Where not all levels are collected (infinite costs), there is nothing to choose.
    """
    if not np.isfinite(costs).all():
        return [Option(1, optimal(tree, function, costs))]
    if np.all(function == 1.0) or np.any((function != 0.0) & (function != 1.0)):
        return [Option(1, greedy(tree, function))]
    best = set_decompositions(tree, function == 1.0, k)
    return [Option(max(decomposition.size, 1), decomposition.weights(tree)) for decomposition in best]


def smallest_products(sizes: Sequence[Sequence[int]], k: int) -> list[tuple[int, ...]]:
    """The k smallest products of one size of each list, as positions in the lists; ties in the order of positions.

    Every list rises. A product's successors advance one list, its last advanced one or a later one, so that each
    product is reached once and never before a smaller one.

    >>> smallest_products([[1, 4], [2, 3]], 3)
    [(0, 0), (0, 1), (1, 0)]
    """
    start = (0,) * len(sizes)
    waiting = [(prod(axis[0] for axis in sizes), start)]
    chosen: list[tuple[int, ...]] = []
    while waiting and len(chosen) < k:
        size, positions = heapq.heappop(waiting)
        chosen.append(positions)
        advanced = max((axis for axis, position in enumerate(positions) if position), default=0)
        for axis in range(advanced, len(sizes)):
            position = positions[axis] + 1
            if position < len(sizes[axis]):
                larger = size // sizes[axis][position - 1] * sizes[axis][position]
                heapq.heappush(waiting, (larger, (*positions[:axis], position, *positions[axis + 1 :])))
    return chosen


def predicate_terms(options: Sequence[Sequence[Option]], k: int) -> list[tuple[Weights, ...]]:
    """Weights of every axis, term by term; the products of the terms add up to the function of all axes.

    Each of the k smallest decompositions of the predicate counts by one over its nodes  [XDW20, Eq. (11)]. Those that
    differ on a single axis are one term: their average is taken on that axis.
    """
    sizes = [[option.size for option in axis] for axis in options]
    chosen = smallest_products(sizes, k)
    shares = np.array([1 / prod(axis[p] for axis, p in zip(sizes, positions, strict=True)) for positions in chosen])
    shares /= shares.sum()
    averaged = max(range(len(options)), key=lambda axis: len({positions[axis] for positions in chosen}))
    terms: dict[tuple[int, ...], list[tuple[float, Weights]]] = {}
    for positions, share in zip(chosen, shares.tolist(), strict=True):
        others = (*positions[:averaged], -1, *positions[averaged + 1 :])
        terms.setdefault(others, []).append((share, options[averaged][positions[averaged]].weights))
    return [
        tuple(
            _average(parts) if axis == averaged else options[axis][position].weights
            for axis, position in enumerate(others)
        )
        for others, parts in terms.items()
    ]


def _average(parts: list[tuple[float, Weights]]) -> Weights:
    levels = range(len(parts[0][1]))
    return tuple(sum((share * weights[level] for share, weights in parts), start=np.zeros(1)) for level in levels)
