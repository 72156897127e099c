"""`deniable plan` and `fit`: a specification for the questions that will be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.cli.query_options import alike_option, open_reports
from deniable.cli.rows_options import given_matchings, given_rows, matchings_option, rows_option
from deniable.cli.sql_text import questions_about
from deniable.cli.terminal import WHOLE, count, progress, show, table
from deniable.collection import Collection
from deniable.errors import BadInput
from deniable.tables.schema.report_format import ASSIGNED
from deniable.wording import counted

if TYPE_CHECKING:
    from deniable.queries.forecasts.fit import Fit

only_workload_option = click.option(
    "--only-workload", is_flag=True, help="Collect nothing about attributes that no question uses."
)


others_option = click.option(
    "--others",
    type=float,
    metavar="FACTOR",
    help="By what factor errors of these questions may rise for the sake of others; default: 1.25, in joins 1.08.",
)


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("queries", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--users", type=count, required=True, help="How many people will report.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="Write it here; default: NAME.planned.toml.")
@only_workload_option
@others_option
@rows_option
@matchings_option
@click.option(
    "--after",
    "first",
    type=click.Path(file_okay=False),
    help="Reports of a first group of users: plan for the rest by what these say.",
)
@alike_option
def plan(
    specification: str,
    queries: str,
    users: int,
    out: str | None,
    only_workload: bool,
    others: float | None,
    rows_given: tuple[str, ...],
    matchings_given: tuple[str, ...],
    first: str | None,
    alike: bool,
) -> None:
    """Propose a specification for your questions: begin here.

    QUERIES is a file of SELECTs separated by `;` (`-` reads stdin). Fits a grid to them, compares it with others,
    prints the predicted error of each question (per user for COUNT and SUM, in its own unit for others) and of ranges
    outside the workload, and writes the specification. It needs no data.

    With `--after`, the folder of a first group's reports, the specification is for the other users, and `--users` is
    how many these are. Nobody may report in both groups; `deniable query FIRST SECOND` answers over both. Say `--alike`
    here and there if chance decides who is in the first group, such as a hash of the user id.

    \b
    Example:
      deniable plan shop.toml questions.sql --users 60000
      deniable plan shop.toml questions.sql --users 54000 --after first/ --alike
    """
    from deniable.collection import plan as planned

    given = Path(specification)
    target = Path(out) if out is not None else given.with_name(f"{given.stem}.planned.toml")
    _check_folder(target)
    if out is None and target.exists():
        raise BadInput(f"{target.name!r} exists. Nothing was planned. Move it away, or name another file with -o.")
    collection, rows = Collection.load(specification), given_rows(rows_given)
    questions = questions_about(collection, queries)
    looked = None if first is None else open_reports((first,), (), "duckdb")
    with progress("planning", WHOLE) as advance:
        proposal = planned(
            collection,
            questions,
            users=users,
            only_workload=only_workload,
            others=others,
            rows=rows,
            matching=given_matchings(matchings_given),
            after=looked,
            alike=alike,
            advance=lambda part: advance(part * WHOLE),
        )
    _show_fit(proposal.fitted)
    if proposal.looks is not None:
        click.echo(str(proposal.looks))
    click.echo(proposal.advice)
    proposal.collection.save(target)
    click.echo(f"Wrote {target}. Collect with it: {_collecting(proposal.collection)}.")


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("queries", type=click.Path(dir_okay=False, allow_dash=True), required=False)
@click.option("--users", type=count, required=True, help="How many people will report.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="Write the fitted specification here.")
@only_workload_option
@others_option
@rows_option
@matchings_option
def fit(
    specification: str,
    queries: str | None,
    users: int,
    out: str | None,
    only_workload: bool,
    others: float | None,
    rows_given: tuple[str, ...],
    matchings_given: tuple[str, ...],
) -> None:
    """Choose the views of a grid for your questions.

    QUERIES is a file of SELECTs separated by `;` (`-` reads stdin); without it, views are chosen for all ranges of one
    and of two attributes. Prints each question's error next to those of HIO, AHIO and EHIO: per user for COUNT and SUM,
    in its own unit for others. It needs no data, only the specification. `deniable plan` also proposes a design.

    \b
    Example:
      deniable fit shop.toml queries.sql --users 1000000 -o fitted.toml
    """
    from deniable.queries.forecasts.fit import fit_grids

    if out is not None:
        _check_folder(Path(out))
    collection, rows = Collection.load(specification), given_rows(rows_given)
    questions = None if queries is None else questions_about(collection, queries)
    start = collection.with_settings(design="grid")
    with progress("fitting", WHOLE) as advance:
        grid = fit_grids(
            start,
            users,
            questions,
            only_workload=only_workload,
            others=others,
            rows=rows,
            matching=given_matchings(matchings_given),
            advance=lambda part: advance(part * WHOLE),
        )
    _show_fit(grid)
    if out is None:
        click.echo("Nothing was written. Name a file with -o.")
        return
    grid.collection.save(out)
    click.echo(f"Wrote {out}. Collect with it: {_collecting(grid.collection)}.")


def _check_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise BadInput(f"the folder of {target.name!r} does not exist. Nothing was fitted. Make it first.")


def _collecting(collection: Collection) -> str:
    """The commands that collect: with assigned coins, devices are meant to report by themselves."""
    return "deniable serve --init, or deniable perturb" if collection.coins == ASSIGNED else "deniable perturb"


def _show_fit(grid: Fit[Collection]) -> None:
    """Errors by design, questions, views, and what lies outside the workload."""
    from deniable.queries.forecasts.fit import shown_error

    title = f"Predicted errors, {counted(grid.users, 'user')}, ε = {grid.collection.epsilon:g}"
    ranges = grid.ranges()
    made = table(title, "", *grid.errors, *["grid, range"] * bool(ranges))
    for number, errors in enumerate(zip(*grid.errors.values(), strict=True), 1):
        made.add_row(f"q{number}", *map(shown_error, errors), *ranges[number - 1 : number])
    show(made)
    for number, question in enumerate(grid.questions, 1):
        click.echo(f"q{number}: {' '.join(question.split())}")
    click.echo(grid.views())
    for line in (*grid.notes, *grid.others()):
        click.echo(line)
