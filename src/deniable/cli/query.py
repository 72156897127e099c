"""`deniable query`: SQL over a folder of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from deniable.cli.answer_output import as_json, show_table
from deniable.cli.query_options import open_reports, query_options
from deniable.cli.sql_text import sql_text
from deniable.errors import BadInput
from deniable.queries.answers.plain_rows import as_csv


@click.command()
@click.argument("given", nargs=-1, required=True, metavar="REPORTS... [SQL]")
@click.option("-f", "--file", "path", type=click.Path(dir_okay=False), help="Read the SQL from a file.")
@query_options
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON object per row.")
@click.option("--csv", "csv_wanted", is_flag=True, help="Print comma-separated values.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Also plot the answer to a .png, .svg or .pdf file.")
def query(
    given: tuple[str, ...],
    path: str | None,
    dimensions: tuple[str, ...],
    json_wanted: bool,
    csv_wanted: bool,
    plot: str | None,
    engine: str,
    **chosen: Any,
) -> None:
    """Answer SQL from reports, with an error for every number.

    Give the SQL as an argument, as a file with -f FILE or @FILE, or on stdin with -. It may hold several statements:
    questions, EXPLAIN SELECT, DESCRIBE and SHOW TABLES. Questions may hold COUNT, SUM, AVG, MEDIAN, quantiles, CORR and
    others, and arithmetic with them; CASE and functions; tables joined with USING (uid), and dimensions joined on an
    attribute; WITH and derived tables; UNION ALL, ROLLUP, windows over groups; ORDER BY, HAVING and LIMIT.

    Several folders are groups of users that were asked under different designs (`deniable plan --after`): each user in
    one group only, which is checked, and the answer is over all of them.

    \b
    Example:
      deniable query reports/ "SELECT COUNT(*) FROM users WHERE age < 30"
      deniable query hdfs:///reports --engine spark=yarn @question.sql
      deniable query first/ second/ "SELECT COUNT(*) FROM users WHERE age < 30"
    """
    from deniable.queries.answers.answer_options import AnswerOptions

    if json_wanted and csv_wanted:
        raise BadInput("--json and --csv exclude each other. Nothing was read. Choose one.")
    reports, sql = _apart(given, path)
    text, options = sql_text(sql, path), AnswerOptions(**chosen)
    if plot is not None:
        from deniable.plotting.figure import check_ending, require_plotting

        check_ending(plot)
        require_plotting()
    for result in open_reports(reports, dimensions, engine).statements(text, options):
        if plot is not None:
            from deniable.cli.answer_plot import draw

            draw(result, plot)
            click.echo(f"drawn in {Path(plot).name}", err=True)
        if not (json_wanted or csv_wanted):
            show_table(result)
            continue
        click.echo(as_json(result) if json_wanted else as_csv(result), nl=False)
        for note in result.footnotes:
            click.echo(note, err=True)


def _apart(given: tuple[str, ...], path: str | None) -> tuple[tuple[str, ...], str | None]:
    """Folders, and the SQL after them unless it is in a file of its own."""
    written = path is None or given[-1] == "-" or given[-1].startswith("@") or " " in given[-1].strip()
    return (given[:-1], given[-1]) if written and len(given) > 1 else (given, None)
