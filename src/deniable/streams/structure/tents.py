"""Overlapping hat sums over a run of leaves, and the exact covariance of what they publish.

Level 0 has one node per leaf. Level l = 1 … h − 1 has a node at every knot k·B_l, B_l = b^l, both ends included: the
hat sum Σ_i x_i·hat((i + ½)/B_l − k) with hat(t) = max(0, 1 − |t|). Times W_l = 2·B_l its weights are integers: leaf t
of a cell between two knots counts 2(B_l − t) − 1 times at the left knot and 2t + 1 times at the right one, W_l in all.
So one value moves the nodes of a level by W_l times its own change, and noise of scale W_l·(θ·h/ε) on each of them
costs ε/h, as in a tree. What costs a tree most, that windows end inside a block, costs less where blocks overlap.

Least squares over all nodes has a closed form by cells (`tent_cells`), because hats of one level are sums of hats of
the level below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.checks import check_integer
from deniable.errors import InvalidParameter
from deniable.exact import LARGEST_SCALE
from deniable.streams.structure.hierarchy import Hierarchy, ceil_log, mean_variance
from deniable.streams.structure.tent_cells import Joint, TentCells, cells_of, chunk_of

LARGEST_TENT_LEAVES = 1 << 22
"""The noise of a whole chunk is in memory at once."""
LARGEST_TENT_FANOUT = 256
HIERARCHIES = ("tree", "tent")


@dataclass(frozen=True, slots=True)
class Tents:
    """Tents of fan-out b over any number of leaves. Every prefix sum is the least-squares estimate from all nodes.

    >>> Tents(leaves=1000, fanout=16).height
    3
    """

    leaves: int
    fanout: int = 16

    def __post_init__(self) -> None:
        check_integer("leaves", self.leaves, 2, LARGEST_TENT_LEAVES, repair="Use larger blocks, or hierarchy='tree'.")
        check_integer("fanout", self.fanout, 2, min(LARGEST_TENT_FANOUT, self.leaves - 1), repair="Use 16.")
        if self.fanout == 2 and self.height > 2:
            raise InvalidParameter("fanout", "must be at least 3 for tents", "Use 16.")

    @property
    def height(self) -> int:
        """h = ⌈log_b leaves⌉ by integer arithmetic: at least 2, the leaves and one level of tents."""
        return ceil_log(self.leaves, self.fanout)

    @property
    def cell(self) -> int:
        """Leaves between two knots of the top level."""
        return int(self.fanout ** (self.height - 1))

    @property
    def padded(self) -> int:
        """Leaves including those that complete the last cell."""
        return -(-self.leaves // self.cell) * self.cell

    def nodes(self, level: int) -> int:
        """Nodes of a level, all of which have noise."""
        return self.padded // int(self.fanout**level) + (level > 0)

    def weight(self, level: int) -> int:
        """W_l: the weights of one value at all nodes of a level, added up."""
        return 2 * int(self.fanout**level) if level else 1

    def fits(self, epsilon: float, theta: int) -> bool:
        """Whether noise of the top level can be drawn, and sums of it stay below 2^62 by 64 times their spread.

        Larger sums would be as private, because everything is computed modulo 2^64, but useless.
        """
        scale = self.weight(self.height - 1) * theta * self.height / epsilon
        return scale <= float(LARGEST_SCALE) and scale * math.sqrt(self.cell) <= 2.0**56

    @property
    def cells(self) -> tuple[TentCells, ...]:
        """The cells of levels 1 … h − 1."""
        return cells_of(self.fanout, self.height)

    @property
    def chunk(self) -> Joint:
        """The cells of the top level, all together."""
        return chunk_of(self.fanout, self.height, self.padded // self.cell)

    def covariance(self, i: Integers, j: Integers) -> Floats:
        """Cov(N(i), N(j)) for arrays of positions 0 … leaves, in units of the variance of a leaf's node.

        With g(s)·v the expected prefix at offset s of a cell, given the hat sums v at its ends, two prefixes covary as
        g·Cov(v, v)·g do, and if they lie in one cell, by what is left inside it.
        """
        low, high = np.ravel(i), np.ravel(j)
        top = self.cells[-1]
        (p, s), (q, t) = (self._split(positions) for positions in (low, high))
        if i is j:
            return (self.chunk.covariance(p, top.expected[s], p, top.expected[s]) + top.left[s]).reshape(np.shape(i))
        result = self.chunk.covariance(p, top.expected[s], q, top.expected[t])
        same = np.flatnonzero(p == q)
        result[same] += self._inside(self.height - 1, s[same], t[same])
        return result.reshape(np.shape(i))

    def _split(self, positions: Integers) -> tuple[Integers, Integers]:
        cell = np.minimum(positions // self.cell, self.padded // self.cell - 1)
        return cell, positions - cell * self.cell

    def _inside(self, level: int, s: Integers, t: Integers) -> Floats:
        """Covariance of two prefixes of one cell, given the hat sums at its ends."""
        cells = self.cells[level - 1]
        if level == 1:
            return np.asarray(np.minimum(s, t) - np.einsum("ni,ni->n", cells.expected[s], cells.hats[t]))
        below, size = self.cells[level - 2], self.fanout ** (level - 1)
        c, d = np.minimum(s // size, self.fanout - 1), np.minimum(t // size, self.fanout - 1)
        s, t = s - c * size, t - d * size
        result = cells.parts.covariance(c, below.expected[s], d, below.expected[t])
        same = np.flatnonzero(c == d)
        result[same] += self._inside(level - 1, s[same], t[same])
        return result

    def variance(self, i: Integers, j: Integers) -> Floats:
        """Var(N(j) − N(i)): the noise of the sum of leaves i … j − 1, in the same unit."""
        return self.covariance(i, i) + self.covariance(j, j) - 2 * self.covariance(i, j)

    def mean_variance(self) -> float:
        """Variance of a random range with independent uniform ends, from 16,384 evenly spread pairs.

        >>> tents = Tents(2**20, 16)
        >>> round(2 * tents.height**2 * tents.mean_variance()), round(2 * 5**2 * Hierarchy(2**20, 16).mean_variance())
        (926, 1196)
        """
        return mean_variance(self)


Arrangement = Hierarchy | Tents
"""How the nodes of a chunk lie over its leaves."""


@lru_cache(maxsize=1024)
def arrangement_of(kind: str, leaves: int, fanout: int, consistent: bool = True) -> Arrangement:
    """A tree or tents by name. Where a fan-out reaches all leaves at once, both are one flat level.

    >>> arrangement_of("tent", 1000, 16).height
    3
    """
    if kind not in HIERARCHIES:
        raise InvalidParameter("hierarchy", "is unknown", f"Use one of {', '.join(HIERARCHIES)}.")
    if kind == "tree" or fanout >= leaves:
        return Hierarchy(leaves, fanout, consistent)
    if not consistent:
        raise InvalidParameter("consistent", "must be True for tents", "Use hierarchy='tree'.")
    return Tents(leaves, fanout)
