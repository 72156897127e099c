"""The ledger of one person, or of one operator: what was spent, on what, and when. Standard library only.

A charge is on the disk before what it pays for leaves. Refusing is a function of public settings and of earlier
charges, never of data. Everything happens while the file is locked:

    may this be answered? ── draw, remember ──▶ charge ── on the disk ──▶ send
             │                                    │
             └─ no: nothing is drawn              └─ this very draw was charged before: nothing more to pay

A process that ends between the memory and the charge has sent nothing. When it is asked again, it remembers the answer,
finds no charge for it, and charges it then.

Of all copies of a ledger on this machine, only the newest is continued: a note in a private folder of the user holds
the digest of its last entry.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from pathlib import Path

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_number
from deniable.errors import BudgetExceeded, Failure, InvalidParameter
from deniable.files import LockedFile, is_same_path
from deniable.ledger_entries import Book, Charge, DamagedLedger, LedgerEntry, seconds, stamped
from deniable.private_folders import private_folder

_WAIT_S = 10.0
_COST = "Nothing was sent or charged"
_CHARGED = "The charge is in the ledger, and nothing was sent"
_END_OF_DATES = 253_402_300_800  # of those that a ledger can write: the year 10,000
CLOCK_TOLERANCE_S = 60.0
"""By so much a clock may be set back without being refused; times in a ledger never go back."""


class Ledger:
    """What one person has spent, over all collections and streams; it refuses what would exceed her `limit`.

    The file is made when there is none. It belongs to one person on a device, or to an operator who publishes for many.
    ε adds up exactly, separately for each unit that is protected (a user, a value of a stream), and the limit holds for
    each. `largest` caps what any single collection may cost over its lifetime. `delta` limits δ, and is zero unless
    said. With `pins`, hashes of specifications (or the specifications), no other is answered.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> ledger = dn.Ledger(pathlib.Path(tempfile.mkdtemp(), "ledger.json"), limit=8.0)
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> report = shop.client(ledger=ledger).report("users", {"age": 31})
    >>> ledger.spent, ledger.left
    (Fraction(2, 1), Fraction(6, 1))
    """

    def __init__(
        self,
        path: str | PathLike[str],
        limit: float | None = None,
        *,
        largest: float | None = None,
        delta: float = 0.0,
        pins: Iterable[object] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._clock = Path(path), clock
        self._pins = frozenset(_hash_of(pin) for pin in pins)
        for name, number in (("limit", limit), ("largest", largest)):
            if number is not None:
                check_number(name, number, "must be a finite number above 0", "Use 8.", above=0)
        check_number("delta", delta, "must be a probability", "Use 0 for pure ε.", smallest=0, largest=1)
        with self._opened() as file:
            content = file.read()
            if content is not None:
                self._check_limits(self._book(content), limit, largest, delta)
            elif limit is None:
                raise InvalidParameter(f"the ledger {self._path.name!r}", "does not exist", "Give a limit to start it.")
            else:
                cap = None if largest is None else Fraction(largest)
                book = Book(secrets.token_hex(16), Fraction(limit), Fraction(delta), cap)
                file.write(book.to_bytes())

    def __repr__(self) -> str:
        return f"Ledger({self._path.name!r})"

    # Reading -------------------------------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every charge, in the order in which they were made."""
        return self._read().entries

    @property
    def limit(self) -> Fraction:
        """What may be spent in all, for each unit."""
        return self._read().limit_now

    @property
    def spent(self) -> Fraction:
        """The ε that was spent on the unit on which most was spent."""
        book = self._read()
        return max(book.spent(unit)[0] for unit in Unit)

    @property
    def left(self) -> Fraction:
        """The ε that is left for the unit on which most was spent."""
        book = self._read()
        return book.limit_now - max(book.spent(unit)[0] for unit in Unit)

    def spent_on(self, unit: Unit) -> tuple[Fraction, Fraction]:
        """ε and δ of all charges that protect this unit."""
        return self._read().spent(unit)

    def is_kept_in(self, path: str | PathLike[str]) -> bool:
        """Whether the ledger is this file: memories and queues need others."""
        return is_same_path(self._path, path)

    # Charging ------------------------------------------------------------------------------------------------------

    def charge(
        self,
        spending: Spending,
        *,
        what: str,
        key: str = "",
        specification: str = "",
        lifetime: Spending | None = None,
    ) -> bool:
        """Charge what is about to be sent or published, or refuse it. Returns once the charge is on the disk.

        A `key` is charged once: for the same bytes, or the same epoch of a stream, a second call costs nothing and
        returns False. Without a key every call charges.
        """
        charge = Charge(what, spending, key or secrets.token_hex(16), specification, lifetime=lifetime)
        with self.account() as account:
            account.check_pinned(specification)
            if not account.is_charged(charge.key):
                account.admit(charge)
            return account.charge(charge)

    def raise_limit(self, limit: float) -> None:
        """Set a higher limit, which the ledger notes like a charge. A lower one is refused."""
        check_number("limit", limit, "must be a finite number above 0", "Use 8.", above=0)
        with self.account() as account:
            account.raise_limit(Fraction(limit))

    @contextmanager
    def account(self) -> Iterator[Account]:
        """Be alone with the ledger: ask, draw, remember and charge before anybody else does."""
        with self._opened() as file:
            content = file.read()
            if content is None:
                raise Failure(
                    f"the ledger {self._path.name!r} was removed, so what was spent is not known. {_COST}. Restore it."
                )
            book = self._book(content)
            _check_newest(book)
            yield Account(file, book, self._pins, self._clock)

    def _opened(self) -> LockedFile:
        return LockedFile(self._path, "the ledger", cost=_COST, wait_s=_WAIT_S)

    def _read(self) -> Book:
        with self._opened() as file:
            return self._book(file.read() or b"")

    def _book(self, content: bytes) -> Book:
        try:
            return Book.from_bytes(content)
        except DamagedLedger:
            raise Failure(
                f"the ledger {self._path.name!r} is damaged, so what was spent is not known. {_COST}. "
                "Restore the file: a new one would count from zero."
            ) from None

    def _check_limits(self, book: Book, limit: float | None, largest: float | None, delta: float) -> None:
        given = {"limit": limit, "largest": largest, "delta": delta or None}
        kept = {"limit": book.limit_now, "largest": book.largest, "delta": book.delta}
        for name, number in given.items():
            if number is not None and kept[name] != Fraction(number):
                word = "none" if kept[name] is None else f"{float(kept[name] or 0):g}"
                problem = f"is {number:g}, and that of {self._path.name!r} is {word}"
                raise InvalidParameter(name, problem, "Give the same, or leave it out; raise_limit raises a limit.")


class Account:
    """A ledger that is locked: what may be spent, and what is."""

    def __init__(self, file: LockedFile, book: Book, pins: frozenset[str], clock: Callable[[], float]) -> None:
        self._file, self._book, self._pins, self._clock = file, book, pins, clock

    def check_pinned(self, specification: str) -> None:
        """Refuse a specification that is not pinned, if any is."""
        if self._pins and specification not in self._pins:
            raise InvalidParameter(
                f"the specification {specification[:16] or 'without a hash'}",
                "is not one of those that this ledger pins",
                "Pin its hash if you have read it and agree.",
            )

    def is_charged(self, key: str) -> bool:
        """Whether this draw was charged before."""
        return any(entry.charge.key == key for entry in self._book.entries)

    def answers(self, group: str) -> int:
        """How many charges belong to a group."""
        return sum(entry.charge.group == group for entry in self._book.entries)

    def admit(self, charge: Charge) -> None:
        """Refuse what would exceed a limit, before anything is drawn. Nothing is charged yet.

        A specification that asks for the first time must fit with all that it may ever cost.
        """
        self._check_clock()
        book, limit = self._book, self._book.limit_now
        whole = charge.lifetime or charge.spending
        if book.largest is not None and whole.epsilon > book.largest:
            raise BudgetExceeded(charge.what, whole.epsilon, book.largest, "the most that one collection may cost")
        known = charge.specification and any(
            entry.charge.specification == charge.specification for entry in book.entries
        )
        asked = charge.spending if known else whole
        epsilon, delta = book.spent(charge.spending.unit)
        if asked.epsilon > limit - epsilon:
            raise BudgetExceeded(charge.what, asked.epsilon, limit - epsilon, f"what is left of {float(limit):g}")
        if asked.delta > book.delta - delta:
            raise BudgetExceeded(charge.what, asked.delta, book.delta - delta, "the δ that is left", letter="δ")

    def charge(self, charge: Charge) -> bool:
        """Write the charge down, unless this draw was charged before; returns once it is on the disk."""
        if self.is_charged(charge.key):
            return False
        self.admit(replace(charge, lifetime=None))
        self._append(LedgerEntry(self._now(), charge))
        return True

    def raise_limit(self, limit: Fraction) -> None:
        """Note a higher limit."""
        self._check_clock()
        if limit < self._book.limit_now:
            now = float(self._book.limit_now)
            raise InvalidParameter(
                "limit", f"is below {now:g}, the limit of this ledger", "A limit can only be raised."
            )
        nothing = Spending(Unit.USER, Neighbours.ANY, Fraction(0))
        self._append(LedgerEntry(self._now(), Charge("a higher limit", nothing, secrets.token_hex(16)), limit))

    def _append(self, entry: LedgerEntry) -> None:
        book = self._book.with_entry(entry)
        self._file.write(book.to_bytes())
        self._book = book
        _note_newest(book)

    def _now(self) -> str:
        """The time of the next entry: by the clock, and never before that of the last."""
        times = [entry.time for entry in self._book.entries[-1:]]
        return stamped(max([self._clock(), *map(seconds, times)]))

    def _check_clock(self) -> None:
        now = self._clock()
        if not 0 <= now < _END_OF_DATES:  # not a number is neither
            raise Failure(f"the clock shows no time. {_COST}. Set it right.")
        for entry in self._book.entries[-1:]:
            if now < seconds(entry.time) - CLOCK_TOLERANCE_S:
                raise Failure(
                    f"the clock shows a time before the last charge ({entry.time}), so it was set back. {_COST}. "
                    "Set it right."
                )


def key_of(name: str, content: bytes) -> str:
    """The key under which bytes are charged, so that the same bytes are never charged twice.

    >>> key_of("week 3", b"report")[:8]
    'b5bc2a0a'
    """
    return hashlib.sha256(name.encode() + b"\0" + content).hexdigest()


def _hash_of(pin: object) -> str:
    digest = pin if isinstance(pin, str) else getattr(pin, "sha256", "")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise InvalidParameter("pins", "must be specifications or their hashes", "Use Collection.sha256.")
    return digest


def _note(book: Book, cost: str = _COST) -> LockedFile:
    folder = private_folder("ledgers", "note which copy of a ledger is the newest", cost)
    return LockedFile(folder / book.name, "the note", cost=cost, wait_s=_WAIT_S)


def _check_newest(book: Book) -> None:
    """Refuse a copy of a ledger from which another copy was continued."""
    with _note(book) as file:
        content = file.read()
        if not content:  # a power cut may leave a name without its content, which nobody waited for
            return
        if (match := re.fullmatch(rb"(\d{1,18}) ([0-9a-f]{64})\n", content)) is None:
            raise Failure(
                f"the note {str(file.path)!r} is damaged, so which copy of the ledger is the newest is not known. "
                f"{_COST}. Remove it if you are sure that this is the newest."
            )
    number, digest = int(match[1]), match[2].decode()
    if number >= len(book.digests) or book.digests[number] != digest:
        raise Failure(
            "this is an old copy of the ledger: another copy on this machine has more charges. "
            f"{_COST}. Use the newest one."
        )


def _note_newest(book: Book) -> None:
    with _note(book, _CHARGED) as file:
        # Not waited for: the file may be ahead of its note, and is, after a power cut.
        file.write(f"{len(book.entries)} {book.digests[-1]}\n".encode(), durable=False)
