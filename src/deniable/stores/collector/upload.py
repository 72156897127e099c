"""What a store takes, what becomes of it, and the verbs that every store has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers
from deniable.errors import Failure

Part = tuple[str, int]
"""Table and round."""
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
    """Some reports of one table and round, as columns of Arrow, in the order of ids and slots."""

    uids: pa.Array
    reports: pa.Array
    publics: pa.Array
    """Public attributes as canonical JSON; null where there are none."""

    @classmethod
    def of(cls, uids: Sequence[str], reports: Sequence[bytes], publics: Sequence[str | None]) -> StoredRows:
        """Rows from one list per column."""
        return cls(pa.array(uids, pa.string()), pa.array(reports, pa.binary()), pa.array(publics, pa.string()))

    def listed(self) -> list[tuple[str, bytes, str | None]]:
        """Row by row."""
        return list(zip(*(column.to_pylist() for column in self), strict=True))


class StoreMark(NamedTuple):
    """A moment of a store, as it numbers what it writes."""

    page: int = 0
    arrival: int = 0
    commits: Mapping[int, int] = {}
    """The last commit of every writer, where there are several."""


class StoreGrowth(NamedTuple):
    """What came to one table and round after a mark, at one moment."""

    settled: StoredRows
    """What was settled since, in no order. Nothing of it is ever settled again."""
    recent: StoredRows
    """What is not settled: all of it if `replaces_recent`, else only what arrived after the mark."""
    replaces_recent: bool
    mark: StoreMark
    """This moment, or how far was read."""
    is_all: bool = True
    """Whether this is all; otherwise there is more that has settled, and nothing is said about the rest."""


ROWS_AT_ONCE = 1 << 14


class StoreFailure(Failure):
    """The disk is full or unusable, or the database is. What was being added is not acknowledged."""


class CollectorStore(Protocol):
    """Keeps each upload once. `add` returns only after what it accepted would survive a power cut."""

    def add(self, uploads: Sequence[Upload]) -> list[UploadOutcome]:
        """Keep uploads, all in one commit, and say what became of each."""

    def add_codes(self, uploads: Sequence[Upload]) -> NDArray[np.uint8]:
        """`add`, with numbers of `OUTCOMES`: for whoever adds many at a time."""

    def read(self, table: str, round_: int) -> Iterator[StoredRows]:
        """The reports of a table and round as they were at one moment, ordered by id (as UTF-8 bytes) and slot."""

    def since(self, table: str, round_: int, mark: StoreMark | None) -> StoreGrowth:
        """What came after a mark, or the first there is; no more at once than memory is made for."""

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


HELD_NOTHING, HELD_SAME, HELD_OTHER = 0, 1, 2
"""What is stored under the key of an upload: nothing, the same, or something else."""
OUTCOMES = (UploadOutcome.ACCEPTED, UploadOutcome.REPEATED, UploadOutcome.CONFLICT, UploadOutcome.CLOSED)


def codes_of(outcomes: Sequence[UploadOutcome]) -> NDArray[np.uint8]:
    """Outcomes as numbers of `OUTCOMES`.

    >>> codes_of([UploadOutcome.CLOSED, UploadOutcome.ACCEPTED]).tolist()
    [3, 0]
    """
    return np.array([OUTCOMES.index(outcome) for outcome in outcomes], dtype=np.uint8)


def outcome_codes(held: Integers, is_open: Booleans) -> NDArray[np.uint8]:
    """`outcome` for many: numbers of `OUTCOMES`, from what is held and whether the round is open.

    >>> outcome_codes(np.array([0, 0, 1, 2]), np.array([True, False, False, True])).tolist()
    [0, 3, 1, 2]
    """
    return np.where((held == HELD_NOTHING) & ~is_open, 3, held).astype(np.uint8)
