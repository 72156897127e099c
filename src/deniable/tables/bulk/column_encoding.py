"""Columns of values as positions in their domains: what `Ordinal.encode` and `Categorical.encode` do, for arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Floats, Integers
from deniable.tables.bulk.word_columns import is_text_column, word_codes
from deniable.tables.schema.attributes import Categorical, Ordinal, Private
from deniable.tables.schema.calendar_steps import CalendarStep
from deniable.tables.schema.placing import CLIP, MISSING, OFF_GRID, OUTSIDE, WRONG_TYPE

FINE = ""
REASONS = (FINE, MISSING, OUTSIDE, OFF_GRID, WRONG_TYPE)
_REASON = {reason: number for number, reason in enumerate(REASONS)}

Problems = NDArray[np.uint8]
"""For every row, the number of a reason in `REASONS`; 0 is fine."""


def readable(domain: Private, kind: pa.DataType) -> bool:
    """Whether a column of this type can hold values of a domain at all."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    empty = pa.array([], kind)
    return _encoded(domain, empty) is not None


def encode(domain: Private, column: pa.ChunkedArray | pa.Array) -> tuple[NDArray[Any], Problems]:
    """The positions of a column's values in a domain, and what is wrong with values outside it (they get 0).

    Words are their bytes.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    missing = np.asarray(array.is_null())
    encoded = _encoded(domain, array)
    if encoded is None:
        codes, problems = np.zeros(len(array), dtype=np.int64), np.full(len(array), _REASON[WRONG_TYPE], dtype=np.uint8)
    else:
        codes, problems = encoded
    problems = np.where(missing, np.uint8(_REASON[MISSING]), problems)
    if domain.missing is not None:
        absent = problems == _REASON[MISSING]
        codes, problems = np.where(absent, domain.encode(None), codes), np.where(absent, np.uint8(0), problems)
    return np.where(problems == 0, codes, np.zeros_like(codes)), problems


def _encoded(domain: Private, array: pa.Array) -> tuple[NDArray[Any], Problems] | None:
    """Positions and problems of values that are there; None if a column of this type cannot hold the domain."""
    if isinstance(domain, Ordinal):
        return _ordinal(domain, array)
    if isinstance(domain, Categorical):
        return _categorical(domain, array)
    read = word_codes(domain, array)
    return None if read is None else (read[0], np.where(read[1], np.uint8(0), np.uint8(_REASON[OUTSIDE])))


def _categorical(domain: Categorical, array: pa.Array) -> tuple[Integers, Problems] | None:
    fits: dict[type, Callable[[pa.DataType], bool]] = {
        bool: pa.types.is_boolean,
        int: pa.types.is_integer,
        str: is_text_column,
    }
    if not fits[type(domain.values[0])](array.type):
        return None
    if isinstance(domain.values[0], bool):
        indices = pc.index_in(array, pa.array(domain.values))
    elif isinstance(domain.values[0], int):
        if pa.types.is_uint64(array.type):  # beyond 63 bits nothing is in the list
            array = pc.if_else(pc.less(array, pa.scalar(2**63, pa.uint64())), array, pa.scalar(None, pa.uint64()))
        indices = pc.index_in(array.cast(pa.int64()), pa.array(domain.values, type=pa.int64()))
    else:
        known = pa.array([*domain.values, *domain.map], type=pa.string())
        indices = pc.index_in(array.cast(pa.string()), known)
    codes = np.asarray(indices.fill_null(-1)).astype(np.int64)
    if domain.map:
        places = np.array([*range(domain.known_size), *(domain.encode(text) for text in domain.map), -1])
        codes = places[codes]
    if domain.other is not None:
        codes = np.where(codes < 0, domain.encode(domain.other), codes)
    return codes, np.where(codes < 0, np.uint8(_REASON[OUTSIDE]), np.uint8(0))


def _ordinal(domain: Ordinal, array: pa.Array) -> tuple[Integers, Problems] | None:
    kind = array.type
    if domain.kind == "number":
        if pa.types.is_integer(kind):
            return _integers(np.asarray(array.fill_null(0)), domain)
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return _floats(np.asarray(array.cast(pa.float64(), safe=False).fill_null(np.nan)), domain)
        return None
    if (
        domain.kind == "date"
        and (pa.types.is_date(kind) or pa.types.is_timestamp(kind))
        and not getattr(kind, "tz", None)
    ):
        days = np.asarray(array.cast(pa.date32(), safe=False).cast(pa.int32()).fill_null(0)).astype(np.int64)
        if isinstance(domain.step, CalendarStep):
            months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            first = (domain.low.year - 1970) * 12 + domain.low.month - 1
            return _spans(months, first, domain.step.months, domain)
        return _spans(days, (domain.low - date(1970, 1, 1)).days, domain.step.days, domain)
    if domain.kind == "time" and pa.types.is_timestamp(kind) and kind.tz is None:
        ticks = np.asarray(array.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).fill_null(0))
        return _spans(ticks, _microseconds(domain.low - datetime(1970, 1, 1)), _microseconds(domain.step), domain)
    return None


def _microseconds(span: timedelta) -> int:
    return (span.days * 86_400 + span.seconds) * 10**6 + span.microseconds


def _spans(ticks: Integers, low: int, step: int, domain: Ordinal) -> tuple[Integers, Problems]:
    codes = np.floor_divide(ticks - low, step)
    if domain.outside == CLIP:
        codes = np.clip(codes, 0, domain.known_size - 1)
    outside = (codes < 0) | (codes >= domain.known_size)
    return np.where(outside, 0, codes), np.where(outside, np.uint8(_REASON[OUTSIDE]), np.uint8(0))


def _integers(values: NDArray[Any], domain: Ordinal) -> tuple[Integers, Problems]:
    """Exact: everything is multiplied by the denominator of the grid; the domain has checked that it fits 63 bits."""
    scale = domain.denominator
    low, step = int(domain.low * scale), int(domain.step * scale)
    first, last = math.ceil(domain.low), math.floor(domain.high)
    # Before anything could overflow: numbers beyond 63 bits, then those outside the domain.
    huge = values > np.uint64(2**63 - 1) if values.dtype == np.uint64 else np.zeros(values.size, dtype=bool)
    signed = np.where(huge, 0, values).astype(np.int64)
    outside = huge | (signed < first) | (signed > last)
    inside = np.where(outside, first, signed)
    codes, rest = np.divmod(inside * scale - low, step)
    problems = np.where(rest != 0, np.uint8(_REASON[OFF_GRID]), np.uint8(0))
    if domain.round:
        codes, problems = codes + (2 * rest >= step), np.zeros_like(problems)
    if domain.outside == CLIP:
        ends = np.where(huge | (signed > last), domain.known_size - 1, 0)
        return np.where(outside, ends, codes), np.where(outside, np.uint8(0), problems)
    return codes, np.where(outside, np.uint8(_REASON[OUTSIDE]), problems)


def _floats(values: Floats, domain: Ordinal) -> tuple[Integers, Problems]:
    step = float(domain.step)
    missing = np.isnan(values)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = (values - float(domain.low)) / step
        slack = np.minimum(np.maximum(1e-6, 2 * np.spacing(np.abs(values)) / step), 0.25)  # see schema.grid_slack
        nearest = np.floor(steps + 0.5 + slack) if domain.round else np.rint(steps)
        if domain.outside == CLIP:
            nearest = np.where(np.isinf(values), nearest, np.clip(nearest, 0, domain.known_size - 1))
        outside = ~((nearest >= 0) & (nearest < domain.known_size))
        inside = (steps > -0.5) & (steps < domain.known_size - 0.5)
        off_grid = (np.abs(steps - nearest) > slack) & inside & (not domain.round)
    problems = np.where(off_grid, np.uint8(_REASON[OFF_GRID]), np.uint8(0))
    problems = np.where(outside, np.uint8(_REASON[OUTSIDE]), problems)
    problems = np.where(missing, np.uint8(_REASON[MISSING]), problems)
    return np.where(problems == 0, nearest, 0).astype(np.int64), problems
