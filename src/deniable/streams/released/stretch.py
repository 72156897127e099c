"""A stretch of a released stream: one θ, one kind of tree, one size of blocks. And the sums that its values stand for.

Answers do not add up the published values. Inside a block these are predictions, and the last one makes up for them;
once a block is complete, a straight line between the noisy prefix sums at its edges is closer to the stream. It is a
function of what was published, so it costs nothing. Published values stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.streams.released.covariance import Covariance, covariance_of
from deniable.streams.released.levels import block_errors, growth
from deniable.streams.released.prediction_error import Smoothing, SmoothingByBlock, smoothing_by_block
from deniable.streams.released.roughness import Roughness
from deniable.streams.released.windows import SINGLE_LAPLACE, Truncation
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.smoother import Interpolated, Recent


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is public about the values from number `begin` of the stream on, up to the next stretch."""

    begin: int
    covariance: Covariance
    truncation: Truncation | None = None
    smoothing: Smoothing | None = None


def stretch_of(facts: dict[str, Any]) -> Stretch:
    """A stretch as the metadata describe it."""
    smoothing, truncation = facts["smoothing"], facts["truncation"]
    if smoothing is not None:
        layout = BlockLayout(**smoothing["layout"])
        if "spread" in smoothing:  # as earlier versions described it: of single values, and from block to block
            square = 2 * smoothing["spread"]
            drift = square * layout.block + layout.block**2 * smoothing["drift"]
            known = Roughness((1.0, float(layout.block)), (square, drift))
        else:
            known = Roughness(*(tuple(smoothing["roughness"][name]) for name in ("lengths", "squares")))
        smoothing = Smoothing(layout, known)
    if truncation is not None:
        truncation = Truncation.read(truncation)
    return Stretch(facts.get("begin", 0), covariance_of(facts["covariance"]), truncation, smoothing)


@dataclass(frozen=True, eq=False)
class StretchSums:
    """Sums over windows of one stretch. `prefix` holds prefix sums of its published values from number `first` on."""

    stretch: Stretch
    prefix: NDArray[Any]
    first: int
    places: Integers | None = None
    """Where its values stand among all that are here, if they do not follow each other."""

    def within(self, starts: Integers, stops: Integers) -> tuple[Integers, Integers, Integers]:
        """Which windows of the whole stream hold values of this stretch, and from where to where in it."""
        if self.places is None:
            begin, end = self.stretch.begin + self.first, self.stretch.begin + self.last
            touched = np.flatnonzero((starts < end) & (stops > begin))
            low, high = np.maximum(starts[touched], begin), np.minimum(stops[touched], end)
            return touched, low - self.stretch.begin, high - self.stretch.begin
        low, high = np.searchsorted(self.places, starts), np.searchsorted(self.places, stops)
        touched = np.flatnonzero(high > low)
        return touched, low[touched], high[touched]

    @property
    def last(self) -> int:
        """The end of the values that are here, counted from the stretch's beginning."""
        return self.first + self.prefix.size - 1

    @cached_property
    def _layout(self) -> BlockLayout | None:
        """Blocks, if values inside them are predictions."""
        layout: BlockLayout | None = getattr(self.stretch.covariance, "layout", None)
        return None if layout is None or layout.block == 1 else layout

    @cached_property
    def _blocks(self) -> tuple[int, int]:
        """Blocks whose noisy sums are known: from this one up to, but not including, that one."""
        if self._layout is None:
            return 0, 0
        begin, over = (int(part[0]) for part in self._layout.locate(np.array([self.first])))
        ends = self._layout.locate(np.array([self.last]))
        if over and int(self._layout.position(np.array([begin + 1]))[0]) - self.first < 2:
            begin += 1  # its last value alone does not show what was predicted
        return begin, max(int(ends[0][0]), begin)

    @cached_property
    def _edges(self) -> tuple[Integers, Floats]:
        """Where known blocks begin and end, and prefix sums there; the first one may lie before what is here."""
        assert self._layout is not None  # noqa: S101 - only asked where there are blocks
        since, until = self._blocks
        edges = self._layout.position(np.arange(since, until + 1))
        sums = self.prefix[np.maximum(edges - self.first, 0)].astype(np.float64)
        if until > since and edges[0] < self.first:  # its total: what is missing at the end, and a rate before that
            end = int(edges[1]) - self.first
            rate, missing = self.prefix[1] - self.prefix[0], self.prefix[end] - self.prefix[end - 1]
            sums[0] = sums[1] - (missing + (edges[1] - edges[0] - 1) * rate)
        return edges, sums

    def totals(self) -> tuple[int, Floats]:
        """The number of the first known block, and the noisy sums of all of them."""
        return (0, np.zeros(0)) if self._layout is None else (self._blocks[0], np.diff(self._edges[1]))

    @cached_property
    def _noise(self) -> Covariance:
        covariance: Any = self.stretch.covariance
        if self._layout is None:
            return self.stretch.covariance
        reconstructed: Covariance = replace(covariance, smoother=Interpolated(covariance.smoother, *self._blocks))
        return reconstructed

    def _averaged(self, starts: Integers, stops: Integers, noise: Floats) -> Floats:
        """How much more than after the block before predictions may be off, where they average over more blocks.

        They have less noise, and were chosen because all that they are off by is less. So changes of the stream may add
        at most as much as noise is less.
        """
        result, online = np.zeros(starts.shape), getattr(self.stretch.covariance, "smoother", Recent())
        if self._layout is None or online == Recent():
            return result
        open_block = np.flatnonzero(self._layout.locate(stops)[0] >= self._blocks[1])
        recent: Any = replace(self._noise, smoother=Interpolated(Recent(), *self._blocks))  # type: ignore[type-var]
        other = recent.variance(starts[open_block], stops[open_block])
        result[open_block] = np.maximum(other - noise[open_block], 0.0)
        return result

    @cached_property
    def _smoothing(self) -> SmoothingByBlock | None:
        if self.stretch.smoothing is None or self._layout is None:
            return None
        first, totals = self.totals()
        return smoothing_by_block(totals, first, self.stretch.covariance, self.stretch.smoothing, self._blocks[1])

    def until(self, positions: Integers) -> NDArray[Any]:
        """Prefix sums of the reconstructed stream, in steps; `positions` count from the stretch's beginning."""
        result = self.prefix[positions - self.first]
        since, until = self._blocks
        if self._layout is None or until == since:
            return result
        block, over = self._layout.locate(positions)
        known = (over > 0) & (block >= since) & (block < until)
        edges, sums = self._edges
        return np.where(known, np.interp(positions, edges, sums), result)

    def variances(self, starts: Integers, stops: Integers) -> tuple[Floats, Floats, Floats]:
        """Of window sums: the variance of noise, that of what stands for unknown values, and the noise's kurtosis."""
        noise = self._noise.variance(starts, stops)
        smoothing = np.zeros(starts.shape)
        if self._smoothing is not None:
            smoothing = self._smoothing.variance(starts, stops) + self._averaged(starts, stops, noise)
        if self.stretch.truncation is not None:  # stand-ins for events that did not count are off, too
            smoothing = smoothing + ((stops - starts) * self.stretch.truncation.uncounted) ** 2
        return noise, smoothing, self._tails(starts, stops)

    @cached_property
    def _pressed(self) -> Integers:
        """How many of the known blocks before each one, and before the end, press against θ."""
        truncation, layout = self.stretch.truncation, self._layout
        first, totals = self.totals()
        if truncation is None or layout is None or not totals.size:
            return np.zeros(totals.size + 1, dtype=np.int64)
        edges = layout.position(np.arange(first, first + totals.size + 1))
        noise = np.sqrt(self.stretch.covariance.variance(edges[:1], edges[1:2])[0]) / layout.block
        return np.concatenate(([0], np.cumsum(truncation.pressed(totals / np.diff(edges), float(noise)))))

    def beyond(self, starts: Integers, stops: Integers) -> Floats:
        """What window sums may lack because values lie far above θ, at most: bound − θ for each of them.

        Blocks that press against θ may hold nothing else. Otherwise as many as may be hidden, by chance some more in a
        short window; and every such value has given θ to a sum.
        """
        truncation = self.stretch.truncation
        if truncation is not None and truncation.hidden:
            noise, smoothing, _ = self.variances(starts, stops)
            most = self.until(stops) - self.until(starts) + 2 * np.sqrt(noise + smoothing)
            share, count = truncation.hidden, stops - starts
            hidden = np.minimum(count * share + 2 * np.sqrt(count * share) + 1, count)
            values = np.clip(most / truncation.theta, 0, hidden)
            return np.asarray(values * max(truncation.bound - truncation.theta, 0.0))
        if self._layout is None or self.stretch.truncation is None or not self._pressed[-1]:
            return np.zeros(starts.shape)
        since, last = self._blocks[0], self._pressed.size - 1
        low = np.clip(self._layout.locate(starts)[0] - since, 0, last)
        high = np.clip(self._layout.locate(np.maximum(stops - 1, starts))[0] + 1 - since, 0, last)
        values = np.minimum((self._pressed[high] - self._pressed[low]) * self._layout.block, stops - starts)
        return np.asarray(values * max(self.stretch.truncation.bound - self.stretch.truncation.theta, 0.0))

    def added(self, starts: Integers, stops: Integers) -> tuple[Floats, Floats]:
        """What is added back to window sums for values that were cut, and its variance."""
        truncation, (since, until) = self.stretch.truncation, self._blocks
        if truncation is None:
            return np.zeros(starts.shape), np.zeros(starts.shape)
        count = (stops - starts).astype(np.float64)
        if until == since or (truncation.empty_below is None and truncation.rise is None):
            return truncation.added(count, *self._grown(starts, stops))
        edges, sums = self._edges
        rates = np.diff(sums) / np.diff(edges)
        if truncation.empty_below is not None:
            count = self._counted(starts, stops, (rates >= truncation.empty_below).astype(np.float64), 1.0)
        excess, variance = truncation.added(count)
        if truncation.rise is None:
            return excess, variance
        shares = truncation.rise.shares(rates)
        risen = self._counted(starts, stops, shares, float(shares[-1]))
        more, doubt = truncation.rise.added(count, risen, int(edges[1] - edges[0]))
        return excess + more, variance + doubt

    @cached_property
    def _growth(self) -> Floats | None:
        """By block: how many times as much its values lose as was learnt, as far as published levels tell."""
        truncation, (since, until) = self.stretch.truncation, self._blocks
        if truncation is None or truncation.growth is None or until == since:
            return None
        edges, sums = self._edges
        error = block_errors(self.stretch.covariance, edges)
        return growth(np.diff(sums) / np.diff(edges), error, *truncation.growth, truncation.most_growth)

    def _grown(self, starts: Integers, stops: Integers) -> tuple[Floats, ...]:
        """How many values of the learnt level lose as much as those of windows; then no less than their number."""
        times = self._growth
        if times is None:
            return ()
        more = np.maximum(times, 1.0)
        return tuple(self._counted(starts, stops, each, float(each[-1])) for each in (times, more))

    def _counted(self, starts: Integers, stops: Integers, weights: Floats, later: float) -> Floats:
        """How many values windows hold, if those of known blocks have these weights, and `later` ones that."""
        edges = self._edges[0]
        before = np.concatenate(([0.0], np.cumsum(weights * np.diff(edges))))
        first, last = (
            np.interp(ends, edges, before) + later * np.maximum(ends - edges[-1], 0) for ends in (starts, stops)
        )
        return np.asarray(last - first)

    def _tails(self, starts: Integers, stops: Integers) -> Floats:
        """3/k for a window whose noise is about that of k independent blocks: whole ones, and shares of two others."""
        layout: BlockLayout | None = getattr(self.stretch.covariance, "layout", None)
        if layout is None:
            return np.zeros(starts.shape)
        (first, over_first), (last, over_last) = layout.locate(starts), layout.locate(stops)
        head, tail = 1 - over_first / layout.block, over_last / layout.block
        whole = np.maximum(last - first - 1, 0)
        squares = np.where(last > first, whole + head**2 + tail**2, 1.0)
        fourths = np.where(last > first, whole + head**4 + tail**4, 1.0)
        return np.asarray(SINGLE_LAPLACE * fourths / np.maximum(squares, 1e-300) ** 2)
