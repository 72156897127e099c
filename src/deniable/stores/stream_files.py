"""Files and pipes of streams: values in by batches, released values out, whatever the format.

A batch is what is there: from a pipe, the lines that have arrived; from a file, some 65,536 rows. Nothing waits for
more.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from deniable.disk_faults import writing
from deniable.errors import Failure, InvalidData, InvalidParameter
from deniable.files import Lock

BATCH_ROWS = 1 << 16
_PIPE_BYTES = 1 << 16
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises where a file is damaged or cannot be read. Their texts may quote data."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some values, their timestamps if there are any, and the number of the first row or line, from 1 on.

    A timestamp that is missing, or cannot be read, is NaT or NaN.
    """

    values: NDArray[Any]
    timestamps: NDArray[Any] | None
    first: int
    lines: tuple[int, ...] = ()
    """The number of every line, where blank ones stand between."""

    def place(self, position: int) -> int:
        """The number of the row or line of a value."""
        return self.lines[position] if self.lines else self.first + position


def write_parquet(table: pa.Table, path: str | PathLike[str]) -> None:
    """One file with the table and its metadata."""
    with writing(f"the file {Path(path).name!r}", "The stream is as it was"):
        pq.write_table(table, Path(path), compression="zstd")


def read_parquet(path: str | PathLike[str]) -> pa.Table:
    """A whole Parquet file, metadata included."""
    if not Path(path).is_file():
        raise InvalidData(f"there is no file {str(path)!r}", "Give the path of a released stream.")
    try:
        with pq.ParquetFile(Path(path)) as file:
            # What was added when the file was finished is in its footer, not in the stored schema.
            stored, added = file.schema_arrow.metadata or {}, file.metadata.metadata or {}
            return file.read().replace_schema_metadata({**stored, **added})
    except UNREADABLE:
        raise InvalidData(
            f"{str(path)!r} is not a Parquet file, or is damaged", "Give a file of `deniable stream publish`."
        ) from None


class ParquetOutput:
    """Released values written as they come; the metadata are added at the end, when all of them are known.

    They gather in a file next to `path`, which gets its name when it is whole. Until then nobody else can write there.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._lock = Lock(path, "the output", cost="Nothing was read or published")
        self._path = self._lock.path
        self._partial = self._path.with_name(f".{self._path.name}.partial")
        if self._path.exists():
            self._lock.close()
            raise InvalidParameter(
                "--output",
                f"{self._path.name!r} exists already, and what was released once must not be lost",
                "Name another file, or move that one away.",
            )
        self._partial.unlink(missing_ok=True)  # a killed run's
        self._writer: Any = None
        self._held: pa.Table | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None and self._writer.is_open:
            with suppress(OSError):
                self._writer.close()
            self._partial.unlink(missing_ok=True)
        self._lock.close()

    @writing("the output", "It was not finished, and nothing of it left")
    def write(self, values: NDArray[Any], timestamps: NDArray[Any] | None) -> None:
        """Append values. The newest batch is held back, because the end of the stream may correct its last value."""
        if values.size == 0:
            return
        columns = {} if timestamps is None else {"timestamp": timestamps}
        self._release()
        self._held = pa.table({**columns, "value": values})

    @writing("the output", "It was not finished, and nothing of it left")
    def close(self, metadata: dict[bytes, bytes], correction: float = 0.0) -> None:
        """Correct the last value and finish the file."""
        if self._held is None:
            self._held = pa.table({"value": pa.array([], pa.float64())})
        elif correction:
            values = self._held["value"].to_numpy().copy()
            values[-1] += correction
            place = self._held.column_names.index("value")
            self._held = self._held.set_column(place, "value", pa.array(values))
        self._release()
        self._writer.add_key_value_metadata(metadata)
        self._writer.close()
        if self._path.exists():
            raise Failure(
                f"somebody made a file {self._path.name!r} meanwhile, which is not overwritten. "
                f"What was released is in {self._partial.name!r}. Give it another name."
            )
        self._partial.rename(self._path)

    def _release(self) -> None:
        if self._held is None:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._partial, self._held.schema, compression="zstd")
        self._writer.write_table(self._held)
        self._held = None


def read_batches(path: str | PathLike[str], column: str, time_column: str | None) -> Iterator[Batch]:
    """The values of a Parquet, CSV or JSON-lines file, or of any other text with one number per line."""
    place = Path(path)
    if not place.is_file():
        raise InvalidData(f"there is no file {str(path)!r}", "Give a Parquet, CSV or JSON-lines file, or - for a pipe.")
    kind = place.suffix.lower()
    if kind in (".parquet", ".csv"):
        yield from _tables(place, kind, column, time_column)
    elif kind in (".jsonl", ".ndjson"):
        with place.open("rb") as stream:
            yield from read_lines(stream, column=column, time_column=time_column)
    else:
        refuse_times_of_text(time_column)
        with place.open("rb") as stream:
            yield from read_lines(stream, column=None, time_column=None)


def refuse_times_of_text(time_column: str | None) -> None:
    """A text with a number per line has no timestamps."""
    if time_column is not None:
        how = "Give Parquet, CSV or JSON lines (--json-lines from a pipe), or leave it out."
        raise InvalidParameter("--time-column", "cannot be in a text with a number per line", how)


def read_lines(stream: BinaryIO, *, column: str | None, time_column: str | None) -> Iterator[Batch]:
    """Lines as they arrive: numbers, or JSON objects if a column is named. Blank lines are skipped.

    A line that cannot be read ends the reading after the lines before it were handed on. No message repeats it.
    """
    number, rest = 1, b""
    read = getattr(stream, "read1", stream.read)
    while True:
        data = read(_PIPE_BYTES)
        text = rest + data
        lines = text.split(b"\n")
        rest = lines.pop() if data else b""
        values: list[Any] = []
        stamps: list[Any] = []
        places: list[int] = []
        problem: str | None = None
        for offset, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                if column is None:
                    values.append(_number(line))
                else:
                    row = json.loads(line)
                    values.append(row[column])
                    if time_column is not None:
                        stamps.append(row[time_column])
                places.append(number + offset)
            except (ValueError, KeyError, TypeError, RecursionError):
                problem = f"line {number + offset:,}"
                break
        if places:
            blank = places[-1] - places[0] >= len(places)
            times = None if time_column is None else _times(stamps)
            yield Batch(_column(values[: len(places)]), times, places[0], tuple(places) if blank else ())
        if problem is not None:
            raise Unreadable(problem)
        number += len(lines)
        if not data:
            return


def is_plain_text(path: str | PathLike[str]) -> bool:
    """Whether an existing file is read as one number per line."""
    place = Path(path)
    return place.is_file() and place.suffix.lower() not in (".parquet", ".csv", ".jsonl", ".ndjson")


def read_values(source: str | PathLike[str]) -> Iterator[float | None]:
    """The value of a device, one per line of a text, or of - for a pipe.

    What is no number is a missing value, also an empty text: silence would tell that it is odd.
    """
    with nullcontext(sys.stdin.buffer) if source == "-" else Path(source).open("rb") as stream:
        line = b""
        for line in stream:
            yield _number_or_nothing(line)
        if not line:
            yield None


def _number_or_nothing(line: bytes) -> float | None:
    try:
        return _number(line)
    except ValueError:
        return None


class Unreadable(InvalidData):
    """A line or row cannot be read; those before it were handed on."""

    def __init__(self, place: str, repair: str = "Repair it and go on from there, not from the start.") -> None:
        self.place = place
        cost = "Nothing of it was taken or published; what stands before it was"
        super().__init__(f"{place} cannot be read", repair, cost=cost)


def _number(line: bytes) -> float:
    text = line.strip()
    try:
        return int(text)
    except ValueError:
        return float(text)


def _column(values: list[Any]) -> NDArray[Any]:
    """Numbers as an array; anything else stays what it is, and is refused by whoever checks values."""
    if all(type(value) is int and abs(value) < 2**62 for value in values):
        return np.array(values, dtype=np.int64)
    if all(type(value) in (int, float) for value in values):
        return np.array([_float(value) for value in values])
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _float(number: float) -> float:
    """A number as a float; an integer beyond all floats is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _times(stamps: list[Any]) -> NDArray[Any]:
    """Numbers, or ISO 8601 texts as points in time."""
    if all(type(stamp) in (int, float) for stamp in stamps):
        return _column(stamps)
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


def _time_column(column: pa.Array) -> NDArray[Any]:
    found = np.asarray(column)
    return found if found.dtype.kind in "iufM" else _times(column.to_pylist())


def _tables(path: Path, kind: str, column: str, time_column: str | None) -> Iterator[Batch]:
    wanted = [column, *([time_column] if time_column else [])]
    number = 1
    try:
        if kind == ".parquet":
            file = pq.ParquetFile(path)
            missing = [name for name in wanted if name not in file.schema_arrow.names]
            _refuse_missing(missing)
            parts: Any = file.iter_batches(batch_size=BATCH_ROWS, columns=wanted)
        else:
            types = {column: pa.float64()}
            options = pa.csv.ConvertOptions(include_columns=wanted, column_types=types, strings_can_be_null=True)
            parts = pa.csv.open_csv(path, convert_options=options)
        for part in parts:
            values = part.column(column)
            stamps = None if time_column is None else _time_column(part.column(time_column))
            yield Batch(_column(values.to_pylist()) if values.null_count else np.asarray(values), stamps, number)
            number += len(part)
    except (KeyError, UnicodeEncodeError, *UNREADABLE) as problem:
        try:
            if isinstance(problem, (KeyError, UnicodeEncodeError)):  # half a character is in no name
                with pa.csv.open_csv(path) as header:
                    _refuse_missing([name for name in wanted if name not in header.schema.names])
            elif kind == ".csv":
                yield from _until_unreadable(path, column, time_column, number)
        except UNREADABLE:
            pass
        raise InvalidData(f"{str(path)!r} cannot be read as {kind[1:]}", "Check the file and its columns.") from None


def _until_unreadable(path: Path, column: str, time_column: str | None, first: int) -> Iterator[Batch]:
    """The rows of a CSV file from the `first` on to the one whose value is no number, and the refusal of that one."""
    wanted, number = [column, *([time_column] if time_column else [])], 1
    options = pa.csv.ConvertOptions(
        include_columns=wanted, column_types={column: pa.string()}, strings_can_be_null=True
    )
    for part in pa.csv.open_csv(path, convert_options=options):
        values: list[float | None] = []
        for text in part.column(column).to_pylist():
            try:
                values.append(None if text is None else _number(text.encode()))
            except ValueError:
                break
        start, stop = max(first - number, 0), len(values)  # earlier rows were handed on
        if start < stop:
            stamps = None if time_column is None else _time_column(part.column(time_column))[start:stop]
            yield Batch(_column(values[start:]), stamps, number + start)
        if stop < len(part):
            raise Unreadable(f"row {number + stop:,}")
        number += len(part)


def _refuse_missing(names: list[str]) -> None:
    if names:
        shown = ", ".join(names)
        raise InvalidParameter("column", f"{shown} is not in the file", "Name it with --column or --time-column.")
