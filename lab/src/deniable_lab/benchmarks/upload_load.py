"""Load on a port of this machine: connections that send a request when the last one is answered, or at a set pace."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np


@dataclass(slots=True)
class Load:
    """What became of requests."""

    seconds: float = 0.0
    client_cpu_s: float = 0.0
    server_cpu_s: float = 0.0
    """Seconds of processor, which other programs on the machine change less than seconds of the clock."""
    waits_s: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    refused: list[bytes] = field(default_factory=list, repr=False)
    """Bodies that were answered with 429: they have to be sent again."""
    accepted: int = 0

    @property
    def requests(self) -> int:
        """How many were answered."""
        return self.statuses.total()

    @property
    def per_second(self) -> float:
        """Requests that were taken, per second."""
        return self.statuses[200] / self.seconds

    def cpu_us(self) -> tuple[float, float]:
        """Microseconds of processor for a request: the server's and the client's."""
        return 1e6 * self.server_cpu_s / self.requests, 1e6 * self.client_cpu_s / self.requests

    def wait_ms(self, share: float) -> float:
        """A quantile of the time to an answer."""
        return 1e3 * float(np.quantile(self.waits_s, share)) if self.waits_s else 0.0


class _Connection(asyncio.Protocol):
    """Sends a body, and says when the last one was answered; answers have a length and no other form."""

    def __init__(self, is_free: Callable[[_Connection], None], load: Load, ended: asyncio.Future[None]) -> None:
        self._is_free, self._load, self._ended = is_free, load, ended
        self._transport: Any = None
        self._received, self._sent, self._begun = b"", b"", 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._is_free(self)

    def send(self, text: bytes, body: bytes) -> None:
        self._sent, self._begun = body, time.perf_counter()
        self._transport.write(text)

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._received[:end].lower()
        first = head.index(b"content-length:") + len(b"content-length:")
        size = end + 4 + int(head[first:].split(b"\r\n", 1)[0])
        if len(self._received) < size:
            return
        status, answer = int(head[9:12]), self._received[end + 4 : size]
        self._received = self._received[size:]
        load = self._load
        load.statuses[status] += 1
        if status == 200:
            load.waits_s.append(time.perf_counter() - self._begun)
            if answer.startswith(b'{"accepted":'):
                load.accepted += int(answer[12 : answer.index(b",")])
        else:
            load.refused.append(self._sent)
        self._is_free(self)

    def connection_lost(self, _: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


def send_all(
    port: int,
    path: str,
    media_type: str,
    bodies: Sequence[bytes],
    connections: int,
    headers: str = "",
    per_second: float | None = None,
) -> Load:
    """Send bodies over so many connections, and wait for all answers. Requests are made before the clocks start.

    A connection sends the next body when it has its answer. With `per_second`, bodies leave at this pace, answered or
    not, as long as a connection is free.
    """
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media_type}\r\n{headers}content-length: %d\r\n\r\n"
    ).encode()
    load, requests = Load(), iter([(head % len(body) + body, body) for body in bodies])
    free: list[_Connection] | None = None if per_second is None else []

    def send_next(connection: _Connection) -> None:
        request = next(requests, None)
        if request is None:
            connection.close()
        else:
            connection.send(*request)

    def is_free(connection: _Connection) -> None:
        if free is None:
            send_next(connection)
        else:
            free.append(connection)

    async def paced(per_second: float) -> None:
        nonlocal free
        begun, sent = time.perf_counter(), 0
        while free is not None and sent < len(bodies):
            due = min(int((time.perf_counter() - begun) * per_second), len(bodies))
            for _ in range(min(due - sent, len(free))):
                send_next(free.pop())
                sent += 1
            await asyncio.sleep(0.001)
        rest, free = free or [], None
        for connection in rest:
            connection.close()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        waiting = []
        for _ in range(connections):
            ended = loop.create_future()
            await loop.create_connection(partial(_Connection, is_free, load, ended), "127.0.0.1", port)
            waiting.append(ended)
        if per_second is not None:
            await paced(per_second)
        await asyncio.gather(*waiting)

    begun, cpu_begun = time.perf_counter(), time.process_time()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run())
    load.seconds, load.client_cpu_s = time.perf_counter() - begun, time.process_time() - cpu_begun
    return load


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
