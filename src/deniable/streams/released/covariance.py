"""The noise of a released stream: the variance of every window, in closed form.

A model answers `variance(starts, stops)`: the variance of the noise of the sum of the released values start … stop − 1,
in squared grid units, for whole arrays of windows. It describes itself in the metadata of a file, and is read back
from there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.errors import InvalidData
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.hierarchy import WINDOWS_AT_ONCE
from deniable.streams.structure.smoother import Smoother, smoother_of
from deniable.streams.structure.tents import HIERARCHIES, Arrangement, arrangement_of


class Covariance(Protocol):
    """What a released stream knows about its noise."""

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Variance of the noise of every window sum, in squared units."""

    def describe(self) -> dict[str, Any]:
        """Public facts from which `covariance_of` makes the model again."""


@dataclass(frozen=True, slots=True)
class IndependentNoise:
    """Every released value has its own noise, of the same variance.

    >>> import numpy as np
    >>> IndependentNoise(2.0).variance(np.array([0]), np.array([10]))
    array([20.])
    """

    per_value: float

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Variance of the noise of every window sum, in squared units."""
        return np.asarray((stops - starts) * self.per_value, dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        """Public facts from which `covariance_of` makes the model again."""
        return {"kind": "independent", **asdict(self)}


@dataclass(frozen=True, slots=True)
class TreeNoise:
    """Noise of a chain of trees or tents over blocks, seen through a smoother.

    With N the noisy prefix sums at block edges, position k publishes the prefix N(edge) + (weights)·N + (weight)·u_0,
    by the smoother's taps. A window is a difference of two of those, so its variance is a quadratic form in Cov(N, N),
    which a tree and tents give exactly inside a chunk; chunks are independent, and so is u_0.

    >>> import numpy as np
    >>> from deniable.streams import Recent
    >>> noise = TreeNoise(BlockLayout(1024, 1), 16, True, 1.0, 0.0, Recent())
    >>> bool(noise.variance(np.array([0]), np.array([512]))[0] < 512)
    True
    """

    layout: BlockLayout
    fanout: int
    consistent: bool
    node_variance: float
    initial_variance: float
    smoother: Smoother
    hierarchy: str = "tree"

    @property
    def tree(self) -> Arrangement:
        """The nodes of one chunk."""
        return arrangement_of(self.hierarchy, self.layout.blocks, self.fanout, self.consistent)

    def variance(self, starts: Integers, stops: Integers) -> Floats:
        """Variance of the noise of every window sum, in squared units."""
        result = np.empty(starts.shape)
        for first in range(0, starts.size, WINDOWS_AT_ONCE):
            part = slice(first, first + WINDOWS_AT_ONCE)
            result[part] = self._variance(starts[part], stops[part])
        return result

    def _variance(self, starts: Integers, stops: Integers) -> Floats:
        taps, initial = self._window_taps(starts, stops)
        blocks = self.layout.blocks
        # Count chunks from the first one of a window, so that no precision is lost far out.
        base = np.minimum.reduce([edge // blocks for edge, _ in taps])
        chunks = np.stack([edge // blocks - base for edge, _ in taps])
        inside = np.stack([edge % blocks for edge, _ in taps])
        weights = np.stack([np.broadcast_to(weight, starts.shape) for _, weight in taps])
        result = np.zeros(starts.shape)
        # Every tap with itself, and twice with each later one.
        earlier, later = np.triu_indices(len(taps))
        twice = np.where(earlier == later, 1.0, 2.0)[:, None]
        at_once = max(WINDOWS_AT_ONCE // max(starts.size, 1), 1)
        for first in range(0, earlier.size, at_once):
            i, j = earlier[first : first + at_once], later[first : first + at_once]
            shared = self._covariance((chunks[i], inside[i]), (chunks[j], inside[j]))
            result += np.sum(twice[first : first + at_once] * weights[i] * weights[j] * shared, axis=0)
        # Whole chunks before: their weights add up to nothing, unless the smoother remembers them.
        result += base * self._whole * weights.sum(axis=0) ** 2
        return np.maximum(result * self.node_variance + self.initial_variance * initial**2, 0.0)

    def _window_taps(self, starts: Integers, stops: Integers) -> tuple[list[tuple[Integers, Floats]], Floats]:
        """Edges and weights of the difference of two positions, equal edges merged before anything is squared."""
        (last, over_last), (first, over_first) = self.layout.locate(stops), self.layout.locate(starts)
        ones = np.ones(starts.shape)
        if self.layout.block == 1:
            return [(last, ones), (first, -ones)], np.zeros(starts.shape)
        upper, upper_initial = self.smoother.taps(self.layout, last, over_last)
        lower, lower_initial = self.smoother.taps(self.layout, first, over_first)
        taps: list[tuple[Integers, Floats]] = []
        for index in range(max(len(upper), len(lower))):
            nothing = (np.zeros_like(first), np.zeros(starts.shape))
            late, late_weight = upper[index] if index < len(upper) else nothing
            early, early_weight = lower[index] if index < len(lower) else nothing
            same = late == early
            apart = ones if index == 0 else 0.0  # the prefix at the edge itself
            taps.append((late, np.where(same, late_weight - early_weight, late_weight + apart)))
            taps.append((early, np.where(same, 0.0, -early_weight - apart)))
        return taps, upper_initial - lower_initial

    def _covariance(self, tap: tuple[Integers, Integers], other: tuple[Integers, Integers]) -> Floats:
        """Cov(N, N) over several chunks: whole chunks in common, and the shared part of the earlier tap's chunk."""
        blocks = self.layout.blocks
        (chunk_i, i), (chunk_j, j) = tap, other
        inside_i = np.where(chunk_i > chunk_j, blocks, i)
        inside_j = np.where(chunk_j > chunk_i, blocks, j)
        return np.asarray(np.minimum(chunk_i, chunk_j) * self._whole + self.tree.covariance(inside_i, inside_j))

    @property
    def _whole(self) -> float:
        return _variance_of_whole(self.hierarchy, self.layout.blocks, self.fanout, self.consistent)

    def describe(self) -> dict[str, Any]:
        """Public facts from which `covariance_of` makes the model again."""
        return {
            "kind": self.hierarchy,
            "horizon": self.layout.horizon,
            "block": self.layout.block,
            "end": self.layout.end,
            "fanout": self.fanout,
            "consistent": self.consistent,
            "node_variance": self.node_variance,
            "initial_variance": self.initial_variance,
            "smoother": {"name": self.smoother.name, **asdict(self.smoother)},
        }


@lru_cache(maxsize=1024)
def _variance_of_whole(hierarchy: str, blocks: int, fanout: int, consistent: bool) -> float:
    """Variance of the sum of a whole chunk, in units of σ²."""
    end = np.array([blocks])
    return float(arrangement_of(hierarchy, blocks, fanout, consistent).covariance(end, end)[0])


def covariance_of(description: dict[str, Any]) -> Covariance:
    """The model that `describe` described."""
    facts = dict(description)
    kind = facts.pop("kind", None)
    if kind == "independent":
        return IndependentNoise(**facts)
    if kind in HIERARCHIES:
        layout = BlockLayout(facts.pop("horizon"), facts.pop("block"), facts.pop("end"))
        return TreeNoise(layout=layout, smoother=smoother_of(**facts.pop("smoother")), hierarchy=kind, **facts)
    raise InvalidData(
        "the file describes noise of a kind this version does not know", "Read it with the version that wrote it."
    )
