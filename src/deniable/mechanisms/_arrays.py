"""The edge between what callers hand in and the arrays the randomisers compute on.

Anything with an array interface is accepted (numpy, Arrow, pandas, Polars, lists). Anything that is not clearly
inside the public domain is refused, and the refusal shows no value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers, Words
from deniable.errors import InvalidData
from deniable.randomness import Source


def as_array(values: Any, what: str = "values") -> NDArray[Any]:
    """A one-dimensional, non-empty numpy array without missing entries."""
    if getattr(values, "null_count", 0):  # Arrow and Polars: a property and a method; pandas has neither
        nulls = values.null_count() if callable(values.null_count) else values.null_count
        if nulls:
            raise InvalidData(f"{what} contain missing entries", "Remove them, or give missing its own cell.")
    if np.ma.isMaskedArray(values):
        raise InvalidData(f"{what} have a mask, which would be lost", "Fill or remove masked entries first.")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidData(f"{what} must be a one-dimensional array", "Use rows of one length.") from None
    if array.ndim != 1:
        raise InvalidData(f"{what} must be a one-dimensional array", "Use perturb_one for a single value.")
    if array.size == 0:
        raise InvalidData(f"{what} are empty", "Pass at least one value.")
    return array


def as_cells(values: Any, count: int, what: str = "values") -> Integers:
    """Integers in {0, …, count − 1}."""
    array = as_array(values, what)
    if array.dtype.kind not in "iu":
        raise InvalidData(f"{what} must have an integer type", "Convert them to cell numbers from 0 on.")
    if array.min() < 0 or array.max() >= count:
        raise InvalidData(f"{what} must lie in the public domain 0..{count - 1}", "Clip or re-code them first.")
    return array.astype(np.int64, copy=False)


def as_reals(values: Any, low: float, high: float, what: str = "values") -> Floats:
    """Finite numbers in [low, high]."""
    array = as_array(values, what)
    if array.dtype.kind not in "iuf":
        raise InvalidData(f"{what} must be numbers", "Convert them to a numeric type first.")
    floats = array.astype(np.float64, copy=False)
    if not np.isfinite(floats).all():
        raise InvalidData(f"{what} contain NaN or infinity", "Remove or replace those entries first.")
    if floats.min() < low or floats.max() > high:
        raise InvalidData(f"{what} must lie in the public range [{low:g}, {high:g}]", "Clip them first.")
    return floats


def as_integers(values: Any, what: str = "values") -> Integers:
    """Whole numbers that leave room for noise in 64 bits."""
    array = as_array(values, what)
    if array.dtype.kind not in "iu":
        raise InvalidData(f"{what} must have an integer type", "Multiply by the resolution and round first.")
    if array.min() < -LARGEST_INTEGER or array.max() > LARGEST_INTEGER:
        raise InvalidData(f"{what} must stay within ±2^61", "Choose a coarser unit.")
    return array.astype(np.int64, copy=False)


LARGEST_INTEGER = 2**61


def round_to_points(values: Floats, low: float, high: float, steps: int, source: Source) -> Integers:
    """Each value as one of the points 0..steps of an even grid on [low, high], right on average.

    A value between two points goes to the upper one with the probability of its distance from the lower one.
    One word of randomness per value, whatever the values are.
    """
    positions = (values - low) / (high - low) * steps
    points = np.clip(positions.astype(np.int64), 0, steps - 1)
    rest = np.clip(positions - points, 0.0, 1.0)
    # 2^64 is not a 64-bit threshold, so a rest of one is decided here: the upper point for certain.
    above = source.coins(thresholds_of(rest)) | (rest >= 1.0)
    return points + above


def thresholds_of(probabilities: Floats) -> Words:
    """⌊p · 2^64⌋ for p < 1; the largest threshold for p = 1."""
    scaled = np.ldexp(np.minimum(probabilities, np.nextafter(1.0, 0.0)), 64)
    return scaled.astype(np.uint64)
