"""Expectation maximisation: the distribution that explains randomised reports best.

The reports of a sliding window are the true distribution blurred by a box. One step asks of every bin how much of
the observed reports it would explain, and moves weight there. Blurring by a box is a difference of two running sums, so
a step costs one pass over the bins: the matrix is never built.  [LWL20, Algorithm 1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms._compiled import compiled

if TYPE_CHECKING:
    from deniable.mechanisms._window import SlidingWindow

LARGEST_STEPS = 10_000
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """An estimated distribution and how it was reached."""

    shares: Floats
    steps: int
    converged: bool


@dataclass(frozen=True, slots=True)
class Blur:
    """The law of a sliding window between bins of inputs and bins of outputs, as a constant plus a short list of taps.

    Given an input bin, output bin o has probability floor[o] + kernel[o − bin]. The kernel is flat but for its ends, so
    its differences are zero almost everywhere: `offsets` and `heights` hold the others.
    """

    bins: int
    floor: Floats
    offsets: Integers
    heights: Floats

    @classmethod
    def of(cls, window: SlidingWindow, bins: int) -> Blur:
        """The blur between `bins` equal bins of inputs and as many output bins of the same size as there are."""
        size = window.inputs // bins
        inside, outside = window.weights
        length = -(-(size - 1 + window.width) // size)
        covered = _covered(size * np.arange(length + 1, dtype=np.int64), size, window.width)
        kernel = np.diff(covered)  # size · (expected number of window outputs in each output bin)
        jumps = np.diff(kernel, prepend=0, append=0)
        outputs = bins + length - 1
        cells = np.full(outputs, size, dtype=np.float64)
        cells[-1] = window.outputs - size * (outputs - 1)
        offsets = np.flatnonzero(jumps)
        heights = float(inside - outside) / size * jumps[offsets]
        return cls(bins, cells * float(outside), offsets, heights)

    def forward(self, shares: Floats) -> Floats:
        """The distribution of the reports, given one of the values."""
        expected = np.empty(self.floor.size)
        _forward(shares, self.floor, self.offsets, self.heights, expected)
        return expected

    def backward(self, ratios: Floats) -> Floats:
        """For each bin, the average of `ratios` over the reports of its values."""
        result = np.empty(self.bins)
        _backward(ratios, self.floor, self.offsets, self.heights, result)
        return result


@compiled
def _forward(shares: Floats, floor: Floats, offsets: Integers, heights: Floats, expected: Floats) -> None:
    expected[:] = 0.0
    for tap in range(offsets.size):
        for bin_ in range(min(shares.size, expected.size - offsets[tap])):
            expected[bin_ + offsets[tap]] += heights[tap] * shares[bin_]
    total, level = shares.sum(), 0.0
    for output in range(expected.size):
        level += expected[output]
        expected[output] = max(level + floor[output] * total, _TINY)


@compiled
def _backward(ratios: Floats, floor: Floats, offsets: Integers, heights: Floats, result: Floats) -> None:
    rest = np.empty(ratios.size + 1)  # rest[o] = ratios[o] + ratios[o + 1] + …
    rest[-1] = 0.0
    for output in range(ratios.size - 1, -1, -1):
        rest[output] = rest[output + 1] + ratios[output]
    result[:] = (floor * ratios).sum()
    for tap in range(offsets.size):
        for bin_ in range(min(result.size, rest.size - offsets[tap])):
            result[bin_] += heights[tap] * rest[bin_ + offsets[tap]]


@compiled
def _maximise(
    counts: Floats, floor: Floats, offsets: Integers, heights: Floats, shares: Floats, smooth: bool, tolerance: float
) -> int:
    """Improve `shares` in place until a step gains too little; the number of steps, negative if that never happened."""
    expected, ratios, gains = np.empty(counts.size), np.empty(counts.size), np.empty(shares.size)
    best = -np.inf
    for step in range(1, LARGEST_STEPS + 1):
        _forward(shares, floor, offsets, heights, expected)
        likelihood = 0.0
        for output in range(counts.size):
            likelihood += counts[output] * np.log(expected[output])
            ratios[output] = counts[output] / expected[output]
        if abs(likelihood - best) < tolerance:
            return step
        best = likelihood
        _backward(ratios, floor, offsets, heights, gains)
        for bin_ in range(shares.size):
            shares[bin_] = max(shares[bin_] * gains[bin_], 0.0)
        if smooth:  # average with both neighbours, weights (1, 2, 1)/4; an end counts itself for the one it lacks
            before = shares[0]
            for bin_ in range(shares.size):
                here, after = shares[bin_], shares[min(bin_ + 1, shares.size - 1)]
                shares[bin_] = (before + 2 * here + after) / 4
                before = here
        shares /= shares.sum()
    return -LARGEST_STEPS


def _covered(edges: Integers, size: int, width: int) -> Integers:
    """Σ_a clip(t − a, 0, width): how many outputs of the windows of one bin's inputs lie below each edge t."""

    def ramp(t: Integers) -> Integers:
        """Σ_{a < size} max(t − a, 0)."""
        terms = np.clip(t, 0, size)
        return terms * t - terms * (terms - 1) // 2

    return ramp(edges) - ramp(edges - width)


def reconstruct(window: SlidingWindow, reports: Integers, bins: int, *, smooth: bool) -> Reconstruction:
    """The most likely shares of `bins` equal bins of inputs; with `smooth`, averaged with neighbours in every step."""
    return reconstruct_counts(window, count_outputs(window, reports, bins), bins, smooth=smooth)


def count_outputs(window: SlidingWindow, reports: Integers, bins: int) -> Floats:
    """How many reports fall in each bin of outputs, where `bins` bins of the same size cover the inputs."""
    size = window.inputs // bins
    return np.bincount(reports // size, minlength=-(-window.outputs // size)).astype(np.float64)


def reconstruct_counts(window: SlidingWindow, counts: Floats, bins: int, *, smooth: bool) -> Reconstruction:
    """The same from counts of reports, which is all that has to be kept of them.

    Stops when a step changes the total log-likelihood by less than 10^-3 (EM: e^ε times that, at most e^5), much as
    [LWL20] does.
    """
    blur = Blur.of(window, bins)
    tolerance = 1e-3 if smooth else 1e-3 * float(np.exp(min(window.epsilon, 5.0)))
    shares = np.full(bins, 1.0 / bins)
    steps = _maximise(counts, blur.floor, blur.offsets, blur.heights, shares, smooth, tolerance)
    return Reconstruction(shares, abs(steps), converged=steps > 0)
