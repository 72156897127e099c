"""A few devices as they are in the field: each with its own client, memory, ledger and queue on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from deniable.cli.demo import shop
from deniable.cli.demo.collector_requests import asked
from deniable.collection import Collection
from deniable.errors import BudgetExceeded, Failure
from deniable.exact import RandBelow
from deniable.ledger import Ledger
from deniable.randomness import SeededSource, Source
from deniable.tables import Ordinal, Table
from deniable.tables.device.client import Client
from deniable.tables.device.uploader import Uploader
from deniable.tables.reports.report import Report
from deniable.tables.reports.upload_format import BINARY_REPORTS, binary_body

REAL_DEVICES = 20
ANN, LIAR = 0, 1
"""The device whose ledger is shown, and the one that lies."""
LIMIT = 5.0
_LEAST_OUTCOMES = 2  # every view has at least so many


@dataclass(frozen=True, slots=True)
class OnePerson:
    """What one person's ledger says after all weeks."""

    charges: tuple[tuple[str, float], ...]
    """On what, and how much ε."""
    spent: float
    limit: float
    refusal: str
    """What her device answers to a collection that asks for more than is left."""


@dataclass(frozen=True, slots=True)
class Lies:
    """What the collector answers to a device that lies about more than its rows."""

    other_view: str
    """It reports under a view of its own choice."""
    second_report: str
    """It reports once more, something else."""


class RealDevices:
    """The first people, each with `Client`, `Ledger` and `Uploader`."""

    def __init__(self, folder: Path, collection: Collection, address: str, source: Source, *, simulation: bool) -> None:
        self._collection, self._address, self._folder = collection, address, folder
        self._ledgers: list[Ledger] = []
        self._clients: list[Client] = []
        self._uploaders: list[Uploader] = []
        for number in range(REAL_DEVICES):
            own = folder / shop.user_id(number)
            own.mkdir(parents=True)
            ledger = Ledger(own / "ledger.json", limit=LIMIT)
            client = self._client(number, own / "memory.json", ledger, source, simulation)
            self._ledgers.append(ledger)
            self._clients.append(client)
            self._uploaders.append(
                Uploader(client, address, user=shop.user_id(number), queue=own / "queue.json", sleep=lambda _: None)
            )

    def _client(self, number: int, memory: Path, ledger: Ledger, source: Source, simulation: bool) -> Client:
        user = shop.user_id(number)
        if isinstance(source, SeededSource):
            draws: RandBelow = source.stream("demo", "device", number).simulated_randbelow
            return Client(self._collection, memory, draws, user=user, simulation=simulation, ledger=ledger)
        return self._collection.client(memory, user=user, ledger=ledger)

    def report(self, week: int, rows: shop.Shop) -> None:
        """Every device reports her week, and queues what is to be sent."""
        for number, uploader in enumerate(self._uploaders):
            own, orders = rows.rows_of(number)
            uploader.add("users", [own], round=week)
            uploader.add("orders", orders, round=week)

    @property
    def waiting(self) -> int:
        """Reports in the queues of all devices."""
        return sum(uploader.waiting for uploader in self._uploaders)

    def send(self) -> bool:
        """Try once to deliver what waits; whether all of it was answered."""
        answered = [uploader.send() for uploader in self._uploaders]
        return all(answered)

    @property
    def refused(self) -> int:
        """Reports that the collector refused."""
        return sum(uploader.refused.total() for uploader in self._uploaders)

    def one_person(self) -> OnePerson:
        """Ann's ledger, and what her device says to one more collection."""
        ledger = self._ledgers[ANN]
        charges = tuple((entry.charge.what, float(entry.charge.spending.epsilon)) for entry in ledger.entries)
        more = Collection(Table("visits", pages=Ordinal(1, 100)), epsilon=2.0, name="visits")
        try:
            more.client(ledger=ledger).report("visits", {"pages": 12})
        except BudgetExceeded as refusal:
            return OnePerson(charges, float(ledger.spent), float(ledger.limit), str(refusal))
        raise Failure("a ledger allowed more than its limit. The demonstration has ended. Please report this.")

    def lie(self, week_rows: Sequence[shop.Shop]) -> Lies:
        """Try to report under another view, and a second time; nothing of it is counted."""
        week, honest = next(self._turns(week_rows))
        other_view = Report(honest.slot, 1 - honest.view, honest.seed, honest.y, honest.tag, week, honest.coins)
        other_y = Report(
            honest.slot, honest.view, honest.seed, (honest.y + 1) % _LEAST_OUTCOMES, honest.tag, week, honest.coins
        )
        return Lies(self._answer(other_view), self._answer(other_y))

    def _turns(self, week_rows: Sequence[shop.Shop]) -> Iterator[tuple[int, Report]]:
        """The weeks in which the liar's device answers, with what it has sent about the first service."""
        for week, rows in enumerate(week_rows, 1):
            for report in self._clients[LIAR].reports("users", [rows.rows_of(LIAR)[0]], week):
                yield week, report

    def _answer(self, report: Report) -> str:
        body = binary_body([(shop.user_id(LIAR), report.to_bytes())])
        answer = asked(
            self._address, f"/v1/collections/{self._collection.name}/reports", body, content_type=BINARY_REPORTS
        )
        return next(iter(answer["refused"]), "accepted")


def left_of(person: OnePerson) -> float:
    """What a person may still spend.

    >>> left_of(OnePerson((), 4.0, 5.0, ""))
    1.0
    """
    return float(Fraction(person.limit) - Fraction(person.spent))
