"""Folders of reports: a specification, and for each table the Parquet files that were made under it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.collecting import SPECIFICATION_FILE
from deniable.engines.marks import marked
from deniable.errors import BadInput, InvalidData
from deniable.tables.collection import Collection
from deniable.tables.reports import SPECIFICATION

BYTES_PER_REPORT = 64
RESTORE = "Restore it from a copy: collecting again would spend ε again."


def read_folder(folder: Path, memory_limit: int) -> tuple[Collection, dict[str, pa.Table | tuple[Path, ...]]]:
    """A folder's specification, and for each table its reports, or the paths of its files if they are too many."""
    if not folder.exists():
        raise BadInput(f"there is no folder {folder.name!r}. Nothing was read. Pass a folder of reports.")
    if not (folder / SPECIFICATION_FILE).exists():
        raise BadInput(f"{folder.name!r} holds no {SPECIFICATION_FILE}. Nothing was read. Pass a folder of reports.")
    collection = Collection.load(folder / SPECIFICATION_FILE)
    found: dict[str, pa.Table | tuple[Path, ...]] = {}
    for table in collection.tables:
        if (folder / table.name).is_dir():
            found[table.name] = _dataset(folder / table.name, memory_limit)
    return collection, found


def file_schema(path: Path) -> pa.Schema:
    """The columns of a file of reports, and the specification it names."""
    return marked(pq.read_schema(path))


def _dataset(folder: Path, memory_limit: int) -> pa.Table | tuple[Path, ...]:
    """All files of a table; every one must name its specification, for the union keeps the first one's only."""
    paths = tuple(sorted(folder.glob("*.parquet")))
    if not paths:
        raise InvalidData(f"table {folder.name!r} has no files", RESTORE)
    for path in paths:
        try:
            marks = {(file_schema(one).metadata or {}).get(SPECIFICATION) for one in (paths[0], path)}
        except (pa.ArrowInvalid, OSError):
            raise InvalidData(f"file {path.name!r} of {folder.name!r} is damaged", RESTORE) from None
        if len(marks) > 1:
            raise InvalidData(f"files of table {folder.name!r} are of different specifications", "Keep them apart.")
    try:
        if sum(pq.ParquetFile(path).metadata.num_rows for path in paths) * BYTES_PER_REPORT > memory_limit:
            return paths
        tables = [pq.read_table(path) for path in paths]
        return pa.concat_tables([one.replace_schema_metadata(marked(one.schema).metadata) for one in tables])
    except (pa.ArrowInvalid, OSError):
        raise InvalidData(f"a file of {folder.name!r} is damaged", RESTORE) from None
