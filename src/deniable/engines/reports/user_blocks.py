"""Validated reports, read block by block: each block holds whole users, the same in all tables of a question.

Reports of a table are sorted by user and slot, and every user has all slots (`file_validation` sees to both). So
tables are joined by walking along them side by side, and nothing has to fit into memory at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.cancellation import checkpoint
from deniable.queries.question.partners import PARTNER
from deniable.tables.schema.report_format import ANSWER_COLUMNS
from deniable.tables.schema.rounds import ROUND_COLUMN

BLOCK_REPORTS = 2**18
"""Reports that are processed together."""


@dataclass(frozen=True, slots=True, eq=False)
class TableBlock:
    """The reports of consecutive users."""

    users: NDArray[np.generic]
    """Their ids, ascending."""
    reports: pa.Table
    """view, seed, y and public columns: all slots of the first user, then of the second."""


class ReportFacts(Protocol):
    """What has to be known about a table's reports, wherever they are, before a question is answered."""

    @property
    def slots(self) -> int:
        """Reports per user."""

    @property
    def rows(self) -> int:
        """How many reports there are."""

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""

    def view_counts(self, views: int) -> Integers:
        """How many reports there are of each view."""


def kept_reports(stores: Mapping[str, ReportFacts], refused: Mapping[str, Counter[str]]) -> dict[str, tuple[int, int]]:
    """Of each table, how many reports were kept and refused."""
    return {name: (store.rows, refused[name].total()) for name, store in stores.items()}


def users_in(stores: Mapping[str, ReportFacts], tables: Sequence[str]) -> int:
    """How many users can be in all of some tables."""
    known = [stores[name] for name in tables if name in stores]
    return min((store.rows // store.slots for store in known), default=0)


def reported_rounds(stores: Mapping[str, ReportFacts], tables: Sequence[str]) -> list[int]:
    """The rounds that some table has reports of; none in a collection without rounds."""
    known = [stores[name] for name in tables if name in stores]
    return sorted({number for store in known for number in store.distinct(ROUND_COLUMN).to_pylist()})


def users_a_round(stores: Mapping[str, ReportFacts], tables: Sequence[str], *, rounds: bool) -> int:
    """How many users answer: in rounds, on average."""
    users = users_in(stores, tables)
    if not rounds:
        return users
    most = max(len(reported_rounds(stores, [name])) for name in tables)
    return math.ceil(users / max(most, 1))


class Store(ReportFacts, Protocol):
    """The reports of one table, which can be read in the order of users."""

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports with the named columns, block by block."""


class StoreWithIds(Store, Protocol):
    """A store of a collection without rounds."""

    def user_ids(self) -> Iterator[NDArray[np.generic]]:
        """The ids of all users, in their order."""


def id_reports(store: StoreWithIds) -> tuple[list[Any], tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """All ids of a table that fits into memory, and view, seed and y of their reports."""
    ids = [each for block in store.user_ids() for each in block.tolist()]
    blocks = [block.reports for block in store.read(ANSWER_COLUMNS)]
    if not blocks:
        none = np.zeros(0, dtype=np.uint32)
        return ids, (none, none, none)
    view, seed, y = (np.concatenate([np.asarray(block[name]) for block in blocks]) for name in ANSWER_COLUMNS)
    return ids, (view, seed, y)


def joined(
    stores: Mapping[str, Store],
    columns: Mapping[str, Sequence[str]],
    optional: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Iterator[dict[str, pa.Table]]:
    """Blocks of users who have reports in all tables that are not `optional`, or in any if all are.

    Reports of an optional table have another column, `PARTNER`: whether the user has any. Where not, the columns that
    `optional` names are zero, and all others NULL.
    """
    if len(stores) == 1:
        ((name, store),) = stores.items()
        for block in store.read(columns[name]):
            checkpoint()
            yield {name: block.reports}
        return
    readers = {name: store.read(columns[name]) for name, store in stores.items()}
    needed = [name for name in stores if name not in optional]
    held: dict[str, TableBlock] = {}
    while True:
        for name, reader in list(readers.items()):
            while name in readers and (name not in held or not held[name].users.size):
                following = next(reader, None)
                if following is not None:
                    held[name] = following
                elif name in needed or name not in held:
                    return  # this table has no more users, so nobody else is in all tables
                else:
                    del readers[name]
        if not readers:
            return
        reached = min(held[name].users[-1] for name in readers)
        heads = {}
        for name, block in held.items():
            count = int(np.searchsorted(block.users, reached, side="right"))
            slots = stores[name].slots
            heads[name] = TableBlock(block.users[:count], block.reports.slice(0, count * slots))
            held[name] = TableBlock(block.users[count:], block.reports.slice(count * slots))
        users = [heads[name].users for name in needed]
        common = _common(users) if users else np.unique(np.concatenate([head.users for head in heads.values()]))
        checkpoint()
        if common.size:
            yield {
                name: _only(heads[name], common, store.slots)
                if name in needed
                else _filled_up(heads[name], common, store.slots, optional[name])
                for name, store in stores.items()
            }


def _filled_up(block: TableBlock, users: NDArray[np.generic], slots: int, zero: Collection[str]) -> pa.Table:
    """The reports of a block's users among others, who have none."""
    known = np.isin(users, block.users)
    positions = np.zeros(users.size, dtype=np.int64)
    positions[known] = np.searchsorted(block.users, users[known])
    rows = (positions[:, None] * slots + np.arange(slots)).ravel()
    taken = block.reports.take(pa.array(rows, mask=np.repeat(~known, slots)))
    filled = {name: pc.fill_null(taken[name], 0) if name in zero else taken[name] for name in taken.column_names}
    made = pa.table({**filled, PARTNER: pa.array(np.repeat(known, slots))})
    return made.combine_chunks()


def _common(ids: list[NDArray[np.generic]]) -> NDArray[np.generic]:
    common = ids[0]
    for other in ids[1:]:
        if not np.array_equal(common, other):
            common = np.intersect1d(common, other, assume_unique=True)
    return common


def _only(block: TableBlock, users: NDArray[np.generic], slots: int) -> pa.Table:
    """The reports of some of a block's users."""
    if block.users.size == users.size:
        return block.reports
    positions = np.searchsorted(block.users, users)
    rows = (positions[:, None] * slots + np.arange(slots)).ravel()
    return block.reports.take(pa.array(rows))
