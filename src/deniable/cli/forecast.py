"""`deniable explain`, `forecast` and `compare`: how questions are answered, and errors in advance."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.query_options import (
    dimension_option,
    engine_option,
    open_reports,
    sums_option,
    unbiased_option,
    weights_option,
)
from deniable.cli.rows_options import (
    given_matching,
    given_matchings,
    given_rows,
    matching_option,
    matchings_option,
    rows_option,
)
from deniable.cli.sql_text import questions_about, sql_text
from deniable.cli.terminal import WHOLE, count, json_line, progress, show, show_columns, table
from deniable.collection import Collection
from deniable.errors import BadInput
from deniable.wording import counted

if TYPE_CHECKING:
    from deniable.queries.forecasts.prediction import Prediction
    from deniable.queries.forecasts.round_forecast import RoundErrors


@click.command()
@click.argument("reports", type=click.Path(file_okay=False))
@click.argument("sql")
@weights_option
@sums_option
@unbiased_option
@rows_option
@matching_option
@dimension_option
@engine_option
def explain(
    reports: str,
    sql: str,
    rows_given: tuple[str, ...],
    matching_given: str | None,
    dimensions: tuple[str, ...],
    engine: str,
    **chosen: Any,
) -> None:
    """Show how a question is answered, and what causes its error.

    Prints the sums that the answer is made of, the levels and cells used, how many reports count, and the predicted
    standard error with its causes. `-` reads the SQL from stdin, `@file` from a file.

    \b
    Example:
      deniable explain reports/ "SELECT AVG(age) FROM users WHERE age < 30"
    """
    text = sql_text(sql)
    chosen |= {"rows": given_rows(rows_given), "matching": given_matching(matching_given)}
    click.echo(str(open_reports((reports,), dimensions, engine).explain(text, **chosen)))


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("sql")
@click.option("--users", type=count, help="How many people will report.")
@click.option("--error", type=float, help="Print what this error takes: users or, with --users, the ε.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per answer.")
@rows_option
@matching_option
@weights_option
@sums_option
def forecast(
    specification: str,
    sql: str,
    users: int | None,
    error: float | None,
    as_json: bool,
    rows_given: tuple[str, ...],
    matching_given: str | None,
    **chosen: Any,
) -> None:
    """Predict standard errors from the specification alone.

    `--error` is the standard error that you want: per user for COUNT and SUM (0.02 is 2 % of the users), in its own
    unit for others. It prints how many users that takes or, with `--users`, which ε. Where an error depends on rows
    that nobody has counted yet, it is a range, and `--rows` and `--matching` say what you expect.

    \b
    Example:
      deniable forecast shop.toml --users 1000000 "SELECT AVG(age) FROM users"
      deniable forecast shop.toml --users 1e6 --rows orders=1..4 @question.sql
      deniable forecast shop.toml --error 0.02 @question.sql
    """
    from deniable.queries.forecasts import forecast as forecasts

    collection, text = Collection.load(specification), sql_text(sql)
    chosen |= {"rows": given_rows(rows_given), "matching": given_matching(matching_given)}
    if error is not None and users is None:
        needed = forecasts.users_needed(collection, text, error, **chosen)
        click.echo(json.dumps({"users": needed}) if as_json else counted(needed, "user"))
        return
    if error is not None and users is not None:
        epsilon = forecasts.epsilon_needed(collection, text, error, users, **chosen)
        click.echo(json.dumps({"epsilon": epsilon}) if as_json else f"ε = {epsilon:.3g}")
        return
    if users is None:
        raise BadInput("neither --users nor --error is given. Nothing was predicted. Say how many people will report.")
    predicted = forecasts.forecast(collection, text, users, **chosen)
    if not as_json:
        click.echo(f"{predicted}\n{forecasts.ASSUMPTIONS}")
        _show_rounds(collection, text, users)
        return
    for answer in predicted.predictions:
        stderr = None if math.isnan(answer.stderr) else answer.stderr
        model = {"model": answer.model} if answer.model else {}
        click.echo(
            json_line(
                {
                    "name": answer.name,
                    "stderr": stderr,
                    **model,
                    **_range(answer, predicted.reasons),
                    "causes": dict(answer.causes),
                }
            )
        )


def _range(answer: Prediction, reasons: tuple[str, ...]) -> dict[str, Any]:
    """The range of a prediction as JSON has it; `high` is null where the answer may be unclear."""
    if math.isnan(answer.low):
        return {}
    return {"low": answer.low, "high": None if math.isinf(answer.high) else answer.high, "range": list(reasons)}


def _show_rounds(collection: Collection, text: str, users: int) -> None:
    """Levels and changes under each mode, for the same ε over a lifetime."""
    from deniable.queries.forecasts.round_forecast import answering, round_errors

    if collection.rounds is None:
        return
    click.echo(answering(collection, users))
    _show_modes(collection, [round_errors(collection, text, users)])


def _show_modes(collection: Collection, questions: Sequence[Sequence[RoundErrors]]) -> None:
    """The table of modes: of one question, or of several with their numbers."""
    from deniable.queries.forecasts.round_forecast import CHANGING, MEMOISED_NOTE, ROUND_HEADER

    assert collection.rounds is not None  # noqa: S101 - the caller has looked
    title = f"Rounds: {collection.rounds.count}, {CHANGING:.0%} of people change from one to the next"
    several = len(questions) > 1
    made = table(title, *(["question"] if several else []), *ROUND_HEADER)
    for number, errors in enumerate(questions, 1):
        for row in errors:
            made.add_row(*([f"q{number}"] if several else []), *row.shown)
    show(made)
    if any(row.same_changes is not None for errors in questions for row in errors):
        click.echo(MEMOISED_NOTE)


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("queries", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--users", type=count, required=True, help="How many people will report.")
@rows_option
@matchings_option
@click.option("--csv", "as_csv", is_flag=True, help="Print all choices as CSV.")
def compare(
    specification: str,
    queries: str,
    users: int,
    rows_given: tuple[str, ...],
    matchings_given: tuple[str, ...],
    as_csv: bool,
) -> None:
    """Compare the errors that designs would have on your questions.

    Recommends a design and how to weight it. QUERIES is a file of SELECTs separated by `;` (`-` reads stdin). Errors
    are standard errors: per user for COUNT and SUM, in their own unit for others. The design `grid` is fitted to the
    questions, and its error includes what it assumes; `deniable plan` writes it down.

    \b
    Example:
      deniable compare shop.toml queries.sql --users 1000000
    """
    from deniable.queries.forecasts.compare import compare as compared
    from deniable.queries.forecasts.fit import NOT_FORECAST, RANGE_NOTE, shown_error
    from deniable.queries.forecasts.predicted_range import shown_span

    collection, rows = Collection.load(specification), given_rows(rows_given)
    questions = questions_about(collection, queries)
    with progress("comparing designs", WHOLE) as advance:
        comparison = compared(
            collection,
            questions,
            users,
            rows=rows,
            matching=given_matchings(matchings_given),
            advance=lambda part: advance(part * WHOLE),
        )
    names = [f"q{number}" for number in range(1, len(questions) + 1)]
    if as_csv:
        click.echo(",".join(["design", "weights", "sums", *names]))
        for choice in comparison.choices:
            click.echo(",".join([choice.design, choice.weights, choice.sums, *(f"{e:.6g}" for e in choice.errors)]))
        return
    choices = [
        [name, *(getattr(choice, name) for choice in comparison.choices)] for name in ("design", "weights", "sums")
    ]
    errors = [
        [name, *(shown_error(choice.errors[index]) for choice in comparison.choices)]
        for index, name in enumerate(names)
    ]
    show_columns(
        f"Predicted standard errors, {counted(comparison.users, 'user')}", choices, [[column] for column in errors]
    )
    for name, question in zip(names, questions, strict=True):
        click.echo(f"{name}: {' '.join(question.split())}")
    if ranges := [
        f"{name} {span}" for name, ends in zip(names, comparison.spans, strict=True) if (span := shown_span(*ends))
    ]:
        click.echo(f"ranges of the grid: {', '.join(ranges)}\n{RANGE_NOTE}")
    if any(math.isnan(error) for choice in comparison.choices for error in choice.errors):
        click.echo(NOT_FORECAST)
    best = comparison.best
    if math.isinf(best.score):
        click.echo("No design answers all of them clearly: collect from more users, raise ε, or ask for less.")
        return
    sums = "" if best.sums == "direct" else ", designed sums"
    click.echo(f'Recommended: design = "{best.design}", asked with {best.weights} weights{sums}.')
    if comparison.rounds:
        _show_modes(collection, comparison.rounds)
    if best.design == "grid":
        click.echo("Write it with: deniable plan SPECIFICATION QUERIES --users N")
