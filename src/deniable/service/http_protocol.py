"""uvicorn's HTTP protocol with two limits that it lacks: the size of a request's head, and the time it may take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedHttp(HttpToolsProtocol):  # type: ignore[misc] # uvicorn is an extra
    """Closes a connection whose request line and headers are too long, or do not arrive in time."""

    header_bytes: ClassVar[int] = 16_384
    header_seconds: ClassVar[float] = 10.0

    def connection_made(self, transport: Any) -> None:
        """A connection that sends nothing is closed as well."""
        super().connection_made(transport)
        self._head_size, self._in_head, self._refused = 0, True, False
        self._head_ends: asyncio.TimerHandle | None = None
        self._start_timer()

    def _start_timer(self) -> None:
        if self._head_ends is None:
            self._head_ends = self.loop.call_later(self.header_seconds, self._too_slow)

    def _too_slow(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Count what arrives before the end of the headers."""
        if not self._in_head and (self.cycle is None or self.cycle.response_complete):
            self._in_head, self._head_size = True, 0
        if self._in_head:
            self._head_size += len(data)
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            # A head that came whole needs no timer, and a body that came with it does not count.
            if self._head_size > self.header_bytes:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
            else:
                self._start_timer()

    def on_headers_complete(self) -> None:
        """The head is whole. If it came with other bytes, its own are counted now."""
        self._stop_timer()
        if self._head_size > self.header_bytes and _head_bytes(self.url, self.headers) > self.header_bytes:
            self._refused = True
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """What follows a head that was refused is dropped."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self._refused:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has left."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        self._in_head = False
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None


def _head_bytes(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
    """About the size of a request line and its headers."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)
