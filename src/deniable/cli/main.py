"""The `deniable` command, and the one place where an error becomes an exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from deniable.cli import installed_commands, own_commands, standard_streams
from deniable.cli.built_version import built_version
from deniable.cli.without_pandas import keep_pandas_out
from deniable.errors import DeniableError

READER_LEFT = 141  # what a shell reports of a program that SIGPIPE ended
GARBAGE_THRESHOLD = 50_000
"""New objects between two searches for garbage. Imports make many, and none of them is garbage."""


class Commands(click.Group):
    """Own commands and those of installed packages; the reader may leave early (`deniable query … | head -1`)."""

    def list_commands(self, context: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        """All names, sorted."""
        return sorted({*own_commands.OWN_COMMANDS, *installed_commands.names()})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:  # noqa: ARG002 - as click calls it
        """A command by its name. An installed package cannot replace a command of this one."""
        return own_commands.load(name) or installed_commands.load(name)

    def make_context(self, *given: Any, **options: Any) -> click.Context:
        """Read the command line; --help may print."""
        try:
            return super().make_context(*given, **options)
        except BrokenPipeError:
            raise click.exceptions.Exit(READER_LEFT) from None

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise click.exceptions.Exit(READER_LEFT) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(built_version(), prog_name="deniable")
def cli() -> None:
    """Analytics on data that nobody should hold.

    Exit codes: 0 success, 1 failure (or an audit that finds a broken claim), 2 bad input, 130 interrupted, 141 broken
    pipe, 143 terminated.
    """


def start() -> NoReturn:
    """Run the command line in a process of its own, and exit."""
    keep_pandas_out(sys.argv[1:])
    gc.set_threshold(GARBAGE_THRESHOLD)
    run()


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: messages without tracebacks, 2 for bad input, 1 for other failures."""
    standard_streams.prepare()
    with _terminated_as_interrupted():
        code = _code(arguments)
    unwritten = standard_streams.settle()
    if isinstance(unwritten, BrokenPipeError):
        code = code or READER_LEFT
    elif unwritten is not None:
        click.echo(_message(unwritten), err=True)
        code = code or 1
    sys.exit(code)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: with its files in order."""

    def terminate(number: int, _: Any) -> NoReturn:
        raise KeyboardInterrupt(number)

    if threading.current_thread() is not threading.main_thread():  # only there can a program handle signals
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _code(arguments: list[str] | None) -> int:
    try:
        code = cli.main(arguments, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except click.exceptions.Abort as ended:
        click.echo("Interrupted. Nothing more was done.", err=True)
        return _interrupted(ended.__cause__)
    except click.ClickException as error:
        error.show()
        click.echo("Nothing was done.", err=True)
        return error.exit_code
    except DeniableError as error:
        click.echo(_message(error), err=True)
        return error.exit_code
    except Exception as error:
        from deniable.cli.terminal import TRACEBACK_SWITCH

        if os.environ.get(TRACEBACK_SWITCH):
            raise
        click.echo(_message(error), err=True)
        return 1


def _message(error: Exception) -> str:
    from deniable.cli.terminal import message  # here, because drawing tables is imported with it

    return message(error)


def _interrupted(cause: BaseException | None) -> int:
    """128 plus the number of the signal, as in a shell."""
    if not isinstance(cause, KeyboardInterrupt):
        return 1
    number, *_ = (*cause.args, signal.SIGINT)
    return 128 + int(number)
