"""A text attribute as one question sees it: the words and prefixes that the question or an answer names, and the rest.

Every other word counts as one of the rest. Values of these pieces are texts that SQL can compare: a word is itself, and
a zero byte, which no word holds, ends what stands for all other words with a prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.tables.schema.attributes import Categorical, Table
from deniable.tables.schema.text import Text
from deniable.tables.specification.specification import Specification

REST_OF_WORDS = "\0"
"""What stands for all words that are not listed; after a prefix, for those that begin with it."""
MOST_LISTED = 5_000
"""Words and prefixes that one question may list."""


class ListedWords(Categorical):
    """Words, prefixes, and the rest, which comes last. `shown` are the words that GROUP BY shows."""

    __slots__ = ("nodes", "parents", "shown", "text")

    text: Text
    nodes: tuple[bytes, ...]
    """The bytes of each piece; a word that is shorter than the longest ends with a zero."""
    parents: Integers
    """For each piece the one that it is a part of: the longest prefix it begins with, or the rest."""
    shown: tuple[str, ...]

    def __init__(self, text: Text, words: Iterable[str], prefixes: Iterable[str], shown: Iterable[str]) -> None:
        words = tuple(dict.fromkeys(words))
        starts = sorted({prefix.encode() for prefix in prefixes}, key=len)
        ends = [word.encode() + (b"\0" if len(word.encode()) < text.max_length else b"") for word in words]
        nodes = (*ends, *starts, b"")
        rest, parents = len(nodes) - 1, []
        for number, node in enumerate(nodes):
            inside = [
                index
                for index, prefix in enumerate(starts, len(ends))
                if node.startswith(prefix) and (number < len(ends) or node != prefix)
            ]
            parents.append(inside[-1] if inside else rest)
        values = (*words, *(prefix.decode(errors="replace") + REST_OF_WORDS for prefix in starts), REST_OF_WORDS)
        fields = {
            "values": values,
            "_codes": {value: code for code, value in enumerate(values)},
            "map": {},
            "other": None,
            "missing": None,
            "text": text,
            "nodes": nodes,
            "parents": np.array(parents),
            "shown": tuple(shown),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def groups(self) -> Integers:
        """For every piece the number of its group among the shown words; −1 if it is in none."""
        numbers = {word: number for number, word in enumerate(self.shown)}
        return np.array([numbers.get(value, -1) for value in self.values], dtype=np.int64)


def with_listed(collection: Specification, listed: Mapping[tuple[str, str], ListedWords]) -> Specification:
    """The collection as a question sees it: listed words instead of texts."""
    tables = tuple(_with_words(table, listed) for table in collection.tables)
    return type(collection)._like(collection, tables=tables, _by_name={table.name: table for table in tables})


def _with_words(table: Table, listed: Mapping[tuple[str, str], ListedWords]) -> Table:
    attributes: dict[str, Any] = {
        name: listed.get((table.name, name), meaning) for name, meaning in table.attributes.items()
    }
    if attributes == dict(table.attributes):
        return table
    owned = {} if table.owner is None or table.key is None else {"owner": table.owner, "key": table.key}
    return Table(table.name, table.many, table.tau, **attributes, **owned)


def texts_of(collection: Specification) -> dict[tuple[str, str], Text]:
    """The text attributes of a collection, by table and name."""
    return {
        (table.name, name): domain
        for table in collection.tables
        for name, domain in zip(table.private, table.domains, strict=True)
        if isinstance(domain, Text)
    }
