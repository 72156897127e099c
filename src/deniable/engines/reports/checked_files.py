"""Files whose reports were all found valid: a later process that meets the same bytes need not check them again.

A note in a private folder of the user holds size, time and SHA-256 of every file of a table. If size and time are those
of the note, the bytes are read, compared by their digest, and reports are taken from these very bytes: nobody can
change them in between. Any doubt means that everything is checked.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.reports.report_files import ReportFiles
from deniable.engines.reports.report_origin import with_origin
from deniable.errors import Failure
from deniable.private_folders import private_folder
from deniable.simulation import is_marked
from deniable.tables.specification.specification import Specification

CHECKS = 1
"""A higher number forgets all notes: to be raised with every change of what is checked."""
LEAST_REPORTS = 2**14
"""Fewer are checked as fast as a note is read."""
MOST_BYTES = 2**28
MOST_NOTES = 256


def known(collection: Specification, files: ReportFiles) -> ReportFiles:
    """The files with their bytes, if a note says that these are valid; otherwise the files as they are."""
    path = _note(collection, files)
    if path is None:
        return files
    try:
        noted = json.loads(path.read_bytes())
        if not isinstance(noted, list) or [entry[:2] for entry in noted] != [_about(file) for file in files.paths]:
            return files
        contents = _contents(files)
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return files
    same = [entry[2:] for entry in noted] == [[_digest(content)] for content in contents]
    return replace(files, contents=contents, checked=True) if same else files


def held(collection: Specification, files: ReportFiles) -> ReportFiles:
    """The files with their bytes, if a note could be written about them: what is checked then is what is noted."""
    if files.checked or _note(collection, files) is None:
        return files
    try:
        return replace(files, contents=_contents(files))
    except (OSError, ValueError):
        return files


def remember(collection: Specification, files: ReportFiles) -> None:
    """Note that all reports in these bytes are valid. Files that have changed since they were read get no note."""
    path, contents = _note(collection, files), files.contents
    if path is None or files.checked or None in contents:
        return
    with suppress(OSError):
        abouts = [_about(file) for file in files.paths]
        if [size for size, _ in abouts] != [len(content or b"") for content in contents]:
            return
        entries = [[*about, _digest(content or b"")] for about, content in zip(abouts, contents, strict=True)]
        new = path.with_name(path.name + ".new")
        new.write_bytes(json.dumps(entries).encode())
        new.replace(path)
        notes = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns)
        for old in notes[:-MOST_NOTES]:
            old.unlink(missing_ok=True)


def _note(collection: Specification, files: ReportFiles) -> Path | None:
    """Where the note about some files is, or would be; None for those that get none."""
    if collection.rounds is not None or files.rows < LEAST_REPORTS or not files.schema.names:
        return None
    try:
        if sum(file.stat().st_size for file in files.paths) > MOST_BYTES:
            return None
        folder = private_folder("checked", "note which reports were checked", "Nothing was lost")
    except (OSError, Failure):
        return None
    named = [str(CHECKS), collection.sha256, files.table, *(str(file.absolute()) for file in files.paths)]
    return folder / _digest("\0".join(named).encode())[:32]


def _contents(files: ReportFiles) -> tuple[bytes, ...]:
    """The bytes of all files; a ValueError if their footers are no longer those by which the files were judged."""
    contents = tuple(file.read_bytes() for file in files.paths)
    judged = files.schema.metadata or {}
    for content in contents:
        footer = with_origin(pq.read_schema(pa.BufferReader(content))).metadata or {}
        differs = any(footer.get(key, b"") != value for key, value in judged.items())
        if differs or is_marked(footer) != is_marked(judged):
            raise ValueError
    return contents


def _about(file: Path) -> list[Any]:
    about = file.stat()
    return [about.st_size, about.st_mtime_ns]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
