"""The loops of a question in plain numpy, for processes that answer one small question and end.

Importing the compiler takes longer than millions of hashes in numpy. So a process that has not imported it answers its
first questions here, until they have cost about as much as the import. Sums agree with those of the compiled loops up
to rounding.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.mechanisms._compiled import compiler_is_loaded
from deniable.mechanisms.hashing import hash_array

PLAIN_HASHES = 200_000_000
"""So many hashes in numpy take a fraction of the time that importing the compiler takes."""
MOST_PLAIN_COLUMNS = 8
NAMED, MASKED = -1, -2
"""Where a `Program` says at which place a view's buckets are listed: that there are none, because y names a cell or has
a bit for every cell."""


class _Tally:
    """Hashes that this process has computed, or is about to compute, in plain numpy."""

    def __init__(self) -> None:
        self._lock, self._spent = threading.Lock(), 0.0

    def take(self, hashes: float) -> bool:
        """Whether so many more are still cheaper than the compiler."""
        with self._lock:
            if self._spent + hashes > PLAIN_HASHES:
                return False
            self._spent += hashes
            return True


_TALLY = _Tally()


def takes_plain_loops(reports: float, cells_per_report: float, columns: int) -> bool:
    """Whether a question is answered here: the compiler is not loaded, and is not worth loading for it."""
    if compiler_is_loaded() or columns > MOST_PLAIN_COLUMNS:
        return False
    return _TALLY.take(reports * (1.0 + cells_per_report))


def contribute(view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any], arrays: tuple[Any, ...]) -> Floats:
    """What every report contributes to each column, from the arrays of a `Program`."""
    slot_of, bucket_starts, lowest, widths, rows_of, row_starts, keys, factors, weights, *counted, bases = arrays
    column_starts, columns, coefficients = counted
    slots = slot_of[view]
    out: Floats = bases[slots]
    used = np.flatnonzero(slots)
    used = used[np.argsort(slots[used], kind="stable")]
    ends = np.searchsorted(slots[used], np.arange(1, rows_of.size))
    for slot in range(1, rows_of.size - 1):
        mine = used[ends[slot - 1] : ends[slot]]
        first, last = rows_of[slot], rows_of[slot + 1]
        if not mine.size or first == last:
            continue
        if bucket_starts[slot] == NAMED:  # one cell per row here, sorted: find the reported one
            cells = keys[row_starts[first:last]]
            rows = np.minimum(np.searchsorted(cells, y[mine]), cells.size - 1)
            listed = cells[rows] == y[mine]
            added = np.zeros((cells.size, bases.shape[1]))
            owners = np.repeat(np.arange(cells.size), np.diff(column_starts[first : last + 1]))
            entries = slice(column_starts[first], column_starts[last])
            np.add.at(added, (owners, columns[entries]), coefficients[entries])
            out[mine[listed]] += added[rows[listed]]
            continue
        masked = bucket_starts[slot] == MASKED
        bucket = np.zeros(0, dtype=np.int64) if masked else bucket_starts[slot] + y[mine].astype(np.int64)
        seeds, lows, wide = seed[mine].astype(np.uint32), lowest[bucket], widths[bucket]
        added = np.zeros((bases.shape[1], mine.size))
        for row in range(first, last):
            supported = np.zeros(mine.size)
            for cell in range(row_starts[row], row_starts[row + 1]):
                if masked:
                    supported += np.where(y[mine] >> np.int64(keys[cell]) & 1, weights[cell], 0.0)
                    continue
                distances = hash_array(seeds, keys[cell], factors[cell])
                distances -= lows
                supported += np.where(distances < wide, weights[cell], 0.0)
            for entry in range(column_starts[row], column_starts[row + 1]):
                added[columns[entry]] += coefficients[entry] * supported
        out[mine] += added.T
    return out


def combine(values: Floats, starts: Integers, coefficients: Floats, factors: Integers, out: Floats) -> None:
    """Every user's outcomes: each is a sum of terms, and each term a product of factors."""
    for outcome in range(out.shape[1]):
        out[:, outcome] = 0.0
        for term in range(starts[outcome], starts[outcome + 1]):
            out[:, outcome] += coefficients[term] * values[:, factors[term]].prod(axis=1)


def accumulate(
    values: Floats,
    group_of: Integers,
    strata: Integers,
    moments: int,
    sums: Floats,
    crosses: Floats,
    by_stratum: Floats,
) -> None:
    """Add every user's outcomes (groups × moments), and the products of moments of the same group."""
    kept = np.flatnonzero(group_of >= 0)
    group, values = group_of[kept], values[kept]
    outcomes, count = values.shape[1], sums.shape[0]

    def added(weights: Floats) -> Floats:
        return np.asarray(np.bincount(group, weights, minlength=count), dtype=np.float64)

    for outcome in range(outcomes):
        sums[:, outcome] += added(values[:, outcome])
        first = outcome // moments * moments
        for other in range(first, outcome + 1):
            crosses[:, outcome * moments + other - first] += added(values[:, outcome] * values[:, other])
        for kind in strata:
            both = kind[kept] * count + group
            totals = np.bincount(both, values[:, outcome], minlength=by_stratum.shape[0] * count)
            by_stratum[:, :, outcome] += totals.reshape(by_stratum.shape[0], count)
