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
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from deniable.arrays import Integers
from deniable.engines.collecting.sent_columns import FramedBody, SentColumns, SentReport
from deniable.engines.collecting.wire_reports import (
    MALFORMED,
    NO_ROUND,
    NOT_MY_TURN,
    ODD_PUBLIC,
    OTHER_KIND,
    UNKNOWN_TABLE,
    UNNAMED_PUBLIC,
    Judged,
    ReportDoor,
)
from deniable.service.metrics import Metrics
from deniable.stores.collector.group_commit import Delivery
from deniable.stores.collector.upload import CollectorStore, Upload, UploadOutcome
from deniable.tables.reports.report_table import OTHER_COINS, OTHER_SPECIFICATION, OTHER_TURN, ROW_FAULTS
from deniable.tables.schema.report_format import REPORT_BYTES

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
_ALL_ACCEPTED = b'{"accepted":%d,"repeated":%d,"refused":{},"failed":[]}'


class ArrivedRequest(NamedTuple):
    """The reports of one request, and for which users it may upload; None for everybody."""

    sent: FramedBody | Sequence[SentReport]
    may_upload: MayUpload | None


def count_of(sent: FramedBody | Sequence[SentReport]) -> int:
    """How many reports a request has."""
    return sent.count if isinstance(sent, FramedBody) else len(sent)


class ReportCommits:
    """Checks and stores groups of requests; the result for each is the body of its answer."""

    def __init__(self, door: ReportDoor, store: CollectorStore, metrics: Metrics) -> None:
        self._door, self._store, self._metrics = door, store, metrics

    def __call__(self, requests: Sequence[ArrivedRequest]) -> list[bytes]:
        """Store what is good, all in one commit."""
        sent = SentColumns.of([request.sent for request in requests])
        judged, names = self._door.judge(sent), sent.names()
        cuts = list(accumulate((count_of(request.sent) for request in requests), initial=0))
        others: set[int] = set()
        for request, (first, last) in zip(requests, pairwise(cuts), strict=True):
            if request.may_upload is not None:
                may = {uid: request.may_upload(uid) for uid in set(names[first:last])}
                others |= {index for index in range(first, last) if not may[names[index]] and not judged.codes[index]}
        good = np.flatnonzero(judged.codes == 0)
        if others:
            good = good[~np.isin(good, np.fromiter(others, dtype=np.int64))]
        outcomes: list[UploadOutcome | str] = [*self._store.add(self._uploads(sent, judged, names, good))]
        if good.size < len(names):
            refused = [OTHER_USER if index in others else judged.reason(index) for index in range(len(names))]
            stored = iter(outcomes)
            outcomes = [next(stored) if reason is None else reason for reason in refused]
        counts: Counter[str] = Counter()
        answers = [_answer(outcomes[first:last], counts) for first, last in pairwise(cuts)]
        self._metrics.answered(counts)
        return answers

    def _uploads(self, sent: SentColumns, judged: Judged, names: Sequence[str], good: Integers) -> list[Upload]:
        rows = good.tolist()
        tables = [self._door.tables[number] for number in judged.tables[good].tolist()]
        columns = (judged.rounds[good].tolist(), [names[row] for row in rows], judged.slots[good].tolist())
        reports = [sent.reports[REPORT_BYTES * row : REPORT_BYTES * (row + 1)] for row in rows]
        return list(map(Upload._make, zip(tables, *columns, reports, map(judged.publics.get, rows), strict=True)))


def _answer(reasons: Sequence[UploadOutcome | str], counts: Counter[str]) -> bytes:
    """Counts, and what failed by its number; `counts` are added to."""
    accepted, repeated = reasons.count(UploadOutcome.ACCEPTED), reasons.count(UploadOutcome.REPEATED)
    counts["accepted"] += accepted
    counts["repeated"] += repeated
    if accepted + repeated == len(reasons):
        return _ALL_ACCEPTED % (accepted, repeated)
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
