"""Numbers and timestamps of files and pipes as arrays, whatever type they had there."""

from __future__ import annotations

import math
import warnings
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def parse_number(text: bytes) -> float:
    """A number from its digits; a ValueError for anything else."""
    digits = text.strip()
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def value_column(values: list[Any]) -> NDArray[Any]:
    """Numbers as an array. Anything else stays what it is, and the publisher refuses it."""
    if all(type(value) is int and abs(value) < 2**62 for value in values):
        return np.array(values, dtype=np.int64)
    if all(type(value) in (int, float) for value in values):
        return np.array([_as_float(value) for value in values])
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _as_float(number: float) -> float:
    """A number as a float. An integer beyond all floats becomes infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def time_column(stamps: list[Any]) -> NDArray[Any]:
    """Numbers, or ISO 8601 texts as points in time."""
    if all(type(stamp) in (int, float) for stamp in stamps):
        return value_column(stamps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # times with a zone become UTC
        try:
            return np.array(stamps, dtype="datetime64[us]")
        except (ValueError, TypeError, OverflowError):
            return np.array([_time(stamp) for stamp in stamps], dtype="datetime64[us]")


def _time(stamp: Any) -> np.datetime64:
    try:
        return np.datetime64(stamp if isinstance(stamp, (str, date)) else "NaT", "us")
    except (ValueError, OverflowError):
        return np.datetime64("NaT", "us")


NO_POSITION = -(1 << 63)
"""Stands for a position that is missing or not a whole number."""


def position_column(positions: list[Any]) -> NDArray[Any]:
    """Positions as whole numbers."""
    whole = [number if type(number) is int and abs(number) < 1 << 62 else NO_POSITION for number in positions]
    return np.array(whole, dtype=np.int64)


def arrow_positions(column: pa.Array) -> NDArray[Any]:
    """The positions of an Arrow column."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column).astype(np.int64)
    return position_column([int(number) if _is_whole(number) else None for number in column.to_pylist()])


def _is_whole(number: Any) -> bool:
    return (type(number) is float and number.is_integer()) or type(number) is int


def arrow_times(column: pa.Array) -> NDArray[Any]:
    """The timestamps of an Arrow column."""
    stamps = np.asarray(column)
    return stamps if stamps.dtype.kind in "iufM" else time_column(column.to_pylist())


def arrow_values(column: pa.Array) -> NDArray[Any]:
    """The values of an Arrow column; those that are missing stay None."""
    return value_column(column.to_pylist()) if column.null_count else np.asarray(column)
