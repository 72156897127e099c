"""The Parquet files of one table's reports: judged by their footers before anything is read, then read in batches.

Arrow reads reports, whether they stay in memory or in their files, so both treat a file alike. What a footer declares
is bounded first. Texts are read as dictionaries, whose entries are measured before they are expanded for every row:
otherwise a few bytes of a file could become many of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.collecting.folder_writing import ROUND_FOLDER
from deniable.engines.duckdb.duckdb_session import literal_path, open_duckdb
from deniable.engines.duckdb.regular_files import is_folder, why_not_a_file
from deniable.engines.reports.report_origin import with_origin
from deniable.engines.reports.user_blocks import BLOCK_REPORTS
from deniable.errors import InvalidData
from deniable.limits import LONGEST_TEXT
from deniable.simulation import is_marked, mark, one_kind
from deniable.tables.reports.report_table import (
    SPECIFICATION,
    TABLE,
    check_texts,
    columns_of,
    names_origin,
)
from deniable.tables.specification.specification import Specification

RESTORE = "Restore it from a copy: collecting again would spend ε again."
ROWS_PER_BYTE = 16
"""Reports are random, so even compressed ones need more than half a bit each."""
_NUMBER_BYTES, _SPARE_BYTES, _BUFFER = 64, 2**22, 2**20
_COLUMN_SIZES_SQL = "SELECT path_in_schema, row_group_num_rows, total_uncompressed_size FROM parquet_metadata($path)"
_REPORT_READ_ERRORS = (pa.ArrowException, OSError, ValueError, MemoryError)


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Files that have the same columns and name the same specification."""

    table: str
    paths: tuple[Path, ...]
    schema: pa.Schema
    """The columns that are read; for files of another specification, only their metadata."""
    rows: int
    contents: tuple[bytes | None, ...] = field(default=(), repr=False)
    """The bytes of the files, where they are held; then these are read instead."""
    checked: bool = False
    """Whether all reports in these bytes are known to be valid (`checked_files.py`)."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Some columns, or all that are read, in the order they are stored."""
        return (batch for _, batch in self.numbered_batches(columns))

    def numbered_batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
        """The same, each batch with the number of its file."""
        wanted, rows = pa.schema([self.schema.field(name) for name in columns or self.schema.names]), 0
        for number, path in enumerate(self.paths):
            batches = _batches(path, self.contents[number] if self.contents else None, wanted)
            while True:
                try:
                    batch = next(batches, None)
                except _REPORT_READ_ERRORS:
                    raise _damaged(path, self.table) from None
                if batch is None:
                    break
                rows += batch.num_rows
                yield number, batch.replace_schema_metadata(self.schema.metadata)
        if rows != self.rows:
            raise InvalidData(f"files of table {self.table!r} do not hold as many reports as they declare", RESTORE)

    def joined(self, other: ReportFiles) -> ReportFiles:
        """These files, and then others of the same table."""
        if self.schema != other.schema or self.schema.metadata != other.schema.metadata:
            problem = f"files of table {self.table!r} in two folders have columns of different types"
            raise InvalidData(problem, "Keep them apart.")
        contents = tuple(held for files in (self, other) for held in files.contents or (None,) * len(files.paths))
        paths = (*self.paths, *other.paths)
        return ReportFiles(self.table, paths, self.schema, self.rows + other.rows, contents)

    def tables_within(self, memory_limit: int) -> list[pa.Table] | None:
        """All reports, a table for each file; None if they need more bytes."""
        held: list[list[pa.Table]] = [[] for _ in self.paths]
        size = 0
        for number, batch in self.numbered_batches():
            held[number].append(batch)
            size += batch.nbytes
            if size > memory_limit:
                return None
        return [pa.concat_tables(batches) if batches else self.schema.empty_table() for batches in held]


def listed_files(folder: Path, table: str, *, rounds: bool = False) -> list[Path]:
    """The Parquet files in a table's folder. Folders, pipes and broken links in it are refused.

    With `rounds`, a round may be a folder of files, as Spark writes it.
    """
    paths: list[Path] = []
    for path in sorted(folder.iterdir()):
        if rounds and ROUND_FOLDER.fullmatch(path.name) and is_folder(path):
            paths += listed_files(path, table)
            continue
        # For Spark, names that begin like this are files that are unfinished or not data.
        if path.name.startswith((".", "_")) or not (path.suffix == ".parquet" or is_folder(path)):
            continue
        problem = why_not_a_file(path)
        if problem:
            raise InvalidData(f"{problem} in the reports of table {table!r}", "Remove it, or restore the file.")
        paths.append(path)
    if not paths:
        raise InvalidData(f"table {table!r} has no files", RESTORE)
    return paths


def report_files(collection: Specification, name: str, folder: Path) -> ReportFiles:
    """The files of a table, judged by what their footers say."""
    schemas, rows, kinds = [], 0, {}
    paths = listed_files(folder, name, rounds=collection.rounds is not None)
    for path in paths:
        try:
            footer = pq.read_metadata(path)
            schema = with_origin(footer.schema.to_arrow_schema())
            metadata = schema.metadata or {}
            marks = {key: metadata.get(key, b"") for key in (SPECIFICATION, TABLE)}
            kinds[path.name] = is_marked(metadata)
            schema = schema.with_metadata(marks)
        except (*_REPORT_READ_ERRORS, AttributeError, TypeError, RecursionError):
            raise _damaged(path, name) from None
        if names_origin(collection, name, schema):
            schema = columns_of(collection, name, schema)
            _check_names(footer, schema, path)
        else:
            schema = pa.schema([], marks)  # nothing of it will be read
        schemas.append(schema)
        if schema.metadata != schemas[0].metadata:
            raise InvalidData(f"files of table {name!r} are of different specifications", "Keep them apart.")
        if schema != schemas[0]:
            raise InvalidData(f"files of table {name!r} have columns of different types", "Keep them apart.")
        rows += footer.num_rows
    marks = (schemas[0].metadata or {}) | mark(simulation=one_kind(kinds))
    return ReportFiles(name, tuple(paths), schemas[0].with_metadata(marks), rows)


def _damaged(path: Path, table: str) -> InvalidData:
    return InvalidData(f"file {path.name!r} of {table!r} is damaged", RESTORE)


def _check_names(footer: Any, schema: pa.Schema, path: Path) -> None:
    """Refuse columns such as `uid.x`, which Arrow takes for a part of `uid` and would read as well."""
    leaves = [footer.schema.column(number).path.partition(".")[0] for number in range(footer.num_columns)]
    for column in schema.names:
        if leaves.count(column) != 1:
            raise InvalidData(f"file {path.name!r} has several columns that begin with {column!r}", "Keep one of them.")


def check_sizes(tables: Sequence[ReportFiles]) -> None:
    """Refuse files that would take far more memory or time than reports of their size do.

    DuckDB reads the sizes, because a footer that contradicts itself would make Arrow end the program.
    """
    if not tables:
        return
    paths = [path for files in tables for path in files.paths]
    with open_duckdb(files=paths, threads=1) as connection:
        for files in tables:
            texts = {field.name for field in files.schema if pa.types.is_string(field.type)}
            size = 0
            for path in files.paths:
                try:
                    size += path.stat().st_size
                    columns = connection.execute(_COLUMN_SIZES_SQL, {"path": literal_path(path)}).fetchall()
                except (duckdb.Error, OSError):
                    raise _damaged(path, files.table) from None
                for column, rows, unpacked in columns:
                    width = LONGEST_TEXT + 8 if column in texts else _NUMBER_BYTES
                    if column in files.schema.names and unpacked > min(rows, files.rows) * width + _SPARE_BYTES:
                        raise _too_large(files.table)
            if files.rows > ROWS_PER_BYTE * size:
                raise _too_large(files.table)


def _too_large(table: str) -> InvalidData:
    problem = f"files of table {table!r} declare more than reports of their size can hold"
    return InvalidData(problem, f"{RESTORE} The limits are in docs/reference/limits.md.")


def _batches(path: Path, content: bytes | None, wanted: pa.Schema) -> Iterator[pa.Table]:
    texts = [field.name for field in wanted if pa.types.is_string(field.type)]
    source = path if content is None else pa.BufferReader(content)
    with pq.ParquetFile(source, read_dictionary=texts, buffer_size=_BUFFER) as file:
        for batch in file.iter_batches(BLOCK_REPORTS, columns=wanted.names):
            for column in map(batch.column, texts):
                column.validate(full=True)
                entries = column.dictionary if pa.types.is_dictionary(column.type) else column
                check_texts([entries], f"file {path.name!r}")
            read = pa.Table.from_batches([batch]).select(wanted.names)
            same = read.schema.equals(wanted)  # casting imports pyarrow.compute
            yield read.replace_schema_metadata(wanted.metadata) if same else read.cast(wanted)
