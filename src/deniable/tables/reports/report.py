"""One report, and how it travels: as 32 bytes (`schema/report_format.py`) or in a line of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deniable.checks import is_integer
from deniable.errors import InvalidData
from deniable.limits import LONGEST_TEXT
from deniable.strict_json import read_json
from deniable.tables.schema.report_format import COIN_MODES, DRAWN, LAYOUT, REPORT_BYTES, REPORT_VERSION


@dataclass(frozen=True, slots=True)
class Report:
    """What a device sends about one row: already randomised, so it may be shown to anybody.

    >>> report = Report(slot=0, view=3, seed=0, y=1, tag=200)
    >>> Report.from_bytes(report.to_bytes()) == report
    True
    """

    slot: int
    view: int
    seed: int
    y: int
    tag: int
    """64 bits of a hash of the specification and the table: `Collection.tag`."""
    round: int = 0
    """0 in a collection without rounds."""
    coins: str = DRAWN
    """Whether view and seed were "drawn" on the device or "assigned" to the user."""

    def to_bytes(self) -> bytes:
        """The 32 bytes of the report."""
        coins = COIN_MODES.index(self.coins)
        return LAYOUT.pack(REPORT_VERSION, coins, self.slot, self.round, self.tag, self.view, self.seed, self.y)

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        """The report of 32 bytes."""
        if len(data) != REPORT_BYTES:
            raise InvalidData(f"expected a report of {REPORT_BYTES} bytes, got {len(data)}", "Check how it was sent.")
        version, coins, slot, turn, tag, view, seed, y = LAYOUT.unpack(data)
        if version != REPORT_VERSION:
            raise InvalidData(f"a report is of version {version}, not {REPORT_VERSION}", "Upgrade the older side.")
        if coins >= len(COIN_MODES):
            raise InvalidData(f"a report has coins of an unknown kind, {coins}", "Upgrade the older side.")
        return cls(slot, view, seed, y, tag, turn, COIN_MODES[coins])

    def to_json(self, uid: str | int, table: str, public: Mapping[str, Any] | None = None) -> str:
        """The report with its user, its table and the user's public attributes, as one line of JSON.

        A public value that no column can hold, or a text of over 1,000 bytes, is sent as null: the report must arrive,
        whatever the row held.
        """
        fields = {"uid": uid, "table": table, "report": self.to_bytes().hex()}
        sendable = {name: _sendable(value) for name, value in (public or {}).items()}
        return json.dumps(fields | ({"public": sendable} if public else {}), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> tuple[str | int, str, Report]:
        """(user, table, report) of one line of JSON."""
        uid, table, report, _ = parse(text)
        return uid, table, report


def _sendable(value: Any) -> Any:
    """A public value as JSON writes it; None if there is no such form, or if reading the value fails."""
    try:
        kind = kind_of(value)
        if kind is None or (kind is str and len(value.encode()) > LONGEST_TEXT):
            return None
        return kind(value)
    except Exception:
        return None


def parse(text: str | bytes) -> tuple[str | int, str, Report, dict[str, Any]]:
    """(user, table, report, public attributes) of one line of JSON."""
    try:
        fields = read_json(text)
        uid, table, data = fields["uid"], fields["table"], bytes.fromhex(fields["report"])
        public = fields.get("public", {})
    except (ValueError, KeyError, TypeError):
        raise InvalidData("a report does not have the documented JSON form", "Check how it was sent.") from None
    if kind_of(uid) not in (int, str) or not isinstance(table, str):
        raise InvalidData("a report does not have the documented JSON form", "Check how it was sent.")
    return uid, table, Report.from_bytes(data), public if isinstance(public, dict) else {}


def kind_of(value: Any) -> type | None:
    """The type of a value that a column can hold: bool, a 64-bit int, a finite float, a str without lone surrogates.

    >>> kind_of("Rome"), kind_of(2**63), kind_of(["Rome"])
    (<class 'str'>, None, None)
    """
    if isinstance(value, str):
        return None if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value) else str
    if is_integer(value):
        return int if -(2**63) <= value < 2**63 else None
    if isinstance(value, float):
        return float if math.isfinite(value) else None
    return bool if isinstance(value, bool) else None
