"""`deniable shell`: questions one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import click

from deniable.cli.answers import show_table
from deniable.cli.asking import asking_options, open_reports
from deniable.cli.line_editing import line_editing, words
from deniable.cli.shell_settings import SETTINGS, shown
from deniable.cli.sql_text import ended, questions
from deniable.cli.terminal import TRACEBACK_SWITCH, message, show, table
from deniable.tables.schema.attributes import Categorical, Ordinal

COMMANDS = {
    ".help": "this list",
    ".tables": "tables and dimensions, with their reports",
    ".schema": "attributes and their domains",
    ".explain SQL": "how a question would be answered",
    ".settings": "how questions are answered; to show or change:",
    **{f".{name} {one.choices}": one.meaning for name, one in SETTINGS.items()},
    ".quit": "leave; so does the end of input",
}
EXPLAINED = ("weights", "sums", "unbiased")


@click.command()
@click.argument("reports", type=click.Path(file_okay=False))
@asking_options
def shell(reports: str, dimensions: tuple[str, ...], engine: str, **asked: Any) -> None:
    """Ask one question after the other. A question may have many lines and ends with a semicolon.

    The options below can be changed on the way: .unbiased on, for example; .help lists all commands. On a terminal
    there are a history and completion with the tabulator. Input from a file or a pipe works too; the exit code is then
    2 if a question was refused.

    \b
    Example:
      deniable shell reports/
      echo "SELECT COUNT(*) FROM users;" | deniable shell reports/
    """
    database = open_reports(reports, dimensions, engine)
    watched = sys.stdin.isatty()
    if watched:
        click.echo("SQL ends with a semicolon. .help lists commands, .quit leaves.")
    with line_editing(words(database, completed_commands())) if watched else nullcontext():
        failed = Session(database, asked).run(_lines(watched))
    if failed and not watched:
        sys.exit(2)


def completed_commands() -> list[str]:
    """The commands, and the words that they take."""
    choices = (word for one in SETTINGS.values() for word in one.choices.split("|") if word.isalpha())
    return [*(name.split()[0] for name in COMMANDS), *choices]


class Session:
    """What has been typed so far, how it will be answered, and what becomes of it."""

    def __init__(self, database: Any, asked: dict[str, Any]) -> None:
        self._database, self._asked = database, dict(asked)
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
            return self._command(line.strip().rstrip("; "))
        if line.strip() or self._typed:
            self._typed.append(line)
        if ended("\n".join(self._typed)):
            self._finish()
        return True

    def _finish(self) -> None:
        text = "\n".join(self._typed)
        self._typed.clear()
        for question in self._guarded(questions, text) or ():
            self._guarded(self._answer, question)

    def _answer(self, question: str) -> None:
        show_table(self._database.sql(question, **self._asked))

    def _command(self, line: str) -> bool:
        name, _, rest = (part.strip() for part in line.partition(" "))
        if name in (".quit", ".exit"):
            return False
        if name[1:] in SETTINGS:
            self._guarded(self._set, name[1:], rest)
        elif name == ".explain" and rest:
            self._guarded(self._explain, rest)
        elif name in (".tables", ".schema", ".settings", ".help"):
            {".tables": self._tables, ".schema": self._schema, ".settings": self._settings, ".help": _help}[name]()
        else:
            self.failures += 1
            click.echo(f"Error: {name} is no command, or lacks something. Nothing was done. These are:", err=True)
            _help(err=True)
        return True

    def _set(self, name: str, word: str) -> None:
        if word:
            self._asked[name] = SETTINGS[name].read(word)
        click.echo(f"{name} is {shown(self._asked.get(name))}")

    def _explain(self, text: str) -> None:
        chosen = {name: self._asked[name] for name in EXPLAINED if name in self._asked}
        click.echo(str(self._database.explain(text, **chosen)))

    def _settings(self) -> None:
        made = table("Settings", "setting", "value", "", numbers_from=9)
        for name, one in SETTINGS.items():
            made.add_row(name, shown(self._asked.get(name)), one.meaning)
        show(made)

    def _tables(self) -> None:
        database = self._database
        made = table("Tables", "table", "rows of a user", "reports", "per user")
        for one in database.collection.tables:
            rows = "one" if one.many is None else f"up to {one.many:,}"
            store = database.stores.get(one.name)
            slots = database.collection.reports_per_user(one.name)
            made.add_row(one.name, rows, "none yet" if store is None else f"{store.rows:,}", f"{slots:,}")
        for name in database.dimensions:
            made.add_row(name, "dimension", "", "")
        show(made)

    def _schema(self) -> None:
        made = table("Attributes", "table", "attribute", "kind", "domain", numbers_from=9)
        for one in self._database.collection.tables:
            for name, meaning in one.attributes.items():
                made.add_row(one.name, name, type(meaning).__name__.lower(), _domain(meaning))
        for name, dimension in self._database.dimensions.items():
            for column in dimension.columns:
                made.add_row(name, column, "dimension", "")
        show(made)

    def _guarded(self, action: Callable[..., Any], *given: str) -> Any:
        """An error ends the question, not the shell."""
        try:
            return action(*given)
        except Exception as error:
            if os.environ.get(TRACEBACK_SWITCH):
                raise
            self.failures += 1
            click.echo(message(error), err=True)
            return None


def _help(*, err: bool = False) -> None:
    width = max(map(len, COMMANDS))
    for command, meaning in COMMANDS.items():
        click.echo(f"{command:<{width}} {meaning}", err=err)


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


def _domain(meaning: Any) -> str:
    if isinstance(meaning, Ordinal):
        step = "" if meaning.step == 1 else f", every {meaning.step}"
        return f"{meaning.low} to {meaning.high}{step}"
    if isinstance(meaning, Categorical):
        return ", ".join(map(str, meaning.values[:8])) + (", …" if meaning.size > 8 else "")
    return "anything"
