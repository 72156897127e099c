"""`deniable query`: SQL over a folder of reports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from deniable.cli.answer_output import as_json, show_table
from deniable.cli.query_options import alike_option, open_reports, query_options
from deniable.cli.sql_text import sql_text
from deniable.errors import BadInput
from deniable.queries.answers.plain_rows import as_csv
from deniable.queries.answers.result import Result


@click.command()
@click.argument("given", nargs=-1, required=True, metavar="REPORTS... [SQL]")
@click.option("-f", "--file", "path", type=click.Path(dir_okay=False), help="Read the SQL from a file.")
@query_options
@alike_option
@click.option("--compare", "compared", metavar="COLUMN", help="Compare the groups of a column, every two of them.")
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON object per row.")
@click.option("--csv", "csv_wanted", is_flag=True, help="Print comma-separated values.")
@click.option("--stderr", is_flag=True, help="Print standard errors (±) instead of intervals.")
@click.option("--excel", type=click.Path(dir_okay=False), help="Also write the answer to an .xlsx file.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Also plot the answer to a .png, .svg or .pdf file.")
def query(
    given: tuple[str, ...],
    path: str | None,
    dimensions: tuple[str, ...],
    json_wanted: bool,
    csv_wanted: bool,
    stderr: bool,
    excel: str | None,
    plot: str | None,
    engine: str,
    compared: str | None,
    alike: bool,
    **chosen: Any,
) -> None:
    """Answer SQL from reports, with an error for every number.

    Give the SQL as an argument, as a file with -f FILE or @FILE, or on stdin with -. It may hold several statements:
    questions, EXPLAIN SELECT, DESCRIBE and SHOW TABLES. Questions may hold COUNT, SUM, AVG, MEDIAN, quantiles, CORR and
    others, and arithmetic with them; CASE and functions; tables joined with USING (uid), and dimensions joined on an
    attribute; WITH and derived tables; UNION ALL, ROLLUP, windows over groups; ORDER BY, HAVING and LIMIT.

    Several folders of one specification, or a quoted pattern such as "reports/2024-*", are one collection. Folders of
    different specifications are groups of users that were asked under different designs (`deniable plan --after`): each
    user in one group only, which is checked, and the answer is over all of them. If chance decided who is in which
    group, such as a hash of the user id, say --alike: each group then says something about all users. Folders may be
    addresses (s3://, gs://, hdfs://) that pyarrow can read.

    With --compare a question with one answer is asked in the groups of a column, and every two groups are compared;
    one error rate holds for all comparisons together.

    \b
    Example:
      deniable query reports/ "SELECT COUNT(*) FROM users WHERE age < 30"
      deniable query hdfs:///reports --engine spark=yarn @question.sql
      deniable query first/ second/ --alike "SELECT AVG(age) FROM users"
      deniable query reports/ --compare city "SELECT AVG(age) FROM users"
    """
    from deniable.queries.answers.answer_options import AnswerOptions

    if json_wanted and csv_wanted:
        raise BadInput("--json and --csv exclude each other. Nothing was read. Choose one.")
    reports, sql = _apart(given, path)
    for folder in reports:
        if Path(folder).is_file():
            raise click.BadParameter(
                f"'{Path(folder).name}' is a file. Pass a folder of reports.", param_hint="'REPORTS'"
            )
    text, options = sql_text(sql, path), AnswerOptions(**chosen)
    if plot is not None:
        from deniable.figure import check_ending, require_plotting

        check_ending(plot)
        require_plotting()
    database = open_reports(reports, dimensions, engine, alike=alike)
    if compared is None:
        answers: Iterable[Result] = database.statements(text, options)
    else:
        from deniable.queries.answers.group_comparison import comparison

        answers = [comparison(database.answer, text, compared, options)]
    for result in answers:
        if plot is not None:
            from deniable.queries.answers.answer_plot import draw

            draw(result, plot)
            click.echo(f"drawn in {Path(plot).name}", err=True)
        if excel is not None:
            result.to_excel(excel)
            click.echo(f"written to {Path(excel).name}", err=True)
        if not (json_wanted or csv_wanted):
            show_table(result, stderr=stderr)
            continue
        click.echo(as_json(result) if json_wanted else as_csv(result), nl=False)
        for note in result.footnotes:
            click.echo(note, err=True)


def _apart(given: tuple[str, ...], path: str | None) -> tuple[tuple[str, ...], str | None]:
    """Folders, and the SQL after them unless it is in a file of its own."""
    written = path is None or given[-1] == "-" or given[-1].startswith("@") or " " in given[-1].strip()
    return (given[:-1], given[-1]) if written and len(given) > 1 else (given, None)
