"""How reports are opened and asked: the options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from deniable.errors import BadInput
from deniable.wording import counted

F = TypeVar("F", bound=Callable[..., Any])
WEIGHTS = click.option(
    "--weights", default="optimal", show_default=True, help="optimal, greedy, rdc(k) or rdc_each(k)."
)
SUMS = click.option(
    "--sums",
    type=click.Choice(["direct", "designed"]),
    default="direct",
    show_default=True,
    help="By the values themselves, or by the rounded values that AHIO, EHIO and SR-HIO collect.",
)
UNBIASED = click.option("--unbiased", is_flag=True, help="Of a grid, only what it tells without any assumption.")
DIMENSIONS = click.option(
    "--dimension",
    "dimensions",
    multiple=True,
    metavar="NAME=PATH",
    help="A public table (Parquet or CSV) to join; may be repeated.",
)
ENGINE = click.option(
    "--engine", default="duckdb", show_default=True, help="duckdb, or spark[=master], such as spark=local[4]."
)


def asking_options(command: F) -> F:
    """The options that say how questions are answered."""
    for option in reversed((
        WEIGHTS,
        SUMS,
        click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals."),
        click.option("--simultaneous", is_flag=True, help="All intervals of an answer hold at once."),
        click.option("--clip", is_flag=True, help="Cut estimates to what is possible; they are biased then."),
        click.option("--nonnegative", is_flag=True, help="Cut at zero what cannot be negative; biased likewise."),
        UNBIASED,
        click.option(
            "--postprocess",
            type=click.Choice(["consistent"]),
            help="Of a grid: answer from possible frequencies of cells; less noise, biased.",
        ),
        DIMENSIONS,
        ENGINE,
    )):  # fmt: skip
        command = option(command)
    return command


def open_reports(reports: str, dimensions: tuple[str, ...], engine: str) -> Any:
    """The database of a folder; says on stderr what was refused."""
    from deniable.database import connect

    named = {}
    for one in dimensions:
        name, sign, path = one.partition("=")
        if not (name and sign and path):
            raise BadInput("a dimension is not given as NAME=PATH. Nothing was read. Write --dimension cities=c.csv.")
        if name in named:
            raise BadInput(f"dimension {name!r} is given twice. Nothing was read. Name each once.")
        named[name] = path
    database = connect(reports, dimensions=named, engine=_session(engine))
    for name, refused in database.refused.items():
        for reason, count in refused.items():
            click.echo(f"{name}: {counted(count, 'report')} refused: {reason}", err=True)
    return database


def _session(engine: str) -> Any:
    """A session of Spark, or None for DuckDB."""
    name, _, master = engine.partition("=")
    if name == "duckdb" and not master:
        return None
    if name != "spark":
        raise BadInput("there are two engines. Nothing was read. Write --engine duckdb or --engine spark[=master].")
    from deniable.spark import session

    return session(master or "local[*]")
