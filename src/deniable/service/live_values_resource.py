"""POST /v1/streams/{stream}: values for a stream, with a key of the scope publish.

    {"position": 1200, "values": [3, 5.5], "timestamps": ["2026-01-01T00:00", …], "keys": ["north", …]}

`position` is that of the first value; the others follow. It makes a request safe to repeat: what was taken before is
not taken again, and a gap is refused with the position that comes next. The answer is sent when the values are in the
store's log, on the disk. No value stands in an answer, a log line or a metric.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from deniable.errors import DeniableError
from deniable.limits import LONGEST_NAME
from deniable.service.answers import Refused, answered, refusal_body
from deniable.service.authorisation import address_of, require_scope
from deniable.service.collector import Collector
from deniable.service.live_streams import LiveStream
from deniable.service.logs import log
from deniable.service.request_bodies import whole_body
from deniable.service.upload_bodies import BodyLimits, BodyRefused, unpacked
from deniable.stores.collector.group_commit import QueueFull
from deniable.stores.sources.batch import Batch
from deniable.stores.sources.number_columns import time_column, value_column
from deniable.stores.stream_intake import Refusal
from deniable.strict_json import read_json

_VALUE_FIELDS = {"position", "values", "timestamps", "keys"}
_SHORT_BODY = 1 << 15
"""Longer ones are read in another thread, while other requests are answered."""
_FARTHEST_POSITION = 1 << 62


async def post_values(request: Request) -> Response:
    """Take values, and answer when they are on the disk."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "publish")
    stream = live_stream(collector, request.path_params["stream"])
    if stream.about.person is not None:
        raise Refused(409, "persons", "This stream protects persons. Publish into it with deniable stream publish.")
    wait_s = collector.addresses.wait_s(address_of(request), collector.elapsed())
    if wait_s:
        raise Refused(429, "pace", "Too many requests from this address. Send more values in each.", wait_s=wait_s)
    if collector.draining or not collector.has_room:
        raise Refused(503, "not_ready", "Values are not taken now. Send them again later.", wait_s=5)
    batch = await _batch(request, collector, stream)
    future = asyncio.get_running_loop().create_future()
    try:
        stream.writer.submit(batch, len(batch.values), future)
        receipt = await future
    except QueueFull:
        raise Refused(429, "queue", "Too many values wait for the disk. Send them again.", wait_s=1) from None
    except (DeniableError, OSError) as problem:
        log("a stream cannot be written", level=logging.ERROR, problem=problem, stream=stream.name)
        words = "The store cannot be written, or another program has it open. Send the values again later."
        raise Refused(503, "store", words, wait_s=5) from None
    if receipt.refusal is not None:
        status = 409 if receipt.refusal is Refusal.GAP else 422
        words = f"{receipt.words}. Nothing of the request was taken. Send values from position {receipt.position:,} on."
        return _refused(status, receipt.refusal.value, words[0].upper() + words[1:], receipt.position)
    collector.metrics.stream_values.labels(stream.name, "taken").inc(receipt.taken)
    collector.metrics.stream_values.labels(stream.name, "repeated").inc(receipt.repeated)
    facts = ("taken", "repeated", "position", "published")
    return answered({name: getattr(receipt, name) for name in facts})


def live_stream(collector: Collector, name: str) -> LiveStream:
    """A stream of the served folder."""
    stream = collector.live.get(name)
    if stream is None:
        raise Refused(404, "stream", "There is no stream of that name.")
    return stream


def _refused(status: int, reason: str, words: str, position: int) -> Response:
    """A refusal that says which position comes next."""
    body = json.dumps({**json.loads(refusal_body(reason, words)), "position": position})
    return Response(body, status, media_type="application/json")


async def _batch(request: Request, collector: Collector, stream: LiveStream) -> Batch:
    settings = collector.settings
    body = await whole_body(request, settings.body_bytes, settings.body_seconds)
    limits = BodyLimits(settings.unpacked_bytes, settings.values_per_request)
    encoding = request.headers.get("content-encoding", "").strip().lower()
    try:
        if len(body) <= _SHORT_BODY and not encoding:
            return read_values(body, limits.reports, keyed=stream.keyed)
        plain = await run_in_threadpool(unpacked, body, encoding, limits)
        batch: Batch = await run_in_threadpool(read_values, plain, limits.reports, keyed=stream.keyed)
        return batch
    except BodyRefused as problem:
        raise Refused(problem.status, problem.reason, problem.words) from None


def read_values(body: bytes, most: int, *, keyed: bool) -> Batch:
    """The values of a request. What is wrong with single values is decided by the rule of the stream.

    >>> read_values(b'{"position": 7, "values": [3, null]}', 10, keyed=False).positions.tolist()
    [7, 8]
    """
    try:
        entries = read_json(body)
    except ValueError:
        entries = None
    if (
        not isinstance(entries, dict)
        or not set(entries) <= _VALUE_FIELDS
        or not isinstance(entries.get("values"), list)
    ):
        words = "The body must be a JSON object with values, and perhaps position, timestamps and keys."
        raise BodyRefused(400, "body", words)
    values = entries["values"]
    if len(values) > most:
        raise BodyRefused(413, "too_many_values", f"A request may hold {most:,} values. Send several.")
    for name in ("timestamps", "keys"):
        if name in entries and (not isinstance(entries[name], list) or len(entries[name]) != len(values)):
            raise BodyRefused(400, name, f"There must be one entry in {name} for each value.")
    if keyed != ("keys" in entries):
        words = "This stream needs a key for each value." if keyed else "This stream has no keys."
        raise BodyRefused(400, "keys", words)
    stamps = entries.get("timestamps")
    return Batch(
        value_column(values),
        None if stamps is None else time_column(stamps),
        unit="value",
        positions=_positions(entries.get("position"), len(values)),
        keys=_keys(entries.get("keys")),
    )


def _positions(first: Any, count: int) -> Any:
    if first is None:
        return None
    if type(first) is not int or not 0 <= first < _FARTHEST_POSITION:
        raise BodyRefused(400, "position", "A position is a whole number from 0 on.")
    return np.arange(first, first + count)


def _keys(keys: list[Any] | None) -> list[Any] | None:
    if keys is None:
        return None
    for key in set(map(type, keys)):
        if key not in (str, int):
            raise BodyRefused(400, "keys", "A key is a text or a whole number.")
    if any(len(str(key)) > LONGEST_NAME for key in keys):
        raise BodyRefused(400, "keys", f"A key may have {LONGEST_NAME} characters.")
    return keys
