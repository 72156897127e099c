"""The streams of a served folder: every store in `live/` there is one, written to by requests and read by others.

    collected/live/meter/     made by `deniable stream create collected/live/meter …`, also while the server runs

A store is opened to be written to when its first value arrives, so another program may publish into one that no request
writes to. Reading needs nothing but the folder.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from deniable.errors import QueryRefused
from deniable.limits import LONGEST_NAME
from deniable.service.report_commits import to_event_loops
from deniable.service.settings import ServeSettings
from deniable.stores.collector.group_commit import CommitLimits, GroupCommit
from deniable.stores.live.folder_files import LIVE_FOLDER, StoreFolder
from deniable.stores.live.segments import PublishedValues
from deniable.stores.live.stored_stream import StoredStream
from deniable.stores.sources.batch import Batch
from deniable.stores.stream_intake import Receipt, StreamIntake
from deniable.streams.released.keyed_release import KeyedReleased
from deniable.streams.released.released_stream import Released

Answer = TypeVar("Answer")
_STREAM_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")


class LiveStream:
    """One store: a bounded queue into it, and what it has published."""

    def __init__(self, folder: Path, settings: ServeSettings) -> None:
        self._intake = StreamIntake(folder, settings.keys_per_stream)
        limits = CommitLimits(most_reports=settings.values_per_request, queued_reports=settings.queued_values)
        self.writer: GroupCommit[Batch, Receipt] = GroupCommit(self._commit, limits, deliver=to_event_loops)
        self._stored, self._turn = StoredStream(folder), threading.Lock()
        self._kept: tuple[int, Released | KeyedReleased] | None = None
        self._said: dict[str, tuple[int, Any]] = {}
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self.name, self.about, self.keyed = folder.name, self._stored.settings, self._stored.keyed
        self.readers = 0

    def _commit(self, requests: Sequence[Batch]) -> list[Receipt]:
        receipts = self._intake(requests)
        for loop, event in list(self._waiting):
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)
        return receipts

    @property
    def published(self) -> int:
        """How many values are published by now."""
        with self._turn:
            return self._stored.refresh()

    @property
    def theta(self) -> int | None:
        """The newest threshold that all values share, in steps of the grid; None if there is none yet."""
        with self._turn:
            shared = [epoch.learnt.theta for epoch in self._stored.epochs if epoch.key is None]
            return shared[-1] if shared else None

    def page(self, start: int, most: int) -> PublishedValues:
        """Published values from a number on."""
        with self._turn:
            self._stored.refresh()
            return self._stored.values(start, most)

    def released(self) -> Released:
        """Everything that is published by now, of a stream without keys."""
        if self.keyed:
            raise QueryRefused("this stream has keys", "Ask about one of them.")
        made = self._newest(self._stored.released)
        assert isinstance(made, Released)  # noqa: S101 - what was made
        return made

    def by_key(self) -> KeyedReleased:
        """Everything that is published by now, of a stream with keys."""
        if not self.keyed:
            raise QueryRefused("this stream has no keys", "Ask without a key.")
        made = self._newest(self._stored.by_key)
        assert isinstance(made, KeyedReleased)  # noqa: S101 - what was made
        return made

    def _newest(self, make: Callable[[], Released | KeyedReleased]) -> Released | KeyedReleased:
        with self._turn:
            count = self._stored.refresh()
            if self._kept is None or self._kept[0] != count:
                self._kept = (count, make())
            return self._kept[1]

    def once(self, what: str, published: int, make: Callable[[], Answer]) -> Answer:
        """What `make` says about the stream, made again when more is published."""
        if self._said.get(what, (None,))[0] != published:
            self._said[what] = (published, make())
        said: Answer = self._said[what][1]
        return said

    @contextmanager
    def watched(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever values were committed here."""
        watcher = (asyncio.get_running_loop(), asyncio.Event())
        self._waiting.add(watcher)
        try:
            yield watcher[1]
        finally:
            self._waiting.discard(watcher)

    def close(self) -> None:
        """Commit what waits, and let go of the store."""
        self.writer.close()
        self._intake.close()


class LiveStreams:
    """The streams of a served folder, by name. One that is made later is found when it is asked for."""

    def __init__(self, folder: Path, settings: ServeSettings) -> None:
        self._folder, self._settings = folder / LIVE_FOLDER, settings
        self._opened: dict[str, LiveStream] = {}
        self._turn = threading.Lock()

    @property
    def names(self) -> list[str]:
        """Every stream that there is."""
        folders = self._folder.iterdir() if self._folder.is_dir() else ()
        return sorted(path.name for path in folders if _STREAM_NAME.fullmatch(path.name) and StoreFolder(path).exists)

    def get(self, name: str) -> LiveStream | None:
        """A stream; None if there is none of that name."""
        with self._turn:
            if name not in self._opened:
                if not _STREAM_NAME.fullmatch(name) or not StoreFolder(self._folder / name).exists:
                    return None
                self._opened[name] = LiveStream(self._folder / name, self._settings)
            return self._opened[name]

    @property
    def queued(self) -> int:
        """Values that wait for the disk."""
        return sum(stream.writer.queued for stream in self._opened.values())

    def close(self) -> None:
        """Commit what waits, in every stream. A second call does nothing."""
        for stream in self._opened.values():
            stream.close()
