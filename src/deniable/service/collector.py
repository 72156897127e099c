"""What all requests share: the collection, its store and the one who writes to it, keys, limits and numbers."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.engines.collecting.stored_reports import CollectorFolder, collector_folder
from deniable.engines.collecting.wire_reports import ReportDoor
from deniable.errors import BadInput
from deniable.files import Lock
from deniable.service.keys import KeyFile
from deniable.service.live_streams import LiveStreams
from deniable.service.metrics import Metrics
from deniable.service.open_database import OpenDatabase
from deniable.service.pseudonym_rules import check_pseudonym_uploads
from deniable.service.rate_limits import RateLimit
from deniable.service.report_commits import ArrivedRequest, ReportCommits, to_event_loops
from deniable.service.settings import ServeSettings
from deniable.stores.collector.database_file import check_database, check_no_password, postgresql, write_database
from deniable.stores.collector.group_commit import CommitLimits, GroupCommit
from deniable.stores.collector.sqlite_store import STORE_FILE, create_store
from deniable.stores.collector.stream_log import StreamLog, StreamRequest, create_stream_log, has_streams
from deniable.stores.collector.upload import CollectorStore
from deniable.tables.schema.names import check_name
from deniable.tables.specification.runs import SPECIFICATION_FILE, run_text
from deniable.tables.specification.specification import Specification

Clock = Callable[[], float]
_LOOK_AT_DISK_S = 0.5


@dataclass(slots=True)
class Collector:
    """The state of a server. Make one with `open_collector`; `close` commits what waits."""

    folder: CollectorFolder
    settings: ServeSettings
    store: CollectorStore
    writer: GroupCommit[ArrivedRequest, bytes]
    door: ReportDoor
    keys: KeyFile
    metrics: Metrics
    lock: Lock | None
    """Only one server may add to a file; PostgreSQL takes several."""
    addresses: RateLimit
    users: RateLimit
    questions: OpenDatabase
    live: LiveStreams
    streams: StreamLog | None = None
    stream_writer: GroupCommit[StreamRequest, list[str]] | None = None
    now: Clock = time.time
    """The time of day, for tokens only."""
    elapsed: Clock = time.monotonic
    stopping: bool = False
    """A signal has ended the server: whoever follows a stream is let go."""
    draining: bool = False
    _room: tuple[float, bool] | None = None

    @property
    def name(self) -> str:
        """The collection's name in addresses."""
        return collection_name(self.folder)

    def free_bytes(self) -> int:
        """Room on the disk of the store."""
        return shutil.disk_usage(self.folder.path).free

    @property
    def has_room(self) -> bool:
        """Whether uploads may be stored; the disk is looked at twice a second, not for every request."""
        now = self.elapsed()
        if self._room is None or now >= self._room[0]:
            has_room = self.lock is None or self.free_bytes() >= self.settings.free_bytes
            self._room = (now + _LOOK_AT_DISK_S, has_room)
        return self._room[1]

    @property
    def is_ready(self) -> bool:
        """Whether uploads would be taken now."""
        return not self.draining and self.writer.alive and self.has_room

    def close(self) -> None:
        """Commit what waits, and let go of the folder. A second call does nothing."""
        self.draining = self.stopping = True
        self.writer.close()
        if self.stream_writer is not None and self.streams is not None:
            self.stream_writer.close()
            self.streams.close()
        self.live.close()
        self.questions.close()
        self.store.close()
        if self.lock is not None:
            self.lock.close()


def collection_name(folder: CollectorFolder) -> str:
    """The name of a collection, or that of its folder if it has none."""
    return folder.collection.name or folder.path.resolve().name


def init_folder(
    specification: Specification,
    folder: Path,
    *,
    simulation: bool = False,
    database: str | None = None,
    streams: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Make a folder for a collector: specification, empty store, keys. The store comes last, so that half is none.

    With the address of a PostgreSQL database the store is there. If it has one for this specification, it is joined.
    `streams` are settings of streams without trust, by name; they are kept where reports are.
    """
    if database is not None:
        check_database(database)
        check_no_password(database)
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder.name!r} exists and is not empty. Nothing was written. Choose another folder.")
    if specification.name is None:
        check_name("folder", folder.resolve().name)
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)  # noqa: PTH101 - nobody else has to read it
    (folder / SPECIFICATION_FILE).write_text(run_text(specification, simulation=simulation), encoding="utf-8")
    KeyFile(folder).create()
    rounds = specification.rounds is not None
    if database is None:
        if streams:
            create_stream_log(folder, streams, simulation=simulation)
        create_store(folder / STORE_FILE, specification.sha256, rounds=rounds)
    else:
        postgresql().create_postgresql_store(database, specification.sha256, rounds=rounds)
        if streams:
            create_stream_log(folder, streams, simulation=simulation, database=database)
        write_database(folder, database)


def open_collector(path: Path, settings: ServeSettings) -> Collector:
    """Open a folder to serve it. Only one server at a time may, unless the store is in PostgreSQL."""
    folder = collector_folder(path)
    check_pseudonym_uploads(folder, settings)
    keys = KeyFile(path)
    keys.keys()
    local = folder.database is None
    lock = Lock(path / STORE_FILE, "the store", cost="Nothing was started") if local else None
    try:
        store = folder.open_store()
    except BaseException:
        if lock is not None:
            lock.close()
        raise
    try:
        streams = StreamLog(path, simulation=folder.simulation) if has_streams(path) else None
    except BaseException:
        store.close()
        if lock is not None:
            lock.close()
        raise
    metrics = Metrics()
    door = ReportDoor(folder.collection, simulation=folder.simulation)
    limits = CommitLimits(queued_reports=settings.queued_reports)
    writer = GroupCommit(
        ReportCommits(door, store, metrics),
        limits,
        watch=metrics.committed,
        deliver=to_event_loops,
        tidy=store.tidy,
    )
    return Collector(
        folder,
        settings,
        store,
        writer,
        door,
        keys,
        metrics,
        lock,
        RateLimit(settings.requests_per_minute),
        RateLimit(settings.reports_per_minute),
        OpenDatabase(folder, store),
        LiveStreams(path, settings),
        streams,
        None if streams is None else GroupCommit(streams.commit, limits, deliver=to_event_loops, tidy=streams.follow),
    )
