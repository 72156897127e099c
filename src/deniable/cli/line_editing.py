"""Completion and history at the shell's prompt."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deniable.database import Database

KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "AS", "JOIN"),
    *("USING", "ON", "GROUP", "BY", "HAVING", "ORDER", "DESC", "LIMIT", "OFFSET"),
    *("COUNT(*)", "SUM(", "AVG(", "VAR_POP(", "VAR_SAMP(", "STDDEV(", "FLOOR("),
)
LONGEST_HISTORY = 1_000


def words(database: Database, commands: Iterable[str]) -> list[str]:
    """The words that can be completed: commands, their choices, keywords, tables, attributes, dimensions, columns."""
    known = {*commands, *KEYWORDS, "uid"}
    for table in database.collection.tables:
        known |= {table.name, *table.attributes}
    for name, dimension in database.dimensions.items():
        known |= {name, *dimension.columns}
    return sorted(known)


def completions(known: list[str], typed: str) -> list[str]:
    """The words that begin with what was typed, in any case. After a point, the last part is completed."""
    head, point, last = typed.rpartition(".")
    if point and head:
        return [f"{head}.{word}" for word in known if word.casefold().startswith(last.casefold()) and word[0] != "."]
    return [word for word in known if word.casefold().startswith(typed.casefold())]


def history_file() -> Path:
    """The file of the history, in the state folder of the XDG base directory specification."""
    given = os.environ.get("XDG_STATE_HOME", "")
    state = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return state / "deniable" / "history"


@contextmanager
def line_editing(known: list[str]) -> Iterator[None]:
    """History and completion, if Python has readline."""
    try:
        import readline
    except ImportError:  # not everywhere
        yield
        return
    path = history_file()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.read_history_file(path)
    _complete(readline, known)
    try:
        yield
    finally:
        readline.set_history_length(LONGEST_HISTORY)
        with suppress(OSError):
            readline.write_history_file(path)


def _complete(readline: ModuleType, known: list[str]) -> None:
    def complete(typed: str, state: int) -> str | None:
        matches = completions(known, typed)
        return matches[state] if state < len(matches) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,;()=<>+-*/'\"")
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
