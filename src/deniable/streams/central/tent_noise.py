"""The integers that tents add to the leaves of a chunk: exact noise of all nodes, made consistent by least squares.

With z the noise of the nodes, the residuals r_l = z_l − Σ w·z_0 of the upper levels are the same integers whatever the
data are (modulo 2^64, as all sums here), and a leaf is published as (value + z_0) + f(r). So privacy rests on the
discrete Laplace alone, as in a tree. f is the least-squares correction d = argmin |d|² + Σ_l |H_l·d − r_l/W_l|².
Upwards through the cells of `tent_cells` the parts of a cell pull on its end sums with η; downwards w = M·v + C·η.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.randomness import Source
from deniable.streams.structure.tent_cells import TentCells
from deniable.streams.structure.tents import Tents

Draw = Callable[[int, int, Fraction], Integers]
"""The noise of a whole level: its number, its nodes, its scale."""
_NODES_PER_ADDRESS = 1 << 14


@dataclass(slots=True)
class TentNoise:
    """The integers added to the leaves of one chunk, for any run of leaves. Once one was asked for, all are kept."""

    tents: Tents
    scale: Fraction
    source: Source
    _noise: Integers | None = None

    def leaves(self, start: int, stop: int) -> Integers:
        """Noise of the leaves start … stop − 1. Refused in a fork, which would publish other values with it."""
        if not self.scale:
            return np.zeros(stop - start, dtype=np.int64)
        self.source.check_process()
        if self._noise is None:
            self._noise = consistent_leaves(self.tents, self.scale, self._level)[: self.tents.leaves]
        return self._noise[start:stop].copy()

    def _level(self, level: int, nodes: int, scale: Fraction) -> Integers:
        parts = []
        for number, first in enumerate(range(0, nodes, _NODES_PER_ADDRESS)):
            address = self.source.stream("tent", level, number)
            parts.append(address.discrete_laplace(scale, min(_NODES_PER_ADDRESS, nodes - first)))
        return np.concatenate(parts)


def consistent_leaves(tents: Tents, scale: Fraction, draw: Draw) -> Integers:
    """The noise of all leaves, padding included. Prefixes are within half a unit of the least-squares estimate."""
    leaf = draw(0, tents.padded, scale)
    residuals = _residuals(tents, leaf, scale, draw)
    values = _corrections(tents, residuals)
    running = np.rint(np.cumsum(values)).astype(np.int64)
    leaf += np.diff(running, prepend=0)
    return leaf


def _residuals(tents: Tents, leaf: Integers, scale: Fraction, draw: Draw) -> list[Floats]:
    """r_l/W_l of the levels 1 … h − 1. The integers r_l are exact; only their quotients are rounded."""
    result = []
    totals, rising, size = leaf, leaf, 1  # of each cell: Σ z_0, and Σ (2t + 1)·z_0 for its leaves t
    for level in range(1, tents.height):
        totals, rising = totals.reshape(-1, tents.fanout), rising.reshape(-1, tents.fanout)
        steps = 2 * size * np.arange(tents.fanout)
        rising, totals, size = (rising + steps * totals).sum(1), totals.sum(1), size * tents.fanout
        weight = tents.weight(level)
        noise = draw(level, tents.nodes(level), scale * weight)
        noise[1:] -= rising
        noise[:-1] -= weight * totals - rising
        result.append(noise / weight)
    return result


def _corrections(tents: Tents, residuals: list[Floats]) -> Floats:
    """d, of every leaf."""
    cells = tents.cells
    pulls: list[Floats] = []
    pull = np.zeros((residuals[0].size - 1, 2))
    for level, above in enumerate(cells[1:], start=1):
        inside = _meet(pull.reshape(-1, tents.fanout, 2 * level), residuals[:level], tents.fanout)
        pulls.append(inside.reshape(inside.shape[0], -1))
        pull = pulls[-1] @ above.gain
    count = pull.shape[0]
    whole = _meet(pull[None], residuals, count)
    for edge, column in ((0, 0), (-1, len(cells))):
        for level, residual in enumerate(residuals):
            whole[0, edge, column + level] += residual[edge]
    ends = (whole.reshape(1, -1) @ tents.chunk.matrix).reshape(count, -1)
    for level in reversed(range(1, len(cells))):
        ends = ends @ cells[level].gain.T + pulls[level - 1] @ cells[level].parts.matrix
        ends = ends.reshape(-1, 2 * level)
    return _lines(ends, cells[0], tents.fanout)


def _meet(pull: Floats, residuals: list[Floats], cells: int) -> Floats:
    """What pulls on the end sums of runs of `cells` cells: from below, and by hats between two cells of a run."""
    result, levels = pull.copy(), len(residuals)
    for level, residual in enumerate(residuals):
        apart = (residual.size - 1) // (pull.shape[0] * cells)
        knots = residual[:-1:apart].reshape(-1, cells)[:, 1:]
        result[:, 1:, level] += knots
        result[:, :-1, levels + level] += knots
    return result


def _lines(ends: Floats, lowest: TentCells, size: int) -> Floats:
    """Inside a cell of level 1 the correction is a line, which its two end sums fix."""
    heights = ends @ lowest.precision
    centres = (np.arange(size) + 0.5) / size
    return np.asarray(heights[:, :1] * (1 - centres) + heights[:, 1:] * centres).ravel()
