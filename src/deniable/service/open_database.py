"""The database that analysts ask: opened once, kept, and refreshed as reports arrive.

Questions are answered by one thread, one after the other, and only so many may wait. An answer sees every report that
was acknowledged a second before it was asked. Of a refreshed database only what is new is read, where the store says
what that is (`growing`), else only tables and rounds that have grown. From the first question on it is refreshed every
second, asked or not: so a question never waits for more than a second's reports. What is there at the start may be
read before anybody asks (`read_ahead`). Where everything is read again and
that takes long, questions are answered from what was read, for as long as that took, and answers say how old it is:
otherwise a large store that grows would only ever be read.
A question whose asker has left ends before its turn, or at the next block of reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Event, Lock, Thread
from typing import TypeVar

import pyarrow as pa

from deniable.cancellation import Ended, ends_when
from deniable.database import Database, connect
from deniable.engines.collecting.collected_reports import Reports
from deniable.engines.collecting.stored_reports import CollectorFolder, joined_rounds, stored_tables
from deniable.engines.local.growing_store import growing
from deniable.errors import Failure
from deniable.queries.answers.result import Result
from deniable.service.pseudonym_rules import check_may_ask
from deniable.stores.collector.upload import CollectorStore

MOST_WAITING = 16
FRESH_S = 1.0
LONG_S = 10.0
"""Reading that takes longer is not repeated before as much time has passed."""
MOST_KEPT_REPORTS = 20_000_000
"""Above this, reports are not kept in memory: the folder is opened anew, in files."""
Given = TypeVar("Given")


class TooManyQuestions(Failure):
    """As many questions wait as may."""

    def __init__(self) -> None:
        super().__init__("too many questions wait. Nothing was computed. Ask again later.")


class OpenDatabase:
    """Answers questions about a folder, from one thread."""

    def __init__(
        self, folder: CollectorFolder, store: CollectorStore, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder, self._store, self._elapsed = folder, store, elapsed
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="questions")
        self._counting, self._closing = Lock(), Event()
        self._waiting = 0
        self._opened: tuple[int, float, Database] | None = None
        self._kept: dict[tuple[str, int], pa.Table] = {}
        self._growing = growing(folder, store)
        self._fresh_s = 0.0
        self._following: Thread | None = None
        self._reads_all = False
        """Whether everything was read for the last refresh, and would be for the next."""
        self.reading = False
        """Whether a question waits for reports that are being read."""

    def ask(self, question: Callable[[Database], Given], ended: Callable[[], bool] = lambda: False) -> Future[Given]:
        """Queue a question. It is not begun, or not finished, once `ended` says that nobody waits for it."""

        def answered() -> Given:
            if ended():
                raise Ended
            check_may_ask(self._folder, self._store)
            with ends_when(self._closing.is_set):  # if only the asker leaves, the next one finds it opened
                database = self._database()
            with ends_when(lambda: self._closing.is_set() or ended()):
                return self._dated(question(database))

        return self._queued(answered)

    def read_ahead(self) -> None:
        """Read what is there before anybody asks, where only what is new has to be read then."""

        def read() -> None:
            with ends_when(self._closing.is_set), suppress(Exception):  # it fails again at the first question
                if self._growing is not None and sum(self._store.summary().counts.values()) <= MOST_KEPT_REPORTS:
                    self._growing.engine()

        if self._growing is not None:
            self._thread.submit(self._while_reading, read)

    def _while_reading(self, read: Callable[[], Given]) -> Given:
        self.reading = True
        try:
            return read()
        finally:
            self.reading = False

    def compute(self, work: Callable[[], Given], ended: Callable[[], bool] = lambda: False) -> Future[Given]:
        """Queue work that needs no reports, among the questions."""

        def computed() -> Given:
            if ended():
                raise Ended
            with ends_when(lambda: self._closing.is_set() or ended()):
                return work()

        return self._queued(computed)

    def _queued(self, work: Callable[[], Given]) -> Future[Given]:
        with self._counting:
            if self._waiting >= MOST_WAITING:
                raise TooManyQuestions
            self._waiting += 1
        future = self._thread.submit(work)
        future.add_done_callback(self._answered)
        return future

    def _answered(self, _: object) -> None:
        with self._counting:
            self._waiting -= 1

    def _database(self) -> Database:
        """The database, not older than a second if there is anything new. Only the thread of questions calls this."""
        now = self._elapsed()
        if self._opened is None or now - self._opened[1] >= self._fresh_s:
            summary = self._store.summary()
            if self._opened is None or summary.version != self._opened[0]:
                reports = sum(summary.counts.values())
                self._opened = (summary.version, now, self._while_reading(lambda: self._refreshed(reports)))
                # What costs little is done often: half of the time at most goes into it.
                took = self._elapsed() - now
                self._fresh_s = 2 * took if took > LONG_S and self._reads_all else min(FRESH_S, 2 * took)
            else:
                self._opened = (summary.version, now, self._opened[2])
        return self._opened[2]

    def _dated(self, answer: Given) -> Given:
        """An answer that says how old its reports are, where later ones are there already."""
        assert self._opened is not None  # noqa: S101 - it was asked
        version, read, _ = self._opened
        age = self._elapsed() - read
        if age <= LONG_S or not isinstance(answer, Result) or self._store.summary().version == version:
            return answer
        note = f"reports of the last {age:.0f} s do not count yet, because reading all of them takes long"
        return replace(answer, notes=(*answer.notes, note))

    def _follow(self) -> None:
        """Keep an opened database fresh; what fails here fails again at the next question, which says so."""

        def refreshed() -> None:
            with ends_when(self._closing.is_set), suppress(Exception):
                self._database()

        while not self._closing.wait(FRESH_S):
            with suppress(CancelledError, RuntimeError):  # it is being closed
                self._thread.submit(refreshed).result()

    def _refreshed(self, reports: int) -> Database:
        self._reads_all = True
        if reports > MOST_KEPT_REPORTS or self._folder.simulation:
            self._kept = {}
            return connect(self._folder.path)
        if self._growing is not None:
            engine = self._growing.engine()
            if self._following is None and engine is not None:
                self._following = Thread(target=self._follow, name="following", daemon=True)
                self._following.start()
            self._reads_all = engine is None
            return connect(self._folder.path) if engine is None else connect(engine=engine)
        self._kept = stored_tables(self._folder, self._store, self._kept)
        return connect(Reports(self._folder.collection, joined_rounds(self._kept), {}))

    def close(self) -> None:
        """End the question that runs, at its next block; others are not answered."""
        self._closing.set()
        self._thread.shutdown(wait=True, cancel_futures=True)
