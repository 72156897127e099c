"""Where a local engine gets its reports from, and whether more have arrived: folders, patterns, addresses."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deniable.engines.collecting.stored_reports import is_collector_folder
from deniable.engines.duckdb.regular_files import is_folder, why_not_a_file
from deniable.engines.duckdb.spill_folders import spill_parent
from deniable.engines.local.local_engine import LocalEngine
from deniable.engines.local.opening import open_folders, open_local
from deniable.engines.reports.remote_folders import RemoteFolder, is_address
from deniable.errors import BadInput
from deniable.tables.specification.runs import SPECIFICATION_FILE
from deniable.wording import shown


class ReportSource:
    """Folders of reports of one specification. Files that arrive later are found by `state`."""

    def __init__(self, given: Sequence[str | Path], memory_limit: int, spill: str | Path | None) -> None:
        self._memory_limit, self._spill = memory_limit, spill
        parent = spill_parent(spill, None)
        self._parts: list[RemoteFolder | str | Path] = [
            RemoteFolder(str(part), parent) if is_address(part) else part for part in given
        ]

    def state(self) -> tuple[Any, ...]:
        """What would be read now: names, sizes and times of all files. No report is read."""
        made: list[Any] = []
        for part in self._parts:
            made += part.state() if isinstance(part, RemoteFolder) else map(_state, folders_of(part))
        return tuple(made)

    def open(self) -> LocalEngine:
        """An engine over all reports that are there now."""
        folders: list[Path] = []
        for part in self._parts:
            folders += [part.fetch()] if isinstance(part, RemoteFolder) else folders_of(part)
        if len(folders) == 1:
            return open_local(folders[0], memory_limit=self._memory_limit, spill=self._spill)
        return open_folders(folders, memory_limit=self._memory_limit, spill=self._spill)


def is_pattern(given: str | Path) -> bool:
    """Whether a path stands for several folders: it has *, ? or [, and no folder is called so."""
    return not is_address(given) and glob.has_magic(str(given)) and not is_folder(Path(given))


def folders_of(given: str | Path) -> list[Path]:
    """The folders of reports that a path or a pattern stands for."""
    if not is_pattern(given):
        return [Path(given)]
    folders = [Path(path) for path in sorted(glob.glob(str(given)))]  # noqa: PTH207 - of a path that may be absolute
    folders = [path for path in folders if why_not_a_file(path / SPECIFICATION_FILE) is None]
    if not folders:
        problem = f"no folder of reports matches {shown(Path(given).name)}. Nothing was read."
        raise BadInput(f"{problem} Check the pattern: each folder holds a {SPECIFICATION_FILE}.")
    return folders


def _state(folder: Path) -> tuple[Any, ...]:
    """Names, sizes and times of a folder's files; a collector's store changes with every commit."""
    if not is_folder(folder):
        return ()
    depth = ("*",) if is_collector_folder(folder) else (SPECIFICATION_FILE, "*/*.parquet", "*/*/*.parquet")
    made = []
    for pattern in depth:
        for path in folder.glob(pattern):
            try:
                facts = path.stat()
            except OSError:  # it has just been moved
                continue
            made.append((str(path), facts.st_size, facts.st_mtime_ns))
    return tuple(sorted(made))
