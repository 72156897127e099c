"""What a ledger holds: one entry per charge, each bound to all before it by a digest. Standard library only."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from deniable.accounting import Neighbours, Spending, Unit
from deniable.strict_json import read_json

LEDGER_FORMAT = "deniable ledger"
LEDGER_VERSION = 1
_LEDGER_NAME = re.compile("[0-9a-f]{32}")
_AMOUNT = re.compile(r"\d{1,2000}(/[1-9]\d{0,2000})?")


class DamagedLedger(ValueError):
    """The bytes are not those of a whole ledger."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What an answer costs, and on what.

    `key` names the draw that is paid for, so that it costs nothing when its outcome leaves again. `specification` is
    the hash of what was asked, `lifetime` all that it may ever cost, and `group` counts answers that belong together.

    >>> from deniable.accounting import Neighbours, Spending, Unit
    >>> Charge("shop", Spending(Unit.USER, Neighbours.ANY, 0.5), key="week 3").spending.epsilon
    Fraction(1, 2)
    """

    what: str
    spending: Spending
    key: str = ""
    specification: str = ""
    group: str = ""
    lifetime: Spending | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A charge as it was written down, or a new limit."""

    time: str
    charge: Charge
    limit: Fraction | None = None
    """The limit from here on, where the entry raises it."""

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON holds it; amounts are exact fractions."""
        charge = self.charge
        entry = {
            "time": self.time,
            "what": charge.what,
            "epsilon": str(charge.spending.epsilon),
            "delta": str(charge.spending.delta),
            "unit": charge.spending.unit.name,
            "neighbours": charge.spending.neighbours.name,
            "specification": charge.specification,
            "group": charge.group,
            "key": charge.key,
        }
        return entry | ({} if self.limit is None else {"limit": str(self.limit)})

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> LedgerEntry:
        """The entry of a parsed file."""
        fields = dict(entry)
        time, limit = fields.pop("time"), fields.pop("limit", None)
        seconds(time)
        unit, neighbours = Unit[fields.pop("unit")], Neighbours[fields.pop("neighbours")]
        spending = Spending(unit, neighbours, _amount(fields.pop("epsilon")), _amount(fields.pop("delta")))
        if not all(isinstance(text, str) for text in fields.values()):
            raise DamagedLedger
        return cls(time, Charge(spending=spending, **fields), None if limit is None else _amount(limit))


@dataclass(frozen=True, slots=True)
class Book:
    """The whole content of a ledger: a random name, the limits, and the entries with the digest after each."""

    name: str
    limit: Fraction
    delta: Fraction
    largest: Fraction | None
    entries: tuple[LedgerEntry, ...] = ()
    digests: tuple[str, ...] = ()
    """After so many entries: one more than there are entries. A digest covers everything before it."""

    def __post_init__(self) -> None:
        if not self.digests:
            object.__setattr__(self, "digests", (_digest("", self._header()),))

    def _header(self) -> dict[str, Any]:
        largest = None if self.largest is None else str(self.largest)
        limits = {"limit": str(self.limit), "delta": str(self.delta), "largest": largest}
        return {"format": LEDGER_FORMAT, "version": LEDGER_VERSION, "name": self.name, **limits}

    def with_entry(self, entry: LedgerEntry) -> Book:
        """The book with one more entry."""
        digest = _digest(self.digests[-1], entry.to_dict())
        return replace(self, entries=(*self.entries, entry), digests=(*self.digests, digest))

    @property
    def limit_now(self) -> Fraction:
        """The limit after all entries."""
        return next((entry.limit for entry in reversed(self.entries) if entry.limit is not None), self.limit)

    def spent(self, unit: Unit) -> tuple[Fraction, Fraction]:
        """ε and δ of all entries that protect this unit."""
        spendings = [entry.charge.spending for entry in self.entries if entry.charge.spending.unit is unit]
        return (
            sum((Fraction(part.epsilon) for part in spendings), Fraction(0)),
            sum((Fraction(part.delta) for part in spendings), Fraction(0)),
        )

    def to_bytes(self) -> bytes:
        """The file: an object with an entry per line."""
        head = json.dumps(self._header())[:-1]
        entries = ",\n".join(json.dumps(entry.to_dict()) for entry in self.entries)
        return f'{head}, "entries": [\n{entries}\n], "digest": "{self.digests[-1]}"}}\n'.encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Book:
        """The book of a file. A single changed letter makes it damaged."""
        try:
            fields = read_json(content)
            if fields["format"] != LEDGER_FORMAT or fields["version"] != LEDGER_VERSION:
                raise DamagedLedger
            if not _LEDGER_NAME.fullmatch(fields["name"]):
                raise DamagedLedger
            largest = None if fields["largest"] is None else _amount(fields["largest"])
            book = cls(fields["name"], _amount(fields["limit"]), _amount(fields["delta"]), largest)
            entries, digests = [], list(book.digests)
            for listed in fields["entries"]:
                entry = LedgerEntry.from_dict(listed)
                if entry.to_dict() != listed:
                    raise DamagedLedger
                entries.append(entry)
                digests.append(_digest(digests[-1], listed))
            book = replace(book, entries=tuple(entries), digests=tuple(digests))
            if digests[-1] != fields["digest"] or book.to_bytes() != content:
                raise DamagedLedger
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DamagedLedger from None
        return book


def stamped(now: float) -> str:
    """A time as a ledger writes it.

    >>> stamped(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")


def seconds(time: str) -> float:
    """A time that a ledger wrote, as seconds."""
    return datetime.fromisoformat(time).timestamp()


def _amount(text: Any) -> Fraction:
    if not isinstance(text, str) or not _AMOUNT.fullmatch(text):
        raise DamagedLedger
    return Fraction(text)


def _digest(before: str, content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
