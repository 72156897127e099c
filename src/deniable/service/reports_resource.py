"""POST /v1/collections/{name}/reports: read the body, queue it, wait for the commit, answer.

The answer counts what was accepted, repeated and refused by reason, and lists only what failed, by its number in the
request. It is sent after everything accepted is on the disk. This is where the load is, so it is plain ASGI.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from deniable.engines.collecting.sent_columns import FramedBody, SentReport
from deniable.errors import Failure
from deniable.service.answers import Refused, refusal_body
from deniable.service.authorisation import check_user_pace, upload_headers, uploader
from deniable.service.collector import Collector
from deniable.service.report_commits import ArrivedRequest, MayUpload, count_of
from deniable.service.request_bodies import received_body
from deniable.service.upload_bodies import BodyLimits, BodyRefused, read_body, unpacked
from deniable.stores.collector.group_commit import QueueFull

REPORTS_ROUTE = "/v1/collections/{name}/reports"
INLINE_BYTES = 1 << 16
"""Bodies up to this size are read at once; larger and compressed ones would keep other requests waiting."""
FAILED_ANSWER = refusal_body(
    "internal", "Something failed here, and what became of the request is not known. Send it again."
)


async def post_reports(collector: Collector, scope: Scope, receive: Receive, send: Send) -> int:
    """Take the reports of one request; returns the status of the answer."""
    status = 200
    more: tuple[tuple[bytes, bytes], ...] = ()
    try:
        headers = upload_headers(scope)
        body = await _stored(collector, headers, scope["client"][0] if scope["client"] else "", receive)
    except Refused as problem:
        status, body, more = problem.status, refusal_body(problem.reason, problem.words), answer_headers(problem)
    length = (b"content-length", b"%d" % len(body))
    fields = [(b"content-type", b"application/json"), length, *more]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
    return status


def store_failed() -> Refused:
    """The refusal after a commit that failed."""
    return Refused(503, "store", "The store cannot be written. Send the reports again later.", wait_s=5)


def answer_headers(problem: Refused) -> tuple[tuple[bytes, bytes], ...]:
    """Headers that say what to do after a refusal."""
    wait = () if problem.wait_s is None else ((b"retry-after", b"%d" % max(1, math.ceil(problem.wait_s))),)
    return (*wait, (b"www-authenticate", b"Bearer")) if problem.status == 401 else wait


async def _stored(collector: Collector, headers: Mapping[str, str], address: str, receive: Receive) -> bytes:
    """The answer to a request, after its reports are on the disk."""
    settings = collector.settings
    may_upload = check_uploader(collector, headers, address)
    body = await received_body(receive, headers.get("content-length", ""), settings.body_bytes, settings.body_seconds)
    sent = await _read(collector, headers, body)
    future = asyncio.get_running_loop().create_future()
    queue_reports(collector, sent, may_upload, future)
    try:
        answer: bytes = await future
    except Failure:
        raise store_failed() from None
    return answer


def check_uploader(collector: Collector, headers: Mapping[str, str], address: str) -> MayUpload | None:
    """For which users a request may upload, if anything can be taken now."""
    wait_s = collector.addresses.wait_s(address, collector.elapsed())
    if wait_s:
        raise Refused(429, "pace", "Too many requests from this address. Send them later.", wait_s=wait_s)
    may_upload = uploader(collector, headers, address)
    if collector.draining:
        raise Refused(503, "stopping", "The collector is stopping. Send the reports again later.", wait_s=5)
    if not collector.has_room:
        raise Refused(507, "disk", "The disk is nearly full. Send the reports again later.", wait_s=60)
    return may_upload


def queue_reports(
    collector: Collector, sent: FramedBody | list[SentReport], may_upload: MayUpload | None, waiter: Any
) -> None:
    """Queue reports for the next commit; `waiter` is given the answer."""
    check_user_pace(collector, _only_user(sent), count_of(sent), may_upload)
    try:
        collector.writer.submit(ArrivedRequest(sent, may_upload), count_of(sent), waiter)
    except QueueFull:
        raise Refused(429, "queue", "Too many reports wait for the disk. Send them again.", wait_s=1) from None
    except Failure:
        raise store_failed() from None


def body_limits(collector: Collector) -> BodyLimits:
    """How much a body may hold, and in which messages."""
    settings, bundles = collector.settings, collector.door.bundles
    return BodyLimits(settings.unpacked_bytes, settings.reports_per_request, bundles.reports if bundles else 0)


async def _read(collector: Collector, headers: Mapping[str, str], body: bytes) -> FramedBody | list[SentReport]:
    encoding = headers.get("content-encoding", "").strip().lower()
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    limits = body_limits(collector)
    try:
        if len(body) <= INLINE_BYTES and not encoding:
            return read_body(body, media_type, limits)
        sent: FramedBody | list[SentReport] = await run_in_threadpool(
            lambda: read_body(unpacked(body, encoding, limits), media_type, limits)
        )
        return sent
    except BodyRefused as problem:
        raise Refused(problem.status, problem.reason, problem.words) from None


def _only_user(sent: FramedBody | list[SentReport]) -> str | None:
    """The user of all reports, if it is one."""
    if isinstance(sent, FramedBody):
        return sent.only_user
    return sent[0].uid if sent and all(arrived.uid == sent[0].uid for arrived in sent) else None
