"""Delivers a device's reports to a collector: a durable queue, batches, retries. Standard library only.

    client ── reports, charged and remembered ──▶ queue on the disk ── batches ──▶ collector
                                                      ▲                               │
                                                      └── kept until it is answered ──┘

A report is in the queue until the collector has answered for it. Sending it twice is harmless, losing it is not. When
a device tries again depends on how often it has failed and on chance, never on data.
"""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from deniable.errors import BadInput, Failure, InvalidData, InvalidParameter
from deniable.files import LockedFile
from deniable.sealing import sealed, unsealed
from deniable.tables.device.client import Client
from deniable.tables.reports.upload_format import REPORT_LINES
from deniable.tables.schema.pseudonyms import PSEUDONYM

MOST_QUEUED = 10_000
REPORTS_AT_ONCE = 100
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 3600.0
_TIMEOUT_S = 30.0
_LARGEST_ANSWER = 2**20
_QUEUE_SEAL_KEY = b"queue"  # the seal is for accidents
_LATER = frozenset({408, 425, 429, 500, 502, 503, 504, 507})


class Uploader:
    """Sends what a client reports to a collector, once it can be reached.

    `url` is the collector's address and `user` the id under which reports are sent; it is left out, like the token,
    where devices send bundles under names of their own (`ids="pseudonym"`). `queue` is a file, one for each
    collection of a device; what is in it survives a restart. `client` should have a memory on the disk too, and a
    ledger: a report comes into the queue only after both have been written. With `delay_s`, every delivery first waits
    a random time up to that, so that it does not show when something happened.

    >>> import deniable as dn, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, name="shop")
    >>> client = shop.client(folder / "memory.json")
    >>> uploader = Uploader(client, "http://127.0.0.1:9", user="7", queue=folder / "queue.json")
    >>> uploader.add("users", [{"age": 31}])
    >>> uploader.send(), uploader.waiting
    (False, 1)
    """

    def __init__(
        self,
        client: Client,
        url: str,
        token: str | None = None,
        *,
        user: str | int | None = None,
        queue: str | Path,
        collection: str | None = None,
        delay_s: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidParameter("url", "is not an address", "Write https://collector.example.")
        name = collection or client.collection.name
        if name is None:
            raise InvalidParameter("collection", "has no name", "Pass collection=, the collector's name for it.")
        self._bundles = client.collection.ids == PSEUDONYM
        if self._bundles and (user is not None or token is not None):
            problem = "and token would say whose a pseudonym is"
            raise InvalidParameter("user", problem, "Leave both out: uploads under pseudonyms are open, or mixed.")
        if user is None and not self._bundles:
            raise InvalidParameter("user", "is missing", "Pass the id under which the reports are sent.")
        if client.is_kept_in(queue):
            raise InvalidParameter("queue", "is the file of the memory or of the ledger", "Use a file of its own.")
        self._client, self._parts, self._token, self._user = client, parts, token, user if user is not None else ""
        self._path = f"{parts.path.rstrip('/')}/v1/collections/{quote(name, safe='')}/reports"
        self._queue, self._delay_s, self._sleep = Path(queue), delay_s, sleep
        self._of = client.collection.sha256
        self.refused: Counter[str] = Counter()
        """Reports that the collector refused for good, by reason."""

    @property
    def waiting(self) -> int:
        """Reports in the queue."""
        with self._locked() as file:
            return len(self._entries(file))

    def add(
        self,
        table: str,
        rows: Sequence[Mapping[str, Any]],
        public: Mapping[str, Any] | None = None,
        *,
        round: int | None = None,  # noqa: A002 - as in the client
    ) -> None:
        """Report rows, and put the reports into the queue. The same bytes are not queued twice.

        Under pseudonyms the queue gets one bundle, once every table has reported, whichever service was the last.
        """
        reports = self._client.reports(table, rows, round)
        if self._bundles:
            bundle = None if self._client.missing(round) else self._client.bundle(round)
            lines = [] if bundle is None else [bundle.to_json()]
        else:
            lines = [report.to_json(self._user, table, public) for report in reports]
        with self._locked() as file:
            queued = self._entries(file)
            new = [line for line in lines if line not in queued]
            if len(queued) + len(new) > MOST_QUEUED:
                raise Failure(
                    f"{MOST_QUEUED:,} reports wait already. Nothing was queued. Deliver them first; asking again "
                    "repeats the same bytes and costs nothing."
                )
            if new:
                file.write(self._written(queued + new))

    def send(self) -> bool:
        """Try once to deliver what waits; whether all of it was answered."""
        while True:
            with self._locked() as file:
                batch = self._entries(file)[:REPORTS_AT_ONCE]
            if not batch:
                return True
            answer = self._post("\n".join(batch).encode())
            if answer is None:
                return False
            self.refused.update(failed["reason"] for failed in answer)
            with self._locked() as file:
                answered = set(batch)
                file.write(self._written([line for line in self._entries(file) if line not in answered]))

    def deliver(self, attempts: int = 10) -> bool:
        """Try several times, with longer and longer pauses of random length; whether all was answered."""
        self._sleep(_random_share() * self._delay_s)
        for attempt in range(attempts):
            if self.send():
                return True
            if attempt < attempts - 1:
                self._sleep(wait_s(attempt, self._asked_wait_s))
        return False

    _asked_wait_s = 0.0

    def _post(self, body: bytes) -> list[dict[str, Any]] | None:
        """The reports that failed; None if there was no answer, or the collector asks to come back later."""
        headers = {"Content-Type": REPORT_LINES}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._connection()
        try:
            connection.request("POST", self._path, body, headers)
            response = connection.getresponse()
            content = response.read(_LARGEST_ANSWER)
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        if response.status == 200:
            return _failed(content)
        if response.status in _LATER:
            asked = response.headers.get("Retry-After", "")
            self._asked_wait_s = float(asked) if asked.isdecimal() and len(asked) < 8 else 0.0
            return None
        if response.status in (401, 403):
            raise BadInput("the collector refused the token. Reports stay in the queue. Get a new token.")
        raise Failure(
            f"the collector refused the upload with status {response.status}. Reports stay in the queue. "
            "Check the address and the version of both sides."
        )

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)

    def _locked(self) -> LockedFile:
        return LockedFile(self._queue, "the queue", cost="Nothing was sent", wait_s=10.0)

    def _written(self, lines: list[str]) -> bytes:
        return json.dumps(sealed({"lines": lines, "collection": self._of}, _QUEUE_SEAL_KEY)).encode()

    def _entries(self, file: LockedFile) -> list[str]:
        """What waits. Reports of two collections in one queue would reach one collector, and link two names."""
        content = file.read()
        if content is None:
            return []
        try:
            queued = unsealed(json.loads(content), _QUEUE_SEAL_KEY, "queue")
            lines, of = [str(line) for line in queued["lines"]], queued.get("collection", self._of)
        except (ValueError, KeyError, TypeError, RecursionError, InvalidData):
            raise Failure(
                "the queue is damaged. Nothing was sent. Remove the file and add the rows again: with the device's "
                "memory the same bytes are sent, and nothing is spent."
            ) from None
        if lines and of != self._of:
            raise Failure(
                f"the queue {self._queue.name!r} holds reports of another collection. Nothing was sent or queued. "
                "Use one queue per collection; reports are drawn and remembered, so asking again costs nothing."
            )
        return lines

    def __repr__(self) -> str:
        return f"Uploader({self._parts.scheme}://{self._parts.netloc.rpartition('@')[2]})"


def wait_s(failures: int, asked_s: float = 0.0) -> float:
    """How long to wait after so many failures: a random time up to twice as long as before, and what was asked for.

    >>> 5.0 <= wait_s(0, asked_s=5.0) <= 6.0
    True
    """
    return min(asked_s, LONGEST_WAIT_S) + _random_share() * min(FIRST_WAIT_S * 2.0**failures, LONGEST_WAIT_S)


def _random_share() -> float:
    return secrets.randbelow(2**32) / 2**32


def _failed(content: bytes) -> list[dict[str, Any]] | None:
    """What an answer lists as failed; None if it cannot be read: then the reports are sent again."""
    try:
        answer = json.loads(content)
        failed = [{"reason": str(entry["reason"])[:40]} for entry in answer["failed"]]
        return failed if isinstance(answer["accepted"], int) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
