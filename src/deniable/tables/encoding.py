"""Columns of values as places in their domains: what `Ordinal.encode` and `Categorical.encode` do, for arrays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.randomness import Integers
from deniable.tables.schema import MISSING, OFF_GRID, OUTSIDE, WRONG_TYPE, Categorical, Ordinal, Private

FINE = ""
REASONS = (FINE, MISSING, OUTSIDE, OFF_GRID, WRONG_TYPE)
_REASON = {reason: number for number, reason in enumerate(REASONS)}

Problems = NDArray[np.uint8]
"""For every row, the number of a reason in `REASONS`; 0 is fine."""


def encode(domain: Private, column: pa.ChunkedArray | pa.Array) -> tuple[Integers, Problems]:
    """The places of a column's values in a domain, and what is wrong with those that have none (their place is 0)."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    missing = np.asarray(array.is_null())
    places = _ordinal(domain, array) if isinstance(domain, Ordinal) else _categorical(domain, array)
    if places is None:
        codes, problems = np.zeros(len(array), dtype=np.int64), np.full(len(array), _REASON[WRONG_TYPE], dtype=np.uint8)
    else:
        codes, problems = places
    problems = np.where(missing, np.uint8(_REASON[MISSING]), problems)
    return np.where(problems == 0, codes, 0), problems


def _categorical(domain: Categorical, array: pa.Array) -> tuple[Integers, Problems] | None:
    fits: dict[type, Callable[[pa.DataType], bool]] = {
        bool: pa.types.is_boolean,
        int: pa.types.is_integer,
        str: lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    }
    if not fits[type(domain.values[0])](array.type):
        return None
    if isinstance(domain.values[0], bool):
        found = pc.index_in(array, pa.array(domain.values))
    elif isinstance(domain.values[0], int):
        found = pc.index_in(array.cast(pa.int64(), safe=False), pa.array(domain.values, type=pa.int64()))
    else:
        found = pc.index_in(array.cast(pa.string()), pa.array(domain.values, type=pa.string()))
    codes = np.asarray(found.fill_null(-1)).astype(np.int64)
    return codes, np.where(codes < 0, np.uint8(_REASON[OUTSIDE]), np.uint8(0))


def _ordinal(domain: Ordinal, array: pa.Array) -> tuple[Integers, Problems] | None:
    kind = array.type
    if domain.kind == "number":
        if pa.types.is_integer(kind) and isinstance(domain.low, int) and isinstance(domain.step, int):
            return _integers(np.asarray(array.fill_null(0)), domain)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return _floats(np.asarray(array.cast(pa.float64(), safe=False).fill_null(np.nan)), domain)
        return None
    if (
        domain.kind == "date"
        and (pa.types.is_date(kind) or pa.types.is_timestamp(kind))
        and not getattr(kind, "tz", None)
    ):
        days = np.asarray(array.cast(pa.date32(), safe=False).cast(pa.int32()).fill_null(0)).astype(np.int64)
        return _spans(days, (domain.low - date(1970, 1, 1)).days, domain.step.days, domain.size)
    if domain.kind == "time" and pa.types.is_timestamp(kind) and kind.tz is None:
        ticks = np.asarray(array.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).fill_null(0))
        return _spans(ticks, _microseconds(domain.low - datetime(1970, 1, 1)), _microseconds(domain.step), domain.size)
    return None


def _microseconds(span: timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * 10**6 + span.microseconds


def _spans(ticks: Integers, low: int, step: int, size: int) -> tuple[Integers, Problems]:
    codes = np.floor_divide(ticks - low, step)
    outside = (codes < 0) | (codes >= size)
    return np.where(outside, 0, codes), np.where(outside, np.uint8(_REASON[OUTSIDE]), np.uint8(0))


def _integers(values: NDArray[Any], domain: Ordinal) -> tuple[Integers, Problems]:
    outside = (values < domain.low) | (values > domain.high)  # before subtracting, which could overflow
    codes, rest = np.divmod(np.where(outside, domain.low, values).astype(np.int64) - domain.low, domain.step)
    problems = np.where(rest != 0, np.uint8(_REASON[OFF_GRID]), np.uint8(0))
    return codes, np.where(outside, np.uint8(_REASON[OUTSIDE]), problems)


def _floats(values: NDArray[np.float64], domain: Ordinal) -> tuple[Integers, Problems]:
    places = (values - float(domain.low)) / float(domain.step)
    missing = np.isnan(places)
    with np.errstate(invalid="ignore"):
        nearest = np.rint(places)
        outside = (nearest < 0) | (nearest >= domain.size)
        off_grid = np.abs(places - nearest) > 1e-6
    problems = np.where(off_grid, np.uint8(_REASON[OFF_GRID]), np.uint8(0))
    problems = np.where(outside, np.uint8(_REASON[OUTSIDE]), problems)
    problems = np.where(missing, np.uint8(_REASON[MISSING]), problems)
    return np.where(problems == 0, nearest, 0).astype(np.int64), problems
