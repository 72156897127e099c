"""SQL as people hand it in: as an argument, in a file, on stdin; one question or several with `;` between them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from deniable.collection import Collection
from deniable.errors import BadInput, QueryRefused

_CLOSING = ("'", '"', "*/", "$$")
"""What may be missing at the end of a text that goes on in the next line."""


def sql_text(sql: str | None, path: str | None = None) -> str:
    """The SQL, wherever it is; a semicolon at its end may stay."""
    if (sql is None) == (path is None):
        raise BadInput(
            "no SQL is given, or twice. Nothing was read. Give it as an argument, with -f FILE, or - for stdin."
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
    """The questions of a text without their comments; a `;` in quotes or in a comment parts nothing.

    >>> questions("SELECT 'a;b'; -- and;\\nSELECT 2 /* ; */ + 1;;")
    ["SELECT 'a;b'", 'SELECT 2 + 1']
    """
    tokens = _tokens(text)
    if tokens is None:
        parts = (text[:place] for place, letter in enumerate(text, 1) if letter == ";")
        whole = [part for part in parts if (words := _tokens(part)) is not None and _complete(words)]
        number = 1 + len(questions(max(whole, key=len, default="")))
        raise QueryRefused(f"question {number}: a quotation or a comment has no end, or is malformed", "Mend it.")
    found, end = [""], 0
    for token in tokens:
        gap, word, end = text[end : token.start], text[token.start : token.end + 1], token.end + 1
        if _is_semicolon(token):
            found.append("")
        elif found[-1]:
            found[-1] += (" " if gap.strip() else gap) + word  # what stands between words and is not blank is a comment
        else:
            found[-1] = word
    return [one for one in found if one]


def questions_about(collection: Collection, queries: str) -> list[str]:
    """The questions of a file (`-`: of stdin), each of which can be asked of a collection."""
    from deniable.queries.parsing.sql import parse

    found = questions(sql_text("-" if queries == "-" else f"@{queries}"))
    if not found:
        raise BadInput("there is no question. Nothing was computed. Write SELECTs with a ; between them.")
    for number, question in enumerate(found, 1):
        try:
            parse(question, collection)
        except QueryRefused as refusal:
            raise BadInput(f"question {number}: {refusal}") from None
    return found


def ended(text: str) -> bool:
    """Whether a text that is being typed ends with a semicolon, outside of quotes and comments, or says nothing.

    >>> ended("SELECT 1;  -- that's it"), ended("SELECT ';"), ended("SELECT 1 -- ;"), ended("-- well")
    (True, False, False, True)
    """
    tokens = _tokens(text)
    if tokens is None:  # what nothing can complete is complete, and will be refused
        return all(_tokens(text + closing) is None for closing in _CLOSING)
    return _complete(tokens)


def _complete(tokens: list[Any]) -> bool:
    return not tokens or _is_semicolon(tokens[-1])


def _is_semicolon(token: Any) -> bool:
    return bool(token.token_type.name == "SEMICOLON")  # which quoted text is not


def _tokens(text: str) -> list[Any] | None:
    """The words of a text with their places; None where a quotation or a comment does not end."""
    import sqlglot

    try:
        return list(sqlglot.tokenize(text, read="duckdb"))
    except sqlglot.errors.TokenError:
        return None
