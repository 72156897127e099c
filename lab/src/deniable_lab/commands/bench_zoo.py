"""`deniable bench zoo`: whether answers of fitted grids can be trusted on tables that nobody tuned for."""

from __future__ import annotations

import math

import click

from deniable.cli.terminal import progress, show, table
from deniable_lab.commands.targets import fail_where_missed

INSIDE, OUTSIDE, WORST = 0.9, 0.85, 6.0
"""What is wanted: coverage inside and outside a workload, and the largest |z|."""


@click.command()
@click.option("--cells", type=click.IntRange(1), default=45, show_default=True, help="Tables with a workload each.")
@click.option("--releases", type=click.IntRange(1), default=6, show_default=True, help="Releases of every table.")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first cell.")
@click.option("--quick", is_flag=True, help="Single tables of one or two small attributes.")
@click.option("--choosing", is_flag=True, help="The half of the zoo that constants may be chosen on.")
def zoo(cells: int, releases: int, first: int, quick: bool, choosing: bool) -> None:
    """Coverage and errors of answers on drawn tables.

    Shapes are smooth, skewed, zero-inflated, heaped, of few values, without order, …

    Every cell draws a table (or two, joined), ε, the number of users, a workload and questions outside it. A grid is
    fitted to the workload. Constants of the library were chosen on even seeds; this shows odd ones. Exits 1 if a shape
    is covered in less than 90 % inside the workload or 85 % outside it, or if an answer is six errors off.

    \b
    Example:
      deniable bench zoo --quick --cells 9
    """
    from deniable_lab.experiments.zoo.drawn_case import drawn_case
    from deniable_lab.experiments.zoo.measured_case import Measured, measured_case
    from deniable_lab.experiments.zoo.summary import AS_FORECAST, NO_WORSE, Summary

    measured: list[Measured] = []
    with progress("measuring", cells) as advance:
        for number in range(first, first + cells):
            measured += measured_case(drawn_case(2 * number + (not choosing), quick=quick), releases)
            advance(1)
    summary = Summary.of(measured)
    made = table(
        "95 % intervals that hold the truth", "tables", "in the workload", "largest |z|", "outside it", "largest |z|"
    )
    missed = []
    for inside, outside in zip(summary.inside, summary.outside, strict=True):
        made.add_row(
            inside.name, _share(inside.covered), f"{inside.worst:.1f}", _share(outside.covered), f"{outside.worst:.1f}"
        )
        missed += [f"{inside.name} inside"] * (inside.covered < INSIDE) + [f"{inside.name} outside"] * (
            outside.covered < OUTSIDE
        )
    show(made)
    click.echo(f"median coverage of shapes: {_share(summary.median)}")
    click.echo(
        f"errors at most {NO_WORSE:g} times those of the better of hio and the unbiased grid: "
        f"{_share(summary.no_worse)} of {summary.compared} cells"
    )
    click.echo(f"errors within {AS_FORECAST:g} times the forecast, in workloads: {_share(summary.as_forecast)}")
    click.echo(f"largest |z|: {summary.worst:.1f}")
    fail_where_missed(missed + ["the largest |z|"] * (summary.worst >= WORST))


def _share(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.0%}"
