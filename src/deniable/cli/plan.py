"""`deniable plan` and `fit`: a specification for the questions that will be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.cli.sql_text import questions_about
from deniable.cli.terminal import WHOLE, count, progress, show, table
from deniable.collection import Collection
from deniable.errors import BadInput
from deniable.wording import counted

if TYPE_CHECKING:
    from deniable.queries.forecasts.fit import Fit

only_workload_option = click.option(
    "--only-workload", is_flag=True, help="Collect nothing about attributes that no question uses."
)


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("queries", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--users", type=count, required=True, help="How many people will report.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="Write it here; default: NAME.planned.toml.")
@only_workload_option
def plan(specification: str, queries: str, users: int, out: str | None, only_workload: bool) -> None:
    """Propose a specification for your questions: begin here.

    QUERIES is a file of SELECTs separated by `;` (`-` reads stdin). Fits a grid to them, compares it with others,
    prints the predicted error of each question (per user for COUNT and SUM, in its own unit for others) and of ranges
    outside the workload, and writes the specification. It needs no data.

    \b
    Example:
      deniable plan shop.toml questions.sql --users 60000
    """
    from deniable.collection import plan as planned

    given = Path(specification)
    target = Path(out) if out is not None else given.with_name(f"{given.stem}.planned.toml")
    _check_folder(target)
    if out is None and target.exists():
        raise BadInput(f"{target.name!r} exists. Nothing was planned. Move it away, or name another file with -o.")
    collection = Collection.load(specification)
    questions = questions_about(collection, queries)
    with progress("planning", WHOLE) as advance:
        proposal = planned(
            collection,
            questions,
            users=users,
            only_workload=only_workload,
            advance=lambda part: advance(part * WHOLE),
        )
    _show_fit(proposal.fitted)
    click.echo(proposal.advice)
    proposal.collection.save(target)
    click.echo(f"Wrote {target}. Collect with it: deniable perturb.")


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("queries", type=click.Path(dir_okay=False, allow_dash=True), required=False)
@click.option("--users", type=count, required=True, help="How many people will report.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="Write the fitted specification here.")
@only_workload_option
def fit(specification: str, queries: str | None, users: int, out: str | None, only_workload: bool) -> None:
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
    collection = Collection.load(specification)
    questions = None if queries is None else questions_about(collection, queries)
    start = collection.with_settings(design="grid")
    with progress("fitting", WHOLE) as advance:
        grid = fit_grids(
            start, users, questions, only_workload=only_workload, advance=lambda part: advance(part * WHOLE)
        )
    _show_fit(grid)
    if out is None:
        click.echo("Nothing was written. Name a file with -o.")
        return
    grid.collection.save(out)
    click.echo(f"Wrote {out}. Collect with it: deniable perturb.")


def _check_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise BadInput(f"the folder of {target.name!r} does not exist. Nothing was fitted. Make it first.")


def _show_fit(grid: Fit[Collection]) -> None:
    """Errors by design, questions, views, and what lies outside the workload."""
    from deniable.queries.forecasts.fit import shown_error

    title = f"Predicted errors, {counted(grid.users, 'user')}, ε = {grid.collection.epsilon:g}"
    made = table(title, "", *grid.errors)
    for number, errors in enumerate(zip(*grid.errors.values(), strict=True), 1):
        made.add_row(f"q{number}", *map(shown_error, errors))
    show(made)
    for number, question in enumerate(grid.questions, 1):
        click.echo(f"q{number}: {' '.join(question.split())}")
    click.echo(grid.views())
    for line in (*grid.notes, *grid.others()):
        click.echo(line)
