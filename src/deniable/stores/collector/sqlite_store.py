"""The store of one machine: one SQLite file, in WAL mode, on the disk before `add` returns.

    settings (name, value)                          format, the specification's hash, and a secret for digests
    rounds   (number, is_open)
    arrivals (number, table_, round, content)       what came last: one value per commit, table and round
    runs, pages                                     the rest, sorted by key (`settled_runs`)
    counts   (table_, round, rows)                  kept up to date in the same commits
    changes  (version)

    added → arrivals → (many at once, sorted by key, in one commit) → a run

A tree of keys costs a page per row to add to, so a commit only appends columns. Arrivals are also held in memory, at
most about `MOST_RECENT` rows; then they settle. Each row is in exactly one place at every moment.

One thread writes; any number of connections and processes read. A reader sees one moment, and never waits for the
writer. Opening and closing rounds from another process waits for the writer's commit, and the writer for it.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers
from deniable.errors import BadInput, Failure
from deniable.stores.collector.key_digests import DIGEST_KEY_BYTES, Digests, digests, of_parts
from deniable.stores.collector.recent_rows import RecentRows
from deniable.stores.collector.run_filters import MOST_ACROSS, RunFilters, run_filter
from deniable.stores.collector.settled_runs import RUN_SCHEMA, SettledRuns, add_run, in_order, newer_pages, run_damage
from deniable.stores.collector.sqlite_file import as_failures, connected, opened, transaction
from deniable.stores.collector.upload import (
    HELD_NOTHING,
    HELD_OTHER,
    HELD_SAME,
    OUTCOMES,
    ROWS_AT_ONCE,
    Part,
    StoredRows,
    StoreFailure,
    StoreGrowth,
    StoreMark,
    StoreSummary,
    Upload,
    UploadOutcome,
    outcome_codes,
)
from deniable.stores.collector.upload_columns import DamagedContent, RowColumns, UploadColumns, joined, packed, unpacked

STORE_FILE = "reports.sqlite"
STORE_FORMAT = "4"
PAGES_AT_ONCE = 1 << 10
"""For whoever follows a store."""
MOST_RECENT, IDLE_RECENT = 1 << 18, 1 << 17
"""Rows that arrived last: above the first they settle at once, above the second at quiet times."""
MOST_RECENT_BYTES = 1 << 28
"""They settle at once above this size, too: ids and public attributes may be long, and all of it is in memory."""
_FILE_SCHEMA = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE rounds (number INTEGER PRIMARY KEY, is_open INTEGER NOT NULL)",
    "CREATE TABLE changes (version INTEGER NOT NULL)",
    "CREATE TABLE counts (table_ TEXT, round INTEGER, rows INTEGER, PRIMARY KEY (table_, round)) WITHOUT ROWID",
    "CREATE TABLE arrivals (number INTEGER PRIMARY KEY AUTOINCREMENT, table_ TEXT, round INTEGER, content BLOB)",
    *RUN_SCHEMA,
    "INSERT INTO changes VALUES (0)",
)
_CHANGED = "UPDATE changes SET version = version + 1"
_ARRIVED = "SELECT table_, round, content FROM arrivals"
_PLACES = "SELECT (SELECT COALESCE(MAX(number), 0) FROM arrivals), (SELECT COALESCE(MAX(number), 0) FROM runs)"
_MARK = """SELECT (SELECT COALESCE(MAX(number), 0) FROM pages),
  (SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'arrivals')"""
_ADD_COUNT = """INSERT INTO counts VALUES (?, ?, ?)
  ON CONFLICT (table_, round) DO UPDATE SET rows = rows + excluded.rows"""


def create_store(path: Path, specification: str, *, rounds: bool = False) -> None:
    """Make an empty store for reports of one specification (its SHA-256), whole or not at all.

    Without rounds all reports are of round 0, which is open. With rounds none is open yet.
    """
    with connected(path, create=True) as connection, as_failures(path):
        if connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise BadInput(f"there is a store {path.name!r} already. Nothing was written. Choose another folder.")
        with transaction(connection):
            for statement in _FILE_SCHEMA:
                connection.execute(statement)
            settings = (
                ("format", STORE_FORMAT),
                ("specification", specification),
                ("secret", secrets.token_hex(DIGEST_KEY_BYTES)),
            )
            connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)
            if not rounds:
                connection.execute("INSERT INTO rounds VALUES (0, 1)")


def file_damage(path: Path) -> str | None:
    """What is wrong with a file: None if it is whole."""
    try:
        with connected(path) as connection:
            (first,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if first != "ok":
                return "its pages do not fit together"
            connection.execute("BEGIN")
            _arrived(connection, _ARRIVED)
            return run_damage(connection, _secret(connection))
    except (sqlite3.Error, StoreFailure):
        return "it cannot be read"
    except DamagedContent:
        return "what is in it is not what was written"


def warm_up() -> None:
    """Do what a commit does with one row in memory, so that what is compiled on first use is compiled now."""
    rows, recent, filters = (
        UploadColumns.of([Upload("users", 0, "user", 0, b"report")]).rows,
        RecentRows(),
        RunFilters(),
    )
    parts = of_parts(bytes(DIGEST_KEY_BYTES), [("users", 0)], np.zeros(1, dtype=np.int64))
    held = digests(bytes(DIGEST_KEY_BYTES), parts, rows.sorted())
    recent.offer(held, parts, rows)
    recent.keep(np.ones(1, dtype=np.bool_))
    for _ in range(MOST_ACROSS):
        filters.append(run_filter(held))
        filters.may_hold(held)


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
        self._forget()
        self._writer: sqlite3.Connection | None = opened(path)
        try:
            self._secret = self._check(specification)
        except BaseException:
            self.close()
            raise

    def _forget(self) -> None:
        """What is held in memory is read again before the next change."""
        self._recent, self._runs, self._last_arrival, self._version = RecentRows(), SettledRuns(), 0, -1

    def _check(self, specification: str) -> bytes:
        """Refuse another store; returns its secret."""
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
        return bytes.fromhex(held["secret"])

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            raise Failure("the store is closed. Nothing was stored. Open it again.")
        return self._writer

    def add(self, uploads: Sequence[Upload]) -> list[UploadOutcome]:
        """Keep uploads, all in one commit, and say what became of each."""
        return [OUTCOMES[code] for code in self.add_codes(uploads).tolist()]

    def add_codes(self, uploads: Sequence[Upload]) -> NDArray[np.uint8]:
        """`add`, with numbers of `OUTCOMES`."""
        columns = UploadColumns.of(uploads)
        with self._adding:
            with self._changing() as connection:
                codes = self._judged(connection, columns)
                accepted = codes == OUTCOMES.index(UploadOutcome.ACCEPTED)
                if accepted.any():
                    self._append(connection, columns, accepted)
            try:
                self._recent.keep(accepted)
            except BaseException:  # it is stored: what is in memory would not say so
                self._forget()
                raise
            if len(self._recent) > MOST_RECENT or self._recent.size_bytes > MOST_RECENT_BYTES:
                with suppress(Failure):  # what arrived is stored already, and settles after the next commit
                    self._settle()
        return codes

    def _judged(self, connection: sqlite3.Connection, columns: UploadColumns) -> NDArray[np.uint8]:
        """What becomes of every upload, as numbers of `OUTCOMES`."""
        rounds = dict(connection.execute("SELECT number, is_open FROM rounds"))
        open_parts = np.array([bool(rounds.get(number)) for _, number in columns.parts], dtype=np.bool_)
        is_open = open_parts[columns.which] if columns.parts else open_parts
        parts = of_parts(self._secret, columns.parts, columns.which)
        wanted, before = digests(self._secret, parts, columns.rows), len(self._recent)
        first, same = self._recent.offer(wanted, parts, columns.rows)
        held = np.where(first < 0, HELD_NOTHING, np.where(same, HELD_SAME, HELD_OTHER))
        again = first >= before  # a second upload under a key of this batch: nothing is held if the first is refused
        held[again & ~is_open] = HELD_NOTHING
        settled = self._settled(connection, columns, np.flatnonzero(first < 0), wanted)
        if settled:
            for row, original in enumerate(np.where(again, first - before, np.arange(first.size)).tolist()):
                if original in settled:
                    sent = (columns.rows.reports[row].as_py(), columns.rows.texts[row].as_py())
                    held[row] = HELD_SAME if sent == settled[original] else HELD_OTHER
        return outcome_codes(held, is_open)

    def _settled(
        self, connection: sqlite3.Connection, columns: UploadColumns, rows: Integers, wanted: Digests
    ) -> dict[int, tuple[bytes, bytes]]:
        """What runs hold under the keys of some uploads."""
        kept_under: dict[int, tuple[bytes, bytes]] = {}
        for index, run in self._runs.filters.may_hold(wanted[rows]):
            row = int(rows[index])
            held = self._runs.find(connection, run, (*columns.parts[columns.which[row]], *columns.rows.key(row)))
            if held is not None:
                kept_under[row] = held
        return kept_under

    def _append(self, connection: sqlite3.Connection, columns: UploadColumns, accepted: Booleans) -> None:
        whole = bool(accepted.all()) and len(columns.parts) == 1
        for number, part in enumerate(columns.parts):
            rows = columns.rows if whole else columns.rows.take(np.flatnonzero(accepted & (columns.which == number)))
            if len(rows):
                added = connection.execute("INSERT INTO arrivals VALUES (NULL, ?, ?, ?)", (*part, packed(rows)))
                self._last_arrival = added.lastrowid or 0
                connection.execute(_ADD_COUNT, (*part, len(rows)))
        connection.execute(_CHANGED)
        self._version += 1

    def tidy(self) -> bool:
        """Let what arrived settle, if it is worth it. There is never more to do."""
        with self._adding:
            if len(self._recent) > IDLE_RECENT:
                self._settle()
        return False

    def _settle(self) -> None:
        with self._changing() as connection:
            parts = _arrived(connection, _ARRIVED)
            if parts:
                connection.execute("DELETE FROM arrivals")  # first: the run is written in their place
                add_run(connection, self._secret, parts)
            self._runs.load(connection)
            self._last_arrival = 0
        self._recent.clear()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """One commit of one thread, durable when this ends; after an error nothing of it has happened."""
        connection = self._open_writer()
        with self._adding, as_failures(self._path):
            try:
                with transaction(connection):
                    self._refresh(connection)
                    yield connection
            except BaseException:
                self._forget()
                raise

    def _refresh(self, connection: sqlite3.Connection) -> None:
        """Read what arrived again, if another process has changed something or the last commit failed."""
        (version,) = connection.execute("SELECT version FROM changes").fetchone()
        if version == self._version:
            return
        if self._version < 0 or connection.execute(_PLACES).fetchone() != (self._last_arrival, self._runs.last):
            self._forget()
            self._runs.load(connection)
            (self._last_arrival, _) = connection.execute(_PLACES).fetchone()
            for part, rows in _arrived(connection, _ARRIVED).items():
                parts = of_parts(self._secret, [part], np.zeros(len(rows), dtype=np.int64))
                self._recent.offer(digests(self._secret, parts, rows), parts, rows)
                self._recent.keep(np.ones(len(rows), dtype=np.bool_))
        self._version = version

    def read(self, table: str, round_: int) -> Iterator[StoredRows]:
        """The reports of a table and round as they were at one moment, ordered by id and slot."""
        with connected(self._path) as connection, as_failures(self._path):
            connection.execute("BEGIN")
            arrived = _arrived(connection, f"{_ARRIVED} WHERE table_ = ? AND round = ?", (table, round_))
            recent = joined(arrived.values()).sorted()
            for rows in in_order(connection, (table, round_), recent):
                for first in range(0, len(rows), ROWS_AT_ONCE):
                    yield rows.slice(first, min(first + ROWS_AT_ONCE, len(rows))).stored()

    def since(self, table: str, round_: int, mark: StoreMark | None) -> StoreGrowth:
        """What came after a mark, or the first there is; no more pages at once than memory is made for."""
        with connected(self._path) as connection, as_failures(self._path):
            connection.execute("BEGIN")
            now, known = StoreMark(*connection.execute(_MARK).fetchone()), mark or StoreMark()
            moved = mark is None or now.page > known.page
            pages, last = newer_pages(connection, (table, round_), known.page, PAGES_AT_ONCE) if moved else ([], None)
            settled, recent = joined(pages).stored(), joined(()).stored()
            if last is not None:
                return StoreGrowth(settled, recent, True, StoreMark(last, known.arrival), is_all=False)
            newer = f"{_ARRIVED} WHERE table_ = ? AND round = ? AND number > ?"
            after = 0 if moved else known.arrival
            recent = joined(_arrived(connection, newer, (table, round_, after)).values()).stored()
        return StoreGrowth(settled, recent, moved, now)

    def summary(self) -> StoreSummary:
        """What is there."""
        with connected(self._path) as connection, as_failures(self._path):
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


def _secret(connection: sqlite3.Connection) -> bytes:
    (text,) = connection.execute("SELECT value FROM settings WHERE name = 'secret'").fetchone()
    return bytes.fromhex(text)


def _arrived(
    connection: sqlite3.Connection, query: str, arguments: tuple[str | int, ...] = ()
) -> dict[Part, RowColumns]:
    """What arrived and has not settled, by table and round."""
    parts: dict[Part, list[RowColumns]] = {}
    for table, number, content in connection.execute(query, arguments):
        parts.setdefault((table, number), []).append(unpacked(content))
    return {part: joined(listed) for part, listed in parts.items()}
