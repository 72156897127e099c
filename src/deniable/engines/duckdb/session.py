"""DuckDB as it is used here: in memory, silent, within bounds, and without any way out.

A session reads the files that it was opened for and spills into the folder that it was given. It opens no other file
and no address, loads no extension, sees no variable of the program, and no statement can change that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

MEMORY_LIMIT = 512_000_000
_SMALLEST_LIMIT = 64 * 2**20
_GLOB_SIGNS = "*?["


def open_duckdb(
    *,
    memory_limit: int = MEMORY_LIMIT,
    folder: Path | None = None,
    files: Sequence[str | Path] = (),
    threads: int | None = None,
) -> duckdb.DuckDBPyConnection:
    """A connection that keeps to a number of bytes, spills into a folder or not at all, and reads only some files."""
    settings: dict[str, Any] = {
        "memory_limit": f"{max(memory_limit, _SMALLEST_LIMIT)}B",
        "temp_directory": "" if folder is None else str(folder),  # by default it is below the working folder
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
    }
    made = duckdb.connect(config=settings if threads is None else settings | {"threads": threads})
    # A path with glob signs is asked for in an escaped form, and opened as it is.
    allowed = [spelling for path in files for spelling in (str(Path(path).absolute()), literal_path(path))]
    made.execute("SET allowed_paths = $allowed", {"allowed": allowed})
    made.execute("SET enable_progress_bar = false")  # it would print to stdout
    made.execute("SET python_enable_replacements = false")
    made.execute("SET enable_external_access = false")
    made.execute("SET lock_configuration = true")
    return made


def literal_path(path: str | Path) -> str:
    """A path as DuckDB has to be asked for it: it would take * ? [ for patterns.

    >>> literal_path("/data/r[1].csv")
    '/data/r[[]1].csv'
    """
    return "".join(f"[{sign}]" if sign in _GLOB_SIGNS else sign for sign in str(Path(path).absolute()))


def quoted(name: str) -> str:
    """A column's name as an SQL identifier.

    >>> print(quoted('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'
