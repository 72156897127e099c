"""How rough a stream is: how much the sums of neighbouring runs of values differ, by the length of the runs.

    Δ(L)    the mean square of the difference between the sums of two neighbouring runs of L values

Half of a run of 2L values has half of the run's sum, and half of such a difference more or less. So where only the sum
of g values is known, and the stream is taken as a straight line, the sum of the first o of them is off by the halves of
differences at L = g/2, g/4, …, 1, each times a hat that rises from 0 to 1 over L values and falls again:

    E(o) = Σ_L Δ(L)/4 · h²,    h = o/L up to L, and h² = 1/3 on average beyond

For independent values of variance σ², Δ(L) = 2σ²L, and E(o) = σ²o(1 − o/g) exactly. So the largest such part of Δ is
taken off first, and hats are for what is left. Days and nights, bursts and drift have a larger Δ at the lengths where
they happen.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from deniable.arrays import Floats, Integers

_LEAST = 1e-300
_SUMS_AT_ONCE = 2**14
"""Sums that are compared with runs of every length at once."""
_STEEPEST = 4
"""Δ grows at most as this power of the length. An even slope does that, bursts and steps less."""


@dataclass(frozen=True, slots=True)
class Roughness:
    """Δ at some lengths, ascending from 1; a power of the length in between, and independent values beyond.

    >>> import numpy as np
    >>> Roughness((1.0, 64.0), (2.0, 128.0)).start(np.array([0, 8, 16]), 64).round(1).tolist()
    [0.0, 7.0, 12.0]
    """

    lengths: tuple[float, ...]
    squares: tuple[float, ...]

    def difference(self, length: float) -> float:
        """Δ at any length."""
        return float(self._differences(np.array([length]))[0])

    def _differences(self, lengths: Floats) -> Floats:
        logs = np.log(np.maximum(self.squares, _LEAST))
        known = np.exp(np.interp(np.log(lengths), np.log(self.lengths), logs))
        return np.asarray(np.maximum(lengths / self.lengths[-1], 1.0) * known)

    def start(self, over: Integers, block: int) -> Floats:
        """What is unknown of the sum of the first `over` values of a block whose sum is known: E, squared."""
        return self._misses(np.minimum(over, block - over), block, 1 / 3)

    def inside(self, length: Integers, block: int) -> Floats:
        """The same for `length` values in a row, anywhere in one block: at short lengths both ends are off."""
        return self._misses(np.minimum(length, block - length), block, 1 / 2)

    def by_chance(self, over: Integers, block: int) -> Floats:
        """The part of both that independent values have: σ²o(1 − o/g)."""
        return np.asarray(_unknown_parts(self, block)[0] / 2 * over * (1 - over / block))

    def _misses(self, over: Integers, block: int, beyond: float) -> Floats:
        _, runs, squares = _unknown_parts(self, block)
        result = np.ascontiguousarray(self.by_chance(over, block))
        for first in range(0, result.size, _SUMS_AT_ONCE):
            part = slice(first, first + _SUMS_AT_ONCE)
            hats = over.ravel()[part, None] / runs
            result.ravel()[part] += np.where(hats < 1, hats * hats, beyond) @ squares
        return np.where(over > 0, result, 0.0)

    def weighed(
        self,
        lengths: tuple[float, ...],
        squares: tuple[float, ...],
        doubts: tuple[float, ...],
        spread: float | None = None,
    ) -> Roughness:
        """These are usual; others were measured. The noisier those are, the more stays usual.

        If `spread` is the standard deviation of Δ among streams, in units of what is usual, measured squares count by
        it and by their own variance, which is 2d² + 4dΔ where d is that of the noise of the root; never by less than
        without it, because a cycle may be far larger than anything usual. `doubts` are these d.
        From the longest length to shorter ones, what is known of one decides how much of the next one is usual.
        Neighbouring runs of independent values differ by Δ(1)·L, and no stream is taken as smoother than that.
        """
        known: dict[float, float] = {}
        factor = 1.0  # what is known at a longer length says how usual this stream is
        for length, measured, doubt in sorted(zip(lengths, squares, doubts, strict=True), reverse=True):
            usual = self.difference(length) * factor
            weight = usual / (usual + doubt) if usual + doubt > 0 else 0.0
            if spread is not None:
                among = (spread * usual) ** 2
                weight = max(weight, among / max(among + 2 * doubt**2 + 4 * doubt * usual, _LEAST))
            known[length] = max(weight * measured + (1 - weight) * usual, squares[0] * length)
            factor = max(known[length] / max(self.difference(length), _LEAST), 1.0)
        last = max(known)
        for length in self.lengths:  # beyond what was measured, in the usual shape
            if length > last:
                known[length] = self.difference(length) * known[last] / max(self.difference(last), _LEAST)
        ordered = sorted(known)
        return Roughness(tuple(ordered), tuple(known[length] for length in ordered))

    def with_cycles(self, certain: Collection[float]) -> Roughness:
        """The same, with one more length where two known ones are far apart and a cycle may lie in between.

        Whole periods have all the same sum, and halves of them differ most. So where runs of L differ for `certain` by
        more than by chance, and Δ grows less than it does for independent values from L to 4L or more, a cycle explains
        it. If its period is 2L, runs of 2L are alike; if it is 4L, Δ(2L) is 4Δ(L). Half of that is expected.
        """
        chance = min(square / length for length, square in zip(self.lengths, self.squares, strict=True))
        more = {}
        for (length, square), (longer, last) in pairwise(zip(self.lengths, self.squares, strict=True)):
            own, beyond = square - chance * length, last - chance * longer
            if length in certain and 1 < length <= longer / 4 and beyond < own * longer / length:
                missing = 1 - beyond / (own * longer / length)
                usual = self.difference(2 * length)
                more[2 * length] = max(usual, usual + missing * (2 * own + 2 * chance * length - usual))
        known = sorted({**dict(zip(self.lengths, self.squares, strict=True)), **more}.items())
        return Roughness(*(tuple(column) for column in zip(*known, strict=True)))

    def ending(self, length: float, square: float) -> Roughness:
        """The same below a length, and what is known there.

        Twice as long runs differ at most four times as much: a + b − (c + d) = (a − b) + 2(b − c) + (c − d). So no
        stream is taken as smoother than that allows: Δ(L) is at least Δ(length)·(L/length)^4.
        """
        below = [
            (known, max(value, square * (known / length) ** _STEEPEST))
            for known, value in zip(self.lengths, self.squares, strict=True)
            if known < length
        ]
        lengths, squares = zip(*below, (length, square), strict=True)
        return Roughness(lengths, squares)


@lru_cache(maxsize=256)
def _unknown_parts(roughness: Roughness, block: int) -> tuple[float, Floats, Floats]:
    """What independent values take off Δ; then the lengths of runs of a block, and Δ/4 that is left at each."""
    runs = block / 2 ** np.arange(1, block.bit_length() + 1)
    runs = runs[runs >= 0.5]
    each = roughness._differences(np.maximum(runs, 1.0)) * np.minimum(runs, 1.0)
    chance = float((each / runs).min())
    return chance, runs, (each - chance * runs) / 4
