"""uvicorn's HTTP protocol with limits that it lacks:

    head                 its size, and the time it may take
    body                 how much is read of it with what chunks and trailers add, and after it was refused
    pipelined requests   nothing is read while any of them waits for its turn
    answers              the time in which the other side reads them, also before a connection is closed

When the other side leaves, all its requests learn it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class _OneAfterAnother(FlowControl):  # type: ignore[misc] # uvicorn is an extra
    """Reads nothing while pipelined requests wait: otherwise every answer would make room for a thousand more."""

    def __init__(self, transport: Any, waiting: deque[Any]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Unless requests wait. They have arrived whole, but perhaps the last, which goes on when its turn comes."""
        if not self._waiting:
            super().resume_reading()


class BoundedHttp(HttpToolsProtocol):  # type: ignore[misc] # uvicorn is an extra
    """Closes a connection whose request line and headers are too long, or do not arrive in time."""

    header_bytes: ClassVar[int] = 16_384
    header_seconds: ClassVar[float] = 10.0
    rest_bytes: ClassVar[int] = 2**20
    """Of a body whose request is answered already: read and dropped, so that whoever sends it gets to the answer."""
    framed_bytes: ClassVar[int] = 2**23
    """After a head, of a request that is not answered: the body and whatever stands around it."""
    reading_seconds: ClassVar[float] = 30.0
    """For the other side to read answers, when they have filled all buffers or the connection is to be closed."""

    def connection_made(self, transport: Any) -> None:
        """A connection that sends nothing is closed as well."""
        super().connection_made(transport)
        self.flow = _OneAfterAnother(transport, self.pipeline)
        self._head_size, self._in_head, self._refused = 0, True, False
        self._in_body, self._rest_size, self._framed_size = False, 0, 0
        self._cycles = deque[Any]()  # requests that are not answered yet, and some that are
        self._head_ends: asyncio.TimerHandle | None = None
        self._reading_ends: asyncio.TimerHandle | None = None
        self._start_timer()

    def _start_timer(self) -> None:
        if self._head_ends is None:
            self._head_ends = self.loop.call_later(self.header_seconds, self._too_slow)

    def _too_slow(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing has arrived for a while."""
        self._too_slow()

    def _close(self) -> None:
        """Close when everything is read, or its time is over."""
        self.transport.close()
        self._start_reading_timer()

    def pause_writing(self) -> None:
        """The other side does not read."""
        super().pause_writing()
        self._start_reading_timer()

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_reading_timer()

    def _start_reading_timer(self) -> None:
        if self._reading_ends is None:
            self._reading_ends = self.loop.call_later(self.reading_seconds, self.transport.abort)

    def _stop_reading_timer(self) -> None:
        if self._reading_ends is not None:
            self._reading_ends.cancel()
            self._reading_ends = None

    def data_received(self, data: bytes) -> None:
        """Count what arrives before the end of the headers, and what is left of a body that nobody waits for."""
        if not self._in_head and (self.cycle is None or self.cycle.response_complete):
            if not self._in_body:
                self._in_head, self._head_size = True, 0
            else:
                self._rest_size += len(data)
                if self._rest_size > self.rest_bytes:
                    self._close()
                    return
                self._start_timer()
        elif not self._in_head:
            self._framed_size += len(data)
            if self._framed_size > self.framed_bytes:
                self._close()
                return
        if self._in_head:
            self._head_size += len(data)
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            # A head that came whole needs no timer, and a body that came with it does not count.
            if self._head_size > self.header_bytes:
                self.transport.write(_TOO_LARGE)
                self._close()
            else:
                self._start_timer()

    def on_headers_complete(self) -> None:
        """The head is whole. If it came with other bytes, its own are counted now."""
        self._stop_timer()
        if self._head_size > self.header_bytes and _head_bytes(self.url, self.headers) > self.header_bytes:
            self._refused = True
            self.transport.write(_TOO_LARGE)
            self._close()
        else:
            self._in_body, self._rest_size, self._framed_size = True, 0, 0
            super().on_headers_complete()
            while self._cycles and self._cycles[0].response_complete:
                self._cycles.popleft()
            if self.cycle is not None:
                self._cycles.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """What follows a head that was refused is dropped."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._in_body = False
        self._stop_timer()  # of the rest of a body
        if not self._refused:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has left. uvicorn tells only the last request that was sent."""
        self._stop_timer()
        super().connection_lost(exc)  # which lets those go on who wait to write
        self._stop_reading_timer()
        for cycle in self._cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self._cycles.clear()

    def _stop_timer(self) -> None:
        self._in_head = False
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None


def _head_bytes(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
    """About the size of a request line and its headers."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)
