"""Values from text, line by line: JSON objects, or one number per line. Nothing waits for more lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from deniable.errors import InvalidData, InvalidParameter
from deniable.stores.sources.batch import Batch, Columns, StreamSource, Unreadable
from deniable.stores.sources.number_columns import parse_number, position_column, time_column, value_column
from deniable.streams.central.person_bound import person_name

_PIPE_BYTES = 1 << 16
LINE_ERRORS = (ValueError, KeyError, TypeError, RecursionError, InvalidData)


def read_lines(stream: BinaryIO, columns: Columns | None, *, lenient: bool = False) -> Iterator[Batch]:
    """Lines as they arrive: JSON objects if columns are named, otherwise numbers. Blank lines are skipped.

    A line that cannot be read ends the reading after the lines before it were handed on. If `lenient`, its value is
    None instead. No message repeats it.
    """
    number, rest = 1, b""
    read = getattr(stream, "read1", stream.read)
    while True:
        data = read(_PIPE_BYTES)
        text = rest + data
        lines = text.split(b"\n")
        rest = lines.pop() if data else b""
        rows: list[LineRow] = []
        numbers: list[int] = []
        unreadable: str | None = None
        for offset, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                rows.append(row_of(line, columns))
            except LINE_ERRORS:
                if not lenient:
                    unreadable = f"line {number + offset:,}"
                    break
                rows.append(LineRow(None))
            numbers.append(number + offset)
        if rows:
            yield batch_of(rows, numbers, columns)
        if unreadable is not None:
            raise Unreadable(unreadable)
        number += len(lines)
        if not data:
            return


class LineRow(NamedTuple):
    """What a line or message holds."""

    value: Any
    time: Any = None
    person: str | None = None
    position: Any = None
    key: Any = None


def row_of(line: bytes, columns: Columns | None) -> LineRow:
    """What a line holds."""
    if columns is None:
        return LineRow(parse_number(line))
    facts = json.loads(line)
    person = None if columns.person is None else person_name(facts[columns.person])
    time = None if columns.time is None else facts[columns.time]
    position = None if columns.position is None else facts[columns.position]
    key = None if columns.key is None else facts[columns.key]
    return LineRow(facts[columns.value], time, person, position, key)


def batch_of(rows: list[LineRow], numbers: list[int], columns: Columns | None) -> Batch:
    """Rows as a batch."""
    values = value_column([row.value for row in rows])
    every = tuple(numbers) if numbers[-1] - numbers[0] >= len(numbers) else ()  # there are blank lines in between
    asked = columns or Columns()
    times = None if asked.time is None else time_column([row.time for row in rows])
    persons = None if asked.person is None else [row.person for row in rows]
    positions = None if asked.position is None else position_column([row.position for row in rows])
    keys = None if asked.key is None else [row.key for row in rows]
    return Batch(values, times, numbers[0], every, "line", persons, positions, keys)


def _read_json_lines(path: Path, columns: Columns) -> Iterator[Batch]:
    with path.open("rb") as stream:
        yield from read_lines(stream, columns, lenient=columns.lenient)


def _read_numbers(path: Path, columns: Columns) -> Iterator[Batch]:
    refuse_times(columns)
    with path.open("rb") as stream:
        yield from read_lines(stream, None, lenient=columns.lenient)


def refuse_times(columns: Columns) -> None:
    """Refuse a column of timestamps or persons where every line is one number."""
    how = "Give Parquet, CSV or JSON lines (--json-lines from a pipe), or leave it out."
    if columns.key is not None:
        raise InvalidParameter("--key", "cannot be in a text with a number per line", how)
    if columns.person is not None:
        raise InvalidParameter("--person-column", "cannot be in a text with a number per line", how)
    if columns.position is not None:
        raise InvalidParameter("--position-column", "cannot be in a text with a number per line", how)
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
