"""Folders of reports: a specification, and for each table the Parquet files that were made under it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.collecting import SPECIFICATION_FILE
from deniable.engines.marks import marked
from deniable.errors import BadInput, InvalidData
from deniable.simulation import is_marked, one_kind
from deniable.tables.collection import Collection
from deniable.tables.reports import SPECIFICATION
from deniable.tables.runs import is_simulation
from deniable.tables.specification_files import load_run

BYTES_PER_REPORT = 64
RESTORE = "Restore it from a copy: collecting again would spend ε again."


def read_folder(folder: Path, memory_limit: int) -> tuple[Collection, dict[str, pa.Table | tuple[Path, ...]], bool]:
    """A folder's specification, for each table its reports, or the paths of its files if they are too many, and whether
    all of it is a simulation.
    """
    if not folder.exists():
        raise BadInput(f"there is no folder {folder.name!r}. Nothing was read. Pass a folder of reports.")
    if not (folder / SPECIFICATION_FILE).exists():
        raise BadInput(f"{folder.name!r} holds no {SPECIFICATION_FILE}. Nothing was read. Pass a folder of reports.")
    collection, simulation = load_run(folder / SPECIFICATION_FILE)
    found: dict[str, pa.Table | tuple[Path, ...]] = {}
    for table in collection.tables:
        if (folder / table.name).is_dir():
            found[table.name] = _dataset(folder / table.name, memory_limit)
    kinds = {name: is_simulation(collection, _metadata(reports)) for name, reports in found.items()}
    return collection, found, one_kind({SPECIFICATION_FILE: simulation, **kinds})


def _metadata(reports: pa.Table | tuple[Path, ...]) -> dict[bytes, bytes] | None:
    """What reports say of their origin; all files of a table say the same."""
    metadata: dict[bytes, bytes] | None = (
        reports.schema if isinstance(reports, pa.Table) else file_schema(reports[0])
    ).metadata
    return metadata


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
            origins = [file_schema(one).metadata or {} for one in (paths[0], path)]
        except (pa.ArrowInvalid, OSError):
            raise InvalidData(f"file {path.name!r} of {folder.name!r} is damaged", RESTORE) from None
        if len({origin.get(SPECIFICATION) for origin in origins}) > 1:
            raise InvalidData(f"files of table {folder.name!r} are of different specifications", "Keep them apart.")
        one_kind({file.name: is_marked(origin) for file, origin in zip((paths[0], path), origins, strict=True)})
    try:
        if sum(pq.ParquetFile(path).metadata.num_rows for path in paths) * BYTES_PER_REPORT > memory_limit:
            return paths
        tables = [pq.read_table(path) for path in paths]
        return pa.concat_tables([one.replace_schema_metadata(marked(one.schema).metadata) for one in tables])
    except (pa.ArrowInvalid, OSError):
        raise InvalidData(f"a file of {folder.name!r} is damaged", RESTORE) from None
