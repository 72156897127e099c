"""The client on one device: truncate, round, encode, randomise. Standard library only.

    rows ── truncation ──▶ tau rows with a weight ── per part ──▶ view ── rounding ──▶ cell ── oracle ──▶ report

Everything before the oracle may look at the data: the view and the hash seed are drawn without looking, and the oracle
alone decides what gets out. Number, size and order of the reports follow from the specification. How many random
numbers are drawn, and below which bounds, follows from the specification and the views: it is the same for every row,
for any number of rows, and for every answer.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from deniable.errors import Failure, InvalidData, InvalidParameter
from deniable.exact import RandBelow, check_randbelow
from deniable.ledger import Ledger, key_of
from deniable.limits import LONGEST_TEXT
from deniable.simulation import SimulatedDraws, is_simulated
from deniable.tables.coins.assigned_coins import Coins, coins_of_slots, round_of_coins, scaled, user_bytes
from deniable.tables.coins.turns import SECRET_BYTES, turn_prefix, turns_of
from deniable.tables.device.lifetimes import Lifetime, StickyDraws
from deniable.tables.device.randomising import drawn_view, randomise
from deniable.tables.device.sent_reports import (
    FileMemory,
    ReportMemory,
    alone_with,
    memory_of,
    name_of_draw,
    name_of_draw_at,
)
from deniable.tables.reports.bundle import Bundle
from deniable.tables.reports.report import Report, kind_of
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.placing import WRONG_TYPE, Unplaceable
from deniable.tables.schema.pseudonyms import NAME_BYTES, PSEUDONYM, USER_IDS
from deniable.tables.schema.report_format import ASSIGNED, COVER, REPORT_BYTES
from deniable.tables.schema.rounds import MEMOISED, ROTATING
from deniable.tables.specification.runs import charge_of, largest_epsilon, run_tag
from deniable.tables.specification.specification import Specification

Row = Mapping[str, Any]
KEPT_FOR_LIFE = "life"
"""What the memory calls a collection's secret. Answers of a table of that name have a number after it."""
_OWN_NAME = "own name"
"""What the memory calls the pseudonym. A space keeps it apart from every table."""


class Client:
    """Reports of one user. When asked again it sends the same bytes, so that ε is spent once.

    `memory` holds what was sent: a path, or any mutable mapping from texts to texts. Without it the client remembers as
    long as it lives. An infinite ε, with which rows would leave as they are, needs `simulation`. Such reports carry
    another tag, so that a release refuses them. Threads may share a client, and clients may share a memory.

    A `ledger` is charged before anything is sent, and refuses what would exceed its limit before anything is drawn.
    Bytes that were sent before cost nothing.

    In a collection with assigned coins, `user` is the id under which the reports are sent: it decides their views and
    hash seeds. A memory belongs to one user.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> client = shop.client()
    >>> client.report("users", {"age": 31}) == client.report("users", {"age": 90})
    True
    """

    def __init__(
        self,
        collection: Specification,
        memory: ReportMemory | str | Path | None = None,
        randbelow: RandBelow = secrets.randbelow,
        *,
        user: str | int | None = None,
        simulation: bool = False,
        ledger: Ledger | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_randbelow(randbelow, largest_epsilon(collection), simulation=simulation)
        if user is not None and collection.ids == PSEUDONYM:
            raise InvalidParameter("user", "is given, and devices draw their own names here", "Leave it out.")
        self._user = _checked_user(user, needed=collection.coins == ASSIGNED)
        self.simulation = simulation or is_simulated(randbelow)
        self._collection = collection
        self._randbelow = SimulatedDraws(randbelow) if self.simulation else randbelow
        self._memory = memory_of(memory, ledger)
        self._alone = alone_with(self._memory)
        self._ledger, self._clock = ledger, clock
        self.rejected: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"Client(collection {self._collection.sha256[:8]}{'; simulation' * self.simulation})"

    def is_kept_in(self, path: str | Path) -> bool:
        """Whether its memory or its ledger is this file. A queue of uploads needs a file of its own.

        >>> client.is_kept_in("uploads.json")
        False
        """
        in_ledger = self._ledger is not None and self._ledger.is_kept_in(path)
        return in_ledger or (isinstance(self._memory, FileMemory) and self._memory.is_kept_in(path))

    @property
    def collection(self) -> Specification:
        """What its reports are made under."""
        return self._collection

    def report(self, table: str, row: Row, round: int | None = None) -> Report | None:  # noqa: A002 - as in SQL
        """The report for a table that takes one report per user.

        In a collection with rounds, `round` is the number of one of them, from 1 on. Rounds may be skipped, and a round
        asked twice repeats its bytes. None if the rounds rotate and this one is not hers: that costs nothing.

        >>> shop.client().report("users", {"age": 31}).slot
        0
        """
        if self._collection.reports_per_user(table) != 1:
            raise InvalidParameter(f"table {table!r}", "takes several reports per user", "Use client.reports.")
        return next(iter(self.reports(table, [row], round)), None)

    def reports(self, table: str, rows: Sequence[Row], round: int | None = None) -> list[Report]:  # noqa: A002
        """All reports of a user for a table: always the same number, whatever the rows are.

        Rows with values outside their domains, missing, or failing when they are read are left out. In a table with one
        row a random row replaces them, because a missing report would reveal that something was odd. `rejected` counts
        them, on the device only. Mistakes in the program are refused: an unknown table, an unknown attribute, a row
        that is not a mapping, a round that does not exist or has not begun.

        >>> orders = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500))
        >>> client = dn.Collection(orders, epsilon=2.0).client()
        >>> len(client.reports("orders", []))
        2
        """
        known = self._collection[table]
        if known.many is None and len(rows) != 1:
            raise InvalidData(f"table {table!r} takes exactly one row per user", "Pass that row.")
        number = self._checked_round(round)
        turn = round_of_coins(self._collection, number)
        coins = None if self._user is None else coins_of_slots(self._collection, table, self._user, turn)
        with self._alone():
            if not self._is_her_turn(number):
                return self._covers(table, number)
            asked = _Asked(self._key(table, number), known, rows, number, coins)
            answer = self._answer(asked) if self._ledger is None else self._charged(self._ledger, asked)
        return _read(answer)

    def missing(self, round: int | None = None) -> tuple[str, ...]:  # noqa: A002 - as in SQL
        """The tables that have not reported yet, in any client of this memory. A bundle needs all of them.

        >>> shop.client().missing()
        ('users',)
        """
        number = self._checked_round(round)
        with self._alone():
            turn = self._is_her_turn(number)
            names = [table.name for table in self._collection.tables if turn]
            return tuple(name for name in names if not self._may_leave(self._key(name, number)))

    def bundle(self, round: int | None = None) -> Bundle | None:  # noqa: A002
        """All reports of a user in one message, under the name that this memory has in this collection.

        For collections with `ids="pseudonym"`. Every table has to have reported before, by this client or by one of
        another service with the same memory. None in a round that is not hers.

        >>> hidden = shop.with_settings(ids="pseudonym").client()
        >>> report = hidden.report("users", {"age": 31})
        >>> hidden.bundle().reports == report.to_bytes()
        True
        """
        if self._collection.ids == USER_IDS:
            raise InvalidParameter("ids", "are those of users, and bundles are for pseudonyms", "Send the reports.")
        if lacking := self.missing(round):
            raise InvalidData(f"table {lacking[0]!r} has not reported yet", "A bundle holds all tables. Report it.")
        number = self._checked_round(round)
        with self._alone():
            if not self._is_her_turn(number):
                return None
            key = self._key(_OWN_NAME)
            if key not in self._memory:  # kept before it is used, so that it stays the only one
                self._memory[key] = self._randbelow(2 ** (8 * NAME_BYTES)).to_bytes(NAME_BYTES, "big").hex()
            sent = "".join(self._memory[self._key(table.name, number)] for table in self._collection.tables)
            return Bundle(self._memory[key], bytes.fromhex(sent))

    def _may_leave(self, key: str) -> bool:
        """Whether an answer may go into a bundle: a client with a ledger may have ended between memory and charge."""
        return key in self._memory and (name_of_draw_at(key) not in self._memory or f"{key}:paid" in self._memory)

    def _checked_round(self, number: int | None) -> int:
        """The round that is asked; 0 in a collection without rounds."""
        rounds = self._collection.rounds
        if rounds is None:
            if number is not None:
                raise InvalidParameter("round", "is given, and this collection has no rounds", "Leave it out.")
            return 0
        rounds.check(number)
        rounds.check_begun(int(number or 0), self._clock())
        return int(number or 0)

    def _key(self, *parts: str | int) -> str:
        """The name of something in the memory; what belongs to no round has no number."""
        return ":".join([self._collection.sha256, *(str(part) for part in parts if part)]) + (
            ":simulation" * self.simulation
        )

    def _secret(self) -> bytes:
        """What everything is drawn from that must come out the same in every round. It is kept before it is used."""
        key = self._key(KEPT_FOR_LIFE)
        if key not in self._memory:
            self._memory[key] = self._randbelow(2 ** (8 * SECRET_BYTES)).to_bytes(SECRET_BYTES, "big").hex()
        return bytes.fromhex(self._memory[key])

    def _is_her_turn(self, number: int) -> bool:
        rounds = self._collection.rounds
        if rounds is None or rounds.mode != ROTATING:
            return True
        secret = self._secret() if self._user is None else None
        return number in turns_of(
            rounds, turn_prefix(self._collection, secret), "" if self._user is None else self._user
        )

    def _covers(self, table: str, number: int) -> list[Report]:
        """What is sent in a round that is not hers: nothing, or reports of the same size that say so."""
        rounds, tag = self._collection.rounds, run_tag(self._collection, table, simulation=self.simulation)
        slots = self._collection.reports_per_user(table) if rounds is not None and rounds.cover else 0
        return [Report(slot, 0, 0, COVER, tag, coins=self._collection.coins, round=number) for slot in range(slots)]

    def _check_user(self, table: str, sent: Sequence[Report], coins: Sequence[Coins]) -> None:
        """Refuse to repeat what was sent for another user: a second answer would spend ε again."""
        design = self._collection.design_of(table)
        for report, assigned in zip(sent, coins, strict=True):
            drawn = drawn_view(design, report.slot % len(design.parts), self._randbelow, assigned)
            if (report.view, report.seed) != (drawn.view, scaled(assigned.seed, drawn.oracle.seeds)):
                raise Failure(
                    "the memory holds reports of another user. Nothing was sent. Use one memory per user; a person "
                    "who answers under two ids spends ε twice."
                )

    def _charged(self, ledger: Ledger, asked: _Asked) -> str:
        """The answer, once it is charged: the ledger is asked before a draw, and has the charge before this returns."""
        specification, name = self._collection, asked.table.name
        with ledger.account() as account:
            account.check_pinned(specification.sha256)
            what = f"collection {specification.name or specification.sha256[:8]}"
            charge = charge_of(account, specification, name, what, self._group(name))
            if asked.key not in self._memory:
                account.admit(charge)
            drawn = name_of_draw(self._memory, asked.key)
            sent = self._answer(asked)
            account.charge(replace(charge, key=drawn))
        if specification.ids == PSEUDONYM:  # whoever makes the bundle may not know this ledger
            self._memory[f"{asked.key}:paid"] = drawn
        return sent

    def _group(self, table: str) -> str:
        """The name of the permanent answers that rounds share, known to the ledger alone; empty without any."""
        rounds = self._collection.rounds
        if rounds is None or rounds.mode != MEMOISED:
            return ""
        return key_of(self._key(table), self._secret())

    def _answer(self, asked: _Asked) -> str:
        """What was sent, from memory; drawn and remembered the first time."""
        if asked.key not in self._memory:
            name, rounds = asked.table.name, self._collection.rounds
            encoded = [self._encoded(asked.table, row) for row in asked.rows]
            codes = [row for row in encoded if row is not None]
            design, life = self._collection.design_of(name), None
            if rounds is not None and rounds.mode == MEMOISED:
                life = Lifetime(name, self._collection.permanent_per_report(name), StickyDraws(self._secret()))
            reports = randomise(asked.table, design, codes, self._randbelow, asked.coins, life)
            tag = run_tag(self._collection, name, simulation=self.simulation)
            sent = [
                Report(slot, *fields, tag, coins=self._collection.coins, round=asked.number)
                for slot, fields in enumerate(reports)
            ]
            self._memory[asked.key] = b"".join(report.to_bytes() for report in sent).hex()
        elif asked.coins is not None:
            self._check_user(asked.table.name, _read(self._memory[asked.key]), asked.coins)
        return self._memory[asked.key]

    def _encoded(self, table: Table, row: Row) -> tuple[int, ...] | None:
        """The row as positions in the domains of the private attributes; None if a value is outside its domain."""
        if not isinstance(row, Mapping):
            raise InvalidData(
                f"a row of table {table.name!r} is not a mapping", f"Give {', '.join(table.private)} by name."
            )
        if _names(row) - set(table.attributes):
            raise InvalidData(
                f"a row of table {table.name!r} has an unknown attribute", f"It has {', '.join(table.attributes)}."
            )
        codes = []
        for name, domain in zip(table.private, table.domains, strict=True):
            try:
                codes.append(domain.encode(row.get(name)))
            except Unplaceable as problem:
                self.rejected[problem.reason] += 1
                return None
            except Exception:  # whatever a value does when it is read: silence would reveal that it is odd
                self.rejected[WRONG_TYPE] += 1
                return None
        return tuple(codes)


def _read(sent: str) -> list[Report]:
    """Reports as a memory holds them."""
    remembered = bytes.fromhex(sent)
    return [Report.from_bytes(remembered[i : i + REPORT_BYTES]) for i in range(0, len(remembered), REPORT_BYTES)]


class _Asked(NamedTuple):
    """A question to a device: the name of its answer in the memory, and what it is about."""

    key: str
    table: Table
    rows: Sequence[Row]
    number: int
    coins: Sequence[Coins] | None


def _checked_user(user: Any, *, needed: bool) -> str | int | None:
    """The user id that decides coins; None where devices draw them."""
    if user is None and needed:
        problem = "is missing: this collection assigns views and seeds by user id"
        raise InvalidParameter("user", problem, "Pass the id under which the reports are sent.")
    if user is not None and (kind_of(user) not in (int, str) or len(user_bytes(user)) > LONGEST_TEXT):
        problem = f"must be a 64-bit integer or a text of at most {LONGEST_TEXT:,} bytes"
        raise InvalidParameter("user", problem, "Pass the id under which the reports are sent.")
    return user if needed else None


def _names(row: Row) -> set[str]:
    """The attributes that a row names. Keys other than texts name nothing, and a row may fail to list them."""
    try:
        return {str(key) for key in row if isinstance(key, str)}
    except Exception:
        return set()
