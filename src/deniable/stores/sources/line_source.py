"""Values from text, line by line: JSON objects, or one number per line. Nothing waits for more lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from deniable.errors import InvalidData, InvalidParameter
from deniable.stores.sources.batch import Batch, Columns, StreamSource, Unreadable
from deniable.stores.sources.number_columns import parse_number, time_column, value_column
from deniable.streams.central.person_bound import person_name

_PIPE_BYTES = 1 << 16


def read_lines(stream: BinaryIO, columns: Columns | None) -> Iterator[Batch]:
    """Lines as they arrive: JSON objects if columns are named, otherwise numbers. Blank lines are skipped.

    A line that cannot be read ends the reading after the lines before it were handed on. No message repeats it.
    """
    timed = columns is not None and columns.time is not None
    number, rest = 1, b""
    read = getattr(stream, "read1", stream.read)
    while True:
        data = read(_PIPE_BYTES)
        text = rest + data
        lines = text.split(b"\n")
        rest = lines.pop() if data else b""
        values: list[Any] = []
        stamps: list[Any] = []
        persons: list[Any] | None = None if columns is None or columns.person is None else []
        numbers: list[int] = []
        unreadable: str | None = None
        for offset, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                if columns is None:
                    values.append(parse_number(line))
                else:
                    row = json.loads(line)
                    if persons is not None:
                        persons.append(person_name(row[columns.person]))
                    values.append(row[columns.value])
                    if timed:
                        stamps.append(row[columns.time])
                numbers.append(number + offset)
            except (ValueError, KeyError, TypeError, RecursionError, InvalidData):
                unreadable = f"line {number + offset:,}"
                break
        if numbers:
            blank = numbers[-1] - numbers[0] >= len(numbers)
            times = time_column(stamps) if timed else None
            every = tuple(numbers) if blank else ()
            mine = None if persons is None else persons[: len(numbers)]
            yield Batch(value_column(values[: len(numbers)]), times, numbers[0], every, "line", mine)
        if unreadable is not None:
            raise Unreadable(unreadable)
        number += len(lines)
        if not data:
            return


def _read_json_lines(path: Path, columns: Columns) -> Iterator[Batch]:
    with path.open("rb") as stream:
        yield from read_lines(stream, columns)


def _read_numbers(path: Path, columns: Columns) -> Iterator[Batch]:
    refuse_times(columns)
    with path.open("rb") as stream:
        yield from read_lines(stream, None)


def refuse_times(columns: Columns) -> None:
    """Refuse a column of timestamps or persons where every line is one number."""
    how = "Give Parquet, CSV or JSON lines (--json-lines from a pipe), or leave it out."
    if columns.person is not None:
        raise InvalidParameter("--person-column", "cannot be in a text with a number per line", how)
    if columns.time is not None:
        raise InvalidParameter("--time-column", "cannot be in a text with a number per line", how)


JSON_LINES = StreamSource((".jsonl", ".ndjson"), _read_json_lines)
NUMBER_LINES = StreamSource((), _read_numbers)
"""Any other ending: a text with one number per line."""


def read_device_values(source: str | PathLike[str]) -> Iterator[float | None]:
    """The value of one device, one per line of a text, or of - for a pipe.

    A line that is not a number is a missing value, and so is an empty text: silence would show that it is odd.
    """
    with nullcontext(sys.stdin.buffer) if source == "-" else Path(source).open("rb") as stream:
        line = b""
        for line in stream:
            yield _number_or_nothing(line)
        if not line:
            yield None


def _number_or_nothing(line: bytes) -> float | None:
    try:
        return parse_number(line)
    except ValueError:
        return None
