"""DuckDB as it is used here: in memory, silent, bounded and isolated.

A session reads the files that it was opened for and spills into the folder that it was given. It opens no other file
and no address, loads no extension and sees no variable of the program, and no statement can change that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

MEMORY_BYTES = 512_000_000
_SMALLEST_LIMIT = 64 * 2**20
_GLOB_CHARACTERS = "*?["


def open_duckdb(
    *,
    memory_limit: int = MEMORY_BYTES,
    folder: Path | None = None,
    files: Sequence[str | Path] = (),
    threads: int | None = None,
) -> duckdb.DuckDBPyConnection:
    """A connection with a memory limit in bytes that spills only into `folder` and reads only `files`."""
    settings: dict[str, Any] = {
        "memory_limit": f"{max(memory_limit, _SMALLEST_LIMIT)}B",
        "temp_directory": "" if folder is None else str(folder),  # by default below the working folder
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
    }
    made = duckdb.connect(config=settings if threads is None else settings | {"threads": threads})
    # A path with glob characters is requested in escaped form, and opened as it is.
    allowed = [spelling for path in files for spelling in (str(Path(path).absolute()), literal_path(path))]
    made.execute("SET allowed_paths = $allowed", {"allowed": allowed})
    made.execute("SET enable_progress_bar = false")  # it would print to stdout
    made.execute("SET python_enable_replacements = false")
    made.execute("SET enable_external_access = false")
    made.execute("SET lock_configuration = true")
    return made


def literal_path(path: str | Path) -> str:
    """A path with * ? [ escaped, which DuckDB would take for patterns.

    >>> literal_path("/data/r[1].csv")
    '/data/r[[]1].csv'
    """
    return "".join(f"[{letter}]" if letter in _GLOB_CHARACTERS else letter for letter in str(Path(path).absolute()))


def quoted(name: str) -> str:
    """A column's name as an SQL identifier.

    >>> print(quoted('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'
