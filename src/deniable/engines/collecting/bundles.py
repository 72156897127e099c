"""Bundles of reports under pseudonyms: from bytes and lines to what other reports are, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers
from deniable.engines.collecting.sent_columns import EndsInside, FramedBody, TooManyReports
from deniable.errors import InvalidData
from deniable.tables.reports.bundle import Bundle
from deniable.tables.reports.upload_format import ID_LENGTH_BYTES
from deniable.tables.schema.pseudonyms import NAME_BYTES, PSEUDONYM
from deniable.tables.schema.report_format import REPORT_BYTES
from deniable.tables.specification.specification import Specification

BROKEN = "of a bundle that is not whole"
BUNDLES_AT_ONCE = 1 << 12
_HEX_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


class BundleShape:
    """What a whole bundle of a collection holds: which tables and slots, in which order."""

    def __init__(self, collection: Specification) -> None:
        reports = [collection.reports_per_user(table.name) for table in collection.tables]
        self.tables = np.repeat(np.arange(len(reports)), reports)
        self.slots = np.concatenate([np.arange(count) for count in reports])

    @property
    def reports(self) -> int:
        """How many reports a bundle has."""
        return int(self.tables.size)

    def is_whole(self, tables: NDArray[np.uint16], slots: Integers, rounds: Integers) -> Booleans:
        """Of each bundle, whether it holds every table and slot once, in order, and all of one round."""
        size = self.reports
        same = (tables.reshape(-1, size) == self.tables) & (slots.reshape(-1, size) == self.slots)
        turns = rounds.reshape(-1, size)
        whole: Booleans = same.all(axis=1) & (turns == turns[:, :1]).all(axis=1)
        return whole


def bundle_shape(collection: Specification) -> BundleShape | None:
    """The bundles of a collection; None if its reports travel by user id."""
    return BundleShape(collection) if collection.ids == PSEUDONYM else None


def unbundled(body: bytes, reports: int, most: int) -> FramedBody:
    """A body of bundles, so many reports each, as one of reports: before each, the name of its bundle.

    >>> unbundled(bytes(16) + bytes(64), 2, 10).count
    2
    """
    size = NAME_BYTES + reports * REPORT_BYTES
    count, rest = divmod(len(body), size)
    if rest:
        raise EndsInside
    if count * reports > most:
        raise TooManyReports
    rows = np.frombuffer(body, dtype=np.uint8).reshape(count, size)
    names = rows[:, :NAME_BYTES]
    wide = np.empty((count, reports, ID_LENGTH_BYTES + 2 * NAME_BYTES + REPORT_BYTES), dtype=np.uint8)
    wide[:, :, 0], wide[:, :, 1] = divmod(2 * NAME_BYTES, 256)
    wide[:, :, ID_LENGTH_BYTES:-REPORT_BYTES:2] = _HEX_DIGITS[names >> 4][:, None, :]
    wide[:, :, ID_LENGTH_BYTES + 1 : -REPORT_BYTES : 2] = _HEX_DIGITS[names & 15][:, None, :]
    wide[:, :, -REPORT_BYTES:] = rows[:, NAME_BYTES:].reshape(count, reports, REPORT_BYTES)
    return FramedBody(wide.tobytes(), count * reports, count == 1)


def bundled_lines(lines: Iterable[bytes | str], reports: int) -> bytes:
    """Lines of JSON as a body of bundles. One that cannot be read is there too, and is refused later."""
    unreadable = bytes(NAME_BYTES + reports * REPORT_BYTES)
    bodies = []
    for line in lines:
        try:
            bundle = Bundle.from_json(line if len(line) <= _longest_line(reports) else "")
        except InvalidData:
            bodies.append(unreadable)
            continue
        bodies.append(bundle.to_bytes() if bundle.count == reports else unreadable)
    return b"".join(bodies)


def _longest_line(reports: int) -> int:
    return 2 * (NAME_BYTES + reports * REPORT_BYTES) + 100


def whole_codes(shape: BundleShape, codes: NDArray[np.uint8], broken: np.uint8, whole: Booleans) -> NDArray[np.uint8]:
    """Why reports are refused, if every bundle is taken or refused as a whole: for its first reason."""
    by_bundle = codes.reshape(-1, shape.reports)
    first = by_bundle[np.arange(len(by_bundle)), (by_bundle != 0).argmax(axis=1)]
    reasons = np.where((first == 0) & ~whole, broken, first)
    return np.repeat(reasons, shape.reports).astype(np.uint8)


def in_groups(lines: Iterable[str | bytes], advance: Callable[[int], None]) -> Iterable[Sequence[str | bytes]]:
    """Lines that hold something, some thousands at a time; `advance` is called with the length of every line."""

    def kept() -> Iterable[str | bytes]:
        for line in lines:
            advance(len(line))
            if line.strip():
                yield line

    rest = iter(kept())
    while group := list(islice(rest, BUNDLES_AT_ONCE)):
        yield group
