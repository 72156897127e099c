"""Questions to a collector over HTTP, from Python's standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from deniable.errors import BadInput, Failure
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.catalogue import CatalogueColumn, CatalogueTable

ARROW = "application/vnd.apache.arrow.stream"
NOTES, ANSWER_NAMES = b"deniable notes", b"deniable answer names"
"""Where an Arrow stream carries the notes of an answer and the names of its numbers, as JSON."""
_LONGEST_ANSWER_S = 120.0


class Unreachable(Failure):
    """A collector that gives no answer."""


class AskedCollector:
    """A collector at an address, and the key it is asked with."""

    def __init__(self, address: str, key: str) -> None:
        self._address, self._key = address.rstrip("/"), key

    def __repr__(self) -> str:
        return f"AskedCollector({self._address!r})"

    def answer(self, text: str, options: AnswerOptions) -> tuple[pa.Table, tuple[str, ...], tuple[str, ...]]:
        """The columns of an answer, its notes, and the names of its numbers."""
        body = json.dumps({"sql": text, "options": asdict(options)}).encode()
        table = pa.ipc.open_stream(self._fetched("/v1/sql", body, ARROW)).read_all()
        about = table.schema.metadata or {}
        notes, answers = (tuple(json.loads(about.get(part, b"[]"))) for part in (NOTES, ANSWER_NAMES))
        return table, notes, answers

    def tables(self) -> list[CatalogueTable]:
        """What there is to ask about."""
        entries: Any = json.loads(self._fetched("/v1/tables"))
        return [
            CatalogueTable(
                table["name"],
                table["comment"],
                tuple(
                    CatalogueColumn(column["name"], column["type"], column["comment"]) for column in table["columns"]
                ),
            )
            for table in entries["tables"]
        ]

    def _fetched(self, path: str, body: bytes | None = None, accept: str = "application/json") -> bytes:
        headers = {"Authorization": f"Bearer {self._key}", "Accept": accept, "Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, body, headers)  # noqa: S310 - http or https
        try:
            with urllib.request.urlopen(request, timeout=_LONGEST_ANSWER_S) as answer:  # noqa: S310 - http or https
                return bytes(answer.read())
        except urllib.error.HTTPError as problem:
            raise _refused(problem) from None
        except (OSError, ValueError):
            words = "the collector does not answer. Nothing was asked. Check the address, and whether it runs."
            raise Unreachable(words) from None


def _refused(problem: urllib.error.HTTPError) -> Exception:
    """What a collector says when it does not answer a question."""
    with problem:
        try:
            words = str(json.loads(problem.read())["message"])
        except (ValueError, KeyError, TypeError, OSError):
            words = f"the collector answers with status {problem.code}. Nothing was computed. Ask its operator."
    if problem.code == 400:
        return BadInput(words)
    return Unreachable(words)
