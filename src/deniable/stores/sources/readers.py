"""Every source of stream values, in one list. A new kind of file is a `StreamSource` in its file and an entry here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from deniable.errors import InvalidData
from deniable.stores.sources.batch import Batch, Columns, StreamSource
from deniable.stores.sources.line_source import JSON_LINES, NUMBER_LINES, read_lines, refuse_times
from deniable.stores.sources.table_sources import CSV, PARQUET

SOURCES: list[StreamSource] = [PARQUET, CSV, JSON_LINES]
"""Files by their endings. A file with any other ending is a text with one number per line."""


def source_of(path: str | PathLike[str], sources: Sequence[StreamSource] = SOURCES) -> StreamSource:
    """The kind of source that a file is, by its ending."""
    ending = Path(path).suffix.lower()
    return next((source for source in sources if ending in source.endings), NUMBER_LINES)


def read_file(
    path: str | PathLike[str], columns: Columns, sources: Sequence[StreamSource] = SOURCES
) -> Iterator[Batch]:
    """Read the values of a file, about 65,536 at a time.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "meter.csv")
    >>> size = path.write_text("at,watts\\n1,230\\n2,231\\n")
    >>> [batch.values.tolist() for batch in read_file(path, Columns("watts"))]
    [[230.0, 231.0]]
    """
    if not Path(path).is_file():
        raise InvalidData(f"there is no file {str(path)!r}", "Give a Parquet, CSV or JSON-lines file, or - for a pipe.")
    yield from source_of(path, sources).read(Path(path), columns)


def read_pipe(stream: BinaryIO, columns: Columns, *, json_lines: bool) -> Iterator[Batch]:
    """The lines of a pipe, as they arrive: JSON objects, or one number each."""
    if not json_lines:
        refuse_times(columns)
    return read_lines(stream, columns if json_lines else None, lenient=columns.lenient)


def is_plain_text(path: str | PathLike[str]) -> bool:
    """Whether an existing file is read as one number per line."""
    return Path(path).is_file() and source_of(path) is NUMBER_LINES
