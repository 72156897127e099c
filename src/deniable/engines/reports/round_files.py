"""Validated reports of several rounds, in files: what `round_stores.py` keeps in memory, for more than fits.

User ids are replaced by the numbers of users among all users of all tables, and reports are sorted by user, round and
slot. DuckDB does both within a memory limit, and spills. Then they are read block by block, cut between users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.arrays import Integers
from deniable.engines.collecting.user_batches import whole_users
from deniable.engines.duckdb.duckdb_session import literal_path, open_duckdb, quoted
from deniable.engines.duckdb.spill_folders import SpillFolder
from deniable.engines.reports.report_stores import FileStore
from deniable.engines.reports.round_stores import PERSON_COLUMN, in_round
from deniable.engines.reports.user_blocks import BLOCK_REPORTS, TableBlock
from deniable.errors import Failure
from deniable.tables.reports.report_table import narrowed
from deniable.tables.schema.rounds import ROUND_COLUMN


@dataclass(frozen=True, slots=True, eq=False)
class RoundFileStore:
    """The reports of one table in all rounds. In its file, `uid` is the number of a user among all users."""

    sorted: FileStore
    persons: int
    """How many users have sent anything."""

    @property
    def slots(self) -> int:
        """Reports per user and round."""
        return self.sorted.slots

    @property
    def rows(self) -> int:
        """How many reports there are."""
        return self.sorted.rows

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports, block by block, cut between users."""
        wanted = dict.fromkeys(("uid", ROUND_COLUMN, *columns))
        for users in whole_users(self.sorted.files.batches(list(wanted))):
            person, number = (users[column].to_numpy().astype(np.int64) for column in ("uid", ROUND_COLUMN))
            reports = narrowed(users.select(list(columns))).append_column(PERSON_COLUMN, pa.array(person))
            yield TableBlock(in_round(person, number)[:: self.slots], reports.combine_chunks())

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""
        return self.sorted.distinct(column)

    def view_counts(self, views: int) -> Integers:
        """How many reports there are of each view."""
        return self.sorted.view_counts(views)


def round_file_stores(
    stores: Mapping[str, FileStore], memory_limit: int, spill: Path | None
) -> dict[str, RoundFileStore]:
    """Valid reports of all tables, in files; their user ids are of one type."""
    folder = SpillFolder(spill)
    paths = [path for store in stores.values() for path in store.files.paths]
    try:
        with open_duckdb(memory_limit=memory_limit, folder=folder.path, files=paths) as connection:
            listed = connection.read_parquet([literal_path(path) for path in paths], union_by_name=True)
            listed.select("uid").distinct().order("uid").create("persons")
            return {name: _numbered(connection, name, store, folder) for name, store in stores.items()}
    except (duckdb.Error, pa.ArrowException, OSError):
        raise Failure(
            "the reports of several rounds could not be sorted: memory or the disk did not suffice. Nothing was "
            "computed. Raise memory_limit, or make room for spill files."
        ) from None


def _numbered(
    connection: duckdb.DuckDBPyConnection, name: str, store: FileStore, folder: SpillFolder
) -> RoundFileStore:
    """The reports of a table with numbers instead of ids, sorted by user, round and slot."""
    reports = connection.read_parquet([literal_path(path) for path in store.files.paths]).set_alias("reports")
    persons = connection.sql("SELECT uid, rowid AS person FROM persons").set_alias("persons")
    rest = [column for column in store.files.schema.names if column != "uid"]
    listed = ", ".join(f"reports.{quoted(column)}" for column in rest)
    joined = reports.join(persons, "reports.uid = persons.uid").select(f"persons.person AS uid, {listed}")
    schema = pa.schema([("uid", pa.int64()), *((column, store.files.schema.field(column).type) for column in rest)])
    path, users, last = folder.path / f"{name}.parquet", 0, -1
    ordered = joined.order(f"uid, {ROUND_COLUMN}, slot").to_arrow_reader(BLOCK_REPORTS)
    with pq.ParquetWriter(path, schema) as writer:
        for batch in ordered:
            person = np.asarray(batch.column("uid"))
            users += int(np.count_nonzero(np.diff(person, prepend=last)))
            last = int(person[-1]) if person.size else last
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
    files = replace(store.files, paths=(path,), schema=schema)
    return RoundFileStore(FileStore(files, store.slots, folder), users)
