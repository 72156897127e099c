"""`deniable bench answers`: whether intervals of quantiles, regressions and averages of few people cover."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli.terminal import progress, show, table
from deniable_lab.commands.targets import fail_where_missed

LEAST = 0.93
"""Fewer intervals that hold the truth than this are a fault, by more than chance explains."""


@click.command()
@click.option(
    "--releases", type=click.IntRange(2), default=400, show_default=True, help="How often people are drawn anew."
)
@click.option("--seed", type=int, default=1, show_default=True, help="First seed.")
@click.option("--csv", "path", type=click.Path(dir_okay=False), help="Also write the rows to a file.")
def answers(releases: int, seed: int, path: str | None) -> None:
    """Coverage of quantiles, CORR, REGR and averages of few people.

    4,000 people at ε = 2, or 20,000 at ε = 4 for CORR, COVAR and REGR, are drawn anew for every release. Quantiles are
    of 200 values: normal, skewed, with three spikes, and rounded to tens. Averages are of so few people that their
    number is one, two or four standard errors from zero. Columns: the share of 95 % intervals that hold the truth, its
    standard error, and the length of intervals as a share of what is possible. Exits 1 if a share is below 93 % by more
    than two standard errors.

    \b
    Example:
      deniable bench answers --releases 3
    """
    from deniable_lab.benchmarks.answer_coverage import as_csv, measure, parts

    made = table("Intervals", "answer", "data", "asked", "covered", "±", "length", numbers_from=3)
    missed, rows = [], []
    with progress("collecting", parts() * releases) as advance:
        for row in measure(releases, seed, advance):
            rows.append(row)
            if path is not None:  # also if somebody ends it
                Path(path).write_text(as_csv(rows), encoding="utf-8")
            error = (max(row.covered * (1 - row.covered), 1 / row.releases) / row.releases) ** 0.5
            made.add_row(row.kind, row.data, row.asked, f"{row.covered:.1%}", f"{error:.1%}", f"{row.width:.1%}")
            if row.covered + 2 * error < LEAST:
                missed.append(f"{row.kind} of {row.data}, {row.asked}: {LEAST:.0%} covered")
    show(made)
    fail_where_missed(missed)
