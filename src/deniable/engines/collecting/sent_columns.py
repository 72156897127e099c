"""What arrived, as columns: the ids of all reports in one buffer, and their bytes as rows of an array.

A body is cut into reports by a compiled loop, and the reports of many requests are put side by side by another. On the
way from a body to the store nothing is computed report by report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers
from deniable.limits import LONGEST_TEXT
from deniable.mechanisms._compiled import compiled
from deniable.tables.reports.report import kind_of
from deniable.tables.reports.upload_format import ID_LENGTH_BYTES
from deniable.tables.schema.report_format import FIELD_BYTES, REPORT_BYTES

_WIRE = np.dtype([(field, f">u{size}") for field, size in FIELD_BYTES.items()])
_ENDS_INSIDE, _TOO_MANY = -1, -2

Wire = NDArray[np.void]


class SentReport(NamedTuple):
    """What arrived for one report. Nothing about it is known yet, except that the id is a text."""

    uid: str
    report: bytes
    table: str | None = None
    """As a line of JSON names it; the bytes name it by their tag."""
    public: Mapping[str, Any] | None = None
    """None if the way it came cannot carry public attributes."""


@dataclass(frozen=True, slots=True, eq=False)
class FramedBody:
    """A body, and where in it the id of each report begins and ends; the report follows."""

    body: bytes
    starts: Integers
    ends: Integers

    @property
    def count(self) -> int:
        """How many reports there are."""
        return int(self.starts.size)

    @property
    def only_user(self) -> str | None:
        """The user of all reports, if it is one and has a name; None of several."""
        if not self.count:
            return None
        first = self.body[self.starts[0] : self.ends[0]]
        if self.count > 1 and any(self.body[a:b] != first for a, b in zip(self.starts, self.ends, strict=True)):
            return None
        return first.decode(errors="replace")


class EndsInside(ValueError):
    """A body that ends inside a report."""


class TooManyReports(ValueError):
    """A body of more reports than a request may hold."""


def framed(body: bytes, most: int, size: int = REPORT_BYTES) -> FramedBody:
    """Cut a body into reports of this size, each after the length of an id and the id.

    >>> framed(b"\\x00\\x017" + bytes(32), 10).count
    1
    """
    end = len(body) - size
    if most and end == ID_LENGTH_BYTES + int.from_bytes(body[:ID_LENGTH_BYTES], "big"):
        return FramedBody(body, np.array([ID_LENGTH_BYTES]), np.array([end]))  # one report, as single devices send it
    capacity = min(most, len(body) // (ID_LENGTH_BYTES + size))
    starts, ends = np.empty(capacity, dtype=np.int64), np.empty(capacity, dtype=np.int64)
    count = _cut(np.frombuffer(body, dtype=np.uint8), size, starts, ends)
    if count == _ENDS_INSIDE:
        raise EndsInside
    if count == _TOO_MANY:
        raise TooManyReports
    return FramedBody(body, starts[:count], ends[:count])


@compiled
def _cut(body: Any, size: Any, starts: Any, ends: Any) -> Any:
    at, count = 0, 0
    while at < body.size:
        first = at + ID_LENGTH_BYTES
        if first > body.size:
            return _ENDS_INSIDE
        last = first + (np.int64(body[at]) << 8 | np.int64(body[at + 1]))
        at = last + size
        if at > body.size:
            return _ENDS_INSIDE
        if count == starts.size:
            return _TOO_MANY
        starts[count], ends[count] = first, last
        count += 1
    return count


@compiled
def _side_by_side(body: Any, starts: Any, ends: Any, ids: Any, offsets: Any, reports: Any) -> None:
    at = 0
    for row in range(starts.size):
        offsets[row] = at
        for byte in range(starts[row], ends[row]):
            ids[at] = body[byte]
            at += 1
        for byte in range(reports.shape[1]):
            reports[row, byte] = body[ends[row] + byte]
    offsets[starts.size] = at


@dataclass(frozen=True, slots=True, eq=False)
class SentColumns:
    """The reports of one request or of many, in their order."""

    uids: pa.Array
    """Texts; empty where a report cannot be read."""
    reports: bytes
    """All reports, one after another."""
    readable: Booleans
    """Whether a report has its size and a user's name."""
    lines: Mapping[int, SentReport]
    """Those that name their table, by their number."""

    @property
    def wire(self) -> Wire:
        """Reports as an array with a field for each part of the format."""
        return np.frombuffer(self.reports, dtype=_WIRE)

    def report_column(self) -> pa.Array:
        """Reports as a column of bytes."""
        offsets = np.arange(len(self.uids) + 1, dtype=np.int32) * REPORT_BYTES
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.reports)]
        return pa.BinaryArray.from_buffers(pa.binary(), len(self.uids), buffers)

    @classmethod
    def of(cls, requests: Sequence[FramedBody | Sequence[SentReport]]) -> SentColumns:
        """The reports of requests, side by side."""
        lines: dict[int, SentReport] = {}
        bodies, unreadable, before = [], [], 0
        for request in requests:
            if isinstance(request, FramedBody):
                bodies.append(request)
            else:
                good = [_is_readable(arrived) for arrived in request]
                bodies.append(_of_reports(request, good))
                unreadable += [before + index for index, fine in enumerate(good) if not fine]
                lines |= {before + index: sent for index, sent in enumerate(request) if sent.table is not None}
            before += bodies[-1].count
        first = accumulate((len(body.body) for body in bodies), initial=0)
        shifts = np.repeat(np.fromiter(first, dtype=np.int64)[:-1], [body.count for body in bodies])
        starts, ends = (
            np.concatenate([np.empty(0, dtype=np.int64), *columns]) + shifts
            for columns in ([body.starts for body in bodies], [body.ends for body in bodies])
        )
        readable = ends - starts <= LONGEST_TEXT
        readable[unreadable] = False
        return _joined(b"".join([body.body for body in bodies]), starts, ends, readable, lines)


def wire_reports(reports: pa.Array) -> Wire:
    """A column of reports, each of the right size, as an array with a field for each part of the format."""
    if not len(reports):
        return np.empty(0, dtype=_WIRE)
    _, offsets, data = reports.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[reports.offset : reports.offset + len(reports) + 1]
    if (np.diff(ends) != REPORT_BYTES).any():
        raise ValueError("a report has another size")
    return np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]].view(_WIRE)


def _is_readable(arrived: SentReport) -> bool:
    return len(arrived.report) == REPORT_BYTES and kind_of(arrived.uid) is str


def _of_reports(sent: Sequence[SentReport], readable: Sequence[bool]) -> FramedBody:
    ids = [arrived.uid.encode() if good else b"" for arrived, good in zip(sent, readable, strict=True)]
    reports = [arrived.report if good else bytes(REPORT_BYTES) for arrived, good in zip(sent, readable, strict=True)]
    lengths = np.array([len(uid) for uid in ids], dtype=np.int64)
    ends = np.cumsum(lengths + REPORT_BYTES) - REPORT_BYTES
    return FramedBody(
        b"".join([part for pair in zip(ids, reports, strict=True) for part in pair]), ends - lengths, ends
    )


def _joined(
    body: bytes, starts: Integers, ends: Integers, readable: Booleans, lines: Mapping[int, SentReport]
) -> SentColumns:
    starts = np.where(readable, starts, ends)
    ids = np.empty(int((ends - starts).sum()), dtype=np.uint8)
    offsets = np.empty(starts.size + 1, dtype=np.int32)
    reports = np.empty((starts.size, REPORT_BYTES), dtype=np.uint8)
    _side_by_side(np.frombuffer(body, dtype=np.uint8), starts, ends, ids, offsets, reports)
    uids = pa.StringArray.from_buffers(starts.size, pa.py_buffer(offsets), pa.py_buffer(ids))
    try:
        uids.validate(full=True)
    except pa.ArrowInvalid:  # somebody's id is not UTF-8: find out whose
        good = readable & np.array([_is_text(body[a:b]) for a, b in zip(starts, ends, strict=True)], dtype=np.bool_)
        return _joined(body, starts, ends, good, lines)
    return SentColumns(uids, reports.tobytes(), readable, lines)


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
