"""A table whose reports arrive while it is asked: layers of whole users, of whom each is in one layer only.

Layers are added and merged, and what is known of a layer stays known. Sums over users are sums over layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.engines.reports.report_stores import MemoryStore
from deniable.engines.reports.user_blocks import TableBlock
from deniable.tables.reports.report_table import arrow_integers


@dataclass(frozen=True, slots=True, eq=False)
class LayeredStore:
    """Reports in memory, in layers; ids are numbers, the same for a user in all tables."""

    layers: tuple[MemoryStore, ...]
    slots: int
    names: Callable[[Integers], NDArray[np.generic]] = field(repr=False)
    """The ids of users by their numbers."""

    @property
    def rows(self) -> int:
        """How many reports there are."""
        return sum(layer.rows for layer in self.layers)

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports, block by block, in the order of users' numbers."""
        filled = sorted((layer for layer in self.layers if layer.rows), key=lambda layer: int(layer.ids[0]))
        if all(before.ids[-1] < after.ids[0] for before, after in pairwise(filled)):
            return chain.from_iterable(layer.read(columns) for layer in filled)
        return _in_order([layer.read(columns) for layer in filled], self.slots)

    def user_ids(self) -> Iterator[NDArray[np.generic]]:
        """The ids of all users, as they were reported, in the order of `read`."""
        return (self.names(block.users.astype(np.int64)) for block in self.read(("view",)))

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""
        return pa.concat_arrays([layer.distinct(column) for layer in self.layers]).unique()

    def view_counts(self, views: int) -> Integers:
        """How many reports there are of each view; those of a layer are counted once."""
        total = np.zeros(views, dtype=np.int64)
        for layer in self.layers:
            total += layer.view_counts(views)
        return total


def merged_layers(first: MemoryStore, second: MemoryStore) -> MemoryStore:
    """Two layers of different users as one."""
    ids = np.concatenate([first.ids, second.ids])
    reports = pa.concat_tables([first.reports, second.reports])
    if first.ids.size and second.ids.size and first.ids[-1] > second.ids[0]:
        ids, reports = _sorted_users(ids, reports, first.slots)
    return MemoryStore(reports.combine_chunks(), first.slots, ids)


def _in_order(readers: list[Iterator[TableBlock]], slots: int) -> Iterator[TableBlock]:
    """Blocks of several readers as one: as far as all of them have been read."""
    held: dict[int, TableBlock] = {}
    while True:
        for number, reader in enumerate(readers):
            if number not in held or not held[number].users.size:
                following = next(reader, None)
                if following is None:
                    held.pop(number, None)
                else:
                    held[number] = following
        if not held:
            return
        reached, heads = min(block.users[-1] for block in held.values()), []
        for number, block in held.items():
            count = int(np.searchsorted(block.users, reached, side="right"))
            heads.append(TableBlock(block.users[:count], block.reports.slice(0, count * slots)))
            held[number] = TableBlock(block.users[count:], block.reports.slice(count * slots))
        users = np.concatenate([head.users for head in heads])
        yield TableBlock(*_sorted_users(users, pa.concat_tables([head.reports for head in heads]), slots))


def _sorted_users(users: NDArray[np.generic], reports: pa.Table, slots: int) -> tuple[NDArray[np.generic], pa.Table]:
    """Whole users in the order of their numbers."""
    order = np.argsort(users, kind="stable")
    rows = (order[:, None] * slots + np.arange(slots)).ravel()
    return users[order], reports.take(arrow_integers(rows)).combine_chunks()
