"""Devices that report over HTTP and try again until they are answered.

Most of them are simulated together: `Collection.perturb` draws their reports in bulk, from the same law as a device
does, and a request carries those of a hundred devices. They try again as `Uploader` does, only sooner.
"""

from __future__ import annotations

import http.client
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from deniable.cli.demo import shop
from deniable.cli.demo.collector_requests import answer_of, open_connection
from deniable.collection import Collection
from deniable.errors import Failure
from deniable.randomness import Source
from deniable.tables.reports.upload_format import BINARY_REPORTS
from deniable.tables.schema.report_format import COIN_MODES, FIELD_BYTES, REPORT_COLUMNS, REPORT_VERSION
from deniable.tables.specification.runs import run_tag

DEVICES_AT_ONCE = 100
"""In one request."""
_CONNECTIONS = 6
_SEND_AGAIN = (0, 429, 503, 507)
"""Answers after which the same bytes are sent again; 0 is none."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 2.0
_GIVING_UP_S = 180.0
_ID_BYTES = len(shop.user_id(0))
_REPORT_FIELDS = [(name, f">u{size}") for name, size in FIELD_BYTES.items()]
_LINE = np.dtype([("length", ">u2"), ("uid", f"S{_ID_BYTES}"), *_REPORT_FIELDS])


def bodies(
    collection: Collection, week: int, people: shop.Shop, first: int, source: Source, *, simulation: bool
) -> list[bytes]:
    """What the devices from number `first` on send in a week, in requests. Only those whose turn it is send."""
    users, orders = people.from_person(first)
    noise = source.stream("demo", "week", week)
    reports = collection.perturb(
        users=users.drop_columns(["city"]), orders=orders, round=week, source=noise, simulation=simulation
    )
    parts = [_lines(collection, name, table, week, simulation) for name, table in reports.tables.items()]
    lines = np.frombuffer(
        b"".join([part.tobytes() for part in parts]), _LINE
    )  # joined by numpy, bytes would be swapped
    lines = lines[np.argsort(lines["uid"], kind="stable")]
    data, size = lines.tobytes(), _LINE.itemsize * DEVICES_AT_ONCE * len(reports.tables)
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def reports_in(requests: Iterable[bytes]) -> int:
    """How many reports requests carry."""
    return sum(map(len, requests)) // _LINE.itemsize


def _lines(
    collection: Collection, name: str, table: pa.Table, week: int, simulation: bool
) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    lines = np.zeros(table.num_rows, dtype=_LINE)
    lines["length"], lines["uid"] = _ID_BYTES, np.array(table["uid"].to_numpy(zero_copy_only=False), f"S{_ID_BYTES}")
    lines["version"], lines["coins"] = REPORT_VERSION, COIN_MODES.index(collection.coins)
    lines["round"], lines["tag"] = week, run_tag(collection, name, simulation=simulation)
    for column in REPORT_COLUMNS:
        lines[column] = table[column].to_numpy()
    return lines


@dataclass(slots=True)
class DeliveryCounts:
    """What the collector has answered, which threads count together."""

    accepted: int = 0
    repeated: int = 0
    """Sent again, because the answer did not arrive, and recognised."""
    refused: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    unanswered: int = 0
    """Requests that had to be sent again."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, answer: dict[str, object]) -> None:
        """Count an answer."""
        with self._changed:
            self.accepted += int(str(answer["accepted"]))
            self.repeated += int(str(answer["repeated"]))
            self.refused.update(dict(answer["refused"]))  # type: ignore[call-overload]
            self._changed.notify_all()

    def add_attempt(self, *, answered: bool) -> None:
        """Count a request."""
        with self._changed:
            self.attempts += 1
            self.unanswered += not answered

    def wait_for(self, acknowledged: int) -> None:
        """Wait until so many reports were acknowledged."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.accepted + self.repeated >= acknowledged, _GIVING_UP_S):
                raise Failure("devices are not answered. The demonstration has ended. Run it again.")


class Fleet:
    """Devices that deliver over several connections, in threads. As a context it ends with all of them."""

    def __init__(self, address: str, path: str, requests: list[bytes]) -> None:
        self.delivery = DeliveryCounts()
        self._address, self._path, self._requests = address, path, deque(requests)
        self._ended, self._failed = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(_CONNECTIONS)]

    def __enter__(self) -> Fleet:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def finish(self) -> DeliveryCounts:
        """Wait until everything was answered."""
        for thread in self._threads:
            thread.join(_GIVING_UP_S)
        if self._failed.is_set() or self._requests or any(thread.is_alive() for thread in self._threads):
            raise Failure("devices are not answered. The demonstration has ended. Run it again.")
        return self.delivery

    def _run(self) -> None:
        connection = open_connection(self._address)
        try:
            while not self._ended.is_set():
                try:
                    body = self._requests.popleft()
                except IndexError:
                    return
                if not self._deliver(connection, body):
                    self._failed.set()
                    return
        finally:
            connection.close()

    def _deliver(self, connection: http.client.HTTPConnection, body: bytes) -> bool:
        """Send the same bytes until they are answered."""
        began, wait_s = time.monotonic(), _FIRST_WAIT_S
        while not self._ended.is_set() and time.monotonic() - began < _GIVING_UP_S:
            try:
                status, answer = answer_of(connection, self._path, body, BINARY_REPORTS)
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()  # opens again with the next request
                status, answer = 0, {}
            self.delivery.add_attempt(answered=status == 200)
            if status == 200:
                self.delivery.add(answer)
                return True
            if status not in _SEND_AGAIN:
                return False
            self._ended.wait(wait_s * secrets.randbelow(1000) / 1000)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        return False
