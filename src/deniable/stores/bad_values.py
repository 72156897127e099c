"""What becomes of a value that is not as declared: missing, not a number, not finite, or below the lower bound.

That is decided before the stream begins, and is public. Neighbouring streams have values as declared, and a bad one
may be replaced like any other: with `zero` and `clip` nothing shows that a value was bad. With `skip` the stream has
one value less, and with `stop` it ends: both show it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans
from deniable.errors import InvalidParameter
from deniable.stores.sources.batch import Batch
from deniable.streams.structure.value_grid import Grid

ON_BAD = ("stop", "skip", "clip", "zero")


@dataclass(frozen=True, slots=True)
class BadValues:
    """The rule. `stop` ends the run, `skip` leaves the value out, `zero` takes the nearest allowed value to 0 for it,
    `clip` the nearest to what it is if it is a number, and otherwise the same as `zero`.

    >>> grid = Grid(high=100, low=-10)
    >>> BadValues("clip").settled(Batch(np.array([5, -50, np.nan])), grid)[0].values.tolist()
    [5.0, -10.0, 0.0]
    """

    rule: str = "stop"

    def __post_init__(self) -> None:
        if self.rule not in ON_BAD:
            raise InvalidParameter("on_bad", f"must be one of {', '.join(ON_BAD)}", "Use 'stop'.")

    @property
    def lenient(self) -> bool:
        """Whether a stream goes on after a bad value."""
        return self.rule != "stop"

    def settled(self, batch: Batch, grid: Grid, newest: Any = None) -> tuple[Batch, int]:
        """The batch with values as declared, and how many were not. Timestamps that go back are bad as well."""
        values, bad = _numbers(batch.values, grid)
        stamps = batch.timestamps
        if stamps is not None:
            stamps, late = _in_order(stamps, newest)
            bad = bad | late
        count = int(bad.sum())
        if not count:
            return batch, 0
        if self.rule == "skip":
            return replace(batch, values=values).chosen(np.flatnonzero(~bad)), count
        zero = min(max(0.0, float(grid.low)), float(grid.high))
        wrong = ~np.isfinite(values) | (values < grid.low)
        put = np.where(np.isnan(values), zero, np.clip(values, grid.low, grid.high)) if self.rule == "clip" else zero
        return replace(batch, values=np.where(wrong, put, values), timestamps=stamps), count


def _numbers(values: NDArray[Any], grid: Grid) -> tuple[NDArray[Any], Booleans]:
    """Values as numbers, NaN for what is not one, and which of them are bad."""
    if values.dtype.kind in "iu":
        return values, values < grid.low
    if values.dtype.kind != "f":
        values = np.array([_number(value) for value in values.tolist()], dtype=np.float64)
    return values, ~np.isfinite(values) | (values < grid.low)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _in_order(stamps: NDArray[Any], newest: Any) -> tuple[NDArray[Any], Booleans]:
    """Timestamps that never go back: one that is missing or early becomes the latest before it. And which those are."""
    lowest: Any = np.datetime64("0001-01-01", "us") if stamps.dtype.kind == "M" else -np.inf
    missing = np.isnat(stamps) if stamps.dtype.kind == "M" else ~np.isfinite(stamps)
    known = stamps if stamps.dtype.kind in "Mf" else stamps.astype(np.float64)
    filled = np.where(missing, lowest if newest is None else newest, known)
    if newest is not None:
        filled = np.maximum(filled, newest)
    settled = np.maximum.accumulate(filled).astype(stamps.dtype)
    return settled, np.asarray(missing | (settled != stamps))
