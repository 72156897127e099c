"""How each axis of a group of views weighs its nodes, for many functions at once.

In a product design the variance of an answer is Σ_v C_v · Π_j ‖α_j,l_j‖² over the views v = (l_1, l_2, …), where C_v
is what a unit of squared weight costs in that view: the variance of its oracle, and of a row falling in the cell,
divided by the view's probability. For one axis, the others being given, that is a cost per level, and
`tree_weights.optimal` finds the best weights; a few rounds over the axes settle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from deniable.arrays import Booleans, Floats, Integers, digest
from deniable.errors import InvalidParameter, QueryRefused
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.weights.axis_layers import FEW_FUNCTIONS, Layer, layer_of
from deniable.queries.weights.predicate_decompositions import Option, axis_options, predicate_terms
from deniable.queries.weights.tree_weights import Weights, greedy, optimal, undivided, weighted_decompositions
from deniable.tables.designs.views import Design, Group
from deniable.trees import Tree

EFFORT = 160.0
"""Unneeded cells may be added to lower the variance, as long as a report is compared with at most this many."""
MOST_EFFORT = 64.0
"""The same for nodes of a single attribute that are divided one by one."""
WORTH_DEPTH = 0.02
"""Nodes below constant ones are only divided further if the variance is more than this above the least."""
MOST_ADDED = 500_000
"""Added cells of a whole plan."""
ROUNDS = 3
MOST_PRICED_VIEWS = 2**16
MOST_WEIGHTS = 50_000_000
TOO_MANY_GROUPS, GROUP_BY_BINS = (
    "the question has too many groups for domains so large",
    "Group by bins: FLOOR(x / 10).",
)
DEFAULT_K = 8
GREEDY, OPTIMAL, RDC, RDC_EACH = "greedy", "optimal", "rdc", "rdc_each"
_RULE = re.compile(r"(greedy|optimal|rdc|rdc_each)(?:\((\d{1,4})\))?\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """How nodes are weighed: "greedy", "rdc(k)", "rdc_each(k)" or "optimal".

    The paper's rdc(k) averages the k smallest decompositions of a table's whole predicate; rdc_each(k) averages the k
    smallest of each attribute, so that all their products count.
    """

    name: str
    k: int = 0

    @classmethod
    def of(cls, text: str) -> Rule:
        """The rule of a name; `rdc` alone takes the eight smallest decompositions."""
        matched = _RULE.match(text) if isinstance(text, str) else None
        counted = matched is not None and matched[1] in (RDC, RDC_EACH)
        if matched is None or (matched[2] is not None and (not counted or int(matched[2]) < 1)):
            raise InvalidParameter("weights", "are unknown", "Use greedy, optimal or rdc(8), for example.")
        return cls(matched[1], int(matched[2] or DEFAULT_K) if counted else 0)

    @property
    def spreads_constants(self) -> bool:
        """Whether constants need no report; the paper's rules read them from a view."""
        return self.name == OPTIMAL

    def __str__(self) -> str:
        return f"{self.name}({self.k})" if self.k else self.name


def weigh(
    design: Design, group: Group, wanted: Sequence[Sequence[Floats]], families: Sequence[int], rule: Rule
) -> tuple[list[list[Layer]], Integers]:
    """For every axis and each of its levels in the group, the weights of all terms; and each term's product.

    `wanted[axis][product]` is the function of the axis that the product needs. A product is one term, except under
    `rdc`: an average of decompositions of a whole predicate is a sum of terms.
    """
    if rule.name == RDC:
        return _weigh_predicates(group, wanted, rule.k)
    return _weigh_axes(design, group, wanted, families, rule), np.arange(len(families))


def _weigh_predicates(group: Group, wanted: Sequence[Sequence[Floats]], k: int) -> tuple[list[list[Layer]], Integers]:
    trees = [axis.tree for axis in group.axes]
    unpriced = _unpriced(group)
    options: list[dict[bytes, list[Option]]] = [{} for _ in trees]
    weights: list[dict[tuple[bytes, ...], tuple[int, Weights]]] = [{} for _ in trees]
    positions: list[list[int]] = [[] for _ in trees]
    products: list[int] = []
    work = 0
    for product, functions in enumerate(zip(*wanted, strict=True)):
        keys = [function.tobytes() for function in functions]
        for axis, key in enumerate(keys):
            if key not in options[axis]:
                options[axis][key] = axis_options(trees[axis], functions[axis], unpriced[axis], k)
        for term in predicate_terms([known[key] for known, key in zip(options, keys, strict=True)], k):
            products.append(product)
            for axis, levels in enumerate(term):
                known = weights[axis]
                name = tuple(level.tobytes() for level in levels)
                positions[axis].append(known.setdefault(name, (len(known), levels))[0])
        work = sum(len(known) * 2 * tree.size for known, tree in zip(weights, trees, strict=True))
        if work > MOST_WEIGHTS:
            raise QueryRefused(TOO_MANY_GROUPS, GROUP_BY_BINS)
    layers = []
    for known, choices, used in zip(weights, group.levels, positions, strict=True):
        stacked = [np.array([levels[level] for _, levels in known.values()]) for level in choices]
        layers.append([layer_of(level, np.array(used)) for level in stacked])
    return layers, np.array(products)


def _weigh_axes(
    design: Design, group: Group, wanted: Sequence[Sequence[Floats]], families: Sequence[int], rule: Rule
) -> list[list[Layer]]:
    members: dict[int, list[int]] = {}
    for number, family in enumerate(families):
        members.setdefault(family, []).append(number)
    axes = range(len(group.axes))
    indices: list[Integers] = [np.zeros(len(families), dtype=np.int64) for _ in axes]
    weights: list[list[Weights]] = [[] for _ in axes]
    starts: dict[tuple[tuple[bytes, ...], ...], list[int]] = {}  # sums of the same, times other numbers, share weights
    reached = [0 for _ in axes]
    for _, mine in sorted(members.items()):
        distinct: list[dict[bytes, int]] = [{} for _ in axes]
        inside = [
            [distinct[n].setdefault(wanted[n][product].tobytes(), len(distinct[n])) for product in mine] for n in axes
        ]
        key = tuple(tuple(functions) for functions in distinct)
        if key not in starts:
            starts[key] = reached.copy()
            functions = [np.array([np.frombuffer(function) for function in batch]) for batch in key]
            for axis, family_weights in enumerate(
                _weigh_family(design, group, functions, rule, alone=len(members) == 1)
            ):
                weights[axis].append(family_weights)
                reached[axis] += len(key[axis])
        for axis in axes:
            indices[axis][mine] = np.array(inside[axis]) + starts[key][axis]
    layers = []
    for axis, choices in enumerate(group.levels):
        stacked = [np.concatenate([batch_weights[level] for batch_weights in weights[axis]]) for level in choices]
        layers.append([layer_of(level_weights, indices[axis]) for level_weights in stacked])
    return layers


def _weigh_family(
    design: Design, group: Group, functions: list[Floats], rule: Rule, *, alone: bool = True
) -> list[Weights]:
    """The weights of every axis's functions, each level an array of functions × nodes.

    Sums that are not `alone` are combined with others, as in an average. There weights further down lower the variance
    of each sum, and raise that of their ratio, because what they have in common no longer cancels.
    """
    trees = [axis.tree for axis in group.axes]
    work = sum(len(batch) * 2 * tree.size for batch, tree in zip(functions, trees, strict=True))
    if work > MOST_WEIGHTS:
        raise QueryRefused(TOO_MANY_GROUPS, GROUP_BY_BINS)
    unpriced = _unpriced(group)
    if rule.name != OPTIMAL:
        return [_plain(*axis, rule) for axis in zip(trees, functions, unpriced, strict=True)]
    prices = _prices(design, group)
    depths = [0] * len(trees) if prices is None else _depths(trees, functions, unpriced, prices, alone)
    weights: list[Weights] = [()]
    if prices is None or len(trees) > 1:  # a single axis depends on no other
        weights = [optimal(*axis) for axis in zip(trees, functions, unpriced, depths, strict=True)]
    if prices is None:
        return weights
    opened = None
    if len(trees) == 1 and len(group.levels[0]) == trees[0].levels:
        opened = _worth_opening(trees[0], functions[0], _floored(prices), group.views, depths[0])
    for _ in range(ROUNDS if len(trees) > 1 else 1):
        for axis, (tree, choices) in enumerate(zip(trees, group.levels, strict=True)):
            costs = prices
            for other in range(len(trees) - 1, -1, -1):
                if other != axis:
                    norms = [np.square(weights[other][level]).sum(axis=1).mean() for level in group.levels[other]]
                    costs = np.tensordot(costs, np.array(norms), axes=(other, 0))
            levels = np.full(tree.levels, np.inf)
            levels[list(choices)] = _floored(costs)
            weights[axis] = optimal(tree, functions[axis], levels.tolist(), depths[axis], opened=opened)
    return weights


def _floored(costs: Floats) -> list[float]:
    """A level that the others leave without any weight costs nothing, and means nothing: a trace of a cost."""
    return list(map(float, np.maximum(costs, costs.max() * 1e-9)))


def _unpriced(group: Group) -> list[list[float]]:
    """For every axis and level a cost of 1 where the group collects it, else an infinite one."""
    return [
        [1.0 if level in choices else np.inf for level in range(axis.tree.levels)]
        for axis, choices in zip(group.axes, group.levels, strict=True)
    ]


def _plain(tree: Tree, functions: Floats, costs: list[float], rule: Rule) -> Weights:
    """The paper's rules; if not all levels are collected, there is nothing to choose."""
    if not np.isfinite(costs).all():
        return optimal(tree, functions, costs)
    each = [
        greedy(tree, function) if rule.name == GREEDY else weighted_decompositions(tree, function, rule.k)
        for function in functions
    ]
    return tuple(np.array([function_weights[level] for function_weights in each]) for level in range(tree.levels))


def _depths(
    trees: list[Tree], functions: list[Floats], costs: Sequence[Sequence[float]], prices: Floats, alone: bool
) -> list[int]:
    """How far below constant nodes each axis goes.

    Step by step the axis goes further down that lowers the variance most for its growth, until the variance is close to
    that of all nodes, or reports would be compared with too many cells.
    """
    axes = [_AxisDepths(*axis) for axis in zip(trees, functions, costs, strict=True)]
    depths, most = [0] * len(axes), [axis.deepest for axis in axes]
    if len(axes) == 1 or not alone:  # further down, the nodes of a single axis are divided one by one
        most = [min(depth, 1) for depth in most]

    def variance(chosen: Sequence[int]) -> float:
        total = prices
        for axis, depth in zip(reversed(axes), reversed(chosen), strict=True):
            total = total @ axis.norms(depth)
        return float(total)

    work = float(np.prod([axis.nodes(0) for axis in axes], dtype=np.float64))
    room = min((MOST_EFFORT if len(axes) == 1 else EFFORT) * prices.size, MOST_ADDED)
    reached, allowed = variance(depths), (1 + WORTH_DEPTH) * variance([axis.deepest for axis in axes])
    while reached > allowed:
        best, gain = None, 0.0
        for number, axis in enumerate(axes):
            if depths[number] == most[number]:
                continue
            growth = axis.nodes(depths[number] + 1) / axis.nodes(depths[number])
            if growth > 1 and work * growth <= room:
                deeper = [depth + (other == number) for other, depth in enumerate(depths)]
                saved = (reached / variance(deeper) - 1) / (growth - 1)
                if saved > gain:
                    best, gain = number, saved
        if best is None:
            break
        work *= axes[best].nodes(depths[best] + 1) / axes[best].nodes(depths[best])
        depths[best] += 1
        reached = variance(depths)
    return depths


class _AxisDepths:
    """What weights on one axis are like, the further down they go; at even prices."""

    def __init__(self, tree: Tree, functions: Floats, costs: Sequence[float]) -> None:
        self._axis, self._used = (tree, functions, costs), [n for n, cost in enumerate(costs) if np.isfinite(cost)]
        self.deepest = tree.levels - 1 if len(functions) <= FEW_FUNCTIONS else 1
        self._known = _known_depths(tree, digest(functions), tuple(costs))

    def nodes(self, depth: int) -> int:
        """How many carry weight."""
        return self._at(depth)[0]

    def norms(self, depth: int) -> Floats:
        """The mean squared norm of the weights on every level that is collected."""
        return self._at(depth)[1]

    def _at(self, depth: int) -> tuple[int, Floats]:
        if depth not in self._known:
            weights = optimal(*self._axis, depth)
            norms = np.array([np.square(weights[level]).sum(axis=1).mean() for level in self._used])
            self._known[depth] = (_carriers(weights), norms)
        return self._known[depth]


@lru_cache(maxsize=64)
def _known_depths(_tree: Tree, _functions: bytes, _costs: tuple[float, ...]) -> dict[int, tuple[int, Floats]]:
    """By depth how many nodes carry weight, and their norms: designs that are compared share their trees."""
    return {}


def _worth_opening(tree: Tree, functions: Floats, costs: Sequence[float], views: int, depth: int) -> list[Booleans]:
    """Of each level the nodes that far below constant ones to divide further, until the variance is close to the least.

    A node of price p with the weight w, divided into children of the price q all together, adds p·q/(p + q)·w² to the
    variance instead of p·w². Nodes that save most per child come first, as long as there is room.
    """
    prices = np.asarray(costs, dtype=np.float64)
    opened = [np.zeros(tree.cells(level), dtype=bool) for level in range(tree.levels)]
    allowed = (1 + WORTH_DEPTH) * _spent(optimal(tree, functions, costs, tree.levels), costs)
    children = [
        np.diff(np.append(np.arange(0, tree.cells(n + 1), tree.fanout), tree.cells(n + 1)))
        for n in range(tree.levels - 1)
    ]
    closed = [np.all(level, axis=0) for level in undivided(tree, functions, prices, depth)]
    while True:
        weights = optimal(tree, functions, costs, depth, opened=opened)
        excess = _spent(weights, costs) - allowed
        room = min(MOST_EFFORT * views, MOST_ADDED) - _carriers(weights)
        if excess <= 0:
            return opened
        savings = []
        for level, each in enumerate(children):
            price, below = prices[level], prices[level + 1] * each
            squares = np.square(weights[level]).sum(axis=0) * (closed[level] & ~opened[level])
            savings.append(squares * price**2 / (price + below))
        saved, added = np.concatenate(savings), np.concatenate(children)
        order = np.argsort(-saved / added, kind="stable")
        order = order[(np.cumsum(added[order]) <= room) & (saved[order] > 0)]
        taken = order[: int(np.searchsorted(np.cumsum(saved[order]), excess)) + 1]
        if not taken.size:
            return opened
        reach = np.cumsum([0, *(each.size for each in children)])
        for level, (low, high) in enumerate(pairwise(reach.tolist())):
            opened[level][taken[(taken >= low) & (taken < high)] - low] = True


def _carriers(weights: Weights) -> int:
    """How many nodes carry weight for some function, one for a function that is zero."""
    return max(sum(int(np.any(level != 0.0, axis=0).sum()) for level in weights), 1)


def _spent(weights: Weights, costs: Sequence[float]) -> float:
    """What weights cost."""
    return sum(
        price * float(np.square(level).sum()) for price, level in zip(costs, weights, strict=True) if level.any()
    )


def _prices(design: Design, group: Group) -> Floats | None:
    """What a unit of squared weight costs in each view, an array with one axis per axis of the group."""
    if group.views > MOST_PRICED_VIEWS:
        return None
    cells = np.ones((1,) * len(group.axes))
    for axis, (described, choices) in enumerate(zip(group.axes, group.levels, strict=True)):
        shape = [1] * len(group.axes)
        shape[axis] = len(choices)
        cells = cells * np.array([float(described.tree.cells(level)) for level in choices]).reshape(shape)
    sizes, which = np.unique(cells, return_inverse=True)
    prices = np.array([unit_price(design, int(size)) for size in sizes])[which].reshape(cells.shape)
    return np.asarray(prices * group.views)


def unit_price(design: Design, cells: int) -> float:
    """The variance that a unit of squared weight on one of a view's cells adds, rows being spread evenly over them.

    The oracle has a price for each cell, and a further one for the cell that the row lies in. The only cell of a view
    is known without any report: it costs nothing.
    """
    if cells == 1:
        return 0.0
    moments = second_moments(design.oracle(cells))
    return moments.every + moments.own / cells
