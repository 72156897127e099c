"""Where reports of streams without trust are written, in the order of arrival: what a log needs, and a file for it.

reports    (number, stream, uid, report)    one per user and stream
thresholds (stream, position, theta)        what was announced
renewals   (stream, after)                  θ was renewed after the report of that number
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from deniable.stores.collector.upload import StoreFailure

STREAM_LOG_FILE = "streams.sqlite"
_READ_AT_ONCE = 1 << 16
_JOURNAL_SCHEMA = (
    """CREATE TABLE reports (number INTEGER PRIMARY KEY, stream TEXT NOT NULL, uid TEXT NOT NULL,
      report BLOB NOT NULL, UNIQUE (stream, uid))""",
    "CREATE TABLE thresholds (stream TEXT, position INTEGER, theta REAL)",
    "CREATE TABLE renewals (stream TEXT, after INTEGER)",
)

LoggedReport = tuple[int, str, bytes]
"""Number, user and report."""


class StreamJournal(Protocol):
    """Keeps the order of reports. What is written inside `changing` is on the disk when that ends, or nothing is."""

    shared: bool
    """Whether other servers write to it as well."""

    def changing(self, stream: str) -> AbstractContextManager[None]:
        """A change of one stream; nobody else changes it meanwhile."""

    def reading(self) -> AbstractContextManager[None]:
        """One moment, whoever writes meanwhile."""

    def held(self, stream: str, uids: Sequence[str]) -> dict[str, bytes]:
        """The reports that some users have sent."""

    def append(self, stream: str, reports: Sequence[tuple[str, bytes]]) -> None:
        """Write reports of users who have sent none."""

    def logged(self, stream: str, after: int, until: int) -> Iterator[Sequence[LoggedReport]]:
        """Reports with numbers after one and up to another, in their order, some at a time."""

    def last(self, stream: str) -> int:
        """The number of the last report; 0 if there is none."""

    def thresholds(self, stream: str) -> list[float]:
        """Every θ that was announced."""

    def announce(self, stream: str, position: int, theta: float) -> None:
        """Write a θ."""

    def renewals(self, stream: str) -> list[int]:
        """After which reports θ was renewed."""

    def renew(self, stream: str, after: int) -> None:
        """Write that θ is renewed."""

    def close(self) -> None:
        """Let go of files and connections. A second call does nothing."""


def create_stream_file(folder: Path) -> None:
    """Make an empty file, whole or not at all."""
    with _as_failures():
        connection = _connect(folder, create=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _JOURNAL_SCHEMA:
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            connection.close()


class StreamFile:
    """A `StreamJournal` in one SQLite file, for one server."""

    shared = False

    def __init__(self, folder: Path) -> None:
        with _as_failures():
            self._connection = _connect(folder)

    @contextmanager
    def changing(self, stream: str) -> Iterator[None]:
        """A change of one stream."""
        del stream  # the file has one writer
        with _as_failures(), self._transaction("BEGIN IMMEDIATE", "COMMIT"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One moment."""
        with _as_failures(), self._transaction("BEGIN", "ROLLBACK"):
            yield

    @contextmanager
    def _transaction(self, begin: str, end: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute(end)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def held(self, stream: str, uids: Sequence[str]) -> dict[str, bytes]:
        """The reports that some users have sent."""
        query = "SELECT report FROM reports WHERE stream = ? AND uid = ?"
        rows = ((uid, self._connection.execute(query, (stream, uid)).fetchone()) for uid in set(uids))
        return {uid: row[0] for uid, row in rows if row is not None}

    def append(self, stream: str, reports: Sequence[tuple[str, bytes]]) -> None:
        """Write reports of users who have sent none."""
        rows = ((stream, *report) for report in reports)
        self._connection.executemany("INSERT INTO reports VALUES (NULL, ?, ?, ?)", rows)

    def logged(self, stream: str, after: int, until: int) -> Iterator[Sequence[LoggedReport]]:
        """Reports in their order."""
        query = (
            "SELECT number, uid, report FROM reports WHERE stream = ? AND number > ? AND number <= ? ORDER BY number"
        )
        cursor = self._connection.execute(query, (stream, after, until))
        while rows := cursor.fetchmany(_READ_AT_ONCE):
            yield rows

    def last(self, stream: str) -> int:
        """The number of the last report."""
        query = "SELECT COALESCE(MAX(number), 0) FROM reports WHERE stream = ?"
        return int(self._connection.execute(query, (stream,)).fetchone()[0])

    def thresholds(self, stream: str) -> list[float]:
        """Every θ that was announced."""
        query = "SELECT theta FROM thresholds WHERE stream = ? ORDER BY position"
        return [theta for (theta,) in self._connection.execute(query, (stream,))]

    def announce(self, stream: str, position: int, theta: float) -> None:
        """Write a θ."""
        self._connection.execute("INSERT INTO thresholds VALUES (?, ?, ?)", (stream, position, theta))

    def renewals(self, stream: str) -> list[int]:
        """After which reports θ was renewed."""
        query = "SELECT after FROM renewals WHERE stream = ? ORDER BY rowid"
        return [after for (after,) in self._connection.execute(query, (stream,))]

    def renew(self, stream: str, after: int) -> None:
        """Write that θ is renewed."""
        self._connection.execute("INSERT INTO renewals VALUES (?, ?)", (stream, after))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _connect(folder: Path, *, create: bool = False) -> sqlite3.Connection:
    uri = (folder / STREAM_LOG_FILE).resolve().as_uri() + ("?mode=rwc" if create else "?mode=rw")
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


@contextmanager
def _as_failures() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorname", type(problem).__name__)
        raise StoreFailure(
            f"the streams' log cannot be used ({code}). What was being stored is not. Check that the disk has room."
        ) from None
