"""Where validated reports are kept: in memory where they fit, else in files that are read block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from deniable.engines.blocks import BLOCK, TableBlock
from deniable.tables.reports import narrowed


@dataclass(frozen=True, slots=True, eq=False)
class MemoryStore:
    """Reports in memory, sorted by user and slot, every user complete."""

    reports: pa.Table
    slots: int
    ids: NDArray[np.generic]
    """The users' ids; texts are replaced by their ranks among the ids of all tables, which compare faster."""
    _counted: list[NDArray[np.int64]] = field(default_factory=list, repr=False)

    @property
    def rows(self) -> int:
        """How many reports there are."""
        return int(self.reports.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return self.reports.schema

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports, block by block."""
        chosen = self.reports.select(list(columns))
        users = max(BLOCK // self.slots, 1)
        for first in range(0, self.ids.size, users):
            ids = self.ids[first : first + users]
            yield TableBlock(ids, chosen.slice(first * self.slots, ids.size * self.slots))

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""
        return self.reports[column].unique()

    def view_counts(self, views: int) -> NDArray[np.int64]:
        """How many reports there are of each view; counted once."""
        if not self._counted:
            self._counted.append(np.bincount(np.asarray(self.reports["view"]), minlength=views))
        return self._counted[0]


@dataclass(frozen=True, slots=True, eq=False)
class FileStore:
    """Reports in Parquet files, sorted by user and slot, every user complete; DuckDB reads them in order."""

    paths: tuple[Path, ...]
    slots: int
    rows: int
    schema: pa.Schema
    memory_limit: int
    keeps: Any = field(default=None, repr=False)
    """Whatever has to live as long as the files: a temporary folder, for example."""
    _counted: list[NDArray[np.int64]] = field(default_factory=list, repr=False)

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports, block by block, cut between users."""
        rest: pa.Table | None = None
        for batch in batches(self.paths, ["uid", *columns], self.memory_limit):
            found = batch if rest is None or not rest.num_rows else pa.concat_tables([rest, batch])
            whole = found.num_rows // self.slots * self.slots  # users are complete, so every slots-th row begins one
            rest = found.slice(whole)
            if whole:
                head = found.slice(0, whole)
                ids = head["uid"].combine_chunks().take(pa.array(np.arange(0, whole, self.slots)))
                yield TableBlock(_numpy_ids(ids), narrowed(head.drop_columns(["uid"])).combine_chunks())

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""
        found: pa.Array | None = None
        for batch in batches(self.paths, [column], self.memory_limit):
            values = batch[column].unique()
            found = values if found is None else pa.concat_arrays([found, values]).unique()
        return pa.array([], self.schema.field(column).type) if found is None else found

    def view_counts(self, views: int) -> NDArray[np.int64]:
        """How many reports there are of each view; counted once."""
        if not self._counted:
            total = np.zeros(views, dtype=np.int64)
            for batch in batches(self.paths, ["view"], self.memory_limit):
                total += np.bincount(np.asarray(batch["view"]), minlength=views)
            self._counted.append(total)
        return self._counted[0]


def _numpy_ids(ids: pa.Array) -> NDArray[Any]:
    return np.asarray(ids.to_numpy(zero_copy_only=False))


def connection(memory_limit: int, folder: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB that keeps to a memory limit, and spills into a folder."""
    made = duckdb.connect()
    made.execute("SET enable_progress_bar = false")  # it would print to stdout
    made.execute(f"SET memory_limit = '{max(memory_limit // 2**20, 64)}MiB'")
    if folder is not None:
        made.execute("SET temp_directory = $folder", {"folder": str(folder)})
    return made


def batches(paths: Sequence[Path], columns: Sequence[str], memory_limit: int) -> Iterator[pa.Table]:
    """Columns of Parquet files, in the order they are stored."""
    with connection(memory_limit) as made:
        listed = made.read_parquet([str(path) for path in paths]).project(", ".join(f'"{name}"' for name in columns))
        for batch in listed.to_arrow_reader(BLOCK):
            yield pa.Table.from_batches([batch])


def ranked(ids: dict[str, pa.Array]) -> dict[str, NDArray[Any]]:
    """User ids of several tables as numbers that compare alike: integers themselves, texts by their rank among all."""
    if all(pa.types.is_integer(one.type) for one in ids.values()):
        return {name: _numpy_ids(one) for name, one in ids.items()}
    kinds = {pa.types.is_integer(one.type) for one in ids.values()}
    if len(kinds) > 1:  # a number and a text are never the same user
        return {name: _numpy_ids(one.cast(pa.string())) for name, one in ids.items()}
    texts = {name: one.cast(pa.large_string()) for name, one in ids.items()}
    everyone = pa.concat_arrays(list(texts.values())).unique().sort()
    return {name: np.asarray(pc.index_in(one, everyone)).astype(np.int64) for name, one in texts.items()}


def parquet_rows(paths: Sequence[Path]) -> int:
    """How many rows files hold, from their footers."""
    return sum(pq.ParquetFile(path).metadata.num_rows for path in paths)
