"""What arrived, as columns: the ids of all reports in one buffer, and their bytes as rows of an array.

The reports of a body are counted by a compiled loop, and those of many requests are put side by side by another. On the
way from a body to the store nothing is computed report by report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Booleans
from deniable.limits import LONGEST_TEXT
from deniable.mechanisms._compiled import compiled
from deniable.tables.reports.report import kind_of
from deniable.tables.reports.upload_format import ID_LENGTH_BYTES, binary_body
from deniable.tables.schema.report_format import FIELD_BYTES, REPORT_BYTES

_WIRE = np.dtype([(field, f">u{size}") for field, size in FIELD_BYTES.items()])
_ENDS_INSIDE, _TOO_MANY = -1, -2
_FIRST_NOT_ASCII = 128

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
    """A body that holds whole reports: before each, the length of an id and the id."""

    body: bytes
    count: int
    """How many reports there are."""
    has_one_user: bool
    """Whether all reports have the same id, and there is one."""

    @property
    def only_user(self) -> str | None:
        """The user of all reports, if it is one and has a name; None of several."""
        if not self.has_one_user:
            return None
        end = ID_LENGTH_BYTES + int.from_bytes(self.body[:ID_LENGTH_BYTES], "big")
        return self.body[ID_LENGTH_BYTES:end].decode(errors="replace")

    def cut(self, size: int = REPORT_BYTES) -> list[tuple[bytes, bytes]]:
        """(id, report) of every report."""
        pairs, at = [], 0
        for _ in range(self.count):
            first = at + ID_LENGTH_BYTES
            last = first + int.from_bytes(self.body[at:first], "big")
            at = last + size
            pairs.append((self.body[first:last], self.body[last:at]))
        return pairs


class EndsInside(ValueError):
    """A body that ends inside a report."""


class TooManyReports(ValueError):
    """A body of more reports than a request may hold."""


def framed(body: bytes, most: int, size: int = REPORT_BYTES) -> FramedBody:
    """A body of reports of this size, each after the length of an id and the id.

    >>> framed(b"\\x00\\x017" + bytes(32), 10).count
    1
    """
    if most and len(body) == ID_LENGTH_BYTES + int.from_bytes(body[:ID_LENGTH_BYTES], "big") + size:
        return FramedBody(body, 1, True)  # one report, as single devices send it
    counted = _count(np.frombuffer(body, dtype=np.uint8), size, most)
    if counted == _ENDS_INSIDE:
        raise EndsInside
    if counted == _TOO_MANY:
        raise TooManyReports
    return FramedBody(body, counted >> 1, bool(counted & 1))


@compiled
def _count(body: Any, size: Any, most: Any) -> Any:
    """Twice the number of reports, and one more if all have the same id."""
    at, count, same, length = np.int64(0), 0, True, np.int64(0)
    while at < body.size:
        first = at + ID_LENGTH_BYTES
        if first > body.size:
            return _ENDS_INSIDE
        last = first + (np.int64(body[at]) << 8 | np.int64(body[at + 1]))
        at = last + size
        if at > body.size:
            return _ENDS_INSIDE
        if count == most:
            return _TOO_MANY
        if count == 0:
            length = last - first
        elif same:
            same = last - first == length
            byte = 0
            while same and byte < length:
                same = body[first + byte] == body[ID_LENGTH_BYTES + byte]
                byte += 1
        count += 1
    return 2 * count + (1 if same and count else 0)


@compiled
def _side_by_side(body: Any, longest: Any, ids: Any, offsets: Any, reports: Any, readable: Any) -> Any:
    """Put ids behind one another, and reports; returns all bytes of ids, joined by OR."""
    at, end, any_byte = 0, 0, np.uint8(0)
    for row in range(readable.size):
        first = at + ID_LENGTH_BYTES
        last = first + (np.int64(body[at]) << 8 | np.int64(body[at + 1]))
        at = last + reports.shape[1]
        offsets[row] = end
        if last - first > longest:
            readable[row] = False
        if readable[row]:
            for byte in range(first, last):
                ids[end] = body[byte]
                any_byte |= body[byte]
                end += 1
        for byte in range(reports.shape[1]):
            reports[row, byte] = body[last + byte]
    offsets[readable.size] = end
    return any_byte


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
        bodies, unreadable, count = [], [], 0
        for request in requests:
            if isinstance(request, FramedBody):
                bodies.append(request.body)
                count += request.count
            else:
                good = [_is_readable(arrived) for arrived in request]
                bodies.append(_of_reports(request, good))
                unreadable += [count + index for index, fine in enumerate(good) if not fine]
                lines |= {count + index: sent for index, sent in enumerate(request) if sent.table is not None}
                count += len(request)
        readable = np.ones(count, dtype=np.bool_)
        if unreadable:
            readable[unreadable] = False
        return _joined(b"".join(bodies), readable, lines)


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
    return (
        len(arrived.report) == REPORT_BYTES
        and kind_of(arrived.uid) is str
        and len(arrived.uid.encode()) <= LONGEST_TEXT
    )


def _of_reports(sent: Sequence[SentReport], readable: Sequence[bool]) -> bytes:
    """Reports as a binary body holds them."""
    return binary_body(
        (arrived.uid, arrived.report) if good else ("", bytes(REPORT_BYTES))
        for arrived, good in zip(sent, readable, strict=True)
    )


def _joined(body: bytes, readable: Booleans, lines: Mapping[int, SentReport]) -> SentColumns:
    count = readable.size
    ids = np.empty(max(len(body) - count * (ID_LENGTH_BYTES + REPORT_BYTES), 0), dtype=np.uint8)
    offsets, reports = np.empty(count + 1, dtype=np.int32), np.empty((count, REPORT_BYTES), dtype=np.uint8)
    any_byte = _side_by_side(np.frombuffer(body, dtype=np.uint8), LONGEST_TEXT, ids, offsets, reports, readable)
    uids = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(ids))
    if any_byte >= _FIRST_NOT_ASCII:
        try:
            uids.validate(full=True)
        except pa.ArrowInvalid:  # somebody's id is not UTF-8: find out whose
            pairs = FramedBody(body, count, False).cut()
            good = readable & np.array([_is_text(name) for name, _ in pairs], dtype=np.bool_)
            return _joined(body, good, lines)
    return SentColumns(uids, reports.tobytes(), readable, lines)


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
