"""Streams without trust that a collector takes: every report in the order of arrival, on the disk before its answer.

    streams.json     the settings of each stream, public
    a journal        reports in their order, every θ that was announced, and when θ was renewed: a file, or PostgreSQL

A stream is its log: a `ToPLServer` is fed with it at the start, and with every report that is accepted. Both phases
come through here. When enough first reports have arrived, θ is chosen and written in the commit of the report that
completed them; only then is it announced. An operator may renew it, which is logged as well. If a later version would
choose another θ from the same reports, the log is refused: what was announced never changes.

Several servers may share a journal in PostgreSQL. Each reads what the others have added before it judges anything, so
all feed their servers with the same reports in the same order, and choose the same θ.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from deniable.errors import BadInput, Failure, MissingExtra
from deniable.stores.collector.database_file import read_database
from deniable.stores.collector.stream_journal import StreamFile, StreamJournal, create_stream_file
from deniable.streams.local.renewal import ASKED, AUTO
from deniable.streams.local.server import ToPLServer
from deniable.streams.local.stream_report import SIZE
from deniable.tables.schema.attributes import check_name
from deniable.wording import counted

STREAMS_FILE = "streams.json"
ACCEPTED, REPEATED, CONFLICT = "accepted", "repeated", "conflict"
_STREAM_SETTINGS = frozenset(
    {"epsilon", "bound", "first", "horizon", "theta", "renewal", "renew", "scale", "mechanism"}
)
_LAST = 2**63 - 1
_FOLLOW_S = 1.0


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
    return {name: _written_out(settings) for name, settings in streams.items()}


def _written_out(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are kept: whether θ is looked at again must not depend on a default of later versions."""
    return {**settings, **({"renew": settings.get("renew", AUTO)} if settings.get("renewal") else {})}


def create_stream_log(
    folder: Path, streams: Mapping[str, Mapping[str, Any]], *, simulation: bool, database: str | None = None
) -> None:
    """Write the settings and an empty journal: a file, or tables of a database, which is joined if it has them."""
    streams = {name: _written_out(settings) for name, settings in streams.items()}
    for name, settings in streams.items():
        _server(name, settings, simulation=simulation)
    if database is None:
        create_stream_file(folder)
    else:
        _postgresql().create_stream_tables(database, streams)
    (folder / STREAMS_FILE).write_text(json.dumps(streams, indent=1), encoding="utf-8")


def _postgresql() -> Any:
    try:
        from deniable.stores.collector import postgresql_streams
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "psycopg", "postgresql") from None
    return postgresql_streams


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
        database = read_database(folder)
        self._journal: StreamJournal = StreamFile(folder) if database is None else _postgresql().StreamTables(database)
        self._servers: dict[str, ToPLServer] = {}
        self._states: dict[str, StreamState] = {}
        self._read: dict[str, tuple[int, int]] = {}
        """The number of the last report that a server was fed with, and how often it was renewed."""
        self._ahead: set[str] = set()
        """Streams whose server may know more than the journal."""
        self._followed_s = time.monotonic()
        try:
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
        """Feed a new server with the journal."""
        self._servers[name], self._read[name] = _server(name, self._streams[name], simulation=self._simulation), (0, 0)
        with self._journal.reading():
            self._catch_up(name)
        self._ahead.discard(name)

    def _catch_up(self, name: str) -> None:
        """Feed the server with what the journal has and it has not, all of one moment."""
        server, (last, renewed) = self._servers[name], self._read[name]
        renewals = self._journal.renewals(name)[renewed:]
        for until in (*renewals, None):
            for rows in self._journal.logged(name, last, _LAST if until is None else until):
                numbers, uids, reports = zip(*rows, strict=True)
                server.push_many(
                    pa.table({"uid": pa.array(uids, pa.string()), "report": pa.array(reports, pa.binary(SIZE))})
                )
                last = numbers[-1]
            if until is not None:
                server.renew()
        self._read[name] = (last, renewed + len(renewals))
        if list(server.thetas) != self._journal.thresholds(name) and self._streams[name].get("theta") is None:
            self._ahead.add(name)
            raise Failure(
                f"stream {name!r}: another θ was announced than this version chooses. Nothing was started. "
                "Use the version that announced it."
            )
        self._note(name)

    def follow(self) -> bool:
        """Read what other servers have added, at most once a second; says whether there are others."""
        now = time.monotonic()
        if self._journal.shared and now - self._followed_s >= _FOLLOW_S:
            self._followed_s = now
            with self._adding, suppress(Failure):  # it is tried again in a second
                for name in self._streams:
                    if name in self._ahead:
                        self._load(name)
                        continue
                    with self._journal.reading():
                        self._catch_up(name)
        return self._journal.shared

    def _note(self, name: str) -> None:
        server = self._servers[name]
        self._states[name] = StreamState(
            self._streams[name], server.protocol.sha256, server.theta, server.heard, server.published
        )

    def add(self, name: str, uploads: Sequence[StreamUpload]) -> list[str]:
        """Take reports, all in one commit: what became of each, or the server's reason for refusing it."""
        with self._adding, self._changing(name):
            server = self._servers[name]
            thetas, held = len(server.thetas), self._journal.held(name, [upload.uid for upload in uploads])
            outcomes, new = [], list[StreamUpload]()
            for upload in uploads:
                outcomes.append(_outcome(server, upload, held.get(upload.uid)))
                if outcomes[-1] == ACCEPTED:
                    held[upload.uid] = upload.report
                    new.append(upload)
            self._journal.append(name, new)
            for position, theta in enumerate(server.thetas[thetas:], thetas):
                self._journal.announce(name, position, theta)
            self._read[name] = (self._journal.last(name), self._read[name][1])
        return outcomes

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        """One commit of a stream. If it fails, the server in memory is fed with the journal again."""
        if name in self._ahead:
            self._load(name)
        self._ahead.add(name)
        try:
            with self._journal.changing(name):
                if self._journal.shared:
                    self._catch_up(name)
                yield
        except BaseException:
            with suppress(Failure):  # then it is tried again before the next change
                self._load(name)
            raise
        self._ahead.discard(name)
        self._note(name)

    def renew(self, name: str) -> float:
        """Choose a new θ from the first reports since the last one; it is on the disk before it is announced."""
        with self._adding, self._changing(name):
            server, after = self._servers[name], self._journal.last(name)
            theta = server.renew()
            self._journal.renew(name, after)
            self._journal.announce(name, len(server.thetas) - 1, theta)
            self._read[name] = (after, self._read[name][1] + 1)
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
        self._journal.close()


def _outcome(server: ToPLServer, upload: StreamUpload, held: bytes | None) -> str:
    """What becomes of a report, given what its user has sent; the server takes it if it is new."""
    if held is not None:
        return REPEATED if held == upload.report else CONFLICT
    before = dict(server.refused)
    server.push(upload.report, upload.uid)
    refused = [reason for reason, count in server.refused.items() if count != before.get(reason, 0)]
    return refused[0] if refused else ACCEPTED


def _server(name: str, settings: Mapping[str, Any], *, simulation: bool) -> ToPLServer:
    return ToPLServer(**{"renew": ASKED, **settings}, name=name, simulation=simulation)
