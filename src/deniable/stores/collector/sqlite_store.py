"""The store of one machine: one SQLite file, in WAL mode, on the disk before `add` returns.

    settings (name, value)                                       format, and the specification's hash
    rounds   (number, is_open)
    arrivals (number, table_, round, content)                    what came last: one value per commit, table and round
    reports  (table_, round, uid, slot, report, public)          the rest by its key, so rows are in no order of arrival
    counts   (table_, round, rows)                               kept up to date in the same commits
    changes  (version)

    added → arrivals → (many, sorted by key, at quiet times) → reports

A tree of keys costs a page per row to add to, so a commit only appends. Arrivals are also held in memory, at most
`MOST_RECENT` rows; `tidy` moves them into the tree, sorted and in small commits. Until its last commit a row may be in
both places: readers see it once.

One thread writes; any number of connections and processes read. A reader sees one moment, and never waits for the
writer. Opening and closing rounds from another process waits for the writer's commit, and the writer for it.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import accumulate, groupby, islice
from operator import itemgetter
from pathlib import Path

from deniable.errors import BadInput, Failure
from deniable.stores.collector.arrival_chunks import packed, unpacked
from deniable.stores.collector.upload import (
    ROWS_AT_ONCE,
    Arrivals,
    Held,
    Key,
    StoredRows,
    StoreFailure,
    StoreSummary,
    Upload,
    UploadOutcome,
    outcome,
)

STORE_FILE = "reports.sqlite"
STORE_FORMAT = "2"
MOST_RECENT, IDLE_RECENT = 1 << 17, 1 << 13
"""Rows that arrived last: above the first, every commit moves some; above the second, quiet times do."""
_SLICE = 1 << 12
_WAIT_MS = 10_000
_KEY_COLUMNS = """table_ TEXT NOT NULL, round INTEGER NOT NULL, uid TEXT NOT NULL, slot INTEGER NOT NULL,
  report BLOB NOT NULL, public TEXT, PRIMARY KEY (table_, round, uid, slot)"""
_FILE_SCHEMA = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE rounds (number INTEGER PRIMARY KEY, is_open INTEGER NOT NULL)",
    "CREATE TABLE changes (version INTEGER NOT NULL)",
    "CREATE TABLE counts (table_ TEXT, round INTEGER, rows INTEGER, PRIMARY KEY (table_, round)) WITHOUT ROWID",
    "CREATE TABLE arrivals (number INTEGER PRIMARY KEY, table_ TEXT, round INTEGER, content BLOB)",
    f"CREATE TABLE reports ({_KEY_COLUMNS}) WITHOUT ROWID",
    "INSERT INTO changes VALUES (0)",
)
_INSERT_ROW = "INSERT OR IGNORE INTO {} VALUES (?, ?, ?, ?, ?, ?)"
# Many rows in one statement: each number of a JSON list says where an id begins in a text, its length, and the slot.
_INSERT_MANY = """INSERT OR IGNORE INTO {}
  SELECT ?1, ?2, CAST(substr(?3, (value >> 32) + 1, value >> 16 & 65535) AS TEXT), value & 65535,
    substr(?5, key * 32 + 1, 32), NULL FROM json_each(?4)"""
_LOOK_UP = """SELECT key, report, public FROM json_each(?4) CROSS JOIN reports
  ON table_ = ?1 AND round = ?2 AND slot = value & 65535
  AND uid = CAST(substr(?3, (value >> 32) + 1, value >> 16 & 65535) AS TEXT)"""
_CHANGED = "UPDATE changes SET version = version + 1"
_ARRIVED = "SELECT table_, round, content FROM arrivals"
_MARK_AND_COUNT = """SELECT (SELECT COALESCE(MAX(number), 0) FROM arrivals),
  (SELECT COALESCE(SUM(rows), 0) FROM counts WHERE table_ = ? AND round = ?)"""
_ALL_ROWS = """SELECT uid, slot, report, public FROM reports WHERE table_ = ?1 AND round = ?2
  UNION ALL SELECT uid, slot, report, public FROM recent ORDER BY uid, slot"""
_ONLY_RECENT = """DELETE FROM recent WHERE EXISTS (SELECT 1 FROM reports
  WHERE (table_, round, uid, slot) = (recent.table_, recent.round, recent.uid, recent.slot))"""
_ADD_COUNT = """INSERT INTO counts VALUES (?, ?, ?)
  ON CONFLICT (table_, round) DO UPDATE SET rows = rows + excluded.rows"""


def create_store(path: Path, specification: str, *, rounds: bool = False) -> None:
    """Make an empty store for reports of one specification (its SHA-256), whole or not at all.

    Without rounds all reports are of round 0, which is open. With rounds none is open yet.
    """
    with _connected(path, create=True) as connection, _as_failures(path):
        if connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise BadInput(f"there is a store {path.name!r} already. Nothing was written. Choose another folder.")
        with _transaction(connection):
            for statement in _FILE_SCHEMA:
                connection.execute(statement)
            settings = (("format", STORE_FORMAT), ("specification", specification))
            connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)
            if not rounds:
                connection.execute("INSERT INTO rounds VALUES (0, 1)")


def file_damage(path: Path) -> str | None:
    """What SQLite says about the structure of a file: None if it is whole."""
    try:
        with _connected(path) as connection:
            (first,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            for _ in _arrived(connection, _ARRIVED):
                pass
    except (sqlite3.Error, StoreFailure):
        return "it cannot be read"
    except ValueError:
        return "what arrived last cannot be read"
    return None if first == "ok" else "its pages do not fit together"


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
        self._adding = threading.RLock()
        self._recent: dict[Key, Held] = {}  # plain tuples, which the garbage collector does not walk through
        self._version = -1
        self._moving: Iterator[Upload] | None = None
        self._moving_up_to = self._moving_rows = 0
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
        new: dict[Key, Held] = {}
        with self._adding:
            with self._changing() as connection:
                outcomes = self._judged(connection, uploads, new)
                if new:
                    self._append(connection, new)
            self._recent |= new
            if len(self._recent) > MOST_RECENT:
                self.tidy(2 * len(new))
        return outcomes

    def _judged(
        self, connection: sqlite3.Connection, uploads: Sequence[Upload], new: dict[Key, Held]
    ) -> list[UploadOutcome]:
        """What becomes of every upload; those that are accepted are put into `new`."""
        is_open = dict(connection.execute("SELECT number, is_open FROM rounds"))
        recent = self._recent
        any_settled = connection.execute("SELECT 1 FROM reports LIMIT 1").fetchone()
        unknown = [upload for upload in uploads if upload[:4] not in recent] if any_settled else []
        settled = _settled(connection, unknown)
        outcomes = []
        for upload in uploads:
            key = upload[:4]
            held = recent.get(key) or new.get(key) or settled.get(key)
            became = outcome(upload, held, is_open=bool(is_open.get(upload[1])))
            if became is UploadOutcome.ACCEPTED:
                new[key] = upload[4:]
            outcomes.append(became)
        return outcomes

    def _append(self, connection: sqlite3.Connection, new: dict[Key, Held]) -> None:
        for part, rows in groupby(sorted(new), key=itemgetter(0, 1)):
            keys = list(rows)
            content = packed(keys, [new[key] for key in keys])
            connection.execute("INSERT INTO arrivals VALUES (NULL, ?, ?, ?)", (*part, content))
            connection.execute(_ADD_COUNT, (*part, len(keys)))
        connection.execute(_CHANGED)
        self._version += 1

    def tidy(self, rows: int = _SLICE) -> bool:
        """Move about so many rows from where they arrived to where they are kept; says whether there are more."""
        with self._adding:
            return self._tidied(rows)

    def _tidied(self, rows: int) -> bool:
        moved = 0
        while moved < rows and (self._moving or self._begin_move()):
            slice_ = list(islice(self._moving or (), _SLICE))
            with self._changing() as connection:
                if not self._moving_up_to:  # another process has added something: begin again
                    return True
                if slice_:
                    _insert(connection, "reports", slice_)
                else:
                    connection.execute("DELETE FROM arrivals WHERE number <= ?", (self._moving_up_to,))
            moved += max(len(slice_), 1)
            if not slice_:
                self._recent = dict(islice(self._recent.items(), self._moving_rows, None))
                self._moving = None
        return self._moving is not None or len(self._recent) > IDLE_RECENT

    def _begin_move(self) -> bool:
        if len(self._recent) <= IDLE_RECENT:
            return False
        with self._changing() as connection:
            (self._moving_up_to,) = connection.execute("SELECT MAX(number) FROM arrivals").fetchone()
        self._moving_rows = len(self._recent)
        self._moving = (Upload(*key, *held) for key, held in sorted(self._recent.items()))
        return True

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """One commit of one thread, durable when this ends; after an error nothing of it has happened."""
        connection = self._open_writer()
        with self._adding, _as_failures(self._path):
            try:
                with _transaction(connection):
                    self._refresh(connection)
                    yield connection
            except BaseException:
                self._version = -1
                raise

    def _refresh(self, connection: sqlite3.Connection) -> None:
        """Read what arrived again, if another process has changed something or the last commit failed."""
        (version,) = connection.execute("SELECT version FROM changes").fetchone()
        if version != self._version:
            self._recent = {upload[:4]: upload[4:] for upload in _arrived(connection, _ARRIVED)}
            self._version, self._moving, self._moving_up_to = version, None, 0

    def read(self, table: str, round_: int) -> Iterator[StoredRows]:
        """The reports of a table and round as they were at one moment, ordered by id and slot."""
        with _connected(self._path) as connection, _as_failures(self._path):
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute(f"CREATE TEMP TABLE recent ({_KEY_COLUMNS}) WITHOUT ROWID")
            connection.execute("BEGIN")
            arrived = _arrived(connection, f"{_ARRIVED} WHERE table_ = ? AND round = ?", (table, round_))
            _insert(connection, "recent", list(arrived))
            connection.execute(_ONLY_RECENT)
            cursor = connection.execute(_ALL_ROWS, (table, round_))
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                uids, _, reports, publics = zip(*rows, strict=True)
                yield StoredRows(uids, reports, publics)

    def arrivals(self, table: str, round_: int, after: int) -> Arrivals:
        """What arrived for a table and round after a mark."""
        with _connected(self._path) as connection, _as_failures(self._path):
            connection.execute("BEGIN")
            mark, count = connection.execute(_MARK_AND_COUNT, (table, round_)).fetchone()
            newer = f"{_ARRIVED} WHERE table_ = ? AND round = ? AND number > ?"
            rows = [(row.uid, row.report, row.public) for row in _arrived(connection, newer, (table, round_, after))]
        return Arrivals(StoredRows(*zip(*rows, strict=True)) if rows else StoredRows((), (), ()), count, mark)

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
            self._version += 1

    def correct_counts(self, counts: Mapping[tuple[str, int], int]) -> None:
        """Replace the counts by these."""
        with self._changing() as connection:
            connection.execute("DELETE FROM counts")
            for part, rows in counts.items():
                connection.execute(_ADD_COUNT, (*part, rows))
            connection.execute(_CHANGED)
            self._version += 1

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _arrived(connection: sqlite3.Connection, query: str, arguments: tuple[str | int, ...] = ()) -> Iterator[Upload]:
    """What arrived and was not moved yet."""
    for table, number, content in connection.execute(query, arguments):
        yield from unpacked(table, number, content)


def _by_table_and_round(uploads: Iterable[Upload]) -> dict[tuple[str, int], list[Upload]]:
    parts: dict[tuple[str, int], list[Upload]] = {}
    for upload in uploads:
        parts.setdefault(upload[:2], []).append(upload)
    return parts


def _settled(connection: sqlite3.Connection, uploads: Iterable[Upload]) -> dict[Key, Held]:
    """What the tree of keys holds for these."""
    held: dict[Key, Held] = {}
    for part, rows in _by_table_and_round(uploads).items():
        with closing(connection.execute(_LOOK_UP, (*part, *_places(rows)))) as cursor:
            held |= {rows[index].key: (report, public) for index, report, public in cursor}
    return held


def _places(rows: Sequence[Upload]) -> tuple[bytes, str]:
    """The ids as one text, and a JSON list of where each is and its slot."""
    ids = [row.uid.encode() for row in rows]
    starts = accumulate(map(len, ids), initial=0)
    return b"".join(ids), json.dumps(
        [start << 32 | len(uid) << 16 | row.slot for start, uid, row in zip(starts, ids, rows, strict=False)]
    )


def _insert(connection: sqlite3.Connection, table: str, uploads: Sequence[Upload]) -> None:
    """Insert rows of which some may be there already: in one statement where that is possible."""
    for part, rows in _by_table_and_round(uploads).items():
        if all(row.public is None and len(row.report) == 32 for row in rows):
            reports = b"".join([row.report for row in rows])
            connection.execute(_INSERT_MANY.format(table), (*part, *_places(rows), reports))
        else:
            connection.executemany(_INSERT_ROW.format(table), rows)


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
