"""`deniable query`: SQL over a folder of reports."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from deniable.cli.engine import ENGINE, opened
from deniable.cli.terminal import show, table


@click.command()
@click.argument("reports", type=click.Path(file_okay=False))
@click.argument("sql")
@click.option("--weights", type=click.Choice(["optimal", "greedy"]), default="optimal", show_default=True)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")
@ENGINE
def query(reports: str, sql: str, weights: str, confidence: float, as_json: bool, engine: str) -> None:
    """Answer SQL from a folder of reports, every number with its error. `-` reads the SQL from stdin.

    COUNT(*), SUM and AVG of private attributes; tables joined with USING (uid); WHERE and GROUP BY on private
    and public attributes.

    \b
    Example:
      deniable query reports/ "SELECT COUNT(*) FROM users WHERE age < 30"
      deniable query hdfs:///reports - --engine spark=yarn < question.sql
    """
    from deniable.engines.reading import connect

    text = sys.stdin.read() if sql == "-" else sql
    database = connect(reports, engine=opened(engine))
    for name, refused in database.refused.items():
        for reason, count in refused.items():
            click.echo(f"{name}: {count:,} reports refused: {reason}", err=True)
    result = database.sql(text, weights=weights, confidence=confidence)
    if as_json:
        for row in result.to_arrow().to_pylist():
            click.echo(json.dumps(row, default=str))
        return
    made = table("Answer", *result.groups, *_headers(result), numbers_from=len(result.groups))
    count = len(next(iter(result.answers.values())))
    for place in range(count):
        cells = [str(values[place]) for values in result.groups.values()]
        for estimates in result.answers.values():
            one = estimates[place]
            low, high = one.interval
            cells += [f"{one.value:,.6g}", f"{low:,.6g} to {high:,.6g}"]
        made.add_row(*cells)
    show(made)
    for note in result.notes:
        click.echo(note)


def _headers(result: Any) -> list[str]:
    confidence = next(iter(result.answers.values()))[0].confidence
    return [header for name in result.answers for header in (name, f"{confidence:.0%} interval")]
