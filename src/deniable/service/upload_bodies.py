"""The body of an upload → what was sent. Both forms are bounded before they are unpacked or parsed.

Either may be compressed with gzip, as one member.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from deniable.engines.collecting.bundles import bundled_lines, unbundled
from deniable.engines.collecting.sent_columns import EndsInside, FramedBody, SentReport, TooManyReports, framed
from deniable.engines.collecting.sent_lines import LONGEST_LINE, sent_line
from deniable.engines.collecting.wire_reports import is_long
from deniable.errors import InvalidData
from deniable.streams.local.stream_report import SIZE
from deniable.streams.local.stream_report import parse as parse_stream_line
from deniable.tables.reports.report import kind_of
from deniable.tables.reports.upload_format import BINARY_BUNDLES, BINARY_REPORTS, REPORT_LINES, STREAM_REPORTS
from deniable.tables.schema.report_format import REPORT_BYTES


class BodyRefused(Exception):
    """A body that cannot be taken as a whole; `status` is HTTP's, `reason` a stated word."""

    def __init__(self, status: int, reason: str, words: str) -> None:
        super().__init__(words)
        self.status, self.reason, self.words = status, reason, words


class BodyLimits(NamedTuple):
    """How much a body may hold."""

    unpacked_bytes: int
    reports: int
    bundle: int = 0
    """How many reports a bundle has, where ids are pseudonyms; 0 where reports travel by user id."""


def unpacked(body: bytes, encoding: str, limits: BodyLimits) -> bytes:
    """The body without its compression.

    >>> import gzip
    >>> unpacked(gzip.compress(b"report"), "gzip", BodyLimits(100, 10))
    b'report'
    """
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise BodyRefused(415, "encoding", "The content encoding is unknown. Use gzip or none.")
    inflating = zlib.decompressobj(wbits=31)
    try:
        plain = inflating.decompress(body, limits.unpacked_bytes + 1)
    except zlib.error:
        raise BodyRefused(400, "gzip", "The body is not valid gzip.") from None
    if len(plain) > limits.unpacked_bytes:
        raise BodyRefused(413, "unpacked_size", f"The body unpacks to over {limits.unpacked_bytes:,} bytes.")
    if not inflating.eof or inflating.unused_data:
        raise BodyRefused(400, "gzip", "The body is not one whole gzip member.")
    return plain


def read_body(body: bytes, media_type: str, limits: BodyLimits) -> FramedBody | list[SentReport]:
    """What a body holds. A report that cannot be read is there too, and is refused later, by its number."""
    if limits.bundle:
        return _read_bundles(body, media_type, limits)
    reader = _READERS.get(media_type)
    if reader is None:
        raise BodyRefused(415, "media_type", f"The content type must be {BINARY_REPORTS} or {REPORT_LINES}.")
    return reader(body, limits.reports)


def _read_bundles(body: bytes, media_type: str, limits: BodyLimits) -> FramedBody:
    """What a body of bundles holds; lines of single reports are not bundles."""
    if media_type not in (BINARY_BUNDLES, REPORT_LINES):
        raise BodyRefused(415, "media_type", f"The content type must be {BINARY_BUNDLES} or {REPORT_LINES}.")
    if media_type == REPORT_LINES:
        body = bundled_lines(_lines(body, limits.reports // limits.bundle), limits.bundle)
    try:
        return unbundled(body, limits.bundle, limits.reports)
    except EndsInside:
        raise BodyRefused(400, "framing", "The body ends inside a bundle.") from None
    except TooManyReports:
        raise _too_many(limits.reports) from None


def read_stream_body(body: bytes, media_type: str, limits: BodyLimits) -> list[tuple[str, bytes]]:
    """(user, report) of every report of a stream. One that cannot be read is empty."""
    if media_type == STREAM_REPORTS:
        return [_named(name, report) for name, report in _read_binary(body, limits.reports, SIZE).cut(SIZE)]
    if media_type != REPORT_LINES:
        raise BodyRefused(415, "media_type", f"The content type must be {STREAM_REPORTS} or {REPORT_LINES}.")
    return [_stream_line(line) for line in _lines(body, limits.reports)]


def _named(name: bytes, report: bytes) -> tuple[str, bytes]:
    try:
        return name.decode(), report
    except UnicodeDecodeError:
        return "", b""


def _stream_line(line: bytes) -> tuple[str, bytes]:
    try:
        uid, report = parse_stream_line(line if len(line) <= LONGEST_LINE else b"")
    except InvalidData:
        return "", b""
    text = str(uid)
    return (text, report) if kind_of(text) is str and not is_long(text) else ("", b"")


def _read_binary(body: bytes, most: int, size: int = REPORT_BYTES) -> FramedBody:
    try:
        return framed(body, most, size)
    except EndsInside:
        raise BodyRefused(400, "framing", "The body ends inside a report.") from None
    except TooManyReports:
        raise _too_many(most) from None


def _read_lines(body: bytes, most: int) -> list[SentReport]:
    return [sent_line(line) for line in _lines(body, most)]


def _lines(body: bytes, most: int) -> list[bytes]:
    lines = [line for line in body.split(b"\n") if line.strip()]
    if len(lines) > most:
        raise _too_many(most)
    return lines


def _too_many(most: int) -> BodyRefused:
    return BodyRefused(413, "too_many_reports", f"A request may hold {most:,} reports. Send several.")


_READERS: Mapping[str, Callable[[bytes, int], FramedBody | list[SentReport]]] = {
    BINARY_REPORTS: _read_binary,
    REPORT_LINES: _read_lines,
}
