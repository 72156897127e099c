"""Group commit: many requests wait together for one write to the disk.

    submitted → queued → taken → stored   → its future holds the outcomes
                             └→ failed    → its future holds the error; nothing of it is stored

Requests put their uploads into a bounded queue, and one thread takes them out: when 100 reports wait, when the oldest
has waited 20 ms, or when nothing has arrived for a millisecond. Clocks of the day are not read.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from deniable.errors import Failure
from deniable.stores.collector.upload import CollectorStore, Upload, UploadOutcome


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """When a commit begins, and how much may wait for it."""

    reports: int = 100
    """As many begin a commit at once."""
    delay_s: float = 0.02
    """The longest that a report waits for others."""
    quiet_s: float = 0.001
    """A commit begins as soon as nothing has arrived for this long."""
    most_reports: int = 10_000
    """In one commit, if so many have arrived during the last one."""
    queued_reports: int = 50_000
    """Waiting in memory. More are refused."""


class QueueFull(Failure):
    """More reports wait to be stored than may. Nothing of the refused request is stored."""

    def __init__(self) -> None:
        super().__init__("too many reports wait to be stored. Nothing was stored. Send them again later.")


class Committed(NamedTuple):
    """One commit, for those who measure."""

    reports: int
    seconds: float
    failed: bool


class _Waiting(NamedTuple):
    uploads: Sequence[Upload]
    done: Future[list[UploadOutcome]]


class GroupCommit:
    """Adds uploads to a store from one thread. Any thread may submit.

    >>> from deniable.stores.collector.model_store import ModelStore
    >>> store = ModelStore()
    >>> store.set_round(0, is_open=True)
    >>> writer = GroupCommit(store)
    >>> writer.submit([Upload("users", 0, "7", 0, b"report")]).result()
    [<UploadOutcome.ACCEPTED: 'accepted'>]
    >>> writer.close()
    """

    def __init__(
        self,
        store: CollectorStore,
        limits: CommitLimits = CommitLimits(),
        watch: Callable[[Committed], None] = lambda _: None,
    ) -> None:
        self._store, self._limits, self._watch = store, limits, watch
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._counting = threading.Lock()
        self._queued = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """Reports that wait."""
        return self._queued

    @property
    def alive(self) -> bool:
        """Whether uploads are still taken."""
        return self._thread.is_alive() and not self._closed

    def submit(self, uploads: Sequence[Upload]) -> Future[list[UploadOutcome]]:
        """Queue the uploads of one request. They are committed together, and the future ends after that."""
        waiting = _Waiting(uploads, Future())
        with self._counting:
            if self._closed:
                raise Failure("the store is being closed. Nothing was stored. Send the reports again later.")
            if self._queued + len(uploads) > self._limits.queued_reports:
                raise QueueFull
            self._queued += len(uploads)
            self._queue.put(waiting)
        return waiting.done

    def close(self) -> None:
        """Take nothing more, commit what waits, and end the thread. A second call does nothing."""
        with self._counting:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            taken, last = self._take()
            if taken:
                self._commit(taken)

    def _take(self) -> tuple[list[_Waiting], bool]:
        """The requests of the next commit, and whether they are the last."""
        first = self._queue.get()
        if first is None:
            return [], True
        taken, reports, begun = [first], len(first.uploads), time.monotonic()
        while reports < self._limits.most_reports:
            left = begun + self._limits.delay_s - time.monotonic()
            enough = reports >= self._limits.reports or left <= 0 or self._closed
            try:
                following = self._queue.get(timeout=0 if enough else min(left, self._limits.quiet_s))
            except queue.Empty:
                break
            if following is None:
                return taken, True
            taken.append(following)
            reports += len(following.uploads)
        return taken, False

    def _commit(self, taken: list[_Waiting]) -> None:
        uploads = [upload for waiting in taken for upload in waiting.uploads]
        begun, problem, outcomes = time.monotonic(), None, []
        try:
            outcomes = self._store.add(uploads)
        except Exception as error:  # whatever it is, those who wait are told, and the thread goes on
            problem = error
        with self._counting:
            self._queued -= len(uploads)
        self._watch(Committed(len(uploads), time.monotonic() - begun, problem is not None))
        first = 0
        for waiting in taken:
            if problem is not None:
                waiting.done.set_exception(problem)
            else:
                waiting.done.set_result(outcomes[first : first + len(waiting.uploads)])
            first += len(waiting.uploads)
