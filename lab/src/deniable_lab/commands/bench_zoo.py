"""`deniable bench zoo`: whether answers of fitted grids can be trusted on tables that nobody tuned for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean

import click

from deniable.cli.terminal import count, progress, show, table
from deniable_lab.commands.data_option import data_option
from deniable_lab.commands.targets import fail_where_missed
from deniable_lab.experiments.data import Data

INSIDE, OUTSIDE, MEDIAN, NO_WORSE_SHARE, WORST = 0.9, 0.85, (0.93, 0.98), 0.95, 6.0
"""What is wanted: coverage inside and outside a workload, its median over shapes, the share of cells that are no worse
than alternatives without a model, and the largest |z|."""
GAIN = 1.5
"""How many times smaller errors should be with two looks."""


@click.command()
@data_option(without="--real has no tables")
@click.option("--cells", type=click.IntRange(1), default=44, show_default=True, help="Tables with a workload each.")
@click.option("--releases", type=click.IntRange(1), default=6, show_default=True, help="Releases of every table.")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first cell.")
@click.option("--quick", is_flag=True, help="Single tables of one or two small attributes.")
@click.option("--choosing", is_flag=True, help="The half of the zoo that constants may be chosen on.")
@click.option("--real", is_flag=True, help="Tables of surveys instead of drawn ones; they need --data.")
@click.option("--everyday", is_flag=True, help="Prices, birth years, zip codes, … instead of the zoo's shapes.")
@click.option("--two-looks", is_flag=True, help="A first tenth of the users chooses the design of the rest.")
@click.option(
    "--csv",
    "kept",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file for every answer; cells that it has are not measured again.",
)
@click.option("--users", type=count, default=50_000, show_default=True, help="How many people, with --two-looks.")
def zoo(
    data: Data,
    cells: int,
    releases: int,
    first: int,
    quick: bool,
    choosing: bool,
    real: bool,
    everyday: bool,
    two_looks: bool,
    kept: Path | None,
    users: int,
) -> None:
    """Coverage and errors of answers on drawn tables.

    Shapes are smooth, skewed, zero-inflated, heaped, of few values, without order, categorical, …

    Every cell draws a table (or two, joined), ε, the number of users, a workload and questions outside it. A grid is
    fitted to the workload. Constants of the library were chosen on even seeds; this shows odd ones. Exits 1 if a shape
    is covered in less than 90 % inside the workload or 85 % outside it, if the median is not from 93 to 98 %, if more
    than 5 % of the workloads have errors over 1.25 times those of the better alternative, or if one is six errors off.

    With --real, rows are those of surveys (UCI Adult, American Time Use Survey, Current Population Survey); attributes,
    ε and questions are drawn. With --everyday, single tables imitate columns that people have, such as prices that end
    in 99; no constant was chosen on them.

    With --csv FILE, every answer is kept, a run that was stopped goes on where it ended, and the figures are about all
    cells of the file.

    With --two-looks, tables are skewed or spiky, every other three are joined, and nobody says what will be asked. A
    tenth of the users report first. Exits 1 if errors over all users are not 1.5 times smaller than with one design.

    \b
    Example:
      deniable bench zoo --quick --cells 9
      deniable bench zoo --two-looks --cells 6 --releases 1
    """
    if two_looks:
        _show_looks(range(2 * first + (not choosing), 2 * (first + cells), 2), users, releases)
        return
    from deniable_lab.experiments.zoo.drawn_case import Case, drawn_case
    from deniable_lab.experiments.zoo.everyday_case import everyday_case
    from deniable_lab.experiments.zoo.measured_case import Measured, measured_case
    from deniable_lab.experiments.zoo.measured_file import appended, read_measured
    from deniable_lab.experiments.zoo.real_case import real_case
    from deniable_lab.experiments.zoo.summary import AS_FORECAST, NO_WORSE, Summary

    def drawn(seed: int) -> Case:
        if everyday:
            return everyday_case(seed)
        return real_case(data, seed) if real else drawn_case(seed, quick=quick)

    measured: list[Measured] = [] if kept is None else read_measured(kept)
    known = {each.seed for each in measured}
    with progress("measuring", cells) as advance:
        for number in range(first, first + cells):
            seed = 2 * number + (not choosing)
            if seed not in known:
                fresh = measured_case(drawn(seed), releases)
                measured += fresh
                if kept is not None:
                    appended(kept, fresh)
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
    for name, errors in (("in workloads", summary.inside_errors), ("outside them", summary.outside_errors)):
        if errors.cells:
            click.echo(
                f"errors {name}, relative to the better of hio and the unbiased grid: {errors.typical:.2f} "
                f"(95 % of cells below {errors.large:.2f}); at most {NO_WORSE:g} in {_share(errors.no_worse)} "
                f"of {errors.cells} cells"
            )
    click.echo(
        f"errors within a factor of {AS_FORECAST:g} of the forecast, in workloads: "
        f"{_share(summary.as_forecast)} of {summary.forecasts} cells; errors that answers state: "
        f"{_share(summary.stated_as_forecast)} of questions"
    )
    click.echo(f"largest |z|: {summary.worst:.1f}")
    missed += ["the median"] * (not MEDIAN[0] <= summary.median <= MEDIAN[1])
    missed += ["errors in workloads"] * (summary.inside_errors.no_worse < NO_WORSE_SHARE)
    fail_where_missed(missed + ["the largest |z|"] * (summary.worst >= WORST))


def _show_looks(seeds: Sequence[int], users: int, releases: int) -> None:
    """How many times smaller errors are with two looks, for some drawn tables."""
    from deniable_lab.experiments.zoo.measured_looks import drawn_looks, measured_looks

    looks = []
    with progress("measuring", len(seeds)) as advance:
        for seed in seeds:
            looks.append(measured_looks(drawn_looks(seed, users), releases))
            advance(1)
    title = f"Errors over all {users:,} users: one look over two looks"
    made = table(title, "shape", "tables", "values", "ε", "forecast", "measured")
    for each in looks:
        gains = (f"{gain:.1f}" for gain in (each.forecast, each.measured))
        made.add_row(each.shape, str(each.tables), f"{each.size:,}", f"{each.epsilon:g}", *gains)
    show(made)
    forecast, measured = (
        geometric_mean(gains) for gains in zip(*((m.forecast, m.measured) for m in looks), strict=True)
    )
    click.echo(f"on average (geometric mean): forecast {forecast:.1f}, measured {measured:.1f}")
    low = sum(min(each.forecast, each.measured) < GAIN for each in looks)
    fail_where_missed([f"{low} of {len(looks)} tables below {GAIN:g}"] * bool(low))


def _share(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.0%}"
