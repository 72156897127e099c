"""A database over folders that grow: files that arrived are read at the next question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.local.report_sources import ReportSource
from deniable.queries.answers.answer_options import DEFAULTS, AnswerOptions
from deniable.queries.answers.result import Result
from deniable.single_database import Database


class GrowingDatabase(Database):
    """A database that looks, before every question, whether its folders have changed. Threads may share it.

    Looking takes names, sizes and times of files; they are read again only if something changed. `plan`, `explain` and
    others answer about what was read last.
    """

    __slots__ = ("_seen", "_source", "_turn")

    def __init__(self, source: ReportSource) -> None:
        self._source, self._turn = source, Lock()
        self._seen: Any = source.state()
        super().__init__(source.open())

    def with_dimensions(self, dimensions: Mapping[str, DimensionTable]) -> GrowingDatabase:
        """The same database, with public tables to join."""
        self.dimensions = dimensions
        return self

    def refresh(self) -> bool:
        """Read what has arrived, now. See `Database.refresh`."""
        with self._turn:
            state = self._source.state()
            if state == self._seen:
                return False
            engine, dimensions = self._source.open(), self.dimensions
            super().__init__(engine, dimensions)
            self._seen = state
            return True

    def statements(self, text: str, options: AnswerOptions = DEFAULTS) -> Iterator[Result]:
        """Answer every statement of a text, from all reports that have arrived. See `Database.statements`."""
        self.refresh()
        yield from super().statements(text, options)
