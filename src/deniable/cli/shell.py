"""`deniable shell`: questions at a prompt."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.answer_output import show_table
from deniable.cli.line_editing import line_editing, words
from deniable.cli.query_options import open_reports, query_options
from deniable.cli.shell_settings import SETTINGS, setting_word
from deniable.cli.sql_text import ended, questions
from deniable.cli.terminal import TRACEBACK_SWITCH, message, show, table
from deniable.tables.schema.attributes import Categorical, Ordinal, Text

if TYPE_CHECKING:
    from deniable.database import Database
    from deniable.queries.answers.answer_options import AnswerOptions

COMMANDS = {
    ".help": "list the commands",
    ".tables": "list tables and dimensions, with their reports",
    ".schema": "list attributes and their domains",
    ".explain SQL": "show how a question would be answered",
    ".settings": "show how questions are answered; change it with:",
    **{f".{name} {setting.choices}": setting.meaning for name, setting in SETTINGS.items()},
    ".quit": "leave; the end of input does, too",
}


@click.command()
@click.argument("reports", type=click.Path(file_okay=False))
@query_options
def shell(reports: str, dimensions: tuple[str, ...], engine: str, **chosen: Any) -> None:
    """Ask questions at a prompt. A question may span several lines and ends with a semicolon.

    The options below can be changed between questions, with .unbiased on, for example; .help lists all commands. A
    terminal has a history, and the Tab key completes names. Input may also come from a file or a pipe; then the exit
    code is 2 if a question was refused.

    \b
    Example:
      deniable shell reports/
      echo "SELECT COUNT(*) FROM users;" | deniable shell reports/
    """
    from deniable.queries.answers.answer_options import AnswerOptions

    options = AnswerOptions(**chosen)
    database = open_reports((reports,), dimensions, engine)
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        click.echo("SQL ends with a semicolon. .help lists commands, .quit leaves.")
    with line_editing(words(database, completed_commands())) if at_terminal else nullcontext():
        failed = Session(database, options).run(_lines(at_terminal))
    if failed and not at_terminal:
        sys.exit(2)


def completed_commands() -> list[str]:
    """The commands, and the words that they take."""
    choices = (word for setting in SETTINGS.values() for word in setting.choices.split("|") if word.isalpha())
    return [*(name.split()[0] for name in COMMANDS), *choices]


class Session:
    """What has been typed so far, and how it will be answered."""

    def __init__(self, database: Database, options: AnswerOptions) -> None:
        self._database, self._options = database, options
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
        """Take one line; returns False if it says to leave."""
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
        show_table(self._database.answer(question, self._options))

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
            click.echo(
                f"Error: {name} is an unknown command or misses its argument. Nothing was done. Commands:", err=True
            )
            _help(err=True)
        return True

    def _set(self, name: str, word: str) -> None:
        if word:
            self._options = replace(self._options, **{name: SETTINGS[name].read(word)})
        click.echo(f"{name} is {setting_word(getattr(self._options, name))}")

    def _explain(self, text: str) -> None:
        options = self._options
        explanation = self._database.explain(
            text, weights=options.weights, sums=options.sums, unbiased=options.unbiased
        )
        click.echo(str(explanation))

    def _settings(self) -> None:
        made = table("Settings", "setting", "value", "", numbers_from=9)
        for name, setting in SETTINGS.items():
            made.add_row(name, setting_word(getattr(self._options, name)), setting.meaning)
        show(made)

    def _tables(self) -> None:
        database = self._database
        made = table("Tables", "table", "rows per user", "reports", "per user", folding=0)
        for known in database.collection.tables:
            rows = "one" if known.many is None else f"up to {known.many:,}"
            store = database.stores.get(known.name)
            slots = database.collection.reports_per_user(known.name)
            made.add_row(known.name, rows, "none yet" if store is None else f"{store.rows:,}", f"{slots:,}")
        for name in database.dimensions:
            made.add_row(name, "dimension", "", "")
        show(made)

    def _schema(self) -> None:
        made = table("Attributes", "table", "attribute", "kind", "domain", numbers_from=9)
        for known in self._database.collection.tables:
            for name, attribute in known.attributes.items():
                made.add_row(known.name, name, type(attribute).__name__.lower(), _domain(attribute))
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


def _lines(at_terminal: bool) -> Any:
    """Lines from the terminal with a prompt, or from a pipe without."""
    if not at_terminal:
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


def _domain(attribute: Any) -> str:
    if isinstance(attribute, Ordinal):
        step = "" if attribute.step == 1 else f", every {attribute.step}"
        return f"{attribute.low} to {attribute.high}{step}"
    if isinstance(attribute, Categorical):
        return ", ".join(map(str, attribute.values[:8])) + (", …" if attribute.size > 8 else "")
    if isinstance(attribute, Text):
        return f"words of up to {attribute.max_length} bytes"
    return "anything"
