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
from functools import lru_cache

import numpy as np

from deniable.arrays import Booleans, Floats
from deniable.trees import Tree

MOST_AT_ONCE = 2**16
"""Numbers of functions that are weighed in one pass."""
Weights = tuple[Floats, ...]
"""For every level, from the root on, a weight for each of its nodes."""


def greedy(tree: Tree, function: Floats) -> Weights:
    """The largest nodes on which the function is constant; zeros need none."""
    taken = np.zeros(1, dtype=bool)
    weights = []
    for level, constant in enumerate(_constant_nodes(tree, function)):
        starts = np.arange(0, tree.size, tree.width(level))
        fresh = constant & ~taken
        weights.append(np.where(fresh, function[starts], 0.0))
        if level + 1 < tree.levels:
            taken = np.repeat(taken | fresh, tree.fanout)[: tree.cells(level + 1)]
    return tuple(weights)


def optimal(
    tree: Tree,
    functions: Floats,
    costs: Sequence[float],
    depth: int = 0,
    *,
    opened: Sequence[Booleans] | None = None,
) -> Weights:
    """The weighting of least variance for each row of `functions`, in one pass up and one pass down the tree.

    At the optimum α_l(n) = Λ(n)/cost_l, where Λ(n) is the sum of multipliers λ over the values below node n, and along
    the path to each value the weights add up to f. Below a node whose ancestors contribute a in all, Λ is linear in a:
    Λ = A − a·G. With A and G the sums over its children, a node takes α = (A − a·G)/(cost + G); a node that is not
    divided further takes what is missing, α = f − a, and has A = cost·f, G = cost. A level of infinite cost is not
    used; one of no cost is used freely.

    Nodes on which f is constant are divided `depth` levels further and no more: at 0 only the paths along the
    boundaries of f and their siblings carry weight. At fan-out 5 all the rest would lower the variance by up to a
    quarter, at the price of all nodes. Of every level, the nodes that are `opened` are divided once more.
    """
    prices = np.asarray(costs, dtype=np.float64)
    if not np.isfinite(prices[-1]):
        raise ValueError("the finest level must be usable: without it not every function can be reproduced")
    batch = np.atleast_2d(functions)
    rows = max(1, MOST_AT_ONCE // tree.size)
    if len(batch) > rows:  # each function is on its own, and some at a time stay in the caches
        parts = [
            optimal(tree, batch[first : first + rows], costs, depth, opened=opened)
            for first in range(0, len(batch), rows)
        ]
        return tuple(np.concatenate(levels) for levels in zip(*parts, strict=True))
    closed = undivided(tree, batch, prices, depth)
    if opened is not None:
        closed = [here & ~more for here, more in zip(closed[:-1], opened[:-1], strict=True)] + closed[-1:]
    firsts = [batch[:, :: tree.width(level)] for level in range(tree.levels)]
    totals = slopes = np.empty(0)
    stack: list[tuple[Floats, Floats]] = []
    for level in range(tree.levels - 1, -1, -1):
        price = prices[level]
        if level < tree.levels - 1:
            starts = np.arange(0, tree.cells(level + 1), tree.fanout)
            totals, slopes = np.add.reduceat(totals, starts, axis=1), np.add.reduceat(slopes, starts, axis=1)
        else:
            totals, slopes = price * batch, np.full(batch.shape, price)
        stack.append((totals, slopes))
        if level < tree.levels - 1:
            # A price of nothing leaves nothing to the levels above; an infinite one leaves all.
            shrink = 1.0 if np.isinf(price) else price / (price + slopes)
            totals, slopes = totals * shrink, slopes * shrink
            if closed[level].any():
                totals = np.where(closed[level], price * firsts[level], totals)
                slopes = np.where(closed[level], price, slopes)
    weights, above, pruned = [], np.zeros((batch.shape[0], 1)), np.zeros((batch.shape[0], 1), dtype=bool)
    for level, (totals, slopes) in enumerate(reversed(stack)):
        own = np.where(closed[level], firsts[level] - above, (totals - above * slopes) / (prices[level] + slopes))
        own = np.where(pruned, 0.0, own)
        weights.append(own)
        if level + 1 < tree.levels:
            children = tree.cells(level + 1)
            above = np.repeat(above + own, tree.fanout, axis=1)[:, :children]
            pruned = np.repeat(pruned | closed[level], tree.fanout, axis=1)[:, :children]
    return tuple(weights) if functions.ndim == 2 else tuple(level[0] for level in weights)


def undivided(tree: Tree, batch: Floats, prices: Floats, depth: int) -> list[Booleans]:
    """For every function and node, whether it is not divided further, or would not be if one above it were."""
    closed: list[Booleans] = []
    constant = _constant_nodes(tree, batch) if depth < tree.levels - 1 else []
    for level in range(tree.levels):
        origin = level - depth
        if level == tree.levels - 1:
            here = np.ones(batch.shape, dtype=bool)
        elif origin < 0 or not np.isfinite(prices[level]):
            here = np.zeros((batch.shape[0], tree.cells(level)), dtype=bool)
        else:
            here = np.repeat(constant[origin], min(tree.fanout**depth, tree.size), axis=1)[:, : tree.cells(level)]
        closed.append(here)
    return closed


def _constant_nodes(tree: Tree, batch: Floats) -> list[Booleans]:
    """For every level, every function and every node, whether the function has one value on it: never changes there."""
    changes = np.zeros(batch.shape, dtype=np.int32)
    np.cumsum(batch[..., 1:] != batch[..., :-1], axis=-1, out=changes[..., 1:])
    same: list[Booleans] = []
    for level in range(tree.levels - 1):
        firsts = np.arange(0, tree.size, tree.width(level))
        lasts = np.minimum(firsts + tree.width(level), tree.size) - 1
        same.append(changes[..., firsts] == changes[..., lasts])
    return [*same, np.ones(batch.shape, dtype=bool)]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A signed set of nodes whose indicators add up to that of a range."""

    nodes: tuple[tuple[int, int, int], ...]
    """(level, node, +1 or −1)."""

    @property
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
    """The k smallest signed decompositions of the range low..high, smallest first (ties in a fixed order)."""
    values = np.arange(tree.size)
    return set_decompositions(tree, (low <= values) & (values <= high), k)


def set_decompositions(tree: Tree, members: Booleans, k: int) -> list[Decomposition]:
    """The k smallest signed decompositions of a set of values, smallest first (ties in a fixed order).

    Dynamic programming down the tree: below a node the ancestors contribute 0 or 1, the node itself may add or take
    one, and the rest is the children's. Nodes wholly inside or outside are decided at once, or by their children.
    """
    before = [0, *np.cumsum(members).tolist()]
    return [Decomposition(nodes) for _, nodes in _decompose(tree, before, k, (0, 0, 0), {})]


Nodes = tuple[tuple[int, int, int], ...]
Ways = tuple[int, Nodes]


def _decompose(
    tree: Tree, before: list[int], k: int, state: tuple[int, int, int], known: dict[tuple[int, int, int], list[Ways]]
) -> list[Ways]:
    """The best ways below a node, of which the ancestors contribute; `before` counts members among the first values."""
    if state not in known:
        known[state] = _decomposed(tree, before, k, state, known)
    return known[state]


def _decomposed(
    tree: Tree, before: list[int], k: int, state: tuple[int, int, int], known: dict[tuple[int, int, int], list[Ways]]
) -> list[Ways]:
    level, node, above = state
    first, end = node * tree.width(level), min((node + 1) * tree.width(level), tree.size)
    members = before[end] - before[first]
    inside, outside = members == end - first, members == 0
    if (outside and above == 0) or (inside and above == 1):
        return [(0, ())]
    if (inside or outside) and end - first == tree.width(level):  # all such nodes of a level are covered alike
        return [
            (size, tuple((level + down, node * tree.fanout**down + below, 1 - 2 * above) for down, below in nodes))
            for size, nodes in _covers(tree.fanout, tree.levels - 1 - level, k)
        ]
    options: list[Ways] = []
    for sign in (0, 1 - 2 * above):
        own: Nodes = ((level, node, sign),) if sign else ()
        if (inside or outside) and sign:
            options.append((1, own))
            continue
        if level + 1 == tree.levels:
            continue
        below: list[Ways] = [(len(own), own)]
        for child in range(node * tree.fanout, min((node + 1) * tree.fanout, tree.cells(level + 1))):
            ways = _decompose(tree, before, k, (level + 1, child, above + sign), known)
            below = heapq.nsmallest(k, ((a + b, x + y) for a, x in below for b, y in ways))
        options += below
    return heapq.nsmallest(k, options)


@lru_cache(maxsize=256)
def _covers(fanout: int, height: int, k: int) -> tuple[tuple[int, tuple[tuple[int, int], ...]], ...]:
    """The k smallest sets of nodes that hold every value below a node once: (levels down, number among those there)."""
    whole = (1, ((0, 0),))
    if not height:
        return (whole,)
    below: list[tuple[int, tuple[tuple[int, int], ...]]] = [(0, ())]
    for child in range(fanout):
        ways = [
            (size, tuple((down + 1, child * fanout**down + number) for down, number in nodes))
            for size, nodes in _covers(fanout, height - 1, k)
        ]
        below = heapq.nsmallest(k, ((a + b, x + y) for a, x in below for b, y in ways))
    return tuple(heapq.nsmallest(k, [*below, whole]))


def rdc(tree: Tree, low: int, high: int, k: int) -> Weights:
    """The k smallest decompositions of a range, each weighted by one over its number of nodes.  [XDW20, Eq. (11)]"""
    best = decompositions(tree, low, high, k)
    shares = np.array([1 / max(decomposition.size, 1) for decomposition in best])
    shares /= shares.sum()
    parts = [decomposition.weights(tree) for decomposition in best]
    return tuple(
        sum(share * part[level] for share, part in zip(shares, parts, strict=True)) for level in range(tree.levels)
    )


def weighted_decompositions(tree: Tree, function: Floats, k: int) -> Weights:
    """`rdc` of every run of ones; any other function, and the set of all values, is taken greedily."""
    ones = np.concatenate(([False], function == 1.0, [False]))
    if ones[1:-1].all() or np.any((function != 0.0) & (function != 1.0)):
        return greedy(tree, function)
    total = [np.zeros(tree.cells(level)) for level in range(tree.levels)]
    for low, end in np.flatnonzero(ones[1:] != ones[:-1]).reshape(-1, 2).tolist():
        for level, part in enumerate(rdc(tree, low, end - 1, k)):
            total[level] += part
    return tuple(total)
