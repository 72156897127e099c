"""What a store takes, what becomes of it, and the verbs that every store has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from deniable.errors import Failure

Key = tuple[str, int, str, int]
"""Table, round, user and slot: what is kept only once."""
Held = tuple[bytes, str | None]
"""What is kept under a key: the report and the public attributes."""


class Upload(NamedTuple):
    """One report of one user, which has passed every check that does not need the store."""

    table: str
    round: int
    uid: str
    slot: int
    report: bytes
    public: str | None = None
    """The user's public attributes as canonical JSON; None in a table without any."""

    @property
    def key(self) -> Key:
        """What is kept only once."""
        return self[:4]


class UploadOutcome(Enum):
    """What became of an upload.

                        stored already?      round open?
    the same bytes  →   REPEATED
    other bytes     →   CONFLICT             (the first stay)
    nothing         →                        ACCEPTED if it is, else CLOSED
    """

    ACCEPTED = "accepted"
    REPEATED = "repeated"
    CONFLICT = "another report for a user, table, slot and round that had one"
    CLOSED = "of a round that is not open"


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """How many reports a store holds, and which rounds are open."""

    counts: Mapping[tuple[str, int], int]
    """Reports by table and round."""
    rounds: Mapping[int, bool]
    """Rounds that were ever opened, and whether each still is."""
    version: int
    """A number that is another one after every change."""


class StoredRows(NamedTuple):
    """Some reports of one table and round, as columns, in the order of ids and slots."""

    uids: Sequence[str]
    reports: Sequence[bytes]
    publics: Sequence[str | None]


class Arrivals(NamedTuple):
    """What arrived last for one table and round, at one moment."""

    rows: StoredRows
    """What came after the mark that was given and was not moved since, in no order."""
    total: int
    """How many reports there are in all. If fewer were known at the mark, and `rows` do not add up to it, some of them
    have been moved since."""
    mark: int
    """Where this moment is among arrivals."""


ROWS_AT_ONCE = 1 << 14


class StoreFailure(Failure):
    """The disk is full or unusable, or the database is. What was being added is not acknowledged."""


class CollectorStore(Protocol):
    """Keeps each upload once. `add` returns only after what it accepted would survive a power cut."""

    def add(self, uploads: Sequence[Upload]) -> list[UploadOutcome]:
        """Keep uploads, all in one commit, and say what became of each."""

    def read(self, table: str, round_: int) -> Iterator[StoredRows]:
        """The reports of a table and round as they were at one moment, ordered by id (as UTF-8 bytes) and slot."""

    def arrivals(self, table: str, round_: int, after: int) -> Arrivals | None:
        """What arrived for a table and round after a mark; None in a store that does not know."""

    def summary(self) -> StoreSummary:
        """What is there."""

    def set_round(self, number: int, *, is_open: bool) -> None:
        """Open or close a round. After it is closed, nothing new is accepted for it."""

    def correct_counts(self, counts: Mapping[tuple[str, int], int]) -> None:
        """Replace the counts by these, which somebody has counted. Nothing may be added meanwhile."""

    def tidy(self) -> bool:
        """Do a little of the work that can wait for quiet times; says whether there is more."""

    def close(self) -> None:
        """Let go of files and connections. A second call does nothing."""


def outcome(upload: Upload, stored: Held | None, *, is_open: bool) -> UploadOutcome:
    """What becomes of an upload, given what is stored under its key. Every store decides here."""
    if stored is not None:
        return UploadOutcome.REPEATED if stored == (upload.report, upload.public) else UploadOutcome.CONFLICT
    return UploadOutcome.ACCEPTED if is_open else UploadOutcome.CLOSED
