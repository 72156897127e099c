"""`deniable explain`, `forecast`, `compare` and `fit`: what answers are made of, and their errors beforehand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from deniable.cli.asking import DIMENSIONS, ENGINE, SUMS, UNBIASED, WEIGHTS, open_reports
from deniable.cli.sql_text import questions_about, sql_text
from deniable.cli.terminal import count, json_line, progress, show, show_columns, table
from deniable.collection import Collection
from deniable.errors import BadInput
from deniable.wording import counted


@click.command()
@click.argument("reports", type=click.Path(file_okay=False))
@click.argument("sql")
@WEIGHTS
@SUMS
@UNBIASED
@DIMENSIONS
@ENGINE
def explain(reports: str, sql: str, dimensions: tuple[str, ...], engine: str, **asked: Any) -> None:
    """How a question is answered, and why its error is what it is.

    Prints the sums it is made of, the levels and cells used, how many reports count, and the predicted standard error
    with its causes. `-` reads the SQL from stdin, `@file` from a file.

    \b
    Example:
      deniable explain reports/ "SELECT AVG(age) FROM users WHERE age < 30"
    """
    text = sql_text(sql)
    click.echo(str(open_reports(reports, dimensions, engine).explain(text, **asked)))


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("sql")
@click.option("--users", type=count, help="How many people will report.")
@click.option("--error", type=float, help="Say what it takes instead: the users, or with --users the ε.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per answer.")
@WEIGHTS
@SUMS
def forecast(
    specification: str, sql: str, users: int | None, error: float | None, as_json: bool, weights: str, sums: str
) -> None:
    """The standard error to expect, from the specification alone.

    `--error` is the standard error wanted: of COUNT and SUM per user (0.02 is 2 % of the users), of others in their own
    unit. Without `--users` it prints how many are needed, with it the ε that is needed.

    \b
    Example:
      deniable forecast shop.toml --users 1000000 "SELECT AVG(age) FROM users"
      deniable forecast shop.toml --error 0.02 @question.sql
    """
    from deniable.queries.forecasts import forecast as forecasts

    collection, text = Collection.load(specification), sql_text(sql)
    if error is not None and users is None:
        needed = forecasts.users_needed(collection, text, error, weights=weights, sums=sums)
        click.echo(json.dumps({"users": needed}) if as_json else counted(needed, "user"))
        return
    if error is not None and users is not None:
        epsilon = forecasts.epsilon_needed(collection, text, error, users, weights=weights, sums=sums)
        click.echo(json.dumps({"epsilon": epsilon}) if as_json else f"ε = {epsilon:.3g}")
        return
    if users is None:
        raise BadInput("neither --users nor --error is given. Nothing was predicted. Say how many will report.")
    found = forecasts.forecast(collection, text, users, weights=weights, sums=sums)
    if not as_json:
        click.echo(f"{found}\n{forecasts.ASSUMED}")
        return
    for one in found.predictions:
        stderr = None if math.isnan(one.stderr) else one.stderr
        model = {"model": one.model} if one.model else {}
        found_one = {"name": one.name, "stderr": stderr, **model, "causes": dict(one.causes)}
        click.echo(json_line(found_one))


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("queries", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--users", type=count, required=True, help="How many people will report.")
@click.option("--csv", "as_csv", is_flag=True, help="All choices as CSV.")
def compare(specification: str, queries: str, users: int, as_csv: bool) -> None:
    """Designs by the error they would have on your questions.

    Recommends one, and how to weigh. QUERIES is a file of SELECTs separated by `;` (`-` reads stdin). Errors are
    standard errors: of COUNT and SUM per user, of others in their own unit. The design `grid` is fitted to the
    questions, and its error includes what it assumes; `deniable fit` writes it down.

    \b
    Example:
      deniable compare shop.toml queries.sql --users 1000000
    """
    from deniable.queries.forecasts.compare import compare as compared

    collection = Collection.load(specification)
    questions = questions_about(collection, queries)
    with progress("comparing designs", 1) as advance:
        found = compared(collection, questions, users)
        advance(1)
    names = [f"q{number}" for number in range(1, len(questions) + 1)]
    if as_csv:
        click.echo(",".join(["design", "weights", "sums", *names]))
        for one in found.choices:
            click.echo(",".join([one.design, one.weights, one.sums, *(f"{error:.6g}" for error in one.errors)]))
        return
    choices = [[name, *(getattr(one, name) for one in found.choices)] for name in ("design", "weights", "sums")]
    errors = [
        [name, *("unclear" if math.isinf(one.errors[place]) else f"{one.errors[place]:,.3g}" for one in found.choices)]
        for place, name in enumerate(names)
    ]
    show_columns(f"Predicted standard errors, {counted(found.users, 'user')}", choices, errors)
    for name, question in zip(names, questions, strict=True):
        click.echo(f"{name}: {' '.join(question.split())}")
    best = found.best
    if math.isinf(best.score):
        click.echo("No design answers all of them clearly: collect more users, raise ε, or ask for less.")
        return
    sums = "" if best.sums == "direct" else ", designed sums"
    click.echo(f'Recommended: design = "{best.design}", asked with {best.weights} weights{sums}.')
    if best.design == "grid":
        click.echo("Write it with: deniable fit SPECIFICATION QUERIES --users N -o fitted.toml")


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("queries", type=click.Path(dir_okay=False, allow_dash=True), required=False)
@click.option("--users", type=count, required=True, help="How many people will report.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="Write the fitted specification here.")
def fit(specification: str, queries: str | None, users: int, out: str | None) -> None:
    """Choose the views of a grid for your questions.

    QUERIES is a file of SELECTs separated by `;` (`-` reads stdin); without it all ranges of one and of two attributes
    count. Prints each question's error beside HIO, AHIO and EHIO: of COUNT and SUM per user, of others in their own
    unit. Looks at nothing but the specification.

    \b
    Example:
      deniable fit shop.toml queries.sql --users 1000000 -o fitted.toml
    """
    from deniable.collection import fit as fitted
    from deniable.queries.forecasts.fit import shown_error

    if out is not None and not Path(out).parent.is_dir():
        raise BadInput(f"the folder of {Path(out).name!r} does not exist. Nothing was fitted. Make it first.")
    collection = Collection.load(specification)
    questions = None if queries is None else questions_about(collection, queries)
    with progress("fitting", 1) as advance:
        found = fitted(collection, users=users, workload=questions)
        advance(1)
    made = table(f"Predicted errors, {counted(found.users, 'user')}, ε = {collection.epsilon:g}", "", *found.errors)
    for place in range(len(found.questions)):
        errors = [each[place] for each in found.errors.values()]
        made.add_row(f"q{place + 1}", *(shown_error(one) for one in errors))
    show(made)
    for place, question in enumerate(found.questions):
        click.echo(f"q{place + 1}: {' '.join(question.split())}")
    click.echo(found.views())
    if out is None:
        click.echo("Nothing was written: name a file with -o.")
        return
    found.collection.save(out)
    click.echo(f"Wrote {out}: collect with it (deniable perturb).")
