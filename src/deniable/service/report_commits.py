"""One commit of the collector: the reports of many requests are checked together, stored together, and answered.

Requests leave their bodies here as they were read. What is computed per report is computed for all of a group at once,
in the thread of the group commit, while other requests arrive.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Booleans, Integers
from deniable.engines.collecting.bundles import BROKEN
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
from deniable.stores.collector.upload import OUTCOMES, CollectorStore, UploadOutcome
from deniable.stores.collector.upload_columns import RowColumns, UploadColumns, no_texts, texts_of
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
    BROKEN: "bundle",
    OTHER_USER: "other_user",
    UploadOutcome.CONFLICT.value: "conflict",
}
"""The word that answers and metrics use for each reason."""

_ACCEPTED, _REPEATED = OUTCOMES.index(UploadOutcome.ACCEPTED), OUTCOMES.index(UploadOutcome.REPEATED)
_REFUSED = len(OUTCOMES)
"""At the door, before the store."""


@dataclass(frozen=True, slots=True)
class MayUpload:
    """Leave to upload for one user."""

    who: str = field(repr=False)
    """Whose leave it is, to tell one from another: a token, or the user whom a proxy names."""
    names: Callable[[str], bool]
    """Whether it is for this user."""


_ALL_TAKEN = b'{"accepted":%d,"repeated":%d,"refused":{},"failed":[]}'


class ArrivedRequest(NamedTuple):
    """The reports of one request, and for which users it may upload; None for everybody."""

    sent: FramedBody | Sequence[SentReport]
    may_upload: MayUpload | None


def count_of(sent: FramedBody | Sequence[SentReport]) -> int:
    """How many reports a request has."""
    return sent.count if isinstance(sent, FramedBody) else len(sent)


class ReportCommits:
    """Checks and stores groups of requests; the result for each is the body of its answer.

    Where reports travel in bundles, an answer counts bundles. Each is taken whole or not at all: its reports are stored
    in one commit, so either all of its keys are held or none. Bundles of a commit are stored in the order of their
    names, not in that of their arrival.
    """

    def __init__(self, door: ReportDoor, store: CollectorStore, metrics: Metrics) -> None:
        self._door, self._store, self._metrics = door, store, metrics
        self._size = 1 if door.bundles is None else door.bundles.reports

    def __call__(self, requests: Sequence[ArrivedRequest]) -> list[bytes]:
        """Store what is good, all in one commit."""
        sent, size = SentColumns.of([request.sent for request in requests]), self._size
        judged, counts = self._door.judge(sent), [count_of(request.sent) // size for request in requests]
        cuts = list(accumulate(counts, initial=0))
        good = judged.codes == 0
        others = self._of_others(requests, cuts, sent, judged)
        if others:
            good[list(others)] = False
        fates = np.full(good.size, _REFUSED, dtype=np.uint8)
        rows = self._stored_order(sent, np.flatnonzero(good))
        fates[rows] = self._store.add_codes(self._uploads(sent, judged, rows))
        fates = fates.reshape(-1, size).max(axis=1) if size > 1 else fates
        if not fates.any():
            self._metrics.answered({"accepted": good.size})
            return [_all_taken(count, 0) for count in counts]
        taken = [_sums(fates == code, cuts) for code in (_ACCEPTED, _REPEATED)]
        refused: Counter[str] = Counter()
        answers = []
        for first, last, accepted, repeated in zip(cuts, cuts[1:], *taken, strict=False):
            if accepted + repeated == last - first:
                answers.append(_all_taken(accepted, repeated))
            else:
                words = {
                    row - first: REASON_WORDS[_reason(row, row * size, fates, judged, others)]
                    for row in range(first, last)
                    if fates[row] not in (_ACCEPTED, _REPEATED)
                }
                refused.update(words.values())
                answers.append(_answer(accepted, repeated, words))
        counted = {"accepted": sum(taken[0]), "repeated": sum(taken[1]), **refused}
        self._metrics.answered({word: number * size for word, number in counted.items()})
        return answers

    def _stored_order(self, sent: SentColumns, rows: Integers) -> Integers:
        """In which order reports are stored: bundles by their names, everything else as it came."""
        if self._door.bundles is None:
            return rows
        names = sent.uids.take(pa.array(rows[:: self._size]))
        order = np.asarray(pc.array_sort_indices(names)).astype(
            np.int64
        )  # stable: of a name that came twice, the first
        return rows.reshape(-1, self._size)[order].ravel()

    def _of_others(
        self, requests: Sequence[ArrivedRequest], cuts: Sequence[int], sent: SentColumns, judged: Judged
    ) -> set[int]:
        """Reports that are good, and of users for whom their request may not upload."""
        others: set[int] = set()
        for request, (first, last) in zip(requests, pairwise(cuts), strict=True):
            if request.may_upload is not None:
                names: list[str | None] = sent.uids.slice(first, last - first).to_pylist()
                if any(self._door.owners):
                    tables = judged.tables[first:last].tolist()
                    names = [self._door.token_name(table, uid or "") for table, uid in zip(tables, names, strict=True)]
                may = {uid: uid is not None and request.may_upload.names(uid) for uid in set(names)}
                others |= {row for row, uid in enumerate(names, first) if not may[uid] and not judged.codes[row]}
        return others

    def _uploads(self, sent: SentColumns, judged: Judged, good: Integers) -> UploadColumns:
        """What is good, as columns."""
        codes = judged.tables[good].astype(np.int64) << 32 | judged.rounds[good]
        if codes.size and (codes == codes[0]).all():
            parts, which = codes[:1], np.zeros(codes.size, dtype=np.int64)
        else:
            parts, which = np.unique(codes, return_inverse=True)
        rows = RowColumns(
            judged.slots[good], sent.uids.view(pa.binary()), sent.report_column(), no_texts(len(sent.uids))
        )
        if good.size < len(sent.uids):
            rows = RowColumns(
                rows.slots, *(column.take(pa.array(good)) for column in (rows.uids, rows.reports, rows.texts))
            )
        if judged.publics:
            rows = replace(rows, texts=texts_of([judged.publics.get(row) for row in good.tolist()]))
        names = tuple((self._door.tables[code >> 32], code & 0xFFFFFFFF) for code in parts.tolist())
        return UploadColumns(names, which.astype(np.int64), rows)


def _sums(which: Booleans, cuts: Sequence[int]) -> list[int]:
    """How many there are in each request."""
    before = np.concatenate(([0], np.cumsum(which)))[list(cuts)]
    listed: list[int] = np.diff(before).tolist()
    return listed


def _reason(message: int, row: int, fates: NDArray[np.uint8], judged: Judged, others: set[int]) -> str:
    """Why a message was not taken, whose first report is in this row."""
    if fates[message] != _REFUSED:
        return OUTCOMES[fates[message]].value
    return OTHER_USER if row in others else judged.reason(row) or MALFORMED


@lru_cache(maxsize=4096)
def _all_taken(accepted: int, repeated: int) -> bytes:
    return _ALL_TAKEN % (accepted, repeated)


def _answer(accepted: int, repeated: int, words: Mapping[int, str]) -> bytes:
    """Counts, and what failed by its number."""
    failed = [{"index": index, "reason": word} for index, word in words.items()]
    answer = {"accepted": accepted, "repeated": repeated, "refused": dict(Counter(words.values())), "failed": failed}
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
