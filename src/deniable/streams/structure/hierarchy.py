"""Trees of counters over a run of leaves, and the exact covariance of what they publish.

A tree has no root. Level l has nodes of B_l = b^l leaves, l = 0 … h − 1, and every node carries independent noise of
variance σ². What is published is the stream of prefix sums N(0) = 0, N(1), …; all else is a difference of two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.checks import check_flag, check_integer

CONSISTENT_LEAVES = 1 << 24
"""A tree with more leaves is consistent only inside groups."""
GROUP_LEAVES = 1 << 20
"""The most leaves of such a group."""
LARGEST_FANOUT = 1 << 16
WINDOWS_AT_ONCE = 1 << 14  # windows handled together, so that their numbers stay in the cache
_SAMPLE_PAIRS = 1 << 14


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A tree of fan-out b over any number of leaves.

    `consistent`: every prefix sum is the generalised-least-squares estimate from all nodes of its group, which is the
    whole tree up to 2^24 leaves and a subtree of at most 2^20 leaves beyond. Otherwise, and above the groups, a prefix
    is the sum of the fewest nodes that make it up.

    >>> Hierarchy(leaves=1000, fanout=16).height
    3
    """

    leaves: int
    fanout: int = 16
    consistent: bool = True

    def __post_init__(self) -> None:
        check_integer("leaves", self.leaves, 1, 1 << 62)
        check_integer("fanout", self.fanout, 2, LARGEST_FANOUT if self.leaves > self.fanout else 1 << 62)
        check_flag("consistent", self.consistent, "Use the default.")

    @property
    def height(self) -> int:
        """h = ⌈log_b leaves⌉ by integer arithmetic, at least 1."""
        return ceil_log(self.leaves, self.fanout)

    @property
    def consistent_levels(self) -> int:
        """How many of the lowest levels are made consistent with each other. Their groups have b^levels leaves."""
        if not self.consistent:
            return 1
        if self.leaves <= CONSISTENT_LEAVES:
            return self.height
        levels = 1
        while self.fanout ** (levels + 1) <= GROUP_LEAVES:
            levels += 1
        return min(levels, self.height)

    @property
    def group(self) -> int:
        """Leaves of a group that is consistent in itself."""
        return int(self.fanout**self.consistent_levels)

    @property
    def padded(self) -> int:
        """Leaves including those that complete the last node below the top of its group."""
        below_top = int(self.fanout ** (self.consistent_levels - 1))
        return -(-self.leaves // below_top) * below_top

    def nodes(self, level: int) -> int:
        """Nodes of a level that have noise."""
        return -(-self.padded // int(self.fanout**level))

    def covariance(self, i: Integers, j: Integers) -> Floats:
        """Cov(N(i), N(j)) in units of σ², for arrays of positions 0 … leaves.

        The consistent leaves of a group have covariance Σ_l (P_l − P_{l+1})/λ_l: P_l averages over the nodes of level
        l, λ_l = Σ_{k≤l} B_k, and P vanishes above the top. Above the groups two prefixes share min(d_i, d_j) nodes of
        every level at which they have the same parent, d being the position below it.
        """
        low, high = np.minimum(i, j), np.maximum(i, j)
        whole = self.consistent_levels == self.height
        result = np.zeros(low.shape)
        group = low // self.group if not whole else np.zeros_like(low)
        inside_low, inside_high = low - group * self.group, high - group * self.group
        for size, coefficient in zip(*_coefficients(self.fanout, self.consistent_levels), strict=True):
            # ⟨1[0, i), P_l 1[0, j)⟩: whole nodes before i's, and the overlap inside it.
            node = inside_low // size * size
            shared = np.minimum(inside_high - node, size)
            result += coefficient * (node + (inside_low - node) * shared / size)
        if whole:
            return result
        result *= group == high // self.group
        for level in range(self.consistent_levels, self.height):
            size = self.fanout**level
            node_low, node_high = low // size, high // size
            if level < self.height - 1:
                parent = node_low // self.fanout
                alike = parent == node_high // self.fanout
                result += np.where(alike, np.minimum(node_low, node_high) - parent * self.fanout, 0)
            else:
                result += node_low
        return result

    def variance(self, i: Integers, j: Integers) -> Floats:
        """Var(N(j) − N(i)) in units of σ²: the noise of the sum of leaves i … j − 1."""
        return self.covariance(i, i) + self.covariance(j, j) - 2 * self.covariance(i, j)

    def mean_variance(self) -> float:
        """Variance of a random range with independent uniform ends, in units of σ²; from 16,384 evenly spread pairs."""
        return mean_variance(self)


def ceil_log(leaves: int, fanout: int) -> int:
    """⌈log_b leaves⌉ by integer arithmetic, at least 1.

    >>> ceil_log(1000, 10), ceil_log(1001, 10)
    (3, 4)
    """
    height, reach = 1, fanout
    while reach < leaves:
        height, reach = height + 1, reach * fanout
    return height


@lru_cache(maxsize=1024)
def _coefficients(fanout: int, levels: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Node sizes B_l, and 1/λ_l − 1/λ_{l−1}: the weight of P_l in the covariance."""
    sizes = tuple(fanout**level for level in range(levels))
    inverses = [0.0]
    total = 0
    for size in sizes:
        total += size
        inverses.append(1 / total)
    return sizes, tuple(after - before for before, after in pairwise(inverses))


class _Levels(Protocol):
    @property
    def leaves(self) -> int: ...

    def variance(self, i: Integers, j: Integers) -> Floats: ...


@lru_cache(maxsize=4096)
def mean_variance(tree: _Levels) -> float:
    """Variance of a random range with independent uniform ends, from 16,384 evenly spread pairs."""
    return float(tree.variance(*even_pairs(np.arange(_SAMPLE_PAIRS), tree.leaves)).mean())


def even_pairs(steps: Integers, size: int) -> tuple[Integers, Integers]:
    """Ranges of positions below `size`, one per step, that cover the square of all pairs evenly.

    A lattice of two irrational rotations, which is the same on every machine.
    """
    first = (steps * 0.7548776662466927 % 1 * size).astype(np.int64)
    second = (steps * 0.5698402909980532 % 1 * size).astype(np.int64)
    return np.minimum(first, second), np.maximum(first, second)
