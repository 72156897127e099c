"""The options that commands share: how reports are opened, and how questions are answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deniable.errors import BadInput
from deniable.wording import counted

if TYPE_CHECKING:
    from deniable.database import Database

F = TypeVar("F", bound=Callable[..., Any])
weights_option = click.option(
    "--weights",
    default="optimal",
    show_default=True,
    help="Weights of tree nodes: optimal, greedy, rdc(k) or rdc_each(k).",
)
sums_option = click.option(
    "--sums",
    type=click.Choice(["direct", "designed"]),
    default="direct",
    show_default=True,
    help="Add up the values themselves, or the rounded values that AHIO, EHIO and SR-HIO collect.",
)
unbiased_option = click.option(
    "--unbiased", is_flag=True, help="On a grid, use only what reports show without any assumption."
)
dimension_option = click.option(
    "--dimension",
    "dimensions",
    multiple=True,
    metavar="NAME=PATH",
    help="A public table (Parquet or CSV) to join; may be repeated.",
)
engine_option = click.option(
    "--engine", default="duckdb", show_default=True, help="duckdb, or spark[=master], such as spark=local[4]."
)
alike_option = click.option(
    "--alike", is_flag=True, help="Chance decides who is in which group of users: each says something about all."
)


def query_options(command: F) -> F:
    """The options that say how questions are answered: those of `AnswerOptions`, dimensions and the engine."""
    for option in reversed((
        weights_option,
        sums_option,
        click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of the intervals."),
        click.option("--simultaneous", is_flag=True, help="Widen intervals so that all of an answer hold at once."),
        click.option("--clip", is_flag=True, help="Cut estimates to the possible range; this makes them biased."),
        click.option("--nonnegative", is_flag=True, help="Cut negative counts and sums at zero; biased likewise."),
        unbiased_option,
        click.option(
            "--postprocess",
            type=click.Choice(["consistent"]),
            help="On a grid, answer from possible frequencies of cells: less noise, but biased.",
        ),
        dimension_option,
        engine_option,
    )):  # fmt: skip
        command = option(command)
    return command


def open_reports(reports: Sequence[str], dimensions: tuple[str, ...], engine: str, *, alike: bool = False) -> Database:
    """The database of a folder, or of several groups of users; refused reports are counted on stderr."""
    from deniable.database import connect

    paths: dict[str, str] = {}
    for given in dimensions:
        name, sign, path = given.partition("=")
        if not (name and sign and path):
            raise BadInput("a dimension is not given as NAME=PATH. Nothing was read. Write --dimension cities=c.csv.")
        if name in paths:
            raise BadInput(f"dimension {name!r} is given twice. Nothing was read. Name each once.")
        paths[name] = path
    opened = reports[0] if len(reports) == 1 else list(reports)
    database = connect(opened, dimensions=paths, engine=_session(engine), alike=alike)
    for name, refused in database.refused.items():
        for reason, count in refused.items():
            click.echo(f"{name}: {counted(count, 'report')} refused: {reason}", err=True)
    return database


def _session(engine: str) -> Any:
    """A Spark session, or None for DuckDB."""
    name, _, master = engine.partition("=")
    if name == "duckdb" and not master:
        return None
    if name != "spark":
        raise BadInput("the engine is unknown. Nothing was read. Write --engine duckdb or --engine spark[=master].")
    from deniable.spark import session

    return session(master or "local[*]")
