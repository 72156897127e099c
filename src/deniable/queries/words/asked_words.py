"""Which words and prefixes a question names, and whether it asks for words that nobody listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.word_conditions import prefix_asked
from deniable.queries.question.listed_words import MOST_LISTED
from deniable.tables.schema.text import Text

_COMPARING = (exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike, exp.StartsWith, exp.Is)
_NESTING = (exp.With, exp.Subquery, exp.SetOperation)


@dataclass(frozen=True, slots=True)
class AskedWords:
    """What a question says about the words of an attribute."""

    words: tuple[str, ...]
    prefixes: tuple[str, ...]
    start: bytes | None
    """What the words have to begin with that are to be found; None if none are: all are named, or none are shown."""
    shows_named: bool
    """Whether GROUP BY shows exactly the words that are named."""


def asked_words(tree: Any, name: str, domain: Text) -> AskedWords:
    """The words and prefixes that a question names, as far as they are possible, and what it wants found.

    Texts that are compared with something else may be among the words: a word too many changes nothing.
    """
    literals = (str(node.this) for node in tree.find_all(exp.Literal) if node.is_string)
    patterns = (prefix_asked(node) for node in tree.find_all(exp.Like, exp.StartsWith))
    words = tuple(dict.fromkeys(text for text in literals if domain.holds(text)))
    prefixes = tuple(dict.fromkeys(text for text in patterns if text and domain.holds(text)))
    if len(words) + len(prefixes) > MOST_LISTED:
        raise QueryRefused(f"the question names more than {MOST_LISTED:,} words", "Ask about fewer at a time.")
    if not any(_shown(node, name) for node in tree.find_all(exp.Column)):
        return AskedWords(words, prefixes, None, False)
    conditions = [] if tree.find(*_NESTING) else list(_required(tree.args.get("where"), name))
    named = [node for node in conditions if isinstance(node, (exp.EQ, exp.In))]
    if named:
        return AskedWords(words, prefixes, None, True)
    starts = [text for node in conditions if (text := prefix_asked(node)) and domain.holds(text)]
    return AskedWords(words, prefixes, max(starts, key=len, default="").encode(), False)


def _shown(column: Any, name: str) -> bool:
    """Whether a column is an attribute of this name that stands outside of comparisons."""
    return column.name.casefold() == name.casefold() and not isinstance(column.parent, _COMPARING)


def _required(where: Any, name: str) -> Iterator[Any]:
    """The conditions on the attribute that every row has to meet: comparisons with words or a prefix."""
    pending = [] if where is None else [where.this]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Paren):
            pending.append(node.this)
        elif isinstance(node, exp.And):
            pending += [node.left, node.right]
        elif isinstance(node, (exp.EQ, exp.In, exp.Like, exp.StartsWith)):
            column = node.this
            if isinstance(column, exp.Column) and column.name.casefold() == name.casefold():
                yield node
