"""What two views of a grid both show: differences that are zero on average, on any data.

A function of rows that the cells (or points) of one view add up to, and those of another one too, can be estimated from
either. The difference of both estimates is noise alone. Adding multiples of such differences to an answer leaves its
mean as it is, and with the right multiples its variance is the least that weights without any assumption can have:

    α + Z·β,   β = −(ZᵀNZ)⁻¹·ZᵀNα,   N the noise of the views, each column of Z a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import scipy

from deniable.arrays import Floats
from deniable.queries.grids.grid_cells import CellView, kron

MOST_DIFFERENCES = 800
"""Pairs of views are compared as long as there are no more differences than this."""
ALIKE = 1e-9


def least_noise(views: Sequence[CellView], weights: Sequence[Floats]) -> tuple[Floats, ...]:
    """Weights of views (patterns × columns each) with the same mean on any data, and the least noise."""
    sizes = [view.means.size for view in views]
    reach = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).tolist()
    spans = [slice(low, high) for low, high in pairwise(reach)]
    differences = _differences(views, spans, reach[-1])
    if not differences.size:
        return tuple(weights)
    stacked = np.concatenate(list(weights))
    noisy = np.concatenate(
        [view.noise @ differences[span] / float(view.view.probability) for view, span in zip(views, spans, strict=True)]
    )
    # Some differences follow from others: the solution of least norm.
    scales, directions = np.linalg.eigh(differences.T @ noisy)
    kept = scales > 1e-10 * scales.max(initial=0.0)
    basis = directions[:, kept] / np.sqrt(scales[kept])
    changed = stacked - differences @ (basis @ (basis.T @ (noisy.T @ stacked)))
    changed = np.where(np.abs(changed) > ALIKE * np.abs(changed).max(axis=0, initial=0.0), changed, 0.0)
    return tuple(changed[span] for span in spans)


def _differences(views: Sequence[CellView], spans: Sequence[slice], patterns: int) -> Floats:
    """patterns of all views × differences; the first ones are whole views, whose sum is known."""
    columns: list[Floats] = []
    whole = [adds_up(view) for view in views]
    for span, complete in zip(spans, whole, strict=True):
        if complete:
            alone = np.zeros((patterns, 1))
            alone[span] = 1.0
            columns.append(alone)
    total = len(columns)
    for left, right in combinations(range(len(views)), 2):
        both = _common(views[left], views[right])
        if both is None or total + both[0].shape[1] > MOST_DIFFERENCES:
            continue
        difference = np.zeros((patterns, both[0].shape[1]))
        difference[spans[left]], difference[spans[right]] = both[0], -both[1]
        columns.append(difference)
        total += difference.shape[1]
    return np.concatenate(columns, axis=1) if columns else np.zeros((patterns, 0))


def adds_up(view: CellView) -> bool:
    """Whether every row is in some pattern."""
    return all(_complete(functions) for functions in view.functions.values())


def _complete(functions: Floats) -> bool:
    return bool(np.abs(functions.sum(axis=0) - 1).max() <= ALIKE)


def _common(left: CellView, right: CellView) -> tuple[Floats, Floats] | None:
    """Weights on patterns of either view (patterns × functions) that add up to the same functions of rows."""
    shared = [number for number in left.functions if number in right.functions]
    if not shared or shared != [number for number in right.functions if number in left.functions]:
        return None
    same = {number: _same(left.functions[number], right.functions[number]) for number in shared}
    sides = []
    for side, view in enumerate((left, right)):
        weights: Floats = np.ones((1, 1))
        for number, functions in view.functions.items():
            if number in same:
                weights = kron(weights, same[number][side])
            elif _complete(functions):
                weights = kron(weights, np.ones((functions.shape[0], 1)))
            else:
                return None
        sides.append(weights)
    return (sides[0], sides[1]) if sides[0].shape[1] else None


def _same(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Combinations of functions of one side that are combinations of those of the other, as a basis."""
    if _divides(left) and _divides(right):
        return _unions(left, right)
    if left.shape[0] < left.shape[1] == right.shape[0] and _divides(right):  # anything adds up from single atoms
        return np.eye(left.shape[0]), right @ left.T
    if right.shape[0] < right.shape[1] == left.shape[0] and _divides(left):
        return left @ right.T, np.eye(right.shape[0])
    both: Floats = np.concatenate((left, -right)).T
    if both.shape[0] > both.shape[1]:  # as many rows as columns have the same directions
        both = np.asarray(scipy.linalg.qr(both, mode="r", check_finite=False)[0], dtype=np.float64)[: both.shape[1]]
    _, sizes, directions = np.linalg.svd(both, full_matrices=True)
    rank = int(np.count_nonzero(sizes > ALIKE * sizes.max(initial=0.0)))
    free = directions[rank:].T
    return free[: left.shape[0]], free[left.shape[0] :]


def _divides(functions: Floats) -> bool:
    """Whether functions say in which of several cells an atom is: each is in exactly one."""
    return bool(np.all((functions == 0) | (functions == 1)) and np.all(functions.sum(axis=0) == 1))


def _unions(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The smallest sets that both sides divide into cells: all that both add up to, without looking for directions."""
    overlaps = scipy.sparse.coo_array(
        (np.ones(left.shape[1]), (left.argmax(axis=0), right.argmax(axis=0))), (left.shape[0], right.shape[0])
    )
    joined = scipy.sparse.block_array([[None, overlaps], [overlaps.T, None]])
    unions, number = scipy.sparse.csgraph.connected_components(joined, directed=False)
    sizes = np.bincount(number[: left.shape[0]][left.argmax(axis=0)], minlength=unions)
    members = np.eye(unions)[number][:, sizes > 0]  # a cell without atoms is a set of its own
    scaled = members / np.sqrt(members.sum(axis=0))
    return scaled[: left.shape[0]], scaled[left.shape[0] :]
