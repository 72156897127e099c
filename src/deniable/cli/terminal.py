"""Tables, messages and progress of the command line; plain text if stdout or stderr is not a terminal."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deniable.cli.standard_streams import printable, unicode_output
from deniable.errors import DeniableError

WHOLE = 1_000
"""The total of a progress bar for work that is reported in parts of one."""
TRACEBACK_SWITCH = "DENIABLE_TRACEBACK"

simulation_option = click.option(
    "--simulation", is_flag=True, help="For data that need no protection: allow an infinite ε, and mark the output."
)
confidence_option = click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Confidence of the intervals.",
)


class _Table(Table):
    """A table whose cells are spelled as stdout will show them, before widths are measured."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*(printable(cell) for cell in cells), **options)


def table(title: str, *columns: str, numbers_from: int = 1, folding: int = -1) -> Table:
    """A compact table that reads well in 80 columns and without colour; numbers are right-aligned.

    If it is too wide, the column `folding` takes several lines.
    """
    words = printable(title)
    fits = len(words) <= width()  # it may be wider than what stands below it
    made = _Table(
        title=Text(words, "table.title", no_wrap=True, overflow="ignore") if fits else words,
        title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for position, column in enumerate(columns):
        right = position >= numbers_from
        folds = position == folding % len(columns)
        made.add_column(printable(column), justify="right" if right else "left", no_wrap=not folds, overflow="fold")
    return made


def count(text: str | int) -> int:
    """A whole number as people write it, for the type of an option.

    >>> count("1e6"), count("1,000,000"), count("1_000_000")
    (1000000, 1000000, 1000000)
    """
    try:
        number = Decimal(str(text).replace(",", "").replace("_", ""))
        if number == number.to_integral_value() and abs(number) < 10**18:
            return int(number)
    except InvalidOperation:
        pass
    raise click.BadParameter(f"{text!r} is not a whole number. Write 1000000 or 1e6.")


def width() -> int:
    """The number of columns of the terminal."""
    return Console().width


def message(error: Exception) -> str:
    """The message of an error; a terminal gets lines that end between words."""
    text = _told(error)
    terminal = sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()  # it may have been closed
    return wrapped(text, width()) if terminal else text


def wrapped(text: str, columns: int) -> str:
    """Lines of at most so many columns, unless a word is longer.

    >>> print(wrapped("Error: SQL is missing. Nothing was done.", 20))
    Error: SQL is
    missing. Nothing was
    done.
    """
    fill = partial(textwrap.fill, width=columns, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(fill, text.splitlines()))


def _told(error: Exception) -> str:
    """What an error says. The text of a foreign error may quote data, so only its type is shown."""
    if isinstance(error, DeniableError):
        return f"Error: {error}"
    if isinstance(error, OSError) and error.errno is not None:
        reason = os.strerror(error.errno).lower()
        if not isinstance(error.filename, str):
            return (
                f"Error: the output cannot be written ({reason}). Finished files are kept. Write it to another place."
            )
        name = Path(error.filename).name
        return f"Error: {name!r} cannot be used ({reason}). Nothing more was done. Check the path and the rights on it."
    return f"Error: unexpected {type(error).__name__}. Set {TRACEBACK_SWITCH}=1 to see where."


def json_line(value: Any) -> str:
    """A value as JSON; characters that stdout cannot show become JSON escapes."""
    return json.dumps(value, default=str, ensure_ascii=not unicode_output())


def short(size: float) -> str:
    """A number below 10^12 in at most six characters: k, M, G for thousands, millions, billions.

    >>> short(0.1234), short(999.6), short(12_345), short(2.5e9)
    ('0.123', '1k', '12.3k', '2.5G')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= 0.9995 * unit:
            return f"{size / unit:.3g}{letter}"
    return f"{size:.3g}"


def show(made: Table) -> None:
    """Print a table to stdout."""
    console = Console()
    with console.capture() as drawn:  # rich would end the program where nobody reads it
        console.print(made)
    click.echo(drawn.get(), nl=False)


Column = Sequence[str]
"""A header, then the cells below it."""


def columns_width(columns: Sequence[Column]) -> int:
    """How wide a table of these columns is."""
    return sum(max(len(printable(cell)) for cell in column) + 2 for column in columns)


def show_columns(title: str, names: Sequence[Column], numbers: Sequence[Sequence[Column]]) -> None:
    """Print columns as a table or, in a narrow terminal, as several tables that repeat the names.

    Columns of numbers that belong together stay together.
    """
    shown: list[Column] = []
    for columns in numbers:
        if shown and columns_width([*names, *shown, *columns]) > width():
            _show_columns(title, [*names, *shown], len(names))
            shown = []
        shown += columns
    _show_columns(title, [*names, *shown], len(names))


def _show_columns(title: str, columns: Sequence[Column], numbers_from: int) -> None:
    widest = max(range(len(columns)), key=lambda index: columns_width([columns[index]]))
    header, *rows = zip(*columns, strict=True)
    made = table(title, *header, numbers_from=numbers_from, folding=widest)
    for row in rows:
        made.add_row(*row)
    show(made)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[float], None]]:
    """A progress bar on a terminal, else one plain line; on stderr. Yields a function that advances it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        click.echo(label, err=True)
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, advance=done)
