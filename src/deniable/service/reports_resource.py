"""POST /v1/collections/{name}/reports: decode, check, queue, wait for the commit, answer.

The answer counts what was accepted, repeated and refused by reason, and lists only what failed, by its number in the
request. It is sent after everything accepted is on the disk.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from deniable.engines.collecting.wire_reports import (
    MALFORMED,
    NO_ROUND,
    NOT_MY_TURN,
    ODD_PUBLIC,
    OTHER_KIND,
    UNKNOWN_TABLE,
    UNNAMED_PUBLIC,
    CheckedReport,
    SentReport,
)
from deniable.errors import Failure
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import MayUpload, address_of, uploader
from deniable.service.collector import Collector
from deniable.service.request_bodies import whole_body
from deniable.service.upload_bodies import BodyLimits, BodyRefused, read_body, unpacked
from deniable.stores.collector.group_commit import QueueFull
from deniable.stores.collector.upload import Upload, UploadOutcome
from deniable.tables.reports.report_table import OTHER_COINS, OTHER_SPECIFICATION, OTHER_TURN, ROW_FAULTS

OTHER_USER = "of a user whom the token does not name"
REASON_WORDS = {
    MALFORMED: "malformed",
    UNKNOWN_TABLE: "unknown_table",
    OTHER_SPECIFICATION: "other_specification",
    OTHER_KIND[False]: "simulation",
    OTHER_KIND[True]: "release",
    NO_ROUND: "unknown_round",
    NOT_MY_TURN: "cover",
    OTHER_TURN: "other_turn",
    UploadOutcome.CLOSED.value: "round_not_open",
    ROW_FAULTS[0]: "view",
    ROW_FAULTS[1]: "outcome",
    ROW_FAULTS[2]: "slot",
    OTHER_COINS: "coins",
    ODD_PUBLIC: "public_value",
    UNNAMED_PUBLIC: "public_missing",
    OTHER_USER: "other_user",
    UploadOutcome.CONFLICT.value: "conflict",
}
"""The word that answers and metrics use for each reason."""

_INLINE_REPORTS = 64
"""So few are checked at once; more would keep other requests waiting, and go to a thread."""


async def post_reports(request: Request) -> Response:
    """Take the reports of one request."""
    collector: Collector = request.app.state.collector
    if request.path_params["name"] != collector.name:
        raise Refused(404, "collection", "There is no collection of that name.")
    _check_pace(collector, request)
    may_upload = uploader(collector, request)
    if collector.draining:
        raise Refused(503, "stopping", "The collector is stopping. Send the reports again later.", wait_s=5)
    if not collector.has_room:
        raise Refused(507, "disk", "The disk is nearly full. Send the reports again later.", wait_s=60)
    body = await whole_body(request, collector.settings.body_bytes, collector.settings.body_seconds)
    encoding, media_type = (request.headers.get(f"content-{part}", "") for part in ("encoding", "type"))
    limits = BodyLimits(collector.settings.unpacked_bytes, collector.settings.reports_per_request)

    def read() -> list[SentReport]:
        plain = unpacked(body, encoding.strip().lower(), limits)
        return read_body(plain, media_type.partition(";")[0].strip().lower(), limits)

    small = len(body) <= 4096 and not encoding
    try:
        sent = read() if small else await run_in_threadpool(read)
    except BodyRefused as problem:
        raise Refused(problem.status, problem.reason, problem.words) from None
    _check_user_pace(collector, sent)
    if len(sent) <= _INLINE_REPORTS:
        checked = _checked(collector, sent, may_upload)
    else:
        checked = await run_in_threadpool(_checked, collector, sent, may_upload)
    reasons = await _stored(collector, sent, checked)
    return _answer(collector, reasons)


def _check_pace(collector: Collector, request: Request) -> None:
    wait_s = collector.addresses.wait_s(address_of(request), collector.elapsed())
    if wait_s:
        raise Refused(429, "pace", "Too many requests from this address. Send them later.", wait_s=wait_s)


def _check_user_pace(collector: Collector, sent: Sequence[SentReport]) -> None:
    """Refuse a request about a single user who sends too often. A relay that sends for many is not one of them."""
    if len({arrived.uid for arrived in sent}) == 1:
        wait_s = collector.users.wait_s(sent[0].uid, collector.elapsed(), len(sent))
        if wait_s:
            raise Refused(429, "pace", "Too many reports of one user. Send them later.", wait_s=wait_s)


def _checked(collector: Collector, sent: Sequence[SentReport], may_upload: MayUpload) -> list[CheckedReport]:
    """Every report, judged without the store."""
    may = {uid: may_upload(uid) for uid in {arrived.uid for arrived in sent}}
    checked = collector.door.check(sent)
    return [
        report if report.refusal or may[arrived.uid] else CheckedReport(OTHER_USER)
        for arrived, report in zip(sent, checked, strict=True)
    ]


async def _stored(
    collector: Collector, sent: Sequence[SentReport], checked: Sequence[CheckedReport]
) -> list[UploadOutcome | str]:
    """What became of every report, or why it was refused. What is accepted is on the disk when this returns."""
    uploads = [
        Upload(good.table, good.round, arrived.uid, good.slot, arrived.report, good.public)
        for arrived, good in zip(sent, checked, strict=True)
        if good.refusal is None
    ]
    outcomes: list[UploadOutcome] = []
    if uploads:
        try:
            outcomes = await asyncio.wrap_future(collector.writer.submit(uploads))
        except QueueFull:
            raise Refused(429, "queue", "Too many reports wait for the disk. Send them again.", wait_s=1) from None
        except Failure:
            raise Refused(
                503, "store", "The store cannot be written. Send the reports again later.", wait_s=5
            ) from None
    following = iter(outcomes)
    return [good.refusal or next(following) for good in checked]


def _answer(collector: Collector, reasons: Sequence[UploadOutcome | str]) -> Response:
    """Counts, and what failed by its number."""
    counts = Counter({"accepted": 0, "repeated": 0})
    refused: Counter[str] = Counter()
    failed = []
    for index, reason in enumerate(reasons):
        if reason is UploadOutcome.ACCEPTED or reason is UploadOutcome.REPEATED:
            counts[reason.value] += 1
        else:
            word = REASON_WORDS[reason.value if isinstance(reason, UploadOutcome) else reason]
            refused[word] += 1
            failed.append({"index": index, "reason": word})
    for outcome, count in {**counts, "refused": refused.total()}.items():
        collector.metrics.reports.labels(outcome).inc(count)
    for word, count in refused.items():
        collector.metrics.refused.labels(word).inc(count)
    return answered({**counts, "refused": dict(refused), "failed": failed})
