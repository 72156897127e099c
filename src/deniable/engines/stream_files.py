"""Files of streams: Parquet with metadata out and in."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import InvalidData


def write_parquet(table: pa.Table, path: str | PathLike[str]) -> None:
    """One file with the table and its metadata."""
    pq.write_table(table, Path(path), compression="zstd")


def read_parquet(path: str | PathLike[str]) -> pa.Table:
    """A whole Parquet file, metadata included."""
    if not Path(path).is_file():
        raise InvalidData(f"there is no file {str(path)!r}", "Give the path of a released stream.")
    try:
        return pq.read_table(Path(path))
    except pa.ArrowInvalid:
        raise InvalidData(f"{str(path)!r} is not a Parquet file", "Give a file of `deniable stream publish`.") from None
