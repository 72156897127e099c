"""The loops of `view_loops.py` in plain numpy, for processes that answer one small question and end.

Reports come in the order of their views, so a cell is compared with many of them by a dozen calls of numpy. Blocks stay
in the nearest caches, and no call makes an array anew. Sums agree with those of the compiled loops up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers, Words32
from deniable.engines.kernel.plain_loops import MASKED, NAMED, combine
from deniable.mechanisms.hashing import LAST_FACTOR, MIDDLE_FACTOR, SPREAD_SHIFT

PLAIN_BLOCK = 2**14
"""Reports that are worked on at a time."""
_MIDDLE, _LAST, _SHIFT = np.uint32(MIDDLE_FACTOR), np.uint32(LAST_FACTOR), np.uint32(SPREAD_SHIFT)
_MOST_HITS = 255
"""What a byte counts."""


class _Block:
    """Arrays that are filled again for every block of reports."""

    def __init__(self) -> None:
        self._hashes, self._shifted = np.empty(PLAIN_BLOCK, dtype=np.uint32), np.empty(PLAIN_BLOCK, dtype=np.uint32)
        self._supported, self._hits = np.empty(PLAIN_BLOCK, dtype=np.bool_), np.empty(PLAIN_BLOCK, dtype=np.uint8)
        self._weighted = np.empty(PLAIN_BLOCK)

    def support(self, seeds: Words32, lows: Words32, widths: Words32, key: Any, factor: Any) -> NDArray[np.bool_]:
        """Which reports have the hash of a cell in their bucket: `hash_cell` step by step."""
        size = seeds.size
        x, shifted, supported = self._hashes[:size], self._shifted[:size], self._supported[:size]
        np.bitwise_xor(seeds, key, out=x)
        np.multiply(x, factor, out=x)
        np.right_shift(x, _SHIFT, out=shifted)
        np.bitwise_xor(x, shifted, out=x)
        np.multiply(x, _MIDDLE, out=x)
        np.right_shift(x, _SHIFT, out=shifted)
        np.bitwise_xor(x, shifted, out=x)
        np.multiply(x, _LAST, out=x)
        np.subtract(x, lows, out=x)
        np.less(x, widths, out=supported)
        return supported

    def named(self, y: NDArray[Any], bit: Any) -> NDArray[np.bool_]:
        """Which reports have the bit of a cell set."""
        return np.asarray(np.not_equal(y >> np.int64(bit) & 1, 0, out=self._supported[: y.size]))

    def add(self, weights: Floats, support: Iterator[NDArray[np.bool_]], out: Floats) -> None:
        """Add the weights of the cells that each report supports. Neighbours of equal weight are counted in bytes."""
        hits, weighted = self._hits[: out.size], self._weighted[: out.size]
        runs = np.flatnonzero(np.concatenate(([True], weights[1:] != weights[:-1], [True])))
        for first, last in pairwise(runs.tolist()):
            for start in range(first, last, _MOST_HITS):
                end = min(start + _MOST_HITS, last)
                if end == start + 1:
                    np.multiply(next(support), weights[first], out=weighted)
                else:
                    hits[:] = 0
                    for _ in range(start, end):
                        np.add(hits, next(support).view(np.uint8), out=hits)
                    np.multiply(hits, weights[first], out=weighted)
                np.add(out, weighted, out=out)


def add_view_moments(
    seed: Words32,
    y: NDArray[Any],
    starts: Integers,
    ends: Integers,
    arrays: tuple[Any, ...],
    terms: tuple[Integers, Floats, Integers],
    plain_from: int,
    moments: int,
    sums: Floats,
    crosses: Floats,
) -> None:
    """Add the reports of every slot from `starts` to `ends`; see the compiled loop of this name."""
    outcomes = sums.shape[1]
    bucket_starts, bases, block = arrays[0], arrays[-1], _Block()
    for slot in range(1, starts.size):
        if bucket_starts[slot] == NAMED:
            values, times = _named(y[starts[slot] : ends[slot]], slot, arrays)
            _add_moments(_outcomes(values, terms, plain_from, outcomes), times, moments, sums[slot], crosses)
            continue
        for start in range(starts[slot], ends[slot], PLAIN_BLOCK):
            end = min(start + PLAIN_BLOCK, ends[slot])
            values = np.empty((bases.shape[1], end - start))
            _contributed(seed[start:end], y[start:end], slot, arrays, block, values)
            _add_moments(_outcomes(values, terms, plain_from, outcomes), None, moments, sums[slot], crosses)


def place_contributions(
    seed: Words32,
    y: NDArray[Any],
    positions: Words32,
    starts: Integers,
    ends: Integers,
    arrays: tuple[Any, ...],
    out: Floats,
) -> None:
    """What the reports of every slot contribute, each at its position: `out` is columns × reports."""
    bucket_starts, bases, block = arrays[0], arrays[-1], _Block()
    for slot in range(1, starts.size):
        for start in range(starts[slot], ends[slot], PLAIN_BLOCK):
            end = min(start + PLAIN_BLOCK, ends[slot])
            if bucket_starts[slot] == NAMED:
                out[:, positions[start:end]] = _named_values(y[start:end], slot, arrays)
                continue
            values = np.empty((bases.shape[1], end - start))
            _contributed(seed[start:end], y[start:end], slot, arrays, block, values)
            out[:, positions[start:end]] = values


def _contributed(
    seeds: Words32, y: NDArray[Any], slot: int, arrays: tuple[Any, ...], block: _Block, out: Floats
) -> None:
    """What each of a block's reports contributes: `out` is columns × reports."""
    bucket_starts, lowest, widest, rows_of, row_starts, keys, factors, weights, *counted, bases = arrays
    column_starts, columns, coefficients = counted
    out[:] = bases[slot][:, None]
    masked = bucket_starts[slot] == MASKED
    if not masked:
        bucket = bucket_starts[slot] + y.astype(np.int64)
        lows, widths = lowest[bucket], widest[bucket]
    supported = np.empty(seeds.size)
    for row in range(rows_of[slot], rows_of[slot + 1]):
        cells = slice(row_starts[row], row_starts[row + 1])
        order = np.argsort(weights[cells], kind="stable")
        mine, other = keys[cells][order], factors[cells][order]
        if masked:
            support = (block.named(y, key) for key in mine)
        else:
            support = (block.support(seeds, lows, widths, key, factor) for key, factor in zip(mine, other, strict=True))
        supported[:] = 0.0
        block.add(weights[cells][order], support, supported)
        for entry in range(column_starts[row], column_starts[row + 1]):
            out[columns[entry]] += coefficients[entry] * supported


def _named_rows(slot: int, arrays: tuple[Any, ...]) -> tuple[Words32, Floats]:
    """Cells that reports of a view may name, ascending; and columns × cells: what naming one contributes.

    The last column of these is that of reports that name none of them.
    """
    _, _, _, rows_of, row_starts, keys, _, _, *counted, bases = arrays
    column_starts, columns, coefficients = counted
    first, last = rows_of[slot], rows_of[slot + 1]
    values = np.tile(bases[slot][:, None], (1, last - first + 1))
    entries = slice(column_starts[first], column_starts[last])
    owners = np.repeat(np.arange(last - first), np.diff(column_starts[first : last + 1]))
    np.add.at(values, (columns[entries], owners), coefficients[entries])
    return keys[row_starts[first:last]], values


def _named(y: NDArray[Any], slot: int, arrays: tuple[Any, ...]) -> tuple[Floats, Floats]:
    """What naming each cell of a view contributes, and how many reports do; the last ones name none."""
    cells, values = _named_rows(slot, arrays)
    counts = np.bincount(y.astype(np.int64), minlength=int(cells.max(initial=0)) + 1)[cells.astype(np.int64)]
    return values, np.append(counts, y.size - counts.sum()).astype(np.float64)


def _named_values(y: NDArray[Any], slot: int, arrays: tuple[Any, ...]) -> Floats:
    """Columns × reports: what each report of a view whose reports name one cell contributes."""
    cells, values = _named_rows(slot, arrays)
    if not cells.size:
        return np.repeat(values, y.size, axis=1)
    rows = np.minimum(np.searchsorted(cells, y), cells.size - 1)
    return np.asarray(values[:, np.where(cells[rows] == y, rows, cells.size)])


def _outcomes(values: Floats, terms: tuple[Integers, Floats, Integers], plain_from: int, outcomes: int) -> Floats:
    """Outcomes × reports from columns × reports."""
    if plain_from >= 0:
        return values[plain_from : plain_from + outcomes]
    starts, coefficients, factors = terms
    with_constant = np.vstack((np.ones(values.shape[1]), values))
    out = np.empty((outcomes, values.shape[1]))
    combine(with_constant.T, starts, coefficients, factors[:, None], out.T)
    return out


def _add_moments(values: Floats, times: Floats | None, moments: int, sums: Floats, crosses: Floats) -> None:
    """Add each outcome, and its products with the outcomes before it in its group; each report so many times."""
    scaled = values if times is None else values * times
    sums += scaled.sum(axis=1)
    for outcome in range(sums.size):
        start = outcome // moments * moments
        crosses[outcome, : outcome + 1 - start] += values[start : outcome + 1] @ scaled[outcome]
