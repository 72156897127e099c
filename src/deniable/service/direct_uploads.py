"""Uploads as most devices send them, answered by the connection itself.

A short body with a declared length needs no task, no queue of messages and no wake-up of its own: when it has arrived
its reports are queued, and when they are on the disk the answer is written. All connections of a commit are woken
together. Whatever is not that plain takes the way through the application, which has the same answers:

    head arrives → plain?  no  → the application (`reports_resource`)
                       └→ yes → body arrives → queued → on the disk → answered
                                     └→ too slow, or refused ─────────┘
"""

from __future__ import annotations

import asyncio
import logging
import time
from http import HTTPStatus
from typing import Any, ClassVar

from deniable.errors import Failure
from deniable.service.answers import Refused, refusal_body
from deniable.service.collector import Collector
from deniable.service.http_protocol import BoundedHttp
from deniable.service.logs import UploadCounts, log
from deniable.service.reports_resource import (
    FAILED_ANSWER,
    INLINE_BYTES,
    REPORTS_ROUTE,
    answer_headers,
    body_limits,
    check_uploader,
    queue_reports,
    store_failed,
)
from deniable.service.upload_bodies import BodyRefused, read_body
from deniable.tables.reports.upload_format import BINARY_BUNDLES, BINARY_REPORTS

_NOT_PLAIN = frozenset((b"origin", b"expect", b"transfer-encoding", b"content-encoding", b"upgrade", b"te", b"trailer"))
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class DirectUploads:
    """What connections need to know to take uploads themselves."""

    def __init__(self, collector: Collector, counts: UploadCounts) -> None:
        self.collector, self.counts = collector, counts
        self.url = f"/v1/collections/{collector.name}/reports".encode()
        settings = collector.settings
        self.most_bytes, self.body_seconds = min(INLINE_BYTES, settings.body_bytes), settings.body_seconds
        self._limits = body_limits(collector)
        self._media_type = BINARY_BUNDLES if self._limits.bundle else BINARY_REPORTS
        self.media_type = self._media_type.encode()

    def queue(self, upload: _Upload) -> None:
        """Check who sends, and what; `upload` is told when it is stored."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in upload.headers}
        may_upload = check_uploader(self.collector, headers, upload.address)
        try:
            sent = read_body(bytes(upload.body), self._media_type, self._limits)
        except BodyRefused as problem:
            raise Refused(problem.status, problem.reason, problem.words) from None
        queue_reports(self.collector, sent, may_upload, upload)


class _Upload:
    """One upload: uvicorn's connection sees a request that is not answered yet, the group commit one who waits."""

    __slots__ = (
        "_protocol",
        "address",
        "begun",
        "body",
        "disconnected",
        "headers",
        "keep_alive",
        "more_body",
        "response_complete",
        "waiting_for_100_continue",
    )

    def __init__(self, protocol: UploadHttp, address: str, *, keep_alive: bool) -> None:
        self._protocol, self.address, self.keep_alive = protocol, address, keep_alive
        self.headers, self.body, self.begun = protocol.headers, bytearray(), time.monotonic()
        self.more_body, self.response_complete = True, False
        self.disconnected = self.waiting_for_100_continue = False

    @property
    def message_event(self) -> _Upload:
        """Nobody waits for messages."""
        return self

    def set(self) -> None:
        """A message has arrived."""

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Where it has to be told."""
        loop: asyncio.AbstractEventLoop = self._protocol.loop
        return loop

    def done(self) -> bool:
        """Whether it was answered."""
        return self.response_complete

    def set_result(self, answer: bytes) -> None:
        """Its reports are on the disk."""
        self._protocol.answer(self, 200, answer)

    def set_exception(self, problem: Exception) -> None:
        """They are not, or nobody knows."""
        if isinstance(problem, Refused):
            more = answer_headers(problem)
            self._protocol.answer(self, problem.status, refusal_body(problem.reason, problem.words), more)
        elif isinstance(problem, Failure):
            self.set_exception(store_failed())
        else:
            log("request failed", level=logging.ERROR, problem=problem, route=REPORTS_ROUTE)
            self._protocol.answer(self, 500, FAILED_ANSWER)


class UploadHttp(BoundedHttp):
    """Takes plain uploads itself; every other request goes to the application."""

    uploads: ClassVar[DirectUploads]

    def connection_made(self, transport: Any) -> None:
        """Nothing has arrived."""
        super().connection_made(transport)
        self._upload: _Upload | None = None  # whose body arrives
        self._body_ends: asyncio.TimerHandle | None = None
        self._idle_ends: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    def data_received(self, data: bytes) -> None:
        """A body that does not come with its head has to come in time."""
        super().data_received(data)
        if self._upload is not None and self._body_ends is None and not self.transport.is_closing():
            self._body_ends = self.loop.call_later(self.uploads.body_seconds, self._body_too_slow, self._upload)

    def on_headers_complete(self) -> None:
        """Decide who takes the request."""
        if self._is_plain():
            self._stop_timer()
            self.cycle = self._upload = _Upload(
                self, self.client[0] if self.client else "", keep_alive=self.parser.should_keep_alive()
            )
        else:
            super().on_headers_complete()

    def _is_plain(self) -> bool:
        uploads, length, names = self.uploads, -1, set()
        if self.url != uploads.url or self.parser.get_method() != b"POST" or self.parser.get_http_version() != "1.1":
            return False
        if self._head_size > self.header_bytes or self.flow.write_paused or self.transport.is_closing():
            return False
        if self.cycle is not None and not self.cycle.response_complete:  # sent before the last answer
            return False
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            return False
        for name, value in self.headers:
            if name in names or name in _NOT_PLAIN:
                return False
            names.add(name)
            if name == b"content-length":
                length = int(value) if value.isdigit() and len(value) < 10 else -1
            elif name == b"content-type" and value != uploads.media_type:
                return False
        return b"content-type" in names and 0 <= length <= uploads.most_bytes and not self.parser.should_upgrade()

    def on_body(self, body: bytes) -> None:
        """Part of a body."""
        if self._upload is None:
            super().on_body(body)
        else:
            self._upload.body += body

    def on_message_complete(self) -> None:
        """The body is whole."""
        upload, self._upload = self._upload, None
        if upload is None:
            super().on_message_complete()
            return
        self._stop_body_timer()
        if upload.response_complete:
            return
        upload.more_body = False
        try:
            self.uploads.queue(upload)
        except Exception as problem:  # whatever it is, it is answered and the connection goes on
            upload.set_exception(problem)

    def answer(self, upload: _Upload, status: int, body: bytes, more: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Write an answer, and be ready for the next request."""
        upload.response_complete = True
        self.uploads.counts.note(status, upload.begun)
        if self.transport.is_closing():  # nobody is there
            return
        close = b"" if upload.keep_alive else b"connection: close\r\n"
        lines = [name + b": " + value + b"\r\n" for name, value in (*self.server_state.default_headers, *more)]
        self.transport.write(
            b"HTTP/1.1 %d %b\r\n%bcontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
            % (status, _PHRASES[status], b"".join(lines), len(body), close, body)
        )
        if not upload.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """The next request may begin. One timer for each connection notices that it is idle."""
        if self.pipeline or not isinstance(self.cycle, _Upload):
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if self._idle_ends is None:
            self._idle_ends = self.loop.call_later(self.timeout_keep_alive, self._look_at_idleness)

    def _look_at_idleness(self) -> None:
        self._idle_ends = None
        if self.transport.is_closing() or not isinstance(self.cycle, _Upload) or not self.cycle.response_complete:
            return  # whatever runs has its own limit, and its end sets the timer again
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_ends = self.loop.call_later(left, self._look_at_idleness)
        else:
            self.transport.close()

    def _body_too_slow(self, upload: _Upload) -> None:
        self._body_ends = None
        upload.keep_alive = False
        upload.set_exception(Refused(408, "slow", "The body did not arrive in time."))

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has left."""
        self._stop_body_timer()
        if self._idle_ends is not None:
            self._idle_ends.cancel()
        if self._upload is not None and not self._upload.response_complete:  # a part of a body is nothing
            self._upload.response_complete = True
            self.uploads.counts.note(400, self._upload.begun)
            self._upload = None
        super().connection_lost(exc)

    def _stop_body_timer(self) -> None:
        if self._body_ends is not None:
            self._body_ends.cancel()
            self._body_ends = None


def upload_http(uploads: DirectUploads) -> type[asyncio.Protocol]:
    """The protocol of a collector, with its limits."""
    settings = uploads.collector.settings
    limits = {"header_bytes": settings.header_bytes, "header_seconds": settings.header_seconds, "uploads": uploads}
    return type("UploadHttp", (UploadHttp,), limits)
