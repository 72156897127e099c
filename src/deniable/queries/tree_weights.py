"""Weights on the nodes of a tree that reproduce a function of the values.

A query is a function f of an attribute's value: an indicator for a predicate, v ↦ v for a sum. A weighting α gives
every node a number, such that the nodes a value lies in, one per level, add up to f(value). Each choice is unbiased;
they differ in variance, Σ over levels l of cost_l · ‖α_l‖², cost_l being what a unit of squared weight costs there.

* `greedy`: the fewest nodes, each taken whole (what HIO does).
* `decompositions` and `rdc`: the k smallest signed decompositions of a range, averaged [XDW20, Section 6].
* `optimal`: the least variance of all.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.trees import Tree

Floats = NDArray[np.float64]
Weights = tuple[Floats, ...]
"""For every level, from the root on, a weight for each of its nodes."""


def reproduced(tree: Tree, weights: Weights) -> Floats:
    """The function that a weighting stands for: at each value, the sum of the weights of its nodes."""
    values = np.arange(tree.size)
    total = np.zeros(tree.size)
    for number, level in enumerate(weights):
        total += level[values // tree.width(number)]
    return total


def cost(weights: Weights, costs: Sequence[float]) -> float:
    """Σ_l cost_l · ‖α_l‖²."""
    return float(sum(price * np.square(level).sum() for price, level in zip(costs, weights, strict=True)))


def greedy(tree: Tree, function: Floats) -> Weights:
    """The largest nodes on which the function is constant; zeros need none."""
    taken = np.zeros(tree.size, dtype=bool)
    weights = []
    for level in range(tree.levels):
        starts = np.arange(0, tree.size, tree.width(level))
        fresh = _constant(tree, function, level) & ~taken[starts]
        weights.append(np.where(fresh, function[starts], 0.0))
        taken |= np.repeat(fresh, np.diff(np.append(starts, tree.size)))
    return tuple(weights)


def optimal(tree: Tree, function: Floats, costs: Sequence[float], *, every_node: bool = False) -> Weights:
    """The weighting of least variance, in one pass up and one pass down the tree.

    At the optimum α_l(n) = Λ(n)/cost_l, where Λ(n) is the sum of multipliers λ over the values below node n, and along
    the path to each value the weights add up to f. Below a node whose ancestors contribute a in all, Λ is linear in a:
    Λ = A − a·G. A leaf has A = cost·f and G = cost; a node whose children's sums are A and G has both divided by
    1 + G/cost. A level of infinite cost is not used.

    By default nodes below one on which f is constant are left out: only the paths along the boundaries of f and their
    siblings carry weight. At fan-out 5 the rest would lower the variance by up to a quarter, at the price of all nodes.
    """
    prices = np.asarray(costs, dtype=np.float64)
    if not np.isfinite(prices[-1]):
        raise ValueError("the finest level must be usable: without it not every function can be reproduced")
    constant = [
        _constant(tree, function, level) & (not every_node) & bool(np.isfinite(prices[level]))
        for level in range(tree.levels)
    ]
    constant[-1] = np.ones(tree.size, dtype=bool)
    sums, slopes = prices[-1] * function, np.full(tree.size, prices[-1])
    stack = [(sums, slopes)]
    for level in range(tree.levels - 2, -1, -1):
        starts = np.arange(0, tree.cells(level + 1), tree.fanout)
        total, slope = np.add.reduceat(sums, starts), np.add.reduceat(slopes, starts)
        shrink = 1.0 / (1.0 + slope / prices[level])
        sums, slopes = total * shrink, slope * shrink
        if constant[level].any():
            value = function[np.arange(0, tree.size, tree.width(level))]
            sums = np.where(constant[level], prices[level] * value, sums)
            slopes = np.where(constant[level], prices[level], slopes)
        stack.append((sums, slopes))
    weights, above, pruned = [], np.zeros(1), np.zeros(1, dtype=bool)
    for level, (sums, slopes) in enumerate(reversed(stack)):
        own = np.where(pruned, 0.0, (sums - above * slopes) / prices[level])
        weights.append(own)
        if level + 1 < tree.levels:
            children = tree.cells(level + 1)
            above = np.repeat(above + own, tree.fanout)[:children]
            pruned = np.repeat(pruned | constant[level], tree.fanout)[:children]
    return tuple(weights)


def _constant(tree: Tree, function: Floats, level: int) -> NDArray[np.bool_]:
    """For every node of a level, whether the function has one value on it."""
    starts = np.arange(0, tree.size, tree.width(level))
    same: NDArray[np.bool_] = np.minimum.reduceat(function, starts) == np.maximum.reduceat(function, starts)
    return same


@dataclass(frozen=True)
class Decomposition:
    """A signed set of nodes whose indicators add up to that of a range."""

    nodes: tuple[tuple[int, int, int], ...]
    """(level, node, +1 or −1)."""

    @cached_property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    def weights(self, tree: Tree) -> Weights:
        """The decomposition as a weighting."""
        levels = [np.zeros(tree.cells(level)) for level in range(tree.levels)]
        for level, node, sign in self.nodes:
            levels[level][node] += sign
        return tuple(levels)


def decompositions(tree: Tree, low: int, high: int, k: int) -> list[Decomposition]:
    """The k smallest signed decompositions of the range low..high, smallest first (ties in a fixed order).

    Dynamic programming down the tree: below a node the ancestors contribute 0 or 1, the node itself may add or take
    one, and the rest is the children's. Nodes wholly inside or outside are decided at once, or by their children.
    """
    found = _decompose(tree, low, high, k, 0, 0, 0)
    return [Decomposition(nodes) for _, nodes in found]


Nodes = tuple[tuple[int, int, int], ...]


def _decompose(tree: Tree, low: int, high: int, k: int, level: int, node: int, above: int) -> list[tuple[int, Nodes]]:
    first, last = node * tree.width(level), min((node + 1) * tree.width(level), tree.size) - 1
    inside, outside = low <= first and last <= high, last < low or high < first
    if (outside and above == 0) or (inside and above == 1):
        return [(0, ())]
    options: list[tuple[int, Nodes]] = []
    for sign in (0, 1 - 2 * above):
        own: Nodes = ((level, node, sign),) if sign else ()
        if (inside or outside) and sign:
            options.append((1, own))
            continue
        if level + 1 == tree.levels:
            continue
        below: list[tuple[int, Nodes]] = [(len(own), own)]
        for child in range(node * tree.fanout, min((node + 1) * tree.fanout, tree.cells(level + 1))):
            ways = _decompose(tree, low, high, k, level + 1, child, above + sign)
            below = heapq.nsmallest(k, ((a + b, x + y) for a, x in below for b, y in ways))
        options += below
    return heapq.nsmallest(k, options)


def rdc(tree: Tree, low: int, high: int, k: int) -> Weights:
    """The k smallest decompositions, each weighted by one over its number of nodes.  [XDW20, Eq. (11)]"""
    best = decompositions(tree, low, high, k)
    shares = np.array([1 / max(one.size, 1) for one in best])
    shares /= shares.sum()
    parts = [one.weights(tree) for one in best]
    return tuple(
        sum(share * part[level] for share, part in zip(shares, parts, strict=True)) for level in range(tree.levels)
    )
