"""Rows that have settled: runs of pages, each run sorted by key, and how a key is found in them.

    runs  (number, rows, filter)                                a filter says which keys may be in a run
    pages (number, run, table_, round, uid, slot, rows, content)   from this key on; at most `PAGE_ROWS` rows

A run is written in one commit and never changed. Keys of different runs differ, and no run says in which order its rows
arrived.
"""

from __future__ import annotations

import sqlite3
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from deniable.stores.collector.key_digests import Digests, digests, part_number
from deniable.stores.collector.run_filters import RunFilters, run_filter
from deniable.stores.collector.upload import ROWS_AT_ONCE, Part
from deniable.stores.collector.upload_columns import DamagedContent, RowColumns, joined, packed, unpacked

PAGE_ROWS = 512
RUN_SCHEMA = (
    "CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, rows INTEGER NOT NULL, filter BLOB NOT NULL)",
    """CREATE TABLE pages (number INTEGER PRIMARY KEY, run INTEGER NOT NULL, table_ TEXT NOT NULL,
      round INTEGER NOT NULL, uid BLOB NOT NULL, slot INTEGER NOT NULL, rows INTEGER NOT NULL,
      content BLOB NOT NULL)""",
    "CREATE INDEX pages_by_key ON pages (table_, round, uid, slot, rows, run)",
)
_ADD_PAGE = "INSERT INTO pages VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)"
_CONTENT = "SELECT content FROM pages WHERE number = ?"
_DIRECTORY = "SELECT number, table_, round, uid, slot FROM pages WHERE run = ? ORDER BY table_, round, uid, slot"
_PAGES_OF_PART = "SELECT number, uid, slot, rows FROM pages WHERE table_ = ? AND round = ? ORDER BY uid, slot"

Address = tuple[str, int, bytes, int]
"""Table, round, id and slot, in the order of pages."""


class _Run(NamedTuple):
    firsts: list[Address]
    pages: list[int]


class Found(NamedTuple):
    """What is kept under a key."""

    report: bytes
    text: bytes


class SettledRuns:
    """All runs of a store, as one process knows them: their filters, and where their pages begin."""

    def __init__(self) -> None:
        self.filters, self._runs = RunFilters(), list[_Run]()
        self.last = 0

    def load(self, connection: sqlite3.Connection) -> None:
        """Learn about runs that were added since the last time."""
        newer = "SELECT number, filter FROM runs WHERE number > ? ORDER BY number"
        for number, content in connection.execute(newer, (self.last,)).fetchall():
            pages = connection.execute(_DIRECTORY, (number,)).fetchall()
            self.filters.append(_read_filter(content))
            self._runs.append(_Run([tuple(page[1:]) for page in pages], [page[0] for page in pages]))
            self.last = number

    def find(self, connection: sqlite3.Connection, run: int, address: Address) -> Found | None:
        """What a run holds under a key."""
        firsts, pages = self._runs[run]
        position = bisect_right(firsts, address) - 1
        if position < 0 or firsts[position][:2] != address[:2]:
            return None
        rows = unpacked(connection.execute(_CONTENT, (pages[position],)).fetchone()[0])
        at = rows.before(address[2:])
        if at == len(rows) or rows.key(at) != address[2:]:
            return None
        return Found(rows.reports[at].as_py(), rows.texts[at].as_py())


def add_run(connection: sqlite3.Connection, secret: bytes, parts: Mapping[Part, RowColumns]) -> None:
    """Write rows as the next run."""
    held, total = [], sum(map(len, parts.values()))
    cursor = connection.execute("INSERT INTO runs VALUES (NULL, ?, x'')", (total,))
    run = cursor.lastrowid
    for part, unsorted in sorted(parts.items()):
        rows = unsorted.sorted()
        held.append(_digests_of(secret, part, rows))
        for first in range(0, len(rows), PAGE_ROWS):
            page = rows.slice(first, min(first + PAGE_ROWS, len(rows)))
            connection.execute(_ADD_PAGE, (run, *part, *page.key(0), len(page), packed(page)))
    content = run_filter(np.concatenate(held)).tobytes()
    written = zlib.crc32(content).to_bytes(4, "little") + content
    connection.execute("UPDATE runs SET filter = ? WHERE number = ?", (written, run))


def _digests_of(secret: bytes, part: Part, rows: RowColumns) -> Digests:
    return digests(secret, np.full(len(rows), part_number(secret, part), dtype=np.uint64), rows)


def _read_filter(content: bytes) -> Digests:
    if len(content) <= 4 or zlib.crc32(memoryview(content)[4:]) != int.from_bytes(content[:4], "little"):
        raise DamagedContent("the filter is another one")
    return np.frombuffer(content, dtype=np.uint64, offset=4)


def newer_pages(
    connection: sqlite3.Connection, part: Part, after: int, most: int
) -> tuple[list[RowColumns], int | None]:
    """The first pages of a table and round that were written after one; if there are more, the last one's number."""
    # By the index of keys, every call would read and sort the content of all pages of the part.
    newer = """SELECT number, content FROM pages NOT INDEXED
      WHERE number > ? AND table_ = ? AND round = ? ORDER BY number LIMIT ?"""
    pages = connection.execute(newer, (after, *part, most + 1)).fetchall()
    read = [unpacked(content) for _, content in pages[:most]]
    return read, pages[most - 1][0] if len(pages) > most else None


def in_order(connection: sqlite3.Connection, part: Part, recent: RowColumns) -> Iterator[RowColumns]:
    """All rows of a table and round, sorted; `recent` are those that are in no run, sorted.

    Pages are read in the order of their first keys, some at a time. When the next page begins at a key, everything
    before that key has been read.
    """
    pages = connection.execute(_PAGES_OF_PART, part).fetchall()
    waiting: list[RowColumns] = []
    rows = 0
    for index, (number, _, _, count) in enumerate(pages):
        waiting.append(unpacked(connection.execute(_CONTENT, (number,)).fetchone()[0]))
        rows += count
        if rows >= 4 * ROWS_AT_ONCE and index + 1 < len(pages):
            following = (pages[index + 1][1], pages[index + 1][2])
            cut = recent.before(following)
            merged = joined([*waiting, recent.slice(0, cut)]).sorted()
            ready = merged.before(following)
            yield merged.slice(0, ready)
            recent, waiting = recent.slice(cut, len(recent)), [merged.slice(ready, len(merged))]
            rows = 0
    rest = joined([*waiting, recent])
    yield rest.sorted() if waiting else rest


def run_damage(connection: sqlite3.Connection, secret: bytes) -> str | None:
    """What is wrong with runs: pages that cannot be read, are out of order, or are missing; filters that do not fit."""
    for number, count, content in connection.execute("SELECT number, rows, filter FROM runs").fetchall():
        held, before, total = RunFilters(), None, 0
        held.append(_read_filter(content))
        for page, table, round_, uid, slot in connection.execute(_DIRECTORY, (number,)).fetchall():
            rows = unpacked(connection.execute(_CONTENT, (page,)).fetchone()[0])
            keys = [(table, round_, *rows.key(row)) for row in range(len(rows))]
            if keys[0] != (table, round_, uid, slot) or (before is not None and before >= keys[0]):
                return "its pages are out of order"
            if any(key >= following for key, following in pairwise(keys)):
                return "a page is out of order"
            if len(held.may_hold(_digests_of(secret, (table, round_), rows))) < len(rows):
                return "a filter does not fit its run"
            before, total = keys[-1], total + len(rows)
        if total != count:
            return "pages are missing"
    return None
