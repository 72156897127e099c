"""Folders of reports in object stores and on other machines, through pyarrow's file systems: s3://, gs://, hdfs://.

Files are copied into a private temporary folder, each once, and opened there like any others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from deniable.engines.duckdb.spill_folders import SpillFolder
from deniable.errors import BadInput, Failure
from deniable.tables.specification.runs import SPECIFICATION_FILE
from deniable.wording import shown

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PIECE = 1 << 22
MOST_COPIED_FILES = 1_000_000


def is_address(given: object) -> bool:
    """Whether reports are named by the address of a file system, such as s3://bucket/reports."""
    return isinstance(given, str) and _ADDRESS.match(given) is not None


class RemoteFolder:
    """A folder behind an address, and the copy of its files."""

    def __init__(self, address: str, spill: Path | None) -> None:
        self._name = shown(address.split("?")[0].rstrip("/").rsplit("/", 1)[-1])
        try:
            self._system, self._root = fs.FileSystem.from_uri(address)
        except (pa.ArrowException, OSError, ValueError, ImportError):
            problem = f"the address of {self._name} cannot be opened. Nothing was read."
            raise BadInput(f"{problem} Check it, and what pyarrow needs for such addresses.") from None
        self._kept = SpillFolder(spill)
        self._copied: dict[str, tuple[Any, ...]] = {}

    @property
    def path(self) -> Path:
        """Where the copy is."""
        return self._kept.path / "reports"

    def state(self) -> tuple[Any, ...]:
        """What is there now: names, sizes and times of all files."""
        return tuple(sorted(self._listed()))

    def fetch(self) -> Path:
        """Copy what is new, and remove what is gone; the folder of the copy."""
        now = dict(self._listed())
        for name in set(self._copied) - set(now):
            (self.path / name).unlink(missing_ok=True)
            del self._copied[name]
        for name, facts in now.items():
            if self._copied.get(name) != facts:
                self._copy(name)
                self._copied[name] = facts
        return self.path

    def _listed(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Files that belong to reports, by their path in the folder."""
        for count, info in enumerate(self._found()):
            name = info.path[len(self._root) :].strip("/")
            hidden = any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)
            wanted = name == SPECIFICATION_FILE or (name.endswith(".parquet") and not hidden)
            if info.type != fs.FileType.File or not wanted or ".." in PurePosixPath(name).parts:
                continue
            if count > MOST_COPIED_FILES:
                raise BadInput(f"{self._name} holds over {MOST_COPIED_FILES:,} files. Nothing was read. Join files.")
            yield name, (info.size, info.mtime_ns)

    def _found(self) -> Any:
        try:
            return self._system.get_file_info(fs.FileSelector(self._root, recursive=True))
        except (pa.ArrowException, OSError):
            problem = f"folder {self._name} cannot be listed. Nothing was read."
            raise Failure(f"{problem} Check its address, the network and your rights.") from None

    def _copy(self, name: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._system.open_input_stream(f"{self._root.rstrip('/')}/{name}") as source, path.open("wb") as copy:
                while piece := source.read(_PIECE):
                    copy.write(piece)
        except (pa.ArrowException, OSError):
            path.unlink(missing_ok=True)
            problem = f"file {shown(path.name)} of {self._name} could not be copied. Nothing was computed."
            raise Failure(f"{problem} Check the network and the room for spill files.") from None
