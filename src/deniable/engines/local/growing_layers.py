"""A collector's store without rounds as an engine that grows with it, at a cost that depends on what is new alone.

    settled   reports in runs of the store, which never change     read, checked and put into a layer once
    rest      of users whose other slots have not settled          looked at again
    recent    reports in no run yet                                only the newest are read and checked

Recent reports and the rest are the last layer, which is made anew. Layers of similar sizes are merged, up to a size
at which that takes a moment: so there are few, and what is known of the large ones stays known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.cancellation import checkpoint
from deniable.engines.collecting.stored_reports import CollectorFolder
from deniable.engines.local.checked_rows import CheckedRows, checked_rows, warm_up
from deniable.engines.local.local_engine import LocalEngine
from deniable.engines.local.user_numbers import UserNumbers
from deniable.engines.reports.layered_store import LayeredStore, merged_layers
from deniable.engines.reports.report_stores import MemoryStore
from deniable.errors import Failure
from deniable.stores.collector.upload import CollectorStore, StoredRows, StoreGrowth, StoreMark
from deniable.tables.reports.report_table import INCOMPLETE, arrow_integers

LARGEST_MERGED = 1 << 22
"""Reports in a layer that is made of others."""
_MOST_ID_BYTES = 2**30


class _UserRows(NamedTuple):
    """Reports with the numbers of their users."""

    users: Integers
    reports: pa.Table


@dataclass(frozen=True, slots=True)
class _GrownTable:
    """What is known of a table."""

    rest: _UserRows
    recent: CheckedRows
    layers: tuple[MemoryStore, ...] = ()
    refused: Counter[str] = field(default_factory=Counter)
    """Of what has settled."""
    mark: StoreMark | None = None
    opened: tuple[LayeredStore, Counter[str]] | None = None


class GrowingLayers:
    """Engines over everything that a store holds, one after another. Only one thread may ask for them."""

    def __init__(self, folder: CollectorFolder, store: CollectorStore) -> None:
        self._collection, self._store = folder.collection, store
        self._slots = {table.name: self._collection.reports_per_user(table.name) for table in self._collection.tables}
        # If no user can be met twice, nobody has to be recognised.
        self._numbers = UserNumbers() if len(self._slots) > 1 or max(self._slots.values()) > 1 else None
        self._tables: dict[str, _GrownTable] = {}

    def engine(self) -> LocalEngine | None:
        """An engine over what is committed now; None if ids take too much room."""
        if not self._tables:
            warm_up()  # the first question waits in any case
        held = {name for name, _ in self._store.summary().counts}
        stores, refused = {}, {}
        for name in (table.name for table in self._collection.tables if table.name in held):
            stores[name], refused[name] = self._grown(name)
            if self._numbers is not None and self._numbers.bytes > _MOST_ID_BYTES:
                self._tables, self._numbers = {}, UserNumbers()
                return None
        return LocalEngine(self._collection.asked, stores, refused, False)

    def _grown(self, name: str) -> tuple[LayeredStore, Counter[str]]:
        """The reports of a table. What has been read is known, also if something ends this."""
        while True:
            known = self._tables.get(name)
            growth = self._store.since(name, 0, None if known is None else known.mark)
            if known is None:
                nothing = checked_rows(self._collection, name, StoredRows.of((), (), ()))
                known = _GrownTable(
                    _UserRows(np.empty(0, dtype=np.int64), nothing.table.drop_columns(["uid"])), nothing
                )
            elif known.opened is not None and not growth.replaces_recent and not len(growth.recent.uids):
                self._tables[name] = replace(known, mark=growth.mark)
                return known.opened
            known = self._tables[name] = self._with(name, known, growth)
            checkpoint()
            if growth.is_all and known.opened is not None:
                return known.opened

    def _with(self, name: str, known: _GrownTable, growth: StoreGrowth) -> _GrownTable:
        """What is known after a growth."""
        layers, rest, refused, slots = known.layers, known.rest, known.refused, self._slots[name]
        if len(growth.settled.uids):
            settled = checked_rows(self._collection, name, growth.settled, known.recent, in_order=False)
            rows = self._numbered(settled, sum(layer.ids.size for layer in layers))
            whole, rest = _split(_joined(rest, rows), slots)
            layers, refused = _merged((*layers, whole) if whole.rows else layers), refused + settled.refused
        if not growth.is_all:
            # Of what was recent, some has settled and some may not have; the next growth has all that is.
            return _GrownTable(rest, known.recent, layers, refused, growth.mark)
        recent = checked_rows(self._collection, name, growth.recent)
        recent = recent if growth.replaces_recent else known.recent.with_more(recent)
        rows = self._numbered(recent, sum(layer.ids.size for layer in layers))
        last, missing = _split(_joined(rest, rows), slots)
        reasons = refused + recent.refused + Counter({INCOMPLETE: missing.users.size})
        store = LayeredStore((*layers, last), slots, self._names)
        return _GrownTable(rest, recent, layers, refused, growth.mark, (store, +reasons))

    def _numbered(self, rows: CheckedRows, before: int) -> _UserRows:
        table = rows.table
        uids = table["uid"].combine_chunks()
        users = np.arange(before, before + len(uids)) if self._numbers is None else self._numbers.of(uids)
        return _UserRows(users, table.drop_columns(["uid"]))

    def _names(self, numbers: Integers) -> NDArray[np.generic]:
        if self._numbers is None:
            raise Failure("ids of users are not kept. Nothing was computed. Open the folder with deniable.connect.")
        return self._numbers.names(numbers)


def _joined(rows: _UserRows, more: _UserRows) -> _UserRows:
    if not rows.users.size:
        return more
    return _UserRows(np.concatenate([rows.users, more.users]), pa.concat_tables([rows.reports, more.reports]))


def _split(rows: _UserRows, slots: int) -> tuple[MemoryStore, _UserRows]:
    """Users who have sent every slot, in order, and the reports of others. No slot of a user is there twice."""
    users, reports = rows
    if slots == 1:
        order = np.argsort(users, kind="stable")
        return _layer(users[order], reports, order, 1), _UserRows(users[:0], reports.slice(0, 0))
    order = np.lexsort((np.asarray(reports["slot"]), users))
    ordered = users[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if ordered.size else order
    sizes = np.diff(np.append(starts, ordered.size))
    whole = np.repeat(sizes == slots, sizes)
    rest = order[~whole]
    return (
        _layer(ordered[starts[sizes == slots]], reports, order[whole], slots),
        _UserRows(users[rest], reports.take(arrow_integers(rest))),
    )


def _layer(users: Integers, reports: pa.Table, order: Integers, slots: int) -> MemoryStore:
    columns = reports.drop_columns(["slot"])
    if (order[1:] < order[:-1]).any() or order.size < reports.num_rows:
        columns = columns.take(arrow_integers(order))
    return MemoryStore(columns.combine_chunks(), slots, users)


def _merged(layers: tuple[MemoryStore, ...]) -> tuple[MemoryStore, ...]:
    """Few layers: each is more than twice as large as the next, or as large as merged ones may be."""
    listed = list(layers)
    while len(listed) > 1:
        before, last = listed[-2:]
        if before.rows > 2 * last.rows or before.rows + last.rows > LARGEST_MERGED:
            break
        checkpoint()
        listed[-2:] = [merged_layers(before, last)]
    return tuple(listed)
