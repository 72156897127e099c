"""Uploads as most devices send them, answered by the connection itself.

A short body with a declared length needs no task, no queue of messages and no wake-up of its own: when it has arrived
its reports are queued, and when they are on the disk the answer is written. All connections of a commit are woken
together. Whatever is not that plain takes the way through the application, which has the same answers:

    head arrives → plain?  no  → the application (`reports_resource`)
                       └→ yes → body arrives → queued → on the disk → answered
                                     └→ too slow, or refused ─────────┘

Most connections send the same head again and again. The bytes of one that was plain are remembered, and a request that
begins with the same bytes is not parsed anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, ClassVar, NamedTuple

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
_END_OF_HEAD = b"\r\n\r\n"


class _Head(NamedTuple):
    """The head of a plain upload."""

    length: int
    """Bytes of the body."""
    fields: Mapping[str, str]
    keep_alive: bool
    text: bytes = b""
    """All of it, where it came together with its body."""


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
        self._begun: tuple[object, bytes] = (None, b"")

    def queue(self, upload: _Upload) -> None:
        """Check who sends, and what; `upload` is told when it is stored."""
        may_upload = check_uploader(self.collector, upload.head.fields, upload.address)
        try:
            sent = read_body(bytes(upload.body), self._media_type, self._limits)
        except BodyRefused as problem:
            raise Refused(problem.status, problem.reason, problem.words) from None
        queue_reports(self.collector, sent, may_upload, upload)

    def begun_answer(self, usual: list[tuple[bytes, bytes]]) -> bytes:
        """What every answer with 200 begins with; `usual` headers change once a second."""
        if self._begun[0] is not usual:
            self._begun = (usual, _begun_answer(200, usual))
        return self._begun[1]


def _begun_answer(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"HTTP/1.1 %d %b\r\n%bcontent-type: application/json\r\n" % (status, _PHRASES[status], lines)


class _Upload:
    """One upload: uvicorn's connection sees a request that is not answered yet, the group commit one who waits."""

    __slots__ = (
        "_protocol",
        "address",
        "begun",
        "body",
        "disconnected",
        "head",
        "keep_alive",
        "more_body",
        "response_complete",
        "waiting_for_100_continue",
    )

    def __init__(self, protocol: UploadHttp, address: str, head: _Head) -> None:
        self._protocol, self.address, self.head, self.keep_alive = protocol, address, head, head.keep_alive
        self.body: bytes | bytearray = b""
        self.begun = time.monotonic()
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
        self._address = self.client[0] if self.client else ""
        self._upload: _Upload | None = None  # whose body arrives
        self._at_beginning = True  # whatever arrives next is the beginning of a request
        self._known: _Head | None = None  # the last head; only if what arrives next is the beginning of a request
        self._body_ends: asyncio.TimerHandle | None = None
        self._idle_ends: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    def data_received(self, data: bytes) -> None:
        """Take a request whose head is known, or parse what arrived.

        A body that does not come with its head has to come in time.
        """
        known = self._known
        if (
            known is not None
            and len(data) == len(known.text) + known.length
            and data.startswith(known.text)
            and self._may_take()
        ):
            self.cycle = upload = _Upload(self, self._address, known)
            upload.body = data[len(known.text) :]
            self._queue(upload)
            return
        begins, last, under_way = self._at_beginning, self.cycle, self._upload
        ends = under_way is not None and len(data) == under_way.head.length - len(under_way.body)
        self._at_beginning, self._known = False, None
        super().data_received(data)
        if begins and self.cycle is not last:
            self._remember_head(data)
        elif ends and self._upload is None:  # the rest of a body, and nothing else
            self._at_beginning = True
        if self._upload is not None and self._body_ends is None and not self.transport.is_closing():
            self._body_ends = self.loop.call_later(self.uploads.body_seconds, self._body_too_slow, self._upload)

    def _remember_head(self, data: bytes) -> None:
        """After the beginning of a request: remember its head if it was plain, and the whole request came at once."""
        upload, size = self.cycle, data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        if isinstance(upload, _Upload) and not upload.more_body and size + upload.head.length == len(data):
            self._at_beginning = True
            if upload.keep_alive:
                self._known = upload.head._replace(text=data[:size])

    def on_headers_complete(self) -> None:
        """Decide who takes the request."""
        head = self._plain_head()
        if head is not None:
            self._stop_timer()
            self.cycle = self._upload = _Upload(self, self._address, head)
        else:
            super().on_headers_complete()

    def _may_take(self) -> bool:
        """Whether an upload can be taken now."""
        return (
            (self.cycle is None or self.cycle.response_complete)  # otherwise it was sent before the last answer
            and not self.flow.write_paused
            and not self.transport.is_closing()
            and (self.limit_concurrency is None or len(self.connections) < self.limit_concurrency)
        )

    def _plain_head(self) -> _Head | None:
        uploads, length, fields = self.uploads, -1, dict[bytes, bytes](self.headers)
        if self.url != uploads.url or self.parser.get_method() != b"POST" or self.parser.get_http_version() != "1.1":
            return None
        if self._head_size > self.header_bytes or not self._may_take():
            return None
        if len(fields) < len(self.headers) or not _NOT_PLAIN.isdisjoint(fields):
            return None
        given = fields.get(b"content-length", b"")
        length = int(given) if given.isdigit() and len(given) < 10 else -1
        if fields.get(b"content-type") != uploads.media_type or not 0 <= length <= uploads.most_bytes:
            return None
        if self.parser.should_upgrade():
            return None
        texts = {name.decode("latin-1"): value.decode("latin-1") for name, value in fields.items()}
        return _Head(length, texts, self.parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        """Part of a body."""
        if self._upload is None:
            super().on_body(body)
        elif self._upload.body:
            self._upload.body += body
        else:
            self._upload.body = body if len(body) == self._upload.head.length else bytearray(body)

    def on_message_complete(self) -> None:
        """The body is whole."""
        upload, self._upload = self._upload, None
        if upload is None:
            super().on_message_complete()
            return
        self._stop_body_timer()
        if not upload.response_complete:
            self._queue(upload)

    def _queue(self, upload: _Upload) -> None:
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
        usual = self.server_state.default_headers
        begun = self.uploads.begun_answer(usual) if status == 200 else _begun_answer(status, (*usual, *more))
        close = b"" if upload.keep_alive else b"connection: close\r\n"
        self.transport.write(b"%bcontent-length: %d\r\n%b\r\n%b" % (begun, len(body), close, body))
        if not upload.keep_alive:
            self._close()
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
            self._close()

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
    limits = {"header_bytes": settings.header_bytes, "header_seconds": settings.header_seconds}
    limits |= {"rest_bytes": settings.body_bytes, "framed_bytes": 8 * settings.body_bytes}
    limits |= {"reading_seconds": settings.body_seconds}
    return type("UploadHttp", (UploadHttp,), {**limits, "uploads": uploads})
