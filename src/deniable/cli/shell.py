"""`deniable shell`: questions one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from deniable.cli.answers import show_table
from deniable.cli.query import asking_options, open_reports
from deniable.cli.terminal import TRACEBACK_SWITCH, message, show, table
from deniable.tables.schema import Categorical, Ordinal

KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "AS", "JOIN"),
    *("USING", "ON", "GROUP", "BY", "HAVING", "ORDER", "DESC", "LIMIT", "OFFSET"),
    *("COUNT(*)", "SUM(", "AVG(", "VAR_POP(", "VAR_SAMP(", "STDDEV(", "FLOOR("),
)
COMMANDS = {
    ".help": "this list",
    ".tables": "tables, their reports and how many a user sends; dimensions",
    ".schema": "attributes and their domains",
    ".explain SQL": "how a question would be answered",
    ".quit": "leave; so does the end of input",
}
LONGEST_HISTORY = 1_000


@click.command()
@click.argument("reports", type=click.Path(file_okay=False))
@asking_options
def shell(reports: str, dimensions: tuple[str, ...], **asked: Any) -> None:
    """Ask one question after the other. A question may have many lines and ends with a semicolon.

    On a terminal there are a history and completion with the tabulator. Input from a file or a pipe works too; the
    exit code is then 2 if a question was refused.

    \b
    Example:
      deniable shell reports/
      echo "SELECT COUNT(*) FROM users;" | deniable shell reports/
    """
    database = open_reports(reports, dimensions)
    watched = sys.stdin.isatty()
    if watched:
        click.echo("SQL ends with a semicolon. .help lists commands, .quit leaves.")
    with _editing(words(database)) if watched else nullcontext():
        failed = Session(database, asked).run(_lines(watched))
    if failed and not watched:
        sys.exit(2)


class Session:
    """What has been typed so far, and what becomes of it."""

    def __init__(self, database: Any, asked: dict[str, Any]) -> None:
        self._database, self._asked = database, asked
        self._typed: list[str] = []
        self.failures = 0

    @property
    def waiting(self) -> bool:
        """Whether a question has begun and not ended."""
        return bool(self._typed)

    def run(self, lines: Any) -> int:
        """Take all lines; returns how many questions or commands failed."""
        lines = lines(self) if callable(lines) else lines
        for line in lines:
            if line is None:  # interrupted: what was typed is forgotten
                self._typed.clear()
            elif not self.take(line):
                return self.failures
        self._finish()
        return self.failures

    def take(self, line: str) -> bool:
        """One more line; False if it says to leave."""
        if not self._typed and line.strip().startswith("."):
            return self._command(line.strip().rstrip(";"))
        if line.strip() or self._typed:
            self._typed.append(line)
        if _ended("\n".join(self._typed)):
            self._finish()
        return True

    def _finish(self) -> None:
        text = "\n".join(self._typed).strip()
        self._typed.clear()
        if text.strip("; \n"):
            self._guarded(lambda: show_table(self._database.sql(text, **self._asked)))

    def _command(self, line: str) -> bool:
        name, _, rest = line.partition(" ")
        if name in (".quit", ".exit"):
            return False
        if name == ".explain" and rest.strip():
            self._guarded(lambda: click.echo(str(self._explained(rest.strip()))))
        elif name == ".tables":
            _show_tables(self._database)
        elif name == ".schema":
            _show_schema(self._database)
        else:
            if name != ".help":
                self.failures += 1
                click.echo(f"Error: {name} is no command, or lacks something. These are:", err=True)
            for command, meaning in COMMANDS.items():
                click.echo(f"{command:<14} {meaning}", err=name != ".help")
        return True

    def _explained(self, text: str) -> Any:
        chosen = {name: self._asked[name] for name in ("weights", "sums") if name in self._asked}
        return self._database.explain(text, **chosen)

    def _guarded(self, action: Any) -> None:
        """An error ends the question, not the shell."""
        try:
            action()
        except Exception as error:
            if os.environ.get(TRACEBACK_SWITCH):
                raise
            self.failures += 1
            click.echo(message(error), err=True)


def _ended(text: str) -> bool:
    """Whether a text ends with a semicolon that is not within quotes."""
    return text.rstrip().endswith(";") and text.count("'") % 2 == 0 and text.count('"') % 2 == 0


def _lines(watched: bool) -> Any:
    """Lines of the terminal with a prompt, or of a pipe without."""
    if not watched:
        return (line.rstrip("\n") for line in sys.stdin)

    def typed(session: Session) -> Iterator[str | None]:
        while True:
            try:
                yield input("     ...> " if session.waiting else "deniable> ")
            except EOFError:
                click.echo()
                return
            except KeyboardInterrupt:
                click.echo()
                yield None

    return typed


def words(database: Any) -> list[str]:
    """What can be completed: commands, keywords, tables, attributes, dimensions and their columns."""
    found = [*(name.split()[0] for name in COMMANDS), *KEYWORDS, "uid"]
    for one in database.collection.tables:
        found += [one.name, *one.attributes]
    for name, dimension in database.dimensions.items():
        found += [name, *dimension.columns]
    return sorted(set(found))


def completions(known: list[str], typed: str) -> list[str]:
    """The words that begin as what was typed, whatever its case; a part after a point is completed by itself."""
    head, point, last = typed.rpartition(".")
    if point and head:
        return [f"{head}.{word}" for word in known if word.casefold().startswith(last.casefold()) and word[0] != "."]
    return [word for word in known if word.casefold().startswith(typed.casefold())]


def history_file() -> Path:
    """Where the history is kept: in the folder that the desktop specification names for state."""
    given = os.environ.get("XDG_STATE_HOME", "")
    state = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return state / "deniable" / "history"


@contextmanager
def _editing(known: list[str]) -> Iterator[None]:
    """History and completion, where Python has readline."""
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
    def complete(typed: str, place: int) -> str | None:
        found = completions(known, typed)
        return found[place] if place < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,;()=<>+-*/'\"")
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")


def _show_tables(database: Any) -> None:
    made = table("Tables", "table", "rows of a user", "reports", "per user")
    for one in database.collection.tables:
        rows = "one" if one.many is None else f"up to {one.many:,}"
        store = database.stores.get(one.name)
        slots = database.collection.reports_per_user(one.name)
        made.add_row(one.name, rows, "none yet" if store is None else f"{store.rows:,}", f"{slots:,}")
    for name in database.dimensions:
        made.add_row(name, "dimension", "", "")
    show(made)


def _show_schema(database: Any) -> None:
    made = table("Attributes", "table", "attribute", "kind", "domain", numbers_from=9)
    for one in database.collection.tables:
        for name, meaning in one.attributes.items():
            made.add_row(one.name, name, type(meaning).__name__.lower(), _domain(meaning))
    for name, dimension in database.dimensions.items():
        for column in dimension.columns:
            made.add_row(name, column, "dimension", "")
    show(made)


def _domain(meaning: Any) -> str:
    if isinstance(meaning, Ordinal):
        step = "" if meaning.step == 1 else f", every {meaning.step}"
        return f"{meaning.low} to {meaning.high}{step}"
    if isinstance(meaning, Categorical):
        return ", ".join(map(str, meaning.values[:8])) + (", …" if meaning.size > 8 else "")
    return "anything"
