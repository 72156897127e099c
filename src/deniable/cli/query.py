"""`deniable query`: SQL over a folder of reports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from deniable.cli.answers import as_csv, as_json, show_table
from deniable.cli.engine import ENGINE, opened
from deniable.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])


def asking_options(command: F) -> F:
    """The options that say how questions are answered."""
    for option in reversed((
        click.option("--weights", default="optimal", show_default=True, help="optimal, greedy, or rdc(k)."),
        click.option(
            "--sums",
            type=click.Choice(["direct", "designed"]),
            default="direct",
            show_default=True,
            help="By the values themselves, or by the rounded values that AHIO, EHIO and SR-HIO collect.",
        ),
        click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals."),
        click.option("--simultaneous", is_flag=True, help="The intervals of all rows hold at once."),
        click.option("--clip", is_flag=True, help="Cut estimates to what is possible; they are biased then."),
        click.option("--nonnegative", is_flag=True, help="Cut at zero what cannot be negative; biased likewise."),
        click.option("--unbiased", is_flag=True, help="Of a grid, only what it tells without any assumption."),
        click.option(
            "--postprocess",
            type=click.Choice(["consistent"]),
            help="Of a grid: answer from possible frequencies of cells; less noise, biased.",
        ),
        click.option(
            "--dimension", "dimensions", multiple=True, metavar="NAME=PATH",
            help="A public table (Parquet or CSV) to join; may be repeated.",
        ),
    )):  # fmt: skip
        command = option(command)
    return command


def open_reports(reports: str, dimensions: tuple[str, ...], engine: str | None = None) -> Any:
    """The database of a folder; says on stderr what was refused."""
    from deniable.engines.reading import connect

    named = {}
    for one in dimensions:
        name, sign, path = one.partition("=")
        if not (name and sign and path):
            raise BadInput("a dimension is not given as NAME=PATH. Nothing was read. Write --dimension cities=c.csv.")
        if name in named:
            raise BadInput(f"dimension {name!r} is given twice. Nothing was read. Name each once.")
        named[name] = path
    database = connect(reports, dimensions=named, engine=None if engine is None else opened(engine))
    for name, refused in database.refused.items():
        for reason, count in refused.items():
            click.echo(f"{name}: {count:,} reports refused: {reason}", err=True)
    return database


@click.command()
@click.argument("reports", type=click.Path(file_okay=False))
@click.argument("sql", required=False)
@click.option("-f", "--file", "path", type=click.Path(dir_okay=False), help="Read the SQL from a file.")
@asking_options
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object per row.")
@click.option("--csv", "csv_wanted", is_flag=True, help="Comma-separated values.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Also draw the answer: PNG, SVG or PDF by its ending.")
@ENGINE
def query(
    reports: str,
    sql: str | None,
    path: str | None,
    dimensions: tuple[str, ...],
    json_wanted: bool,
    csv_wanted: bool,
    plot: str | None,
    engine: str,
    **asked: Any,
) -> None:
    """Answer SQL from a folder of reports, every number with its error.

    SQL is given as an argument, with -f or @ as a file, or with - on stdin. COUNT(*), SUM, AVG, VAR_POP,
    VAR_SAMP and STDDEV, and arithmetic with them; tables joined with USING (uid), dimensions joined on an
    attribute; WHERE and GROUP BY on private and public attributes; ORDER BY, HAVING and LIMIT.

    \b
    Example:
      deniable query reports/ "SELECT COUNT(*) FROM users WHERE age < 30"
      deniable query hdfs:///reports --engine spark=yarn @question.sql
    """
    if json_wanted and csv_wanted:
        raise BadInput("--json and --csv exclude each other. Nothing was read. Choose one.")
    text = sql_text(sql, path)
    if plot is not None:
        from deniable.engines.figures import check_ending, require_plotting

        check_ending(plot)
        require_plotting()
    result = open_reports(reports, dimensions, engine).sql(text, **asked)
    if plot is not None:
        from deniable.cli.plots import draw

        draw(result, plot)
        click.echo(f"drawn in {Path(plot).name}", err=True)
    if json_wanted or csv_wanted:
        click.echo(as_json(result) if json_wanted else as_csv(result), nl=False)
        for note in result.notes:
            click.echo(note, err=True)
        return
    show_table(result)


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
