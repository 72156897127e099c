"""The words that a question is about: a collection in which they stand for texts."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.grammar import read_question
from deniable.queries.question.listed_words import ListedWords, texts_of, with_listed
from deniable.queries.words.asked_words import asked_words
from deniable.queries.words.prefix_walk import FoundWords
from deniable.tables.specification.specification import Specification

Find = Callable[[str, str, bytes], FoundWords]
Listed = tuple[Specification, tuple[str, ...]]
"""A collection as a question sees it, and what a reader of the answer should know about its words."""


def listed_for(text: str, collection: Specification, find: Find) -> Listed:
    """The collection with the words that a question is about instead of texts."""
    try:
        tree = read_question(text)
    except QueryRefused:
        tree = exp.select()  # the question is refused when it is read
    named = {table.name.casefold() for table in tree.find_all(exp.Table)}
    listed, notes = {}, []
    for (table, attribute), domain in texts_of(collection).items():
        asked = asked_words(tree, attribute, domain)
        words, shown = asked.words, asked.words if asked.shows_named else ()
        if asked.start is not None and table.casefold() in named:
            walked = find(table, attribute, asked.start)
            shown = tuple(word.word for word in walked.words)
            words = (*words, *shown)
            notes.append(walked.note)
        listed[table, attribute] = ListedWords(domain, words, asked.prefixes, shown)
    return with_listed(collection, listed), tuple(notes)
