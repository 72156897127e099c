"""Statements of a text: questions, and those that describe what there is: EXPLAIN, DESCRIBE, SHOW TABLES."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deniable.errors import QueryRefused
from deniable.queries.parsing.grammar import split_statements

QUESTION, EXPLAIN, DESCRIBE, SHOW = "question", "explain", "describe", "show"
ASKING = (QUESTION, EXPLAIN)
"""What is about people, and not about the specification."""
_FIRST_WORDS = re.compile(r"\s*(explain\s+analyze|explain|describe|desc|show)\b\s*(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: its kind, its text, and what it is about."""

    kind: str
    text: str
    about: str = ""


def statements_of(text: str) -> list[Statement]:
    """The statements of a text.

    >>> [statement.kind for statement in statements_of("SHOW TABLES; SELECT COUNT(*) FROM users;")]
    ['show', 'question']
    """
    return [_statement(piece) for piece in split_statements(text)]


def _statement(text: str) -> Statement:
    words = _FIRST_WORDS.match(text) if isinstance(text, str) else None
    if words is None:
        return Statement(QUESTION, text)
    word, rest = words[1].lower(), words[2].strip().rstrip(";").strip()
    if word.startswith("explain"):
        return Statement(EXPLAIN, text, rest)
    if word == "show":
        columns = re.fullmatch(r"(?:full\s+)?columns\s+(?:from|in)\s+(\S+)", rest, re.IGNORECASE)
        if columns is not None:
            return Statement(DESCRIBE, text, _last_name(columns[1]))
        if rest.lower() not in ("tables", "all tables"):
            raise QueryRefused("only tables are shown", "Write SHOW TABLES or SHOW COLUMNS FROM t.", text=text, start=0)
        return Statement(SHOW, text)
    if not rest:
        raise QueryRefused("DESCRIBE needs a table", "Write DESCRIBE users.", text=text, start=0)
    return Statement(DESCRIBE, text, _last_name(rest))


def _last_name(written: str) -> str:
    """The table that schema."table" names."""
    return written.split(".")[-1].strip('"`')
