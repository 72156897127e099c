"""Values from tables: Parquet and CSV files, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from deniable.errors import InvalidData
from deniable.stores.sources.batch import Batch, Columns, StreamSource, Unreadable
from deniable.stores.sources.number_columns import (
    arrow_positions,
    arrow_times,
    arrow_values,
    parse_number,
    value_column,
)
from deniable.streams.released.release_file import READ_ERRORS

FILE_ROWS = 1 << 16


def _batches(parts: Iterable[Any], columns: Columns) -> Iterator[Batch]:
    """Every part as a batch that knows the number of its first row."""
    number = 1
    for part in parts:
        stamps = None if columns.time is None else arrow_times(part.column(columns.time))
        values = arrow_values(part.column(columns.value))
        persons, keys = (_listed(part, column) for column in (columns.person, columns.key))
        yield Batch(values, stamps, number, persons=persons, positions=_positions(part, columns), keys=keys)
        number += len(part)


def _positions(part: Any, columns: Columns) -> NDArray[Any] | None:
    return None if columns.position is None else arrow_positions(part.column(columns.position))


def _listed(part: Any, column: str | None) -> list[Any] | None:
    return None if column is None else part.column(column).to_pylist()


def _types(columns: Columns, value: pa.DataType) -> dict[str, pa.DataType]:
    """The types of the columns of a CSV file. Ids are texts, so that none is taken for a number and rounded."""
    texts = {name: pa.string() for name in (columns.person, columns.key) if name is not None}
    return {columns.value: value, **texts}


def _read_parquet(path: Path, columns: Columns) -> Iterator[Batch]:
    try:
        file = pq.ParquetFile(path)
        columns.refuse_missing(file.schema_arrow.names)
        yield from _batches(file.iter_batches(batch_size=FILE_ROWS, columns=columns.names), columns)
    except (KeyError, UnicodeEncodeError, *READ_ERRORS):
        raise _damaged(path, "parquet") from None


def _read_csv(path: Path, columns: Columns) -> Iterator[Batch]:
    """Rows up to the first whose value is not a number, and the refusal of that one."""
    following = 1  # number of the first row that was not handed on
    try:
        if columns.lenient:
            yield from _until_unreadable(path, columns, following)
            return
        options = pa.csv.ConvertOptions(
            include_columns=columns.names, column_types=_types(columns, pa.float64()), strings_can_be_null=True
        )
        for batch in _batches(pa.csv.open_csv(path, convert_options=options), columns):
            following = batch.first + len(batch.values)
            yield batch
    except (KeyError, UnicodeEncodeError, *READ_ERRORS) as problem:
        try:
            if isinstance(problem, (KeyError, UnicodeEncodeError)):  # no column's name has an unpaired surrogate
                with pa.csv.open_csv(path) as header:
                    columns.refuse_missing(header.schema.names)
            else:
                yield from _until_unreadable(path, columns, following)
        except READ_ERRORS:
            pass
        raise _damaged(path, "csv") from None


def _until_unreadable(path: Path, columns: Columns, first: int) -> Iterator[Batch]:
    """The rows of a CSV file from number `first` to the one whose value is not a number, which is refused.

    If columns are read leniently, its value is None, and the rest of the file follows.
    """
    options = pa.csv.ConvertOptions(
        include_columns=columns.names, column_types=_types(columns, pa.string()), strings_can_be_null=True
    )
    number = 1
    for part in pa.csv.open_csv(path, convert_options=options):
        values = _parsed(part.column(columns.value), lenient=columns.lenient)
        start, stop = max(first - number, 0), len(values)  # earlier rows were handed on
        if start < stop:
            (batch,) = _batches([part.slice(start, stop - start)], columns)
            yield replace(batch, values=values[start:], first=number + start)
        if stop < len(part):
            raise Unreadable(f"row {number + stop:,}")
        number += len(part)


def _parsed(texts: pa.Array, *, lenient: bool) -> NDArray[Any]:
    """Numbers from texts, up to the first that is not one; if `lenient`, None stands for those."""
    try:
        return arrow_values(texts.cast(pa.float64()))
    except pa.ArrowInvalid:
        values: list[float | None] = []
    for text in texts.to_pylist():
        try:
            values.append(None if text is None else parse_number(text.encode()))
        except ValueError:
            if not lenient:
                break
            values.append(None)
    return value_column(values)


def _damaged(path: Path, kind: str) -> InvalidData:
    return InvalidData(f"{str(path)!r} cannot be read as {kind}", "Check the file and its columns.")


PARQUET = StreamSource((".parquet",), _read_parquet)
CSV = StreamSource((".csv",), _read_csv)
