"""The `deniable` command, and the one place where an error becomes an exit code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from deniable import __version__
from deniable.cli.audit import audit_command
from deniable.cli.bench import bench
from deniable.cli.bench_errors import accuracy, streams
from deniable.cli.collect import check, init, perturb
from deniable.cli.demo.command import demo
from deniable.cli.forecast import compare, explain, fit, forecast
from deniable.cli.gather import gather
from deniable.cli.query import query
from deniable.cli.reproduce import reproduce
from deniable.cli.shell import shell
from deniable.cli.stream import stream
from deniable.cli.stream_local import collect, report
from deniable.cli.stream_publish import publish
from deniable.cli.terminal import TRACEBACK_SWITCH, message
from deniable.errors import DeniableError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="deniable")
def cli() -> None:
    """Analytics on data that nobody should hold.

    Exit codes: 0 success, 1 failure (an audit that finds a broken claim included), 2 bad input.
    """


for group, commands in (
    (cli, (audit_command, bench, check, compare, demo, explain, fit, forecast, gather, init, perturb)),
    (cli, (query, reproduce, shell, stream)),
    (bench, (accuracy, streams)),
    (stream, (collect, publish, report)),
):
    for command in commands:
        group.add_command(command)


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: messages without tracebacks, 2 for bad input, 1 for other failures."""
    try:
        code = cli.main(arguments, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        click.echo("Interrupted. Nothing more was done.", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        click.echo("Nothing was done.", err=True)
        sys.exit(error.exit_code)
    except DeniableError as error:
        click.echo(message(error), err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if os.environ.get(TRACEBACK_SWITCH):
            raise
        click.echo(message(error), err=True)
        sys.exit(1)
