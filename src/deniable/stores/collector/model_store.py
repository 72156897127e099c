"""A store in memory: what the others have to agree with, and good for trying things out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from deniable.stores.collector.upload import (
    ROWS_AT_ONCE,
    StoredRows,
    StoreGrowth,
    StoreMark,
    StoreSummary,
    Upload,
    UploadOutcome,
    codes_of,
    outcome,
)


class ModelStore:
    """A dictionary with the verbs of a `CollectorStore`. It forgets everything with its process.

    >>> store = ModelStore()
    >>> store.set_round(0, is_open=True)
    >>> upload = Upload("users", 0, "7", 0, b"report")
    >>> [outcome.name for outcome in store.add([upload, upload, upload._replace(report=b"other")])]
    ['ACCEPTED', 'REPEATED', 'CONFLICT']
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, str, int], tuple[bytes, str | None]] = {}
        self._rounds: dict[int, bool] = {}
        self._version = 0

    def add(self, uploads: Sequence[Upload]) -> list[UploadOutcome]:
        """Keep uploads, and say what became of each."""
        outcomes = []
        for upload in uploads:
            became = outcome(upload, self._kept.get(upload.key), is_open=self._rounds.get(upload.round, False))
            if became is UploadOutcome.ACCEPTED:
                self._kept[upload.key] = (upload.report, upload.public)
                self._version += 1
            outcomes.append(became)
        return outcomes

    def add_codes(self, uploads: Sequence[Upload]) -> NDArray[np.uint8]:
        """`add`, with numbers of `OUTCOMES`."""
        return codes_of(self.add(uploads))

    def read(self, table: str, round_: int) -> Iterator[StoredRows]:
        """The reports of a table and round, ordered by id and slot."""
        rows = sorted(
            (uid.encode(), slot, uid, report, public)
            for (name, number, uid, slot), (report, public) in self._kept.items()
            if (name, number) == (table, round_)
        )
        for first in range(0, len(rows), ROWS_AT_ONCE):
            _, _, uids, reports, publics = zip(*rows[first : first + ROWS_AT_ONCE], strict=True)
            yield StoredRows.of(uids, reports, publics)

    def since(self, table: str, round_: int, mark: StoreMark | None) -> StoreGrowth:  # noqa: ARG002
        """Everything, always: this store does not know what came when."""
        nothing, everything = (
            StoredRows.of((), (), ()),
            [row for rows in self.read(table, round_) for row in rows.listed()],
        )
        recent = StoredRows.of(*zip(*everything, strict=True)) if everything else nothing
        return StoreGrowth(nothing, recent, True, StoreMark())

    def summary(self) -> StoreSummary:
        """What is there."""
        counts = Counter((table, number) for table, number, _, _ in self._kept)
        return StoreSummary(dict(counts), dict(self._rounds), self._version)

    def set_round(self, number: int, *, is_open: bool) -> None:
        """Open or close a round."""
        self._rounds[number] = is_open
        self._version += 1

    def correct_counts(self, counts: Mapping[tuple[str, int], int]) -> None:
        """Counts are always computed here."""

    def tidy(self) -> bool:
        """Nothing has to be tidied."""
        return False

    def close(self) -> None:
        """Nothing has to be closed."""
