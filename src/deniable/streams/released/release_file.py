"""A released stream as one Parquet file: its table and the metadata that answers need."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.disk_faults import writing
from deniable.errors import InvalidData

READ_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What Arrow raises if a file is damaged or cannot be read. Never show their messages: they may quote data."""


def write_release(table: pa.Table, path: str | PathLike[str]) -> None:
    """Write one file with the table and its metadata."""
    with writing(f"the file {Path(path).name!r}", "The stream is as it was"):
        pq.write_table(table, Path(path), compression="zstd")


def read_release(path: str | PathLike[str]) -> pa.Table:
    """Read a whole Parquet file, metadata included."""
    if not Path(path).is_file():
        raise InvalidData(f"there is no file {str(path)!r}", "Give the path of a released stream.")
    try:
        with pq.ParquetFile(Path(path)) as file:
            # Metadata that was added when the file was finished is in the footer, not in the stored schema.
            stored, added = file.schema_arrow.metadata or {}, file.metadata.metadata or {}
            return file.read().replace_schema_metadata({**stored, **added})
    except READ_ERRORS:
        raise InvalidData(
            f"{str(path)!r} is not a Parquet file, or is damaged", "Give a file of `deniable stream publish`."
        ) from None
