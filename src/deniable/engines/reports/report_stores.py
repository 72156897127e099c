"""Where validated reports are kept: in memory if they fit, else in files that are read block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.engines.collecting.user_batches import whole_users
from deniable.engines.reports.report_files import ReportFiles
from deniable.engines.reports.user_blocks import BLOCK_REPORTS, TableBlock
from deniable.engines.reports.view_order import ViewOrder, can_be_ordered
from deniable.tables.reports.report_table import arrow_integers, narrowed
from deniable.tables.schema.report_format import ANSWER_COLUMNS


@dataclass(frozen=True, slots=True, eq=False)
class MemoryStore:
    """Reports in memory, sorted by user and slot, every user complete."""

    reports: pa.Table
    slots: int
    ids: NDArray[np.generic]
    """The users' ids. Texts are replaced by their ranks among the ids of all tables, which compare faster."""
    texts: pa.Array | None = field(default=None, repr=False)
    """The ids themselves, if they were replaced."""
    _counted: list[Integers] = field(default_factory=list, repr=False)
    _ordered: list[ViewOrder] = field(default_factory=list, repr=False)

    @property
    def rows(self) -> int:
        """How many reports there are."""
        return int(self.reports.num_rows)

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports, block by block."""
        chosen = self.reports.select(list(columns))
        users = max(BLOCK_REPORTS // self.slots, 1)
        for first in range(0, self.ids.size, users):
            ids = self.ids[first : first + users]
            yield TableBlock(ids, chosen.slice(first * self.slots, ids.size * self.slots))

    def user_ids(self) -> Iterator[NDArray[np.generic]]:
        """The ids of all users, as they were reported."""
        yield self.ids if self.texts is None else _numpy_ids(self.texts)

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""
        return self.reports[column].unique()

    def view_counts(self, views: int) -> Integers:
        """How many reports there are of each view; counted once."""
        if not self._counted:
            self._counted.append(np.bincount(np.asarray(self.reports["view"]), minlength=views))
        return self._counted[0]

    def by_view(self, views: int) -> ViewOrder | None:
        """The reports in the order of their views, sorted once; None if there are too many of them."""
        if not can_be_ordered(self.rows, views):
            return None
        if not self._ordered:
            view, seed, y = (np.asarray(self.reports[name]) for name in ANSWER_COLUMNS)
            self._ordered.append(ViewOrder.of(view, seed, y, views))
        return self._ordered[0]


@dataclass(frozen=True, slots=True, eq=False)
class FileStore:
    """Reports in Parquet files, sorted by user and slot, every user complete; they are read in order."""

    files: ReportFiles
    slots: int
    keeps: Any = field(default=None, repr=False)
    """Whatever has to live as long as the files: a temporary folder, for example."""
    _counted: list[Integers] = field(default_factory=list, repr=False)

    @property
    def rows(self) -> int:
        """How many reports there are."""
        return self.files.rows

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports, block by block, cut between users."""
        # Every user is complete, so each begins at a multiple of the slots.
        for users in whole_users(
            self.files.batches(["uid", *columns]), incomplete=lambda rows: rows.num_rows // self.slots * self.slots
        ):
            ids = users["uid"].combine_chunks().take(arrow_integers(np.arange(0, users.num_rows, self.slots)))
            yield TableBlock(_numpy_ids(ids), narrowed(users.drop_columns(["uid"])).combine_chunks())

    def user_ids(self) -> Iterator[NDArray[np.generic]]:
        """The ids of all users, block by block."""
        return (block.users for block in self.read(["y"]))

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""
        values = pa.array([], self.files.schema.field(column).type)
        for batch in self.files.batches([column]):
            values = pa.concat_arrays([values, batch[column].unique()]).unique()
        return values

    def view_counts(self, views: int) -> Integers:
        """How many reports there are of each view; counted once."""
        if not self._counted:
            total = np.zeros(views, dtype=np.int64)
            for batch in self.files.batches(["view"]):
                total += np.bincount(np.asarray(batch["view"]), minlength=views)
            self._counted.append(total)
        return self._counted[0]


def _numpy_ids(ids: pa.Array) -> NDArray[Any]:
    return np.asarray(ids.to_numpy(zero_copy_only=False))


def memory_stores(
    reports: Mapping[str, pa.Table], slots: Mapping[str, int], filed: Sequence[FileStore]
) -> dict[str, MemoryStore]:
    """Valid reports of some tables, in memory; the tables `filed` stay in files. Ids of all are of one type."""
    ordered = {
        # A user's reports follow each other, in the order of slots.
        name: _sorted(table)
        for name, table in reports.items()
    }
    ids = {name: _first_rows(table["uid"].combine_chunks(), slots[name]) for name, table in ordered.items()}
    # Ids in files are compared as they are.
    compared = {name: _numpy_ids(column) for name, column in ids.items()} if filed else _ranked(ids)
    numbers = all(pa.types.is_integer(column.type) for column in ids.values())
    return {
        name: MemoryStore(table.drop_columns(["uid"]), slots[name], compared[name], None if numbers else ids[name])
        for name, table in ordered.items()
    }


def _first_rows(ids: pa.Array, slots: int) -> pa.Array:
    """Every user once."""
    return ids if slots == 1 else ids.take(arrow_integers(np.arange(0, len(ids), slots)))


def _sorted(reports: pa.Table) -> pa.Table:
    """Reports by user and slot; most files are in this order already."""
    reports = reports.combine_chunks()
    if reports.num_rows > 1 and not _in_order(reports):
        return reports.sort_by([("uid", "ascending"), ("slot", "ascending")]).combine_chunks()
    return reports


def _in_order(reports: pa.Table) -> bool:
    """Whether reports are sorted by user and slot. Of numbers numpy says so, which is imported anyway."""
    if pa.types.is_integer(reports["uid"].type) and not reports["uid"].null_count:
        ids, slots = (np.asarray(reports[name].chunk(0)) for name in ("uid", "slot"))
        same = ids[:-1] == ids[1:]
        return bool(((ids[:-1] < ids[1:]) | (same & (slots[:-1] < slots[1:]))).all())
    before, after = (reports.slice(first, reports.num_rows - 1) for first in (0, 1))
    same = pc.equal(before["uid"], after["uid"])
    later = pc.or_(pc.less(before["uid"], after["uid"]), pc.and_(same, pc.less(before["slot"], after["slot"])))
    return bool(pc.all(later).as_py())


def with_text_ids(reports: pa.Table) -> pa.Table:
    """Reports with ids as texts: the number 7 and the text "7" are the same user."""
    return reports.set_column(reports.schema.get_field_index("uid"), "uid", reports["uid"].cast(pa.string()))


def _ranked(ids: dict[str, pa.Array]) -> dict[str, NDArray[Any]]:
    """User ids of several tables as numbers in the same order: integers as they are, texts by their rank among all."""
    if all(pa.types.is_integer(column.type) for column in ids.values()):
        return {name: _numpy_ids(column) for name, column in ids.items()}
    if len(ids) == 1:  # in order, and every user once
        return {name: np.arange(len(column)) for name, column in ids.items()}
    texts = {name: column.cast(pa.large_string()) for name, column in ids.items()}
    everyone = pa.concat_arrays(list(texts.values())).unique().sort()
    return {name: np.asarray(pc.index_in(column, everyone)).astype(np.int64) for name, column in texts.items()}
