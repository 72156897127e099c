"""A collector's store with rounds as an engine that grows with it: what was read once is not read or checked again.

    settled   reports in runs of the store, which never change      only new runs are read, and merged
    recent    reports in no run yet                                 only the newest are read; all, after a run was added

Both are kept valid and in the order of ids, and an engine is made of the two together. What has to be done for all
reports then is one copy of their columns. Without rounds not even that (`growing_layers`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from deniable.cancellation import checkpoint
from deniable.engines.collecting.stored_reports import CollectorFolder, joined_rounds
from deniable.engines.local.checked_rows import CheckedRows, checked_rows
from deniable.engines.local.growing_layers import GrowingLayers
from deniable.engines.local.local_engine import LocalEngine
from deniable.engines.local.opening import open_validated
from deniable.stores.collector.upload import CollectorStore, StoredRows, StoreMark
from deniable.tables.reports.report_table import complete_users

_MOST_ID_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of a table and round."""

    settled: CheckedRows
    recent: CheckedRows
    mark: StoreMark | None = None
    both: CheckedRows | None = None


class GrowingStore:
    """Engines over everything that a store holds, one after another. Only one thread may ask for them."""

    def __init__(self, folder: CollectorFolder, store: CollectorStore) -> None:
        self._folder, self._store = folder, store
        self._parts: dict[tuple[str, int], _Part] = {}

    def engine(self) -> LocalEngine | None:
        """An engine over what is committed now; None if ids take too much room."""
        collection, refused = self._folder.collection, dict[str, Counter[str]]()
        grown = {part: self._grown(part) for part in sorted(self._store.summary().counts)}
        if sum(checked.table["uid"].nbytes for checked in grown.values()) > _MOST_ID_BYTES:
            self._parts = {}
            return None
        kept = joined_rounds({part: checked.table for part, checked in grown.items()})
        for name, table in kept.items():
            refused[name] = Counter()
            for (of, _), checked in grown.items():
                refused[name] += checked.refused if of == name else Counter()
            if collection.rounds is not None or collection.reports_per_user(name) > 1:
                kept[name], incomplete = complete_users(collection, name, table)
                refused[name] += incomplete
            checkpoint()
        return open_validated(collection, kept, refused)

    def _grown(self, part: tuple[str, int]) -> CheckedRows:
        """The reports of a table and round."""
        while True:
            known, (name, _) = self._parts.get(part), part
            growth = self._store.since(*part, None if known is None else known.mark)
            if known is None:
                nothing = checked_rows(self._folder.collection, name, StoredRows.of((), (), ()))
                known = _Part(nothing, nothing)
            elif known.both is not None and not growth.replaces_recent and not len(growth.recent.uids):
                self._parts[part] = replace(known, mark=growth.mark)
                return known.both
            collection, recent = self._folder.collection, known.recent
            settled = known.settled.with_more(checked_rows(collection, name, growth.settled, recent))
            if not growth.is_all:
                self._parts[part] = _Part(settled, recent, growth.mark)
                continue
            new = checked_rows(collection, name, growth.recent)
            recent = new if growth.replaces_recent else recent.with_more(new)
            both = settled.with_more(recent)
            self._parts[part] = _Part(settled, recent, growth.mark, both)
            return both


def growing(folder: CollectorFolder, store: CollectorStore) -> GrowingStore | GrowingLayers | None:
    """A store that grows; None if columns' types depend on all reports."""
    collection = folder.collection
    if folder.simulation or any(table.public for table in collection.tables):
        return None
    return GrowingLayers(folder, store) if collection.rounds is None else GrowingStore(folder, store)
