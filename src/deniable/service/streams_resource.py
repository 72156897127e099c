"""POST /v1/collections/{name}/streams/{stream}/reports: reports of streams without trust, of both phases.

Lines of JSON as `StreamReport.to_json` writes them, or bytes: the length of the id, the id, 16 bytes. The answer is
that of reports of tables, and is sent after the commit. Devices learn θ from GET /v1/collections/{name}.

POST /v1/collections/{name}/streams/{stream}/renewals (scope operate): a new θ, from all first reports.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from deniable.errors import Failure, InvalidParameter, QueryRefused
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import address_of, check_user_pace, require_scope, upload_headers, uploader
from deniable.service.collector import Collector
from deniable.service.report_commits import OTHER_USER
from deniable.service.request_bodies import whole_body
from deniable.service.upload_bodies import BodyLimits, BodyRefused, read_stream_body, unpacked
from deniable.stores.collector.group_commit import GroupCommit, QueueFull
from deniable.stores.collector.stream_log import ACCEPTED, CONFLICT, REPEATED, StreamLog, StreamRequest, StreamUpload
from deniable.streams.local import report_arrays

STREAM_REASON_WORDS = {
    report_arrays.MALFORMED: "malformed",
    report_arrays.OTHER_SETTINGS: "other_specification",
    report_arrays.LATE: "late",
    report_arrays.OTHER_THETA: "theta",
    report_arrays.OTHER_KIND[False]: "simulation",
    report_arrays.OTHER_KIND[True]: "release",
    report_arrays.OUT_OF_RANGE: "outcome",
    report_arrays.DUPLICATE: "conflict",
    OTHER_USER: "other_user",
    CONFLICT: "conflict",
}
"""The word that answers and metrics use for each reason."""


def _stream_of(request: Request) -> tuple[Collector, str, StreamLog, GroupCommit[StreamRequest, list[str]]]:
    """The collector, the name of the stream, the log and its writer."""
    collector: Collector = request.app.state.collector
    stream, writer, log = request.path_params["stream"], collector.stream_writer, collector.streams
    if request.path_params["name"] != collector.name or log is None or writer is None or stream not in log.names:
        raise Refused(404, "stream", "There is no stream of that name.")
    return collector, stream, log, writer


async def post_renewal(request: Request) -> Response:
    """Choose θ anew."""
    require_scope(request.app.state.collector, request, "operate")
    _, stream, log, _ = _stream_of(request)
    try:
        theta = await run_in_threadpool(log.renew, stream)
    except (InvalidParameter, QueryRefused) as problem:
        raise Refused(409, "renewal", f"θ stays as it is: {problem}") from None
    except Failure:
        raise Refused(503, "store", "The store cannot be written. Renew again later.", wait_s=5) from None
    return answered({"theta": theta})


async def post_stream_reports(request: Request) -> Response:
    """Take the reports of one request."""
    collector, stream, _, writer = _stream_of(request)
    wait_s = collector.addresses.wait_s(address_of(request), collector.elapsed())
    if wait_s:
        raise Refused(429, "pace", "Too many requests from this address. Send them later.", wait_s=wait_s)
    headers = upload_headers(request.scope)
    may_upload = uploader(collector, headers, address_of(request))
    if collector.draining or not collector.has_room:
        raise Refused(503, "not_ready", "Uploads are not taken now. Send the reports again later.", wait_s=5)
    settings = collector.settings
    body = await whole_body(request, settings.body_bytes, settings.body_seconds)
    limits = BodyLimits(settings.unpacked_bytes, settings.reports_per_request)
    try:
        sent = await run_in_threadpool(_read, body, headers, limits)
    except BodyRefused as problem:
        raise Refused(problem.status, problem.reason, problem.words) from None
    users = {arrived.uid for arrived in sent}
    check_user_pace(collector, next(iter(users)) if len(users) == 1 else None, len(sent), may_upload)
    may = {uid: may_upload is None or may_upload.names(uid) for uid in users}
    mine = [arrived for arrived in sent if may[arrived.uid]]
    future = asyncio.get_running_loop().create_future()
    try:
        writer.submit(StreamRequest(stream, mine), len(mine), future)
        outcomes = iter(await future)
    except QueueFull:
        raise Refused(429, "queue", "Too many reports wait for the disk. Send them again.", wait_s=1) from None
    except Failure:
        raise Refused(503, "store", "The store cannot be written. Send the reports again later.", wait_s=5) from None
    return _answer(collector, [next(outcomes) if may[arrived.uid] else OTHER_USER for arrived in sent])


def _read(body: bytes, headers: Mapping[str, str], limits: BodyLimits) -> list[StreamUpload]:
    plain = unpacked(body, headers.get("content-encoding", "").strip().lower(), limits)
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return [StreamUpload(*arrived) for arrived in read_stream_body(plain, media_type, limits)]


def _answer(collector: Collector, outcomes: Sequence[str]) -> Response:
    failed: list[dict[str, Any]] = [
        {"index": index, "reason": STREAM_REASON_WORDS[reason]}
        for index, reason in enumerate(outcomes)
        if reason not in (ACCEPTED, REPEATED)
    ]
    refused = Counter(str(entry["reason"]) for entry in failed)
    counts = {"accepted": outcomes.count(ACCEPTED), "repeated": outcomes.count(REPEATED)}
    collector.metrics.answered({**counts, **refused})
    return answered({**counts, "refused": dict(refused), "failed": failed})
