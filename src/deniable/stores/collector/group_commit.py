"""Group commit: many requests wait together for one write to the disk.

    submitted → queued → taken → stored   → whoever waits is given the result
                             └→ failed    → whoever waits is given the error; nothing of it is stored

Requests go into a bounded queue, and one thread takes all that wait: when 100 reports do, when the oldest has waited
20 ms, or when nothing has arrived for a moment. Clocks of the day are not read. When nothing waits, the thread tidies
the store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from deniable.errors import Failure
from deniable.stores.collector.upload import CollectorStore, Upload, UploadOutcome

Request = TypeVar("Request")
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """When a commit begins, and how much may wait for it."""

    reports: int = 100
    """As many begin a commit at once."""
    delay_s: float = 0.02
    """The longest that a report waits for others."""
    quiet_s: float = 0.0
    """A commit begins as soon as nothing has arrived for this long; 0 lets other threads run once. Sleeping costs more
    than it gains: while a commit waits for the disk, the next group gathers by itself."""
    most_reports: int = 10_000
    """In one commit, if so many have arrived during the last one. A single request may hold more."""
    queued_reports: int = 50_000
    """Waiting in memory. More are refused."""
    idle_s: float = 0.05
    """So long without a request, the store is tidied a little."""


class QueueFull(Failure):
    """More reports wait to be stored than may. Nothing of the refused request is stored."""

    def __init__(self) -> None:
        super().__init__("too many reports wait to be stored. Nothing was stored. Send them again later.")


class Committed(NamedTuple):
    """One commit, for those who measure."""

    reports: int
    seconds: float
    failed: bool


class Delivery(NamedTuple):
    """What became of a request, for whoever waits: a result, or the error of the whole commit."""

    waiter: Any
    result: Any
    problem: Exception | None


class _Waiting(NamedTuple):
    request: Any
    reports: int
    waiter: Any


def to_futures(deliveries: Sequence[Delivery]) -> None:
    """End the futures of `concurrent.futures` that wait."""
    for delivery in deliveries:
        if not delivery.waiter.set_running_or_notify_cancel():
            continue  # nobody waits any more
        if delivery.problem is not None:
            delivery.waiter.set_exception(delivery.problem)
        else:
            delivery.waiter.set_result(delivery.result)


def adding(store: CollectorStore) -> Callable[[Sequence[Sequence[Upload]]], list[list[UploadOutcome]]]:
    """Requests that are lists of uploads: all are added in one commit, and each gets its own outcomes."""

    def add(requests: Sequence[Sequence[Upload]]) -> list[list[UploadOutcome]]:
        following = iter(store.add([upload for request in requests for upload in request]))
        return [[next(following) for _ in request] for request in requests]

    return add


class GroupCommit(Generic[Request, Given]):
    """Runs `commit` on groups of requests, from one thread. Any thread may submit.

    >>> from deniable.stores.collector.model_store import ModelStore
    >>> store = ModelStore()
    >>> store.set_round(0, is_open=True)
    >>> writer = GroupCommit(adding(store))
    >>> writer.submit([Upload("users", 0, "7", 0, b"report")], 1).result()
    [<UploadOutcome.ACCEPTED: 'accepted'>]
    >>> writer.close()
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Request]], Sequence[Given]],
        limits: CommitLimits = CommitLimits(),
        *,
        watch: Callable[[Committed], None] = lambda _: None,
        deliver: Callable[[Sequence[Delivery]], None] = to_futures,
        tidy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`tidy` does a little work that can wait, and says whether there is more."""
        self._commit, self._limits, self._watch, self._deliver, self._tidy = commit, limits, watch, deliver, tidy
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._queued = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """Reports that wait, or are being stored."""
        return self._queued

    @property
    def alive(self) -> bool:
        """Whether requests are still taken."""
        return self._thread.is_alive() and not self._closed

    def submit(self, request: Request, reports: int, waiter: Any = None) -> Any:
        """Queue a request. What becomes of it is delivered to the waiter, by default to a new future; returns it."""
        waiter = Future() if waiter is None else waiter
        with self._changed:
            if not self.alive:
                raise Failure("the store is being closed. Nothing was stored. Send the reports again later.")
            if self._queued + reports > self._limits.queued_reports:
                raise QueueFull
            self._queued += reports
            self._waiting.append(_Waiting(request, reports, waiter))
            if len(self._waiting) == 1:
                self._changed.notify()
        return waiter

    def close(self) -> None:
        """Take nothing more, commit what waits, and end the thread. A second call does nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        finally:  # also after a fault of this file or of whoever watches: nobody may wait for a thread that has ended
            with self._changed:
                self._closed = True
                left, self._waiting = self._waiting, []
            if left:
                problem = Failure("the store has stopped. Nothing was stored. Send the reports again later.")
                self._deliver([Delivery(waiting.waiter, None, problem) for waiting in left])

    def _serve(self) -> None:
        more = True
        while True:
            with self._changed:
                if not self._waiting and not self._closed:
                    self._changed.wait(self._limits.idle_s if more else None)
            if self._waiting:
                self._gather()
                self._store(self._take())
                more = True
            elif self._closed:
                return
            else:
                more = self._tidied()

    def _tidied(self) -> bool:
        """Tidy a little. If it fails, it is counted and tried again after the next commit."""
        begun = time.monotonic()
        try:
            return self._tidy()
        except Exception:  # whatever it is, the thread has to go on: others will wait for it
            self._watch(Committed(0, time.monotonic() - begun, failed=True))
            return False

    def _gather(self) -> None:
        """Let others join: until enough wait, the first has waited long enough, or nothing arrives."""
        ends, seen = time.monotonic() + self._limits.delay_s, -1
        while seen != self._queued < self._limits.reports and not self._closed and time.monotonic() < ends:
            seen = self._queued
            time.sleep(self._limits.quiet_s)

    def _take(self) -> list[_Waiting]:
        """The requests of the next commit."""
        with self._changed:
            reports, count = 0, 0
            while count < len(self._waiting) and (
                count == 0 or reports + self._waiting[count].reports <= self._limits.most_reports
            ):
                reports += self._waiting[count].reports
                count += 1
            taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _store(self, taken: list[_Waiting]) -> None:
        begun, problem = time.monotonic(), None
        results: Sequence[Any] = [None] * len(taken)
        try:
            results = self._commit([waiting.request for waiting in taken])
        except Exception as error:  # whatever it is, those who wait are told, and the thread goes on
            problem = error
        reports = sum(waiting.reports for waiting in taken)
        with self._changed:
            self._queued -= reports
        self._watch(Committed(reports, time.monotonic() - begun, problem is not None))
        self._deliver([Delivery(w.waiter, result, problem) for w, result in zip(taken, results, strict=True)])
