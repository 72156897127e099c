"""The store of one machine: one SQLite file, in WAL mode, on the disk before `add` returns.

    settings (name, value)                                       format, and the specification's hash
    rounds   (number, is_open)
    reports  (table_, round, uid, slot, report, public)          by its key, so rows are in no order of arrival
    counts   (table_, round, rows)                               kept up to date in the same commits
    changes  (version)

One thread writes; any number of connections and processes read. A reader sees one moment, and never waits for the
writer. Opening and closing rounds from another process waits for the writer's commit, and the writer for it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deniable.errors import BadInput, Failure
from deniable.stores.collector.upload import (
    ROWS_AT_ONCE,
    StoredRows,
    StoreSummary,
    Upload,
    UploadOutcome,
    outcome,
)

STORE_FILE = "reports.sqlite"
STORE_FORMAT = "1"
_WAIT_MS = 10_000
_SCHEMA = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE rounds (number INTEGER PRIMARY KEY, is_open INTEGER NOT NULL)",
    "CREATE TABLE changes (version INTEGER NOT NULL)",
    "CREATE TABLE counts (table_ TEXT, round INTEGER, rows INTEGER, PRIMARY KEY (table_, round)) WITHOUT ROWID",
    """CREATE TABLE reports (
      table_ TEXT NOT NULL, round INTEGER NOT NULL, uid TEXT NOT NULL, slot INTEGER NOT NULL,
      report BLOB NOT NULL, public TEXT,
      PRIMARY KEY (table_, round, uid, slot)
    ) WITHOUT ROWID""",
    "INSERT INTO changes VALUES (0)",
)
_INSERT = "INSERT INTO reports VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_STORED = "SELECT report, public FROM reports WHERE (table_, round, uid, slot) = (?, ?, ?, ?)"
_CHANGED = "UPDATE changes SET version = version + 1"
_ROWS = "SELECT uid, report, public FROM reports WHERE table_ = ? AND round = ? ORDER BY uid, slot"
_COUNTED = """INSERT INTO counts VALUES (?, ?, ?)
  ON CONFLICT (table_, round) DO UPDATE SET rows = rows + excluded.rows"""


class StoreFailure(Failure):
    """The disk is full or unusable. What was being added is not stored."""


def create_store(path: Path, specification: str, *, rounds: bool = False) -> None:
    """Make an empty store for reports of one specification (its SHA-256), whole or not at all.

    Without rounds all reports are of round 0, which is open. With rounds none is open yet.
    """
    with _connected(path, create=True) as connection, _as_failures(path):
        if connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise BadInput(f"there is a store {path.name!r} already. Nothing was written. Choose another folder.")
        with _transaction(connection):
            for statement in _SCHEMA:
                connection.execute(statement)
            settings = (("format", STORE_FORMAT), ("specification", specification))
            connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)
            if not rounds:
                connection.execute("INSERT INTO rounds VALUES (0, 1)")


class SqliteStore:
    """A `CollectorStore` in one file. Threads may share it: one adds at a time, and readers do not wait.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "reports.sqlite")
    >>> create_store(path, "15ab88")
    >>> store = SqliteStore(path, "15ab88")
    >>> store.add([Upload("users", 0, "7", 0, b"report")])
    [<UploadOutcome.ACCEPTED: 'accepted'>]
    >>> store.summary().counts
    {('users', 0): 1}
    >>> store.close()
    """

    def __init__(self, path: Path, specification: str) -> None:
        if not path.is_file():
            raise BadInput(f"there is no store {path.name!r}. Nothing was read. Run: deniable serve --init")
        self._path = path
        self._adding = threading.Lock()
        self._writer: sqlite3.Connection | None = _connect(path)
        try:
            self._check(specification)
        except BaseException:
            self.close()
            raise

    def _check(self, specification: str) -> None:
        try:
            held = dict(self._open_writer().execute("SELECT name, value FROM settings"))
        except sqlite3.DatabaseError:
            held = {}
        if held.get("format") != STORE_FORMAT:
            raise BadInput(
                f"{self._path.name!r} is not a store of this version, or it is damaged. Nothing was changed. "
                "Use the version that wrote it, or a copy."
            )
        if held.get("specification") != specification:
            raise BadInput(
                f"the store {self._path.name!r} holds reports of another specification. Nothing was changed. "
                "Restore the collection.json that it was made with."
            )

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            raise Failure("the store is closed. Nothing was stored. Open it again.")
        return self._writer

    def add(self, uploads: Sequence[Upload]) -> list[UploadOutcome]:
        """Keep uploads, all in one commit, and say what became of each."""
        with self._changing() as connection:
            is_open = dict(connection.execute("SELECT number, is_open FROM rounds"))
            outcomes = [_added(connection, upload, bool(is_open.get(upload.round))) for upload in uploads]
            accepted = Counter(
                upload[:2] for upload, became in zip(uploads, outcomes, strict=True) if became is UploadOutcome.ACCEPTED
            )
            if accepted:
                connection.executemany(_COUNTED, [(*key, rows) for key, rows in accepted.items()])
                connection.execute(_CHANGED)
        return outcomes

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """One commit of one thread, durable when this ends; after an error nothing of it has happened."""
        connection = self._open_writer()
        with self._adding, _as_failures(self._path), _transaction(connection):
            yield connection

    def read(self, table: str, round_: int) -> Iterator[StoredRows]:
        """The reports of a table and round as they were at one moment, ordered by id and slot."""
        with _connected(self._path) as connection, _as_failures(self._path):
            cursor = connection.execute(_ROWS, (table, round_))
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                yield StoredRows(*zip(*rows, strict=True))

    def summary(self) -> StoreSummary:
        """What is there."""
        with _connected(self._path) as connection, _as_failures(self._path):
            connection.execute("BEGIN")
            counts = {(table, number): rows for table, number, rows in connection.execute("SELECT * FROM counts")}
            rounds = {number: bool(is_open) for number, is_open in connection.execute("SELECT * FROM rounds")}
            (version,) = connection.execute("SELECT version FROM changes").fetchone()
        return StoreSummary(counts, rounds, version)

    def set_round(self, number: int, *, is_open: bool) -> None:
        """Open or close a round."""
        with self._changing() as connection:
            connection.execute("INSERT OR REPLACE INTO rounds VALUES (?, ?)", (number, is_open))
            connection.execute(_CHANGED)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _added(connection: sqlite3.Connection, upload: Upload, is_open: bool) -> UploadOutcome:
    """Insert an upload if it is new and its round is open."""
    if is_open and connection.execute(_INSERT, upload).rowcount:
        return UploadOutcome.ACCEPTED
    return outcome(upload, connection.execute(_STORED, upload.key).fetchone(), is_open=False)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path, *, create: bool = False) -> sqlite3.Connection:
    uri = path.resolve().as_uri() + ("?mode=rwc" if create else "?mode=rw")
    with _as_failures(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")  # a commit waits for the disk
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def _connected(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    connection = _connect(path, create=create)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _as_failures(path: Path) -> Iterator[None]:
    """SQLite's errors as failures: they say nothing about rows."""
    try:
        yield
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorname", type(problem).__name__)
        raise StoreFailure(
            f"the store {path.name!r} cannot be used ({code}). What was being stored is not. "
            "Check that the disk has room and that no other program holds the file."
        ) from None
