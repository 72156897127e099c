"""One commit of the collector: the reports of many requests are checked together, stored together, and answered.

Requests leave their bodies here as they were read. What is computed per report is computed for all of a group at once,
in the thread of the group commit, while other requests arrive.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from deniable.engines.collecting.wire_reports import (
    MALFORMED,
    NO_ROUND,
    NOT_MY_TURN,
    ODD_PUBLIC,
    OTHER_KIND,
    UNKNOWN_TABLE,
    UNNAMED_PUBLIC,
    CheckedReport,
    ReportDoor,
    SentReport,
)
from deniable.service.metrics import Metrics
from deniable.stores.collector.group_commit import Delivery
from deniable.stores.collector.upload import CollectorStore, Upload, UploadOutcome
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

MayUpload = Callable[[str], bool]


class ArrivedRequest(NamedTuple):
    """The reports of one request, and for which users it may upload; None for everybody."""

    sent: Sequence[SentReport]
    may_upload: MayUpload | None


class ReportCommits:
    """Checks and stores groups of requests; the result for each is the body of its answer."""

    def __init__(self, door: ReportDoor, store: CollectorStore, metrics: Metrics) -> None:
        self._door, self._store, self._metrics = door, store, metrics

    def __call__(self, requests: Sequence[ArrivedRequest]) -> list[bytes]:
        """Store what is good, all in one commit."""
        sent = list(chain.from_iterable(request.sent for request in requests))
        checked = self._door.check(sent)
        first = 0
        for request in requests:
            if request.may_upload is not None:
                _refuse_others(request, checked, first)
            first += len(request.sent)
        uploads = [
            Upload(good.table, good.round, arrived.uid, good.slot, arrived.report, good.public)
            for arrived, good in zip(sent, checked, strict=True)
            if good.refusal is None
        ]
        stored = iter(self._store.add(uploads) if uploads else ())
        reasons = [good.refusal or next(stored) for good in checked]
        counts: Counter[str] = Counter()
        answers, first = [], 0
        for request in requests:
            answers.append(_answer(reasons[first : first + len(request.sent)], counts))
            first += len(request.sent)
        self._metrics.answered(counts)
        return answers


def _refuse_others(request: ArrivedRequest, checked: list[CheckedReport], first: int) -> None:
    """Refuse reports of users for whom the request may not upload."""
    assert request.may_upload is not None  # noqa: S101 - the caller looked
    may = {uid: request.may_upload(uid) for uid in {arrived.uid for arrived in request.sent}}
    for index, arrived in enumerate(request.sent, first):
        if not may[arrived.uid] and checked[index].refusal is None:
            checked[index] = CheckedReport(OTHER_USER)


def _answer(reasons: Sequence[UploadOutcome | str], counts: Counter[str]) -> bytes:
    """Counts, and what failed by its number; `counts` are added to."""
    accepted, repeated = reasons.count(UploadOutcome.ACCEPTED), reasons.count(UploadOutcome.REPEATED)
    counts["accepted"] += accepted
    counts["repeated"] += repeated
    if accepted + repeated == len(reasons):
        return b'{"accepted":%d,"repeated":%d,"refused":{},"failed":[]}' % (accepted, repeated)
    failed = [
        {"index": index, "reason": REASON_WORDS[reason.value if isinstance(reason, UploadOutcome) else reason]}
        for index, reason in enumerate(reasons)
        if reason is not UploadOutcome.ACCEPTED and reason is not UploadOutcome.REPEATED
    ]
    refused = Counter(str(entry["reason"]) for entry in failed)
    counts.update(refused)
    answer = {"accepted": accepted, "repeated": repeated, "refused": dict(refused), "failed": failed}
    return json.dumps(answer, separators=(",", ":")).encode()


def to_event_loops(deliveries: Sequence[Delivery]) -> None:
    """Hand results over to asyncio futures: each event loop is woken once for a whole group."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Delivery]] = {}
    for delivery in deliveries:
        by_loop.setdefault(delivery.waiter.get_loop(), []).append(delivery)
    for loop, mine in by_loop.items():
        with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
            loop.call_soon_threadsafe(_end_futures, mine)


def _end_futures(deliveries: Sequence[Delivery]) -> None:
    for future, result, problem in deliveries:
        if future.done():  # nobody waits any more
            continue
        if problem is None:
            future.set_result(result)
        else:
            future.set_exception(problem)
