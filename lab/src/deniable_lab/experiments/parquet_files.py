"""Columns from a Parquet file of the data folder, or a message that names the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import InvalidParameter


def read_columns(file: Path, *columns: str) -> pa.Table:
    """These columns of a file."""
    try:
        return pq.read_table(file, columns=list(columns))
    except (OSError, pa.ArrowException):
        raise InvalidParameter(
            "--data",
            f"has no readable file {file.parent.name}/{file.name} with the columns {', '.join(columns)}",
            "Name the folder that holds `streams` and `tables`.",
        ) from None
