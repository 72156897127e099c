"""The database that analysts ask: opened once, and opened again after reports have arrived.

Questions are answered by one thread, one after the other, and only so many may wait. An answer sees every report that
was acknowledged a second before it was asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TypeVar

from deniable.database import Database, connect
from deniable.errors import Failure
from deniable.stores.collector.upload import CollectorStore

MOST_WAITING = 16
FRESH_S = 1.0
Given = TypeVar("Given")


class TooManyQuestions(Failure):
    """As many questions wait as may."""

    def __init__(self) -> None:
        super().__init__("too many questions wait. Nothing was computed. Ask again later.")


class OpenDatabase:
    """Answers questions about a folder, from one thread."""

    def __init__(self, folder: Path, store: CollectorStore, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._store, self._elapsed = folder, store, elapsed
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="questions")
        self._counting = Lock()
        self._waiting = 0
        self._opened: tuple[int, float, Database] | None = None

    def ask(self, question: Callable[[Database], Given]) -> Future[Given]:
        """Queue a question. A future that is cancelled before its turn costs nothing."""
        with self._counting:
            if self._waiting >= MOST_WAITING:
                raise TooManyQuestions
            self._waiting += 1
        future = self._thread.submit(lambda: question(self._database()))
        future.add_done_callback(self._answered)
        return future

    def _answered(self, _: object) -> None:
        with self._counting:
            self._waiting -= 1

    def _database(self) -> Database:
        """The database, not older than a second if there is anything new. Only the thread of questions calls this."""
        now = self._elapsed()
        if self._opened is None or now - self._opened[1] >= FRESH_S:
            version = self._store.summary().version
            if self._opened is None or version != self._opened[0]:
                self._opened = (version, now, connect(self._folder))
            else:
                self._opened = (version, now, self._opened[2])
        return self._opened[2]

    def close(self) -> None:
        """Let a question that runs end; others are not answered."""
        self._thread.shutdown(wait=True, cancel_futures=True)
