"""Log lines as JSON on stderr: when, how grave, what happened, and public facts about it.

Messages are fixed texts. Paths, headers, bodies and texts of exceptions may hold what somebody sent, so none is logged:
a route is named by its pattern, an exception by its type and the lines of code that it came through.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import IO, Any

LOGGER = logging.getLogger("deniable.service")
_NO_OBJECTS = re.compile(r"[\w .,'-]*")


class JsonLines(logging.Handler):
    """Writes each record as one line of JSON."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. Of other packages' messages only the first words are written, and no argument."""
        own = record.name == LOGGER.name
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.msg if own else _first_words(record.msg),
            **(getattr(record, "facts", {}) if own else {"logger": record.name}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= _exception(record.exc_info[1])
        print(json.dumps(line), file=self._stream or sys.stderr, flush=True)


def _first_words(message: object) -> str:
    """A message up to where an object may be shown: asyncio's say which callback failed, with what it was called.

    >>> _first_words("Exception in callback queue(b'report of user 7')")
    'Exception in callback queue'
    """
    plain = _NO_OBJECTS.match(message) if isinstance(message, str) else None
    return (plain.group() if plain else "") or "message"


def _exception(problem: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(problem.__traceback__)[-8:]
    return {
        "exception": type(problem).__name__,
        "at": [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames],
    }


def log(message: str, *, level: int = logging.INFO, problem: BaseException | None = None, **facts: Any) -> None:
    """Write one line. `facts` are public: counts, times, names of settings."""
    info = None if problem is None else (type(problem), problem, problem.__traceback__)
    LOGGER.log(level, message, exc_info=info, extra={"facts": facts})


class UploadLog:
    """One line a second about uploads, however many there are: their number by status, and the slowest."""

    def __init__(self, every_s: float = 1.0) -> None:
        self._every_s, self._since = every_s, -math.inf
        self._statuses: Counter[int] = Counter()
        self._slowest_s = 0.0

    def note(self, status: int, begun: float, ended: float) -> None:
        """Count an upload. The first after a pause is written at once."""
        self._statuses[status] += 1
        self._slowest_s = max(self._slowest_s, ended - begun)
        if ended - self._since >= self._every_s:
            self._since = ended
            self.write()

    def write(self) -> None:
        """Write what was counted since the last line."""
        if self._statuses:
            counts = {str(status): count for status, count in sorted(self._statuses.items())}
            log("uploads", requests=counts, slowest_ms=round(1000 * self._slowest_s, 1))
            self._statuses.clear()
            self._slowest_s = 0.0


class UploadCounts:
    """Counts uploads by status, for operators and for the log."""

    def __init__(self, requests: Any, route: str) -> None:
        self._requests, self._route, self._log = requests, route, UploadLog()
        self._counters: dict[int, Any] = {}

    def note(self, status: int, begun: float) -> None:
        """Count an upload that was answered now and arrived at a time of `time.monotonic`."""
        counter = self._counters.get(status)
        if counter is None:
            counter = self._counters[status] = self._requests.labels(self._route, str(status))
        counter.inc()
        self._log.note(status, begun, time.monotonic())

    def write(self) -> None:
        """Write what the log still lacks."""
        self._log.write()


def start_logging() -> None:
    """Send the collector's lines, and warnings of its HTTP server, to stderr."""
    handler = JsonLines()
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def thread_failed(failed: threading.ExceptHookArgs) -> None:
    """Python would print the exception's text, which may hold what somebody sent."""
    log("a thread has failed", level=logging.ERROR, problem=failed.exc_value)
