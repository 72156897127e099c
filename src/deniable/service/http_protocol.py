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
        self._head_size, self._refused = 0, False
        self._head_ends: asyncio.TimerHandle | None = None
        self._expect_head()

    def _expect_head(self) -> None:
        self._head_size = 0
        if self._head_ends is None:
            self._head_ends = self.loop.call_later(self.header_seconds, self._too_slow)

    def _too_slow(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Count what arrives before the end of the headers."""
        if self._head_ends is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_head()
        counting = self._head_ends is not None
        if counting:
            self._head_size += len(data)
        super().data_received(data)
        # Still in the head: a body that came with it does not count.
        too_large = counting and self._head_ends is not None and self._head_size > self.header_bytes
        if too_large and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

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
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None


def _head_bytes(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
    """About the size of a request line and its headers."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def bounded_http(header_bytes: int, header_seconds: float) -> type[asyncio.Protocol]:
    """The protocol with these limits."""
    limits = {"header_bytes": header_bytes, "header_seconds": header_seconds}
    return type("BoundedHttp", (BoundedHttp,), limits)
