"""GET /v1/streams/{stream}/events: published values as server-sent events, with a key of the scope ask.

    id: 1203
    data: {"first": 1200, "values": [3.0, 5.5, 4.0]}

The id is the number of the next value, so `Last-Event-ID` resumes without a gap or a repetition, over restarts of
either side. Without it, `?from=0` begins there, and otherwise with what comes next. A slow reader is not waited for: it
reads what it missed from the disk.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from deniable.service.answers import Refused
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.service.live_streams import LiveStream
from deniable.service.live_values_resource import live_stream
from deniable.stores.live.segments import PublishedValues

VALUES_PER_EVENT = 1000
_LOOK_AGAIN_S = 0.5
"""Another program may publish into the store."""
_COMMENT_EVERY_S = 15.0
"""Without anything to say: so that both sides notice a connection that is lost."""


async def get_events(request: Request) -> Response:
    """Published values, now and as they come."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    stream = live_stream(collector, request.path_params["stream"])
    if stream.readers >= collector.settings.event_readers:
        raise Refused(429, "readers", "Too many readers follow this stream. Come again later.", wait_s=30)
    published = await run_in_threadpool(lambda: stream.published)
    first = request.headers.get("last-event-id", request.query_params.get("from", str(published)))
    if not (first.isascii() and first.isdigit() and len(first) < 19) or int(first) > published:
        words = f"Last-Event-ID and from are numbers of values; {published:,} values are published."
        raise Refused(400, "position", words)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(collector, stream, int(first)), headers=headers, media_type="text/event-stream")


async def _events(collector: Collector, stream: LiveStream, position: int) -> AsyncIterator[bytes]:
    stream.readers += 1
    try:
        with stream.watched() as changed:
            silent_s = 0.0
            yield b"retry: 2000\n\n"
            while not collector.stopping:
                changed.clear()
                page = await run_in_threadpool(stream.page, position, VALUES_PER_EVENT)
                if page.values.size:
                    position, silent_s = page.first + page.values.size, 0.0
                    yield f"id: {position}\ndata: {event_data(page)}\n\n".encode()
                    continue
                if silent_s >= _COMMENT_EVERY_S:
                    silent_s = 0.0
                    yield b": nothing new\n\n"
                silent_s += _LOOK_AGAIN_S
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), _LOOK_AGAIN_S)
    finally:
        stream.readers -= 1


def event_data(page: PublishedValues) -> str:
    """Published values as one line of JSON.

    >>> import numpy as np
    >>> event_data(PublishedValues(7, np.array([3.0, 5.5])))
    '{"first":7,"values":[3.0,5.5]}'
    """
    facts: dict[str, Any] = {"first": page.first, "values": page.values.tolist()}
    if page.timestamps is not None:
        stamps = page.timestamps
        facts["timestamps"] = stamps.astype(str).tolist() if stamps.dtype.kind == "M" else stamps.tolist()
    if page.keys is not None:
        facts["keys"] = page.keys.tolist()
    return json.dumps(facts, separators=(",", ":"))
