"""One report of a stream without trust, and how it travels: 16 bytes, whatever it says.

    byte  0      version of this format: 129 (reports of tables count from 1)
    byte  1      phase: 1, before a threshold is announced, or 2
    bytes 2-3    first two bytes of the protocol's SHA-256
    bytes 4-7    y, what the mechanism answered
    bytes 8-15   θ as a 64-bit float; 0 in phase 1                    all unsigned, big-endian

In JSON the same bytes are 32 hexadecimal digits, so that the length of a message does not depend on the data.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from deniable.errors import InvalidData
from deniable.strict_json import read_json

STREAM_REPORT_VERSION = 129
FIRST, SECOND = 1, 2
_STREAM_REPORT_LAYOUT = struct.Struct(">BBHId")
SIZE = _STREAM_REPORT_LAYOUT.size


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What a device sends about one value. It is randomised already, so it may be shown to anybody.

    >>> from deniable.client import ToPLClient
    >>> report = ToPLClient(epsilon=1.0, bound=500).report(31)
    >>> StreamReport.from_bytes(report.to_bytes()) == report
    True
    """

    phase: int
    y: int
    theta: float
    tag: int

    def to_bytes(self) -> bytes:
        """The 16 bytes of the report."""
        return _STREAM_REPORT_LAYOUT.pack(STREAM_REPORT_VERSION, self.phase, self.tag, self.y, self.theta)

    @classmethod
    def from_bytes(cls, data: bytes) -> StreamReport:
        """The report of 16 bytes."""
        if len(data) != SIZE:
            raise InvalidData(f"expected {SIZE} bytes, got {len(data)}", "Check how it was sent.")
        version, phase, tag, y, theta = _STREAM_REPORT_LAYOUT.unpack(data)
        if version != STREAM_REPORT_VERSION:
            expected = f"expected a report of version {STREAM_REPORT_VERSION}, got {version}"
            raise InvalidData(expected, "Upgrade the older side.")
        if phase not in (FIRST, SECOND):
            raise InvalidData("a report belongs to neither phase", "Check how it was sent.")
        return cls(phase, y, theta, tag)

    def to_json(self, uid: str | int) -> str:
        """The report with its user, as one line of JSON."""
        return json.dumps({"uid": uid, "report": self.to_bytes().hex()}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> tuple[str | int, StreamReport]:
        """(user, report) of one line of JSON."""
        uid, data = parse(text)
        return uid, cls.from_bytes(data)


def parse(text: str | bytes) -> tuple[str | int, bytes]:
    """(user, bytes of the report) of one line of JSON. The bytes are not checked."""
    try:
        fields = read_json(text)
        uid, data = fields["uid"], bytes.fromhex(fields["report"])
    except (ValueError, KeyError, TypeError):
        raise InvalidData("a report does not have the documented JSON form", "Check how it was sent.") from None
    if isinstance(uid, bool) or not isinstance(uid, (str, int)):
        raise InvalidData("a report does not have the documented JSON form", "Check how it was sent.")
    return uid, data
