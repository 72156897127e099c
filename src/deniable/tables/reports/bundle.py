"""All reports of one user in one round, as one message under her pseudonym: 16 bytes and 32 for each report.

In JSON the same bytes stand as hexadecimal digits: {"name":"…","reports":"…"}. Both have a size that follows from the
specification. Standard library only, for devices.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from deniable.errors import InvalidData
from deniable.strict_json import read_json
from deniable.tables.schema.pseudonyms import NAME_BYTES
from deniable.tables.schema.report_format import REPORT_BYTES

_NAME_IN_HEX = re.compile(f"[0-9a-f]{{{2 * NAME_BYTES}}}")
_REPORTS_IN_HEX = re.compile(f"(?:[0-9a-f]{{{2 * REPORT_BYTES}}})+")


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a device sends in a collection with pseudonyms: randomised already, so it may be shown to anybody.

    >>> bundle = Bundle("00" * 16, bytes(64))
    >>> Bundle.from_json(bundle.to_json()) == bundle, len(bundle.to_bytes())
    (True, 80)
    """

    name: str
    """The pseudonym, as 32 hexadecimal digits."""
    reports: bytes
    """In the order of the tables and of their slots."""

    def __post_init__(self) -> None:
        if not _NAME_IN_HEX.fullmatch(self.name) or not self.reports or len(self.reports) % REPORT_BYTES:
            raise InvalidData("a bundle does not have the documented form", "Check how it was sent.")

    @property
    def count(self) -> int:
        """How many reports there are."""
        return len(self.reports) // REPORT_BYTES

    def to_bytes(self) -> bytes:
        """The name and the reports."""
        return bytes.fromhex(self.name) + self.reports

    def to_json(self) -> str:
        """The bundle as one line of JSON."""
        return json.dumps({"name": self.name, "reports": self.reports.hex()}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Bundle:
        """The bundle of one line of JSON."""
        try:
            fields = read_json(text)
            name, reports = fields["name"], fields["reports"]
            if len(fields) == 2 and _NAME_IN_HEX.fullmatch(name) and _REPORTS_IN_HEX.fullmatch(reports):
                return cls(name, bytes.fromhex(reports))
        except (ValueError, KeyError, TypeError):
            pass
        raise InvalidData("a bundle does not have the documented form", "Check how it was sent.")
