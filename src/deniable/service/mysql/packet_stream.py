"""Packets of a bounded size over a connection, and the change to TLS in its middle."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from mysql_mimic.stream import MysqlStream


class ConnectionRefused(Exception):
    """Somebody who may not connect. The client has been told."""


class BoundedReader(asyncio.StreamReader):
    """Reads packets of a bounded size."""

    def __init__(self, longest_bytes: int) -> None:
        super().__init__()
        self._longest_bytes = longest_bytes
        self._buffer: bytearray

    async def read(self, n: int = -1) -> bytes:
        """A whole header, or nothing at the end."""
        try:
            return await super().readexactly(n)
        except asyncio.IncompleteReadError:
            return b""

    async def readexactly(self, n: int) -> bytes:
        """A packet's content."""
        if n > self._longest_bytes:
            raise ConnectionRefused
        return await super().readexactly(n)

    def taken(self) -> bytes:
        """What has arrived and was not read: it is not read here any more."""
        early = bytes(self._buffer)
        self._buffer.clear()
        return early


class PacketStream:
    """mysql-mimic's stream, with a change to TLS that loses nothing.

    A client sends the first bytes of TLS right after it has asked for it. If they arrive together, they wait in the
    reader of the plain connection; they are handed to TLS.
    """

    def __init__(self, reader: BoundedReader, writer: asyncio.StreamWriter) -> None:
        self._stream, self._reader, self.writer = MysqlStream(reader, writer), reader, writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Go on with TLS."""
        transport: Any = self.writer.transport
        transport.pause_reading()
        early = self._reader.taken()
        started = asyncio.get_running_loop().start_tls(transport, transport.get_protocol(), context, server_side=True)
        changing = asyncio.ensure_future(started)
        # One turn of the loop starts the change, the next one connects it; only after that bytes are read again.
        for _ in range(2):
            await asyncio.sleep(0)
        if early:
            encrypted: Any = transport.get_protocol()
            encrypted.get_buffer(len(early))[: len(early)] = early
            encrypted.buffer_updated(len(early))
        changed = await changing
        for end in (self.writer, self._reader):
            vars(end)["_transport"] = changed
