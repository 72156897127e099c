"""Streams without trust in PostgreSQL, for several collectors: one order of reports, whoever takes them.

    deniable_streams           (stream, settings)
    deniable_stream_reports    (number, stream, uid, report)       ids as bytes, which may hold anything
    deniable_stream_thresholds (stream, position, theta)
    deniable_stream_renewals   (number, stream, after)

A change locks its stream's row until it is committed. So numbers of one stream are in the order of commits, and a
server that reads what is new before it judges anything sees every report that came first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from deniable.errors import BadInput, Failure
from deniable.stores.collector.postgresql_store import CREATION_LOCK, Connection, as_failures, connect, connected
from deniable.stores.collector.stream_journal import LoggedReport

_READ_AT_ONCE = 1 << 16
_STREAM_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS deniable_streams (stream TEXT PRIMARY KEY, settings TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS deniable_stream_reports (number BIGSERIAL PRIMARY KEY, stream TEXT NOT NULL,
      uid BYTEA NOT NULL, report BYTEA NOT NULL, UNIQUE (stream, uid))""",
    "CREATE INDEX IF NOT EXISTS deniable_stream_order ON deniable_stream_reports (stream, number)",
    """CREATE TABLE IF NOT EXISTS deniable_stream_thresholds (stream TEXT, position INTEGER, theta DOUBLE PRECISION,
      PRIMARY KEY (stream, position))""",
    """CREATE TABLE IF NOT EXISTS deniable_stream_renewals (number BIGSERIAL PRIMARY KEY, stream TEXT NOT NULL,
      after BIGINT NOT NULL)""",
)


def create_stream_tables(url: str, streams: Mapping[str, Mapping[str, Any]]) -> None:
    """Make the tables, or join those that are there for the same streams."""
    wanted = {name: json.dumps(dict(settings), sort_keys=True) for name, settings in streams.items()}
    with connected(url) as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (CREATION_LOCK,))
        for statement in _STREAM_SCHEMA:
            connection.execute(statement)
        held = dict(connection.execute("SELECT stream, settings FROM deniable_streams").fetchall())
        if held and held != wanted:
            raise BadInput(
                "the database holds other streams, or the same with other settings. Nothing was written. "
                "Use the settings that they were made with, or another database."
            )
        for entry in wanted.items() if not held else ():
            connection.execute("INSERT INTO deniable_streams VALUES (%s, %s)", entry)


class StreamTables:
    """A `StreamJournal` in a PostgreSQL database, for any number of servers."""

    shared = True

    def __init__(self, url: str) -> None:
        self._url, self._closed = url, False
        self._connection: Connection | None = None
        with as_failures():
            self._open()

    def _open(self) -> Connection:
        """The connection; opened again after the database has closed it."""
        if self._closed:
            raise Failure("the streams' log is closed. Nothing was stored. Open it again.")
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url)
        return self._connection

    @contextmanager
    def changing(self, stream: str) -> Iterator[None]:
        """A change of one stream; others wait until it is committed."""
        with as_failures():
            connection = self._open()
            with connection.transaction():
                connection.execute("SELECT 1 FROM deniable_streams WHERE stream = %s FOR UPDATE", (stream,))
                yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One moment."""
        with as_failures():
            connection = self._open()
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                yield

    def held(self, stream: str, uids: Sequence[str]) -> dict[str, bytes]:
        """The reports that some users have sent."""
        query = "SELECT uid, report FROM deniable_stream_reports WHERE stream = %s AND uid = ANY(%s)"
        rows = self._open().execute(query, (stream, [uid.encode() for uid in uids]))
        return {bytes(uid).decode(): bytes(report) for uid, report in rows}

    def append(self, stream: str, reports: Sequence[tuple[str, bytes]]) -> None:
        """Write reports of users who have sent none, numbered in their order."""
        uids, contents = [uid.encode() for uid, _ in reports], [report for _, report in reports]
        self._open().execute(
            """INSERT INTO deniable_stream_reports (stream, uid, report)
              SELECT %s, uid, report FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS sent (uid, report, place)
              ORDER BY place""",
            (stream, uids, contents),
        )

    def logged(self, stream: str, after: int, until: int) -> Iterator[Sequence[LoggedReport]]:
        """Reports in their order."""
        query = """SELECT number, uid, report FROM deniable_stream_reports
          WHERE stream = %s AND number > %s AND number <= %s ORDER BY number LIMIT %s"""
        while rows := self._open().execute(query, (stream, after, until, _READ_AT_ONCE)).fetchall():
            yield [(number, bytes(uid).decode(), bytes(report)) for number, uid, report in rows]
            after = rows[-1][0]

    def last(self, stream: str) -> int:
        """The number of the last report."""
        query = "SELECT COALESCE(MAX(number), 0) FROM deniable_stream_reports WHERE stream = %s"
        return int(self._open().execute(query, (stream,)).fetchone()[0])

    def thresholds(self, stream: str) -> list[float]:
        """Every θ that was announced."""
        query = "SELECT theta FROM deniable_stream_thresholds WHERE stream = %s ORDER BY position"
        return [theta for (theta,) in self._open().execute(query, (stream,))]

    def announce(self, stream: str, position: int, theta: float) -> None:
        """Write a θ."""
        self._open().execute("INSERT INTO deniable_stream_thresholds VALUES (%s, %s, %s)", (stream, position, theta))

    def renewals(self, stream: str) -> list[int]:
        """After which reports θ was renewed."""
        query = "SELECT after FROM deniable_stream_renewals WHERE stream = %s ORDER BY number"
        return [after for (after,) in self._open().execute(query, (stream,))]

    def renew(self, stream: str, after: int) -> None:
        """Write that θ is renewed."""
        self._open().execute("INSERT INTO deniable_stream_renewals (stream, after) VALUES (%s, %s)", (stream, after))

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
