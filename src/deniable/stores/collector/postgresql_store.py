"""The store of several collectors: tables of one PostgreSQL database, committed and flushed before `add` returns.

    deniable_settings (name, value)                                    format, and the specification's hash
    deniable_rounds   (number, is_open)
    deniable_reports  (table_, round, uid, slot, report, public,       ids as bytes: they sort alike everywhere
                       writer, commit_)                                who added it, and in which commit
    deniable_writers  (writer, commits)                                the last commit of every connection that adds
    deniable_counts   (table_, round, shard, rows)                     shards, so that servers need not wait
    deniable_changes  (version)

Any number of servers add at the same time. Of two that add different bytes under one key, the database lets one be
first. A round that is being closed waits for commits that began while it was open.

Commits of one connection are numbered and come one after another, those of several do not. So whoever knows how far
she has read of every writer knows what is new to her, and misses nothing that was committed late. After a lost
connection nobody knows whether its last commit will be one: the next connection is another writer.
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray

from deniable.errors import BadInput, Failure
from deniable.stores.collector.upload import (
    ROWS_AT_ONCE,
    Held,
    Key,
    StoredRows,
    StoreFailure,
    StoreGrowth,
    StoreMark,
    StoreSummary,
    Upload,
    UploadOutcome,
    codes_of,
    outcome,
)

POSTGRESQL_FORMAT = "2"
_CONNECT_S = 10
_SHARDS, _ATTEMPTS = 16, 5
MOST_GROWTH = 1 << 18
"""Reports that are read at once, and one commit more."""
CREATION_LOCK = 4_703_661_205  # any number that no other program uses
_DATABASE_SCHEMA = (
    "CREATE TABLE deniable_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE deniable_rounds (number BIGINT PRIMARY KEY, is_open BOOLEAN NOT NULL)",
    "CREATE TABLE deniable_changes (version BIGINT NOT NULL)",
    """CREATE TABLE deniable_counts (table_ TEXT, round BIGINT, shard INTEGER, rows BIGINT NOT NULL,
      PRIMARY KEY (table_, round, shard))""",
    """CREATE TABLE deniable_reports (table_ TEXT, round BIGINT, uid BYTEA, slot INTEGER,
      report BYTEA NOT NULL, public BYTEA, writer BIGINT NOT NULL, commit_ BIGINT NOT NULL,
      PRIMARY KEY (table_, round, uid, slot))""",
    "CREATE INDEX deniable_reports_by_commit ON deniable_reports (table_, round, writer, commit_)",
    "CREATE TABLE deniable_writers (writer BIGINT PRIMARY KEY, commits BIGINT NOT NULL)",
    "INSERT INTO deniable_changes VALUES (0)",
)
_INSERT_NEW = """INSERT INTO deniable_reports
  SELECT *, %s::bigint, %s::bigint
  FROM unnest(%s::text[], %s::bigint[], %s::bytea[], %s::integer[], %s::bytea[], %s::bytea[])
  ON CONFLICT DO NOTHING RETURNING table_, round, uid, slot"""
_WROTE = """INSERT INTO deniable_writers VALUES (%s, %s)
  ON CONFLICT (writer) DO UPDATE SET commits = excluded.commits"""
_AFTER = "FROM deniable_reports WHERE table_ = %s AND round = %s AND writer = %s AND commit_ > %s"
_LAST_AT_ONCE = f"SELECT commit_ {_AFTER} ORDER BY commit_ OFFSET %s LIMIT 1"
_NEWER = f"SELECT uid, report, public {_AFTER} AND commit_ <= %s"
_STORED = """SELECT table_, round, uid, slot, report, public FROM deniable_reports
  JOIN unnest(%s::text[], %s::bigint[], %s::bytea[], %s::integer[]) AS asked (table_, round, uid, slot)
  USING (table_, round, uid, slot)"""
_ADD_SHARD_COUNT = """INSERT INTO deniable_counts VALUES (%s, %s, %s, %s)
  ON CONFLICT (table_, round, shard) DO UPDATE SET rows = deniable_counts.rows + excluded.rows"""
# The version of a summary is this one and all counts, so it grows by at least what they may lose.
_CHANGED_COUNTS = """UPDATE deniable_changes
  SET version = version + 1 + (SELECT COALESCE(sum(rows), 0)::bigint FROM deniable_counts)"""
_ROWS = "SELECT uid, report, public FROM deniable_reports WHERE table_ = %s AND round = %s ORDER BY uid, slot"

Connection = Any
Given = TypeVar("Given")


def create_postgresql_store(url: str, specification: str, *, rounds: bool = False) -> bool:
    """Make the tables, or join those that are there for the same specification; says whether they are new.

    Without rounds all reports are of round 0, which is open. With rounds none is open yet.
    """
    with connected(url) as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (CREATION_LOCK,))
        (existing,) = connection.execute("SELECT to_regclass('deniable_settings')").fetchone()
        if existing is not None:
            _check_settings(connection, specification)
            return False
        for statement in _DATABASE_SCHEMA:
            connection.execute(statement)
        for setting in (("format", POSTGRESQL_FORMAT), ("specification", specification)):
            connection.execute("INSERT INTO deniable_settings VALUES (%s, %s)", setting)
        if not rounds:
            connection.execute("INSERT INTO deniable_rounds VALUES (0, true)")
    return True


class PostgresqlStore:
    """A `CollectorStore` in a PostgreSQL database. Threads and processes may share it."""

    def __init__(self, url: str, specification: str) -> None:
        self._url, self._specification = url, specification
        self._adding = threading.Lock()
        self._shard = secrets.randbelow(_SHARDS)
        self._closed = False
        self._writer: Connection | None = None
        self._number, self._commits = 0, 0
        try:
            with as_failures():
                self._open_writer()
        except BaseException:
            self.close()
            raise

    def _open_writer(self) -> Connection:
        """The connection that adds; opened again after the database has closed it."""
        if self._closed:
            raise Failure("the store is closed. Nothing was stored. Open it again.")
        if self._writer is None or self._writer.closed:
            connection = connect(self._url)
            try:
                _check_settings(connection, self._specification)
            except BaseException:  # nothing is ever added to a database that holds something else
                connection.close()
                raise
            self._writer, self._number, self._commits = connection, secrets.randbits(62), 0
        return self._writer

    def _changed(self, change: Callable[[Connection], Given]) -> Given:
        """Run a change in a transaction, durable when this ends; again if it met another one."""
        with self._adding, as_failures():
            for attempt in range(1, _ATTEMPTS + 1):
                connection = self._open_writer()
                try:
                    with connection.transaction():
                        return change(connection)
                except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                    if attempt == _ATTEMPTS:
                        raise
        raise AssertionError("unreachable")

    def add(self, uploads: Sequence[Upload]) -> list[UploadOutcome]:
        """Keep uploads, all in one commit, and say what became of each."""
        return self._changed(lambda connection: self._add(connection, uploads))

    def add_codes(self, uploads: Sequence[Upload]) -> NDArray[np.uint8]:
        """`add`, with numbers of `OUTCOMES`."""
        return codes_of(self.add(uploads))

    def _add(self, connection: Connection, uploads: Sequence[Upload]) -> list[UploadOutcome]:
        # Held until the commit, so that no round closes between this and what is accepted because of it.
        is_open = dict(connection.execute("SELECT number, is_open FROM deniable_rounds FOR SHARE").fetchall())
        first: dict[Key, Upload] = {}
        for upload in uploads:
            first.setdefault(upload.key, upload)
        # All servers insert in the order of keys, so that none waits for another that waits for it.
        new = sorted(upload for upload in first.values() if is_open.get(upload.round))
        inserted = self._inserted(connection, new) if new else set()
        asked = [upload for key, upload in first.items() if key not in inserted]
        held: dict[Key, Held] = {key: first[key][4:] for key in inserted}
        if asked:
            for *key, report, public in connection.execute(_STORED, _columns(asked)):
                held[_key(key)] = (report, None if public is None else public.decode())
        outcomes, accepted = [], set()
        for upload in uploads:
            if upload.key in inserted and upload.key not in accepted:
                accepted.add(upload.key)
                outcomes.append(UploadOutcome.ACCEPTED)
            else:
                outcomes.append(outcome(upload, held.get(upload.key), is_open=False))
        for (table, number), rows in sorted(Counter(key[:2] for key in inserted).items()):
            connection.execute(_ADD_SHARD_COUNT, (table, number, self._shard, rows))
        return outcomes

    def _inserted(self, connection: Connection, new: Sequence[Upload]) -> set[Key]:
        """Insert what is not there, in a commit with a number of its own; returns what was inserted."""
        self._commits += 1
        written = (self._number, self._commits)
        inserted = set(_keys(connection.execute(_INSERT_NEW, (*written, *_columns(new, whole=True)))))
        if inserted:
            connection.execute(_WROTE, written)
        return inserted

    def read(self, table: str, round_: int) -> Iterator[StoredRows]:
        """The reports of a table and round as they were at one moment, ordered by id and slot."""
        with (
            connected(self._url) as connection,
            connection.transaction(),
            connection.cursor(name="deniable_reading", binary=True) as cursor,
        ):
            cursor.execute(_ROWS, (table, round_))
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                yield _stored(rows)

    def since(self, table: str, round_: int, mark: StoreMark | None) -> StoreGrowth:
        """What came after a mark, or the first there is: whole commits."""
        known, rows = dict(mark.commits) if mark is not None else {}, list[Any]()
        with connected(self._url) as connection, connection.transaction(), connection.cursor(binary=True) as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for writer, commits in cursor.execute("SELECT writer, commits FROM deniable_writers").fetchall():
                while known.get(writer, 0) < commits and len(rows) < MOST_GROWTH:
                    after = (table, round_, writer, known.get(writer, 0))
                    last = cursor.execute(_LAST_AT_ONCE, (*after, MOST_GROWTH)).fetchone()
                    known[writer] = commits if last is None else last[0]
                    rows += cursor.execute(_NEWER, (*after, known[writer])).fetchall()
        is_all = len(rows) < MOST_GROWTH
        return StoreGrowth(_stored(rows), _stored(()), bool(rows), StoreMark(commits=known), is_all)

    def summary(self) -> StoreSummary:
        """What is there."""
        with connected(self._url) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            counted = connection.execute("SELECT table_, round, sum(rows)::bigint FROM deniable_counts GROUP BY 1, 2")
            counts = {(table, number): rows for table, number, rows in counted}
            rounds = dict(connection.execute("SELECT number, is_open FROM deniable_rounds").fetchall())
            (version,) = connection.execute("SELECT version FROM deniable_changes").fetchone()
        # Both only grow, so the sum is another one after every change.
        return StoreSummary(counts, rounds, version + sum(counts.values()))

    def set_round(self, number: int, *, is_open: bool) -> None:
        """Open or close a round."""

        def change(connection: Connection) -> None:
            connection.execute(
                """INSERT INTO deniable_rounds VALUES (%s, %s)
                  ON CONFLICT (number) DO UPDATE SET is_open = excluded.is_open""",
                (number, is_open),
            )
            connection.execute("UPDATE deniable_changes SET version = version + 1")

        self._changed(change)

    def correct_counts(self, counts: Mapping[tuple[str, int], int]) -> None:
        """Replace the counts by these."""

        def change(connection: Connection) -> None:
            connection.execute("LOCK TABLE deniable_counts IN EXCLUSIVE MODE")
            connection.execute(_CHANGED_COUNTS)
            connection.execute("DELETE FROM deniable_counts")
            for part, rows in counts.items():
                connection.execute(_ADD_SHARD_COUNT, (*part, self._shard, rows))

        self._changed(change)

    def tidy(self) -> bool:
        """The database tidies itself."""
        return False

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._closed = True
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _stored(rows: Sequence[Any]) -> StoredRows:
    uids, reports, publics = zip(*rows, strict=True) if rows else ((), (), ())
    texts = [None if public is None else public.decode() for public in publics]
    return StoredRows.of([uid.decode() for uid in uids], reports, texts)


def _columns(uploads: Sequence[Upload], *, whole: bool = False) -> tuple[list[Any], ...]:
    """Keys, or whole uploads, as one list per column."""
    keys = (
        [upload.table for upload in uploads],
        [upload.round for upload in uploads],
        [upload.uid.encode() for upload in uploads],
        [upload.slot for upload in uploads],
    )
    if not whole:
        return keys
    publics = [None if upload.public is None else upload.public.encode() for upload in uploads]
    return (*keys, [upload.report for upload in uploads], publics)


def _keys(rows: Any) -> Iterator[Key]:
    return map(_key, rows)


def _key(row: Sequence[Any]) -> Key:
    table, number, uid, slot = row
    return table, number, uid.decode(), slot


def _check_settings(connection: Connection, specification: str) -> None:
    try:
        held = dict(connection.execute("SELECT name, value FROM deniable_settings").fetchall())
    except psycopg.errors.UndefinedTable:
        raise BadInput("the database holds no store. Nothing was read. Run: deniable serve --init --store") from None
    if held.get("format") != POSTGRESQL_FORMAT:
        raise BadInput("the store in the database is of another version. Nothing was changed. Use that version.")
    if held.get("specification") != specification:
        raise BadInput(
            "the store in the database holds reports of another specification. Nothing was changed. "
            "Use another database, or the collection.json that it was made with."
        )


def connect(url: str) -> Connection:
    """A connection, which somebody has to close."""
    # A database without an encoding (SQL_ASCII) would answer in bytes.
    connection = psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_S, client_encoding="utf8")
    try:
        # A commit waits for the disk, whatever the database's default is.
        connection.execute("SET synchronous_commit = on")
        connection.execute("SET client_min_messages = error")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A connection for a while."""
    with as_failures():
        connection = connect(url)
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def as_failures() -> Iterator[None]:
    """PostgreSQL's errors as failures. Its messages may quote rows or the address, so only their code is shown."""
    try:
        yield
    except psycopg.Error as problem:
        code = problem.sqlstate or type(problem).__name__
        raise StoreFailure(
            f"the store in PostgreSQL cannot be used ({code}). What was being stored may not be. "
            "Check that the database runs, has room, and lets this address in."
        ) from None
