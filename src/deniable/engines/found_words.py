"""The words that a question is about: those it names, and those that reports show to be frequent."""

from __future__ import annotations

from typing import Any

from deniable.arrays import Integers
from deniable.engines.engine import CountsSupports, Engine
from deniable.errors import QueryRefused
from deniable.queries.question.listed_words import texts_of
from deniable.queries.words.listing import Listed as Listed
from deniable.queries.words.listing import listed_for
from deniable.queries.words.prefix_walk import FoundWords, Supports, find_words
from deniable.tables.designs.views import View


class FoundInTables:
    """What walks down the trees of prefixes found, each done once. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._texts = texts_of(engine.collection)
        self._known: dict[tuple[str, str, bytes], FoundWords] = {}

    @classmethod
    def of(cls, engine: Engine) -> FoundInTables | None:
        """None if the collection has no texts."""
        return cls(engine) if texts_of(engine.collection) else None

    def listed(self, text: str) -> Listed:
        """The collection as a question sees it."""
        return listed_for(text, self._engine.collection, self.find)

    def find(self, table: str, attribute: str, start: bytes) -> FoundWords:
        """The frequent words of an attribute that begin with some bytes."""
        key = (table, attribute, start)
        if key not in self._known:
            self._known[key] = self._walk(table, self._texts[table, attribute], start)
        return self._known[key]

    def _walk(self, table: str, domain: Any, start: bytes) -> FoundWords:
        engine = self._engine
        if not isinstance(engine, CountsSupports):
            raise QueryRefused("this engine cannot look for words", "Name them: word IN ('news', 'mail').")

        def count(view: View, cells: Integers) -> Supports:
            if table not in engine.stores:
                return Supports(0 * cells, 0)
            total = engine.supports(table, view, cells)
            return Supports(total[:-1], int(total[-1]))

        people = engine.stores[table].rows if table in engine.stores else 0
        return find_words(domain, engine.collection.design_of(table), count, people, start=start)
