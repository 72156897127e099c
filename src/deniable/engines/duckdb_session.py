"""DuckDB as it is used here: in memory, silent, within bounds."""

from __future__ import annotations

from pathlib import Path

import duckdb


def open_duckdb(*, memory_limit: int | None = None, folder: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A connection that keeps to a number of bytes and spills into a folder."""
    made = duckdb.connect()
    made.execute("SET enable_progress_bar = false")  # it would print to stdout
    if memory_limit is not None:
        made.execute(f"SET memory_limit = '{max(memory_limit, 64 * 2**20)}B'")
    if folder is not None:
        made.execute("SET temp_directory = $folder", {"folder": str(folder)})
    return made
