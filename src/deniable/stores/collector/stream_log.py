"""Streams without trust that a collector takes: every report in the order of arrival, on the disk before its answer.

    streams.json     the settings of each stream, public
    streams.sqlite   reports (number, stream, uid, report), one per user and stream; thresholds (stream, position, θ);
                     renewals (stream, after which number)

A stream is its log: a `ToPLServer` is fed with it at the start, and with every report that is accepted. Both phases
come through here. When enough first reports have arrived, θ is chosen and written in the commit of the report that
completed them; only then is it announced. An operator may renew it, which is logged as well. If a later version would
choose another θ from the same reports, the log is refused: what was announced never changes.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from deniable.errors import BadInput, Failure, InvalidParameter, QueryRefused
from deniable.stores.collector.upload import StoreFailure
from deniable.streams.local.server import ToPLServer
from deniable.streams.local.stream_report import SIZE
from deniable.tables.schema.attributes import check_name
from deniable.wording import counted

STREAMS_FILE, STREAM_LOG_FILE = "streams.json", "streams.sqlite"
ACCEPTED, REPEATED, CONFLICT = "accepted", "repeated", "conflict"
_STREAM_SETTINGS = frozenset({"epsilon", "bound", "first", "horizon", "theta", "renewal", "scale", "mechanism"})
_READ_AT_ONCE = 1 << 16
_LAST = 2**63 - 1


class StreamUpload(NamedTuple):
    """One report of one user, as it arrived."""

    uid: str
    report: bytes


class StreamRequest(NamedTuple):
    """What one request brings to a stream."""

    stream: str
    uploads: Sequence[StreamUpload]


@dataclass(frozen=True, slots=True)
class StreamState:
    """What devices have to know about a stream. θ is None in the first phase."""

    settings: Mapping[str, Any]
    sha256: str
    theta: float | None
    first_reports: int
    second_reports: int


def check_streams(entries: Any) -> dict[str, dict[str, Any]]:
    """The settings of streams by name, refused unless each makes a server."""
    streams = entries.get("streams") if isinstance(entries, dict) else None
    if not isinstance(streams, dict) or not streams or set(entries) != {"streams"}:
        raise BadInput("the file names no streams. Nothing was written. Write [streams.NAME] with epsilon and bound.")
    for name, settings in streams.items():
        check_name("stream", name)
        if not isinstance(settings, dict) or not {"epsilon", "bound"} <= set(settings) <= _STREAM_SETTINGS:
            known = ", ".join(sorted(_STREAM_SETTINGS))
            raise BadInput(f"stream {name!r} needs epsilon and bound. Nothing was written. Settings are {known}.")
    return {name: dict(settings) for name, settings in streams.items()}


def create_stream_log(folder: Path, streams: Mapping[str, Mapping[str, Any]], *, simulation: bool) -> None:
    """Write the settings and an empty log."""
    for name, settings in streams.items():
        _server(name, settings, simulation=simulation)
    with _as_failures():
        connection = _connect(folder, create=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                """CREATE TABLE reports (number INTEGER PRIMARY KEY, stream TEXT NOT NULL, uid TEXT NOT NULL,
                  report BLOB NOT NULL, UNIQUE (stream, uid))"""
            )
            connection.execute("CREATE TABLE thresholds (stream TEXT, position INTEGER, theta REAL)")
            connection.execute("CREATE TABLE renewals (stream TEXT, after INTEGER)")
            connection.execute("COMMIT")
        finally:
            connection.close()
    (folder / STREAMS_FILE).write_text(json.dumps(streams, indent=1), encoding="utf-8")


def has_streams(folder: Path) -> bool:
    """Whether a collector's folder has streams."""
    return (folder / STREAMS_FILE).is_file()


class StreamLog:
    """The streams of a folder. One thread adds; any may look at `state`.

    >>> import tempfile
    >>> from deniable.client import ToPLClient
    >>> folder = Path(tempfile.mkdtemp())
    >>> create_stream_log(folder, {"meters": {"epsilon": 1.0, "bound": 10, "first": 1}}, simulation=False)
    >>> log = StreamLog(folder)
    >>> first = ToPLClient(1.0, 10, name="meters").report(4).to_bytes()
    >>> log.add("meters", [StreamUpload("ann", first), StreamUpload("ann", first)])
    ['accepted', 'repeated']
    >>> 0 < log.state("meters").theta <= 10
    True
    >>> log.close()
    """

    def __init__(self, folder: Path, *, simulation: bool = False) -> None:
        self._simulation = simulation
        try:
            self._streams: dict[str, dict[str, Any]] = json.loads((folder / STREAMS_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise BadInput(f"{STREAMS_FILE} is missing or damaged. Nothing was started. Restore it.") from None
        self._adding = threading.Lock()
        with _as_failures():
            self._connection = _connect(folder)
        self._servers: dict[str, ToPLServer] = {}
        self._states: dict[str, StreamState] = {}
        try:
            with _as_failures():
                for name in self._streams:
                    self._load(name)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return tuple(self._streams)

    def state(self, name: str) -> StreamState:
        """What is committed of a stream."""
        return self._states[name]

    def server(self, name: str) -> ToPLServer:
        """The server of a stream, fed with everything that is committed. Do not push to it."""
        return self._servers[name]

    def _load(self, name: str) -> None:
        """Feed a new server with the log."""
        server = _server(name, self._streams[name], simulation=self._simulation)
        with self._reading():
            since = 0
            for until in (*self._numbers("SELECT after FROM renewals WHERE stream = ? ORDER BY rowid", name), None):
                for batch in self._logged(name, since, until):
                    server.push_many(batch)
                if until is not None:
                    server.renew()
                    since = int(until)
            announced = self._numbers("SELECT theta FROM thresholds WHERE stream = ? ORDER BY position", name)
        if list(server.thetas) != announced and self._streams[name].get("theta") is None:
            raise Failure(
                f"stream {name!r}: another θ was announced than this version chooses. Nothing was started. "
                "Use the version that announced it."
            )
        self._servers[name] = server
        self._note(name)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One moment of the log, whoever adds to it meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def _numbers(self, query: str, name: str) -> list[float]:
        return [number for (number,) in self._connection.execute(query, (name,))]

    def _logged(self, name: str, since: float, until: float | None) -> Iterator[pa.Table]:
        query = "SELECT uid, report FROM reports WHERE stream = ? AND number > ? AND number <= ? ORDER BY number"
        cursor = self._connection.execute(query, (name, since, _LAST if until is None else until))
        while rows := cursor.fetchmany(_READ_AT_ONCE):
            uids, reports = zip(*rows, strict=True)
            yield pa.table({"uid": pa.array(uids, pa.string()), "report": pa.array(reports, pa.binary(SIZE))})

    def _note(self, name: str) -> None:
        server = self._servers[name]
        self._states[name] = StreamState(
            self._streams[name], server.protocol.sha256, server.theta, server.heard, server.published
        )

    def add(self, name: str, uploads: Sequence[StreamUpload]) -> list[str]:
        """Take reports, all in one commit: what became of each, or the server's reason for refusing it."""
        with self._adding, _as_failures():
            connection, server = self._connection, self._servers[name]
            thetas = len(server.thetas)
            connection.execute("BEGIN IMMEDIATE")
            try:
                outcomes = [_added(connection, name, server, upload) for upload in uploads]
                for position, theta in enumerate(server.thetas[thetas:], thetas):
                    connection.execute("INSERT INTO thresholds VALUES (?, ?, ?)", (name, position, theta))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._load(name)  # the server in memory is ahead of the log
                raise
            self._note(name)
        return outcomes

    def renew(self, name: str) -> float:
        """Choose a new θ from the first reports since the last one; it is on the disk before it is announced."""
        with self._adding, _as_failures():
            connection, server = self._connection, self._servers[name]
            connection.execute("BEGIN IMMEDIATE")
            try:
                theta = server.renew()
                (after,) = connection.execute("SELECT MAX(number) FROM reports WHERE stream = ?", (name,)).fetchone()
                connection.execute("INSERT INTO renewals VALUES (?, ?)", (name, after))
                connection.execute("INSERT INTO thresholds VALUES (?, ?, ?)", (name, len(server.thetas) - 1, theta))
                connection.execute("COMMIT")
            except BaseException as problem:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if not isinstance(problem, InvalidParameter | QueryRefused):  # which leave the server as it was
                    self._load(name)
                raise
            self._note(name)
        return theta

    def problems(self, name: str) -> list[str]:
        """What is wrong with a stream whose log could be read: in words, for whoever looks the folder over."""
        refused = self._servers[name].refused
        return [f"stream {name}: {counted(count, 'report')} {reason}" for reason, count in sorted(refused.items())]

    def commit(self, requests: Sequence[StreamRequest]) -> list[list[str]]:
        """Take the reports of several requests: those of one stream in one commit, in their order."""
        by_stream: dict[str, list[StreamUpload]] = {}
        for request in requests:
            by_stream.setdefault(request.stream, []).extend(request.uploads)
        outcomes = {name: iter(self.add(name, uploads)) for name, uploads in by_stream.items()}
        return [[next(outcomes[request.stream]) for _ in request.uploads] for request in requests]

    def close(self) -> None:
        """Close the log. A second call does nothing."""
        self._connection.close()


def _added(connection: sqlite3.Connection, name: str, server: ToPLServer, upload: StreamUpload) -> str:
    query = "SELECT report FROM reports WHERE stream = ? AND uid = ?"
    held = connection.execute(query, (name, upload.uid)).fetchone()
    if held is not None:
        return REPEATED if held[0] == upload.report else CONFLICT
    before = dict(server.refused)
    server.push(upload.report, upload.uid)
    refused = [reason for reason, count in server.refused.items() if count != before.get(reason, 0)]
    if refused:
        return refused[0]
    connection.execute("INSERT INTO reports VALUES (NULL, ?, ?, ?)", (name, upload.uid, upload.report))
    return ACCEPTED


def _server(name: str, settings: Mapping[str, Any], *, simulation: bool) -> ToPLServer:
    return ToPLServer(**settings, name=name, simulation=simulation)


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
