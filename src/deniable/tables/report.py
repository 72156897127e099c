"""One report, and how it travels: 16 bytes, whatever it says.

    byte  0      version of this format
    byte  1      first byte of the specification's SHA-256
    bytes 2-3    slot
    bytes 4-7    view
    bytes 8-11   hash seed
    bytes 12-15  y                                    all unsigned, big-endian

In JSON the same bytes stand as 32 hexadecimal digits, so that the length of a message does not depend on the data.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from deniable.errors import InvalidData

VERSION = 1
_LAYOUT = struct.Struct(">BBHIII")
SIZE = _LAYOUT.size


@dataclass(frozen=True, slots=True)
class Report:
    """What a device sends about one row: already randomised, so it may be shown to anybody."""

    slot: int
    view: int
    seed: int
    y: int
    tag: int
    """First byte of the specification's SHA-256."""

    def to_bytes(self) -> bytes:
        """The 16 bytes of the report."""
        return _LAYOUT.pack(VERSION, self.tag, self.slot, self.view, self.seed, self.y)

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        """The report of 16 bytes."""
        if len(data) != SIZE:
            raise InvalidData(f"a report has {SIZE} bytes, and this has not", "Check how it was sent.")
        version, tag, slot, view, seed, y = _LAYOUT.unpack(data)
        if version != VERSION:
            raise InvalidData(f"a report is of version {version}, not {VERSION}", "Upgrade the older side.")
        return cls(slot, view, seed, y, tag)

    def to_json(self, uid: str | int, table: str) -> str:
        """The report with its user and table as one line of JSON."""
        return json.dumps({"uid": uid, "table": table, "report": self.to_bytes().hex()}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> tuple[str | int, str, Report]:
        """(user, table, report) of one line of JSON."""
        try:
            fields = json.loads(text)
            return fields["uid"], fields["table"], cls.from_bytes(bytes.fromhex(fields["report"]))
        except (ValueError, KeyError, TypeError):
            raise InvalidData("a report is not of the documented JSON form", "Check how it was sent.") from None
