"""SQL from an argument, a file or stdin; one question, or several separated by `;`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from deniable.collection import Collection
from deniable.errors import BadInput, QueryRefused

_CLOSING = ("'", '"', "*/", "$$")
"""What may be missing at the end of a text that continues on the next line."""


def sql_text(sql: str | None, path: str | None = None) -> str:
    """The SQL, from wherever it is given. It may end with a semicolon."""
    if (sql is None) == (path is None):
        raise BadInput(
            "the SQL is missing or given twice. Nothing was read. Give it as an argument, with -f FILE, or - for stdin."
        )
    if sql is not None and sql.startswith("@"):
        path = sql[1:]
    if path is None:
        return sys.stdin.read() if sql == "-" else str(sql)
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        name = Path(path).name
        raise BadInput(f"file {name!r} cannot be read as text. Nothing was computed. Name a file of SQL.") from None


def questions(text: str) -> list[str]:
    """The questions of a text, without comments. A `;` inside quotes or a comment does not separate them.

    >>> questions("SELECT 'a;b'; -- and;\\nSELECT 2 /* ; */ + 1;;")
    ["SELECT 'a;b'", 'SELECT 2 + 1']
    """
    tokens = _tokens(text)
    if tokens is None:
        parts = (text[:end] for end, letter in enumerate(text, 1) if letter == ";")
        whole = [part for part in parts if (words := _tokens(part)) is not None and _complete(words)]
        number = 1 + len(questions(max(whole, key=len, default="")))
        raise QueryRefused(f"question {number}: a quotation or comment is not closed, or is malformed", "Close it.")
    texts, end = [""], 0
    for token in tokens:
        gap, word, end = text[end : token.start], text[token.start : token.end + 1], token.end + 1
        if _is_semicolon(token):
            texts.append("")
        elif texts[-1]:
            texts[-1] += (" " if gap.strip() else gap) + word  # between words, whatever is not blank is a comment
        else:
            texts[-1] = word
    return [question for question in texts if question]


def questions_about(collection: Collection, queries: str) -> list[str]:
    """The questions of a file (`-` for stdin). Each must be one that a collection can answer."""
    from deniable.queries.parsing.sql import parse

    asked = questions(sql_text("-" if queries == "-" else f"@{queries}"))
    if not asked:
        raise BadInput("there is no question. Nothing was computed. Write SELECTs separated by ;.")
    for number, question in enumerate(asked, 1):
        try:
            parse(question, collection)
        except QueryRefused as refusal:
            raise BadInput(f"question {number}: {refusal}") from None
    return asked


def ended(text: str) -> bool:
    """Whether a text that is being typed is empty, or ends with a semicolon outside quotes and comments.

    >>> ended("SELECT 1;  -- that's it"), ended("SELECT ';"), ended("SELECT 1 -- ;"), ended("-- well")
    (True, False, False, True)
    """
    tokens = _tokens(text)
    if tokens is None:  # if nothing can complete it, it counts as complete and will be refused
        return all(_tokens(text + closing) is None for closing in _CLOSING)
    return _complete(tokens)


def _complete(tokens: list[Any]) -> bool:
    return not tokens or _is_semicolon(tokens[-1])


def _is_semicolon(token: Any) -> bool:
    return bool(token.token_type.name == "SEMICOLON")  # which quoted text is not


def _tokens(text: str) -> list[Any] | None:
    """The tokens of a text with their positions; None if a quotation or comment is not closed."""
    import sqlglot

    try:
        return list(sqlglot.tokenize(text, read="duckdb"))
    except sqlglot.errors.TokenError:
        return None
