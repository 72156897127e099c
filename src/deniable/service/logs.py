"""Log lines as JSON on stderr: when, how grave, what happened, and public facts about it.

Messages are fixed texts. Paths, headers, bodies and texts of exceptions may hold what somebody sent, so none is logged:
a route is named by its pattern, an exception by its type and the lines of code that it came through.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import IO, Any

LOGGER = logging.getLogger("deniable.service")


class JsonLines(logging.Handler):
    """Writes each record as one line of JSON."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. Records of other packages are written without their arguments."""
        own = record.name == LOGGER.name
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.msg if own or isinstance(record.msg, str) else "message",
            **(getattr(record, "facts", {}) if own else {"logger": record.name}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= _exception(record.exc_info[1])
        print(json.dumps(line), file=self._stream or sys.stderr, flush=True)


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


def start_logging() -> None:
    """Send the collector's lines, and warnings of its HTTP server, to stderr."""
    handler = JsonLines()
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
