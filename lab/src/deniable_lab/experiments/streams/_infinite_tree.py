"""A tree without a top, for streams without end: every level has less of ε than the one below  [CSS11; WCZ21, 3.4].

Level l = 0, 1, … has nodes of b^l values and the share (1 − q)·q^l of ε, so that all levels together cost ε. With the
shares q, q², … that [WCZ21] prints for q = 0.9 they would cost 9ε. A prefix is the sum of the fewest nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.accounting import share_below
from deniable.arrays import Floats, Integers
from deniable.mechanisms import DiscreteLaplace
from deniable.randomness import Source
from deniable.streams.structure.hierarchy import even_pairs

_PAIRS = 1 << 14


@dataclass(frozen=True, slots=True)
class InfiniteTree:
    """Noise for the prefix sums of values in [0, θ], on a tree of fan-out b that grows with the stream.

    >>> tree = InfiniteTree(1.0, theta=1)
    >>> [round(tree.cost(level), 3) for level in range(3)]
    [0.1, 0.09, 0.081]
    """

    epsilon: float
    theta: int
    fanout: int = 2
    decay: Fraction = Fraction(9, 10)

    def cost(self, level: int) -> float:
        """The ε of a level, rounded down."""
        return share_below(self.epsilon, (1 - self.decay) * self.decay**level)

    def node_noise(self, level: int) -> DiscreteLaplace:
        """The noise of every node of a level."""
        return DiscreteLaplace(self.cost(level), self.theta)

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Variance of the noise of the sum of the values start … stop − 1, exactly.

        Of a level, the prefixes up to i and j have d_i and d_j nodes below their last whole parents, d being digits in
        base b. If the parents are the same, min(d_i, d_j) of these nodes are in both prefixes, and cancel.
        """
        result = np.zeros(np.shape(starts))
        for level in range(self._levels(int(np.max(stops)))):
            first, second = starts // self.fanout**level, stops // self.fanout**level
            digits, others = first % self.fanout, second % self.fanout
            shared = np.where(first // self.fanout == second // self.fanout, np.minimum(digits, others), 0)
            result += self.node_noise(level).variance() * (digits + others - 2 * shared)
        return result

    def mean_variance(self, horizon: int) -> float:
        """V: the variance of a random range of the first values, from 16,384 evenly spread pairs."""
        return float(self.variance(*even_pairs(np.arange(_PAIRS), horizon)).mean())

    def prefix_noise(self, horizon: int, source: Source) -> Integers:
        """The noise of the prefix sums up to 0, 1, …, `horizon`."""
        positions, result = np.arange(horizon + 1), np.zeros(horizon + 1, dtype=np.int64)
        for level in range(self._levels(horizon)):
            nodes = positions // self.fanout**level
            drawn = source.stream("level", level).discrete_laplace(self.node_noise(level).scale, int(nodes[-1]) + 1)
            running = np.concatenate(([0], np.cumsum(drawn)))
            result += running[nodes] - running[nodes // self.fanout * self.fanout]
        return result

    def _levels(self, horizon: int) -> int:
        """How many levels have nodes that end by `horizon`."""
        levels = 1
        while self.fanout**levels <= horizon:
            levels += 1
        return levels
