"""The perturber: exact integer noise on the sums of blocks, arranged in a tree or in tents and made consistent online.

Noise is never stored. It is a function of (secret, chunk, level, node), and is recomputed from that address.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from deniable.accounting import Neighbours, Spending, Unit
from deniable.arrays import Floats, Integers
from deniable.checks import check_integer
from deniable.errors import InvalidParameter, RandomnessFault
from deniable.exact import check_epsilon
from deniable.locking import Turn, in_turn
from deniable.mechanisms import DiscreteLaplace
from deniable.mechanisms._arrays import as_integers
from deniable.randomness import Source, release_source
from deniable.streams.central.tent_noise import TentNoise
from deniable.streams.structure.hierarchy import GROUP_LEAVES, Hierarchy
from deniable.streams.structure.tents import Arrangement, Tents, arrangement_of

LARGEST_HORIZON = 1 << 40
LARGEST_THETA = 1 << 40
_NODES_PER_ADDRESS = 1 << 14  # nodes drawn under one address


@dataclass(frozen=True, slots=True)
class Perturber:
    """Noise for a stream of integers in [0, θ], in chunks of `horizon` values with a fresh tree each.

    ε-DP when one value is replaced by another. The value is in one block of one chunk, so it is below one node of each
    of the h levels of that chunk's tree, and moves each of these nodes by at most θ. Every node has discrete Laplace
    noise of scale θ·h/ε, so each level costs ε/h  [WCZ21, section 3.4; its text loses the θ]. Everything else is a
    function of the noisy nodes: with z the noise, the residuals z_l − Σ z_0 of the upper levels are the same integers
    whatever the data are, and the published leaf is (value + z_0) + f(residuals). So shifting the data shifts the
    output exactly, and no rounding of a float ever meets a value.

    `hierarchy="tent"`: overlapping hat sums with integer weights instead of block sums. The value moves the nodes of a
    level by W_l·θ in all, and each of them has noise of scale W_l·θ·h/ε, so each level costs ε/h as well (`tents`).

    `block` values are added up before they reach a leaf. If `fanout` is at least the number of leaves, there is one
    flat level.

    >>> import numpy as np
    >>> Perturber(epsilon=1.0, theta=10, horizon=64, fanout=4).perturb(np.full(64, 5)).size
    64
    """

    epsilon: float
    theta: int
    horizon: int = 1 << 20
    block: int = 1
    fanout: int = 16
    consistent: bool = True
    hierarchy: str = "tree"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("theta", self.theta, 1, LARGEST_THETA)
        check_integer("horizon", self.horizon, 1, LARGEST_HORIZON)
        check_integer("block", self.block, 1, self.horizon)
        self.node_noise  # noqa: B018 - for its checks
        if isinstance(self.tree, Tents) and not self.tree.fits(self.epsilon, self.theta):
            raise InvalidParameter("theta", "is too large for sums of tents", "Use hierarchy='tree'.")

    @property
    def spends(self) -> Spending:
        """ε for one replaced value."""
        return Spending(Unit.VALUE, Neighbours.REPLACED, self.epsilon)

    @property
    def tree(self) -> Arrangement:
        """The nodes of one chunk; its leaves are blocks."""
        return arrangement_of(self.hierarchy, -(-self.horizon // self.block), self.fanout, self.consistent)

    @property
    def node_noise(self) -> DiscreteLaplace:
        """The mechanism of every node: ε over h nodes that a value moves by θ each is ε for a sensitivity of θ·h.

        Of tents, this is the mechanism of the leaves.
        """
        return DiscreteLaplace(self.epsilon, self.theta * self.tree.height)

    @property
    def scale(self) -> Fraction:
        """θ·h/ε, exactly; zero at ε = ∞."""
        return self.node_noise.scale

    @property
    def node_variance(self) -> float:
        """Variance of the noise of one node.

        Nodes of tents have up to 2·scale² when their weights are divided out, and leaves less by a constant. Errors are
        stated as if all had the most, which is 1/(12·scale²) too much at worst.
        """
        return 2 * float(self.scale) ** 2 if isinstance(self.tree, Tents) else self.node_noise.variance()

    def noise(self, source: Source, chunk: int) -> LeafNoise:
        """The noise of one chunk, always the same integers. From a secure source only one caller gets them."""
        tree, own = self.tree, source.stream("chunk", chunk).recomputable()
        return TentNoise(tree, self.scale, own) if isinstance(tree, Tents) else ChunkNoise(tree, self.scale, own)

    def begin(self, *, source: Source | None = None, simulation: bool = False) -> BlockSums:
        """A running perturber, for use on its own: `push` and `push_many` return noisy sums of complete blocks."""
        return BlockSums(
            self, release_source(source, simulation=simulation, epsilon=self.epsilon).fresh().recomputable()
        )

    def perturb(self, values: Any, *, source: Source | None = None, simulation: bool = False) -> Integers:
        """The noisy sum of every block of a stream, all at once. The last block may be short."""
        running = self.begin(source=source, simulation=simulation)
        return np.concatenate((running.push_many(values), running.flush()))


class LeafNoise(Protocol):
    """The integers added to the leaves of one chunk."""

    def leaves(self, start: int, stop: int) -> Integers:
        """Noise of the leaves start … stop − 1. Refused in a fork, which would publish other values with it."""


class BlockSums:
    """Values in, noisy sums of blocks out. Publishers put a threshold before this and a smoother after it.

    Any number of threads may push: values are taken one call after the other.
    """

    def __init__(self, settings: Perturber, source: Source) -> None:
        self._turn = Turn()
        self.settings, self._source = settings, source
        self._chunk = self._inside = self._sum = 0  # number of the chunk, values taken of it, sum of the open block
        self._noise = settings.noise(source, 0)

    def push(self, value: int) -> int | None:
        """Take one value. Returns the noisy sum of its block if the value completes it, otherwise None."""
        done = self.push_many([value])
        return int(done[0]) if done.size else None

    def push_many(self, values: Any) -> Integers:
        """Take many values. Returns the noisy sums of the blocks that they complete."""
        rest = np.clip(as_integers(values), 0, self.settings.theta)
        return self._push(rest)

    @in_turn
    def _push(self, rest: Integers) -> Integers:
        result = []
        while rest.size:
            part, rest = np.split(rest, [self.settings.horizon - self._inside])
            block = self.settings.block
            first, over = divmod(self._inside, block)
            self._inside += part.size
            ended = self._inside == self.settings.horizon
            begins = np.arange(block - over, part.size, block)  # of further blocks
            sums = np.add.reduceat(part, np.concatenate(([0], begins)))
            sums[0] += self._sum
            complete = sums.size if ended or self._inside % block == 0 else sums.size - 1
            self._sum = 0 if complete == sums.size else int(sums[-1])
            result.append(sums[:complete] + self._noise.leaves(first, first + complete))
            if ended:
                self._chunk, self._inside = self._chunk + 1, 0
                self._noise = self.settings.noise(self._source, self._chunk)
        return np.concatenate(result)

    @in_turn
    def flush(self) -> Integers:
        """Close the open block early, if there is one. Later values begin a new chunk."""
        leaf, over = divmod(self._inside, self.settings.block)
        if not self._inside:
            return np.zeros(0, dtype=np.int64)
        result = self._noise.leaves(leaf, leaf + 1) + self._sum if over else np.zeros(0, dtype=np.int64)
        self._chunk, self._inside, self._sum = self._chunk + 1, 0, 0
        self._noise = self.settings.noise(self._source, self._chunk)
        return result


@dataclass(slots=True)
class ChunkNoise:
    """The integers added to the leaves of one tree, for any run of leaves, recomputed segment by segment.

    Least squares from residuals: with r_l = z_l − Σ z_0 per node, y_l = r_l + mean of the children's y_{l−1} (y_0 = 0),
    the correction of a leaf is Σ_{l≥1} (y_l − mean of its siblings' y_l)/λ_l, where the top level has no mean to
    subtract (all levels have equal noise, so weights cancel). Corrections are floats; their running sum is rounded, so
    every window sum is within one unit of the exact estimate however long it is.
    """

    tree: Hierarchy
    scale: Fraction
    source: Source
    _segment: tuple[int, Integers] | None = None
    _outline: tuple[Floats, Floats] | None = None
    _drawn: dict[int, tuple[int, Integers]] = field(default_factory=dict)

    def leaves(self, start: int, stop: int) -> Integers:
        """Noise of the leaves start … stop − 1. Refused in a fork, which would publish other values with it."""
        if not self.scale:
            return np.zeros(stop - start, dtype=np.int64)
        self.source.check_process()
        parts, size = [], self._segment_size
        while start < stop:
            number, inside = divmod(start, size)
            end = min(stop, (number + 1) * size)
            if self._segment is None or self._segment[0] != number:
                self._segment = (number, self._consistent_segment(number))
            parts.append(self._segment[1][inside : inside + end - start])
            start = end
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    @property
    def _segment_levels(self) -> int:
        """Levels of the largest subtree that is handled at once."""
        levels = 1
        while levels < self.tree.consistent_levels and self.tree.fanout ** (levels + 1) <= GROUP_LEAVES:
            levels += 1
        return levels

    @property
    def _segment_size(self) -> int:
        if self.tree.consistent_levels == 1:  # no corrections: a segment is whatever is convenient
            fanout = self.tree.fanout if self.tree.height > 1 else 1
            return max(_NODES_PER_ADDRESS // fanout, 1) * fanout
        return int(self.tree.fanout**self._segment_levels)

    def _consistent_segment(self, number: int) -> Integers:
        size, levels = self._segment_size, self._segment_levels
        start = number * size
        stop = min(start + size, self.tree.padded)
        leaf = self._level(0, start, stop)
        if self.tree.consistent_levels > 1:
            offset, before, after = self._from_above(number)
            correction = np.full(-(-(stop - start) // self.tree.fanout), offset)
            ascent = self._ascend(leaf, start, min(levels, self.tree.consistent_levels) - 1)
            for level, y in enumerate(ascent, start=1):
                top = level == self.tree.consistent_levels - 1
                gain = (
                    y if top else (y.reshape(-1, self.tree.fanout) - y.reshape(-1, self.tree.fanout).mean(1)[:, None])
                )
                correction += np.repeat(gain.ravel() / self._weight(level), self.tree.fanout ** (level - 1))
            running = before + np.cumsum(np.repeat(correction, self.tree.fanout))
            if after is not None:
                running[-1] = after
            leaf = leaf + np.diff(np.rint(running), prepend=np.rint(before)).astype(np.int64)
        return leaf if self.tree.consistent_levels == self.tree.height else self._with_jumps(leaf, start)

    def _ascend(self, leaf: Integers, start: int, levels: int) -> list[Floats]:
        """y_1, y_2, … of the nodes above a run of leaves."""
        result: list[Floats] = []
        sums, fanout = leaf, self.tree.fanout
        for level in range(1, levels + 1):
            sums = sums.reshape(-1, fanout).sum(1)
            first = start // fanout**level
            residual = (self._level(level, first, first + sums.size) - sums).astype(np.float64)
            result.append(residual + result[-1].reshape(-1, fanout).mean(1) if result else residual)
        return result

    def _weight(self, level: int) -> float:
        """λ_l = Σ_{k≤l} B_k."""
        return float(sum(self.tree.fanout**k for k in range(level + 1)))

    def _from_above(self, number: int) -> tuple[float, float, float | None]:
        """What the levels above a segment add to each of its leaves, and the running correction before and after it."""
        if self._segment_levels == self.tree.consistent_levels:
            return 0.0, 0.0, None
        if self._outline is None:
            self._outline = self._survey()
        offsets, running = self._outline
        return float(offsets[number]), float(running[number]), float(running[number + 1])

    def _survey(self) -> tuple[Floats, Floats]:
        """One pass over all segments, which keeps only the top of each: for trees larger than a segment."""
        size, levels, fanout = self._segment_size, self._segment_levels, self.tree.fanout
        count = self.tree.padded // size
        sums, y = np.zeros(count, dtype=np.int64), np.zeros(count)
        for number in range(count):
            leaf = self._level(0, number * size, (number + 1) * size)
            sums[number] = leaf.sum()
            ascent = self._ascend(leaf, number * size, levels - 1)
            y[number] = ascent[-1].mean() if ascent else 0.0
        offsets = np.zeros(count)
        for level in range(levels, self.tree.consistent_levels):
            y = y + (self._level(level, 0, sums.size) - sums)
            top = level == self.tree.consistent_levels - 1
            gain = y if top else (y.reshape(-1, fanout) - y.reshape(-1, fanout).mean(1)[:, None]).ravel()
            offsets += np.repeat(gain / self._weight(level), count // sums.size)
            if not top:
                sums, y = sums.reshape(-1, fanout).sum(1), y.reshape(-1, fanout).mean(1)
        return offsets, np.concatenate(([0.0], np.cumsum(offsets * size)))

    def _with_jumps(self, leaf: Integers, start: int) -> Integers:
        """Above the groups a prefix is the sum of the fewest nodes: the end of a group jumps to that sum."""
        result, group, fanout = leaf.copy(), self.tree.group, self.tree.fanout
        first, last = start // group, (start + leaf.size) // group
        if first == last:
            return result
        prefixes = np.zeros(last - first + 1, dtype=np.int64)
        for level in range(self.tree.consistent_levels, self.tree.height):
            size = fanout ** (level - self.tree.consistent_levels)
            nodes = np.arange(first, last + 1) // size
            parents = nodes // fanout if level < self.tree.height - 1 else np.zeros_like(nodes)
            base = int(parents[0]) * fanout
            noise = self._level(level, base, max(int(nodes[-1]), base))
            running = np.concatenate(([0], np.cumsum(noise)))
            prefixes += running[nodes - base] - running[parents * fanout - base]
        totals = leaf[: (last - first) * group].reshape(-1, group).sum(1)
        result[group - 1 : (last - first) * group : group] += np.diff(prefixes) - totals
        return result

    def _level(self, level: int, start: int, stop: int) -> Integers:
        """The noise of nodes start … stop − 1 of a level."""
        size = min(_NODES_PER_ADDRESS, self.tree.nodes(level))
        parts = []
        while start < stop:
            number, inside = divmod(start, size)
            end = min(stop, (number + 1) * size)
            drawn = self._drawn.get(level)
            if drawn is None or drawn[0] != number:
                noise = self.source.stream("level", level, number).discrete_laplace(self.scale, size)
                drawn = self._drawn[level] = (number, noise)
            parts.append(drawn[1][inside : inside + end - start])
            start = end
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def own_noise(source: Source, digest: str, *, given: bool, goes_on: bool) -> Source:
    """The noise of one publisher and no other. A source that was handed in may serve several publishers."""
    if given:
        return source.fresh("deniable stream", digest).recomputable()
    try:
        return source.stream("deniable stream", digest).recomputable(again=goes_on)
    except RandomnessFault:
        raise RandomnessFault(
            "another publisher was made in this process with the same key and settings. Both would add the same noise "
            "to different values. Nothing was published. Leave key= out, give another name=, or go on from its state()."
        ) from None
