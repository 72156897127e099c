"""`deniable bench`: speed beside peers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.terminal import progress, show, table
from deniable.errors import Failure, InvalidParameter

if TYPE_CHECKING:
    from deniable.experiments.stream_reference import Figure


@click.group()
def bench() -> None:
    """Measure speed beside peers, in one run on the same data."""


@bench.command()
def mechanisms() -> None:
    """Values per second of every mechanism, beside pure-ldp, multi-freq-ldpy and OpenDP.

    Needs the extra `bench` (`make bench` installs it). Takes a minute; exits 1 if a target is missed.

    \b
    Example:
      deniable bench mechanisms
    """
    from deniable.benchmarks.mechanism_speed import measure

    made = table("Speed of mechanisms", "mechanism", "step", "per second", "peer", "ratio", "target", numbers_from=2)
    missed: list[str] = []
    with progress("measuring", 33) as advance:
        for row in measure():
            against = (row.peer, f"{row.ratio:,.{0 if row.ratio > 99 else 1}f}×") if row.peer else ("", "")
            goal = (
                ""
                if row.met is None
                else f"≥ {row.target:.{2 if row.target < 1 else 0}f} {'✓' if row.met else 'MISSED'}"
            )
            made.add_row(row.mechanism, row.step, f"{_short(row.rate)} {row.unit}", *against, goal)
            if row.met is False:
                missed.append(f"{row.mechanism} {row.step} against {row.peer}")
            advance(1)
    show(made)
    if missed:
        raise Failure(f"targets missed: {', '.join(missed)}. The table above has the figures.")


@bench.command()
@click.option("--repetitions", type=click.IntRange(2), default=8, show_default=True, help="Of every job.")
def peers(repetitions: int) -> None:
    """Error and time of pure-ldp, multi-freq-ldpy, diffprivlib and OpenDP.

    Same jobs, same data, same ε. Columns: root mean square error and time as multiples of ours (above 1: ours is
    better), the standard error of the first in per cent, and our time. Where a peer clips negative counts, so do
    we. Those that are not installed are named and left out; the extra `bench` has them all. Takes two minutes.

    Jobs: counts of 10,000 or 20,000 users without trust; marginals of three attributes; noise on 10,000 counts; the
    percentile 99.5 of 65,536 values; sums over 200 ranges of 4,096 values from a consistent noisy tree.

    \b
    Example:
      deniable bench peers
    """
    from deniable.benchmarks.peers import count, measure, missing

    absent = missing()
    for peer, reason in absent.items():
        click.echo(f"{peer}: not measured ({reason})", err=True)
    made = table("Beside peers", "job", "peer", "error ×", "± %", "time ×", "ours ms", numbers_from=2)
    with progress("measuring", count()) as advance:
        for row in measure(absent, repetitions):
            figures = (f"{row.error:.3g}", f"{100 * row.doubt:.0f}", f"{row.time:,.1f}", f"{1e3 * row.seconds:.3g}")
            made.add_row(row.job, row.peer, *figures)
            advance(1)
    show(made)


@bench.command()
@click.option("--large", is_flag=True, help="Also with ten million rows; takes a minute more.")
def collecting(large: bool) -> None:
    """Time and memory of `perturb` from Parquet to Parquet, beside a plain sort of the same file.

    Columns: seconds, seconds of the plain sort, their ratio, and the peak memory.

    \b
    Example:
      deniable bench collecting
    """
    from deniable.benchmarks.collecting_speed import measure

    made = table("Collecting", "rows and design", "seconds", "plain", "ratio", "MiB")
    with progress("measuring", 6 if large else 3) as advance:
        for row in measure(large=large):
            figures = (row.seconds, row.plain_seconds, row.seconds / row.plain_seconds)
            made.add_row(row.what, *(f"{figure:.2f}" for figure in figures), f"{row.mebibytes:,.0f}")
            advance(1)
    show(made)


@bench.command()
@click.option("--large", is_flag=True, help="Also with ten million reports; takes two minutes more.")
def queries(large: bool) -> None:
    """Warm time of questions, beside a bare compiled loop over the same reports and cells.

    Exits 1 if a question takes more than five times the bare loop.

    \b
    Example:
      deniable bench queries
    """
    from deniable.benchmarks.query_speed import CHECKED, TARGET, first_call, measure

    made = table("Questions", "question", "reports", "ms", "bare ms", "ratio", "cells per report")
    missed = []
    with progress("measuring", 7 if large else 6) as advance:
        for row in measure(large=large):
            made.add_row(
                row.what,
                f"{row.reports:,}",
                f"{row.seconds * 1e3:,.1f}",
                f"{row.bare_seconds * 1e3:,.1f}",
                f"{row.ratio:.1f}×",
                f"{row.cells:,.1f}",
            )
            if row.ratio > TARGET and row.reports >= CHECKED:
                missed.append(row.what)
            advance(1)
    show(made)
    click.echo(f"first call in a process, import included: {first_call():.2f} s")
    if missed:
        raise Failure(f"over {TARGET:g} times the bare loop: {', '.join(missed)}. The table above has the figures.")


@bench.command()
@click.option(
    "--data", type=click.Path(file_okay=False), help="Folder with tables/atus_*.parquet; else synthetic rows."
)
@click.option("--rows", type=int, default=3_000_000, show_default=True)
@click.option("--runs", type=int, default=3, show_default=True, help="Releases per cell; seeds of --grids.")
@click.option("--grids", is_flag=True, help="Fitted grids beside HIO, on data of several shapes.")
@click.option("--users", type=int, default=1_000_000, show_default=True, help="Of --grids.")
@click.option("--questions", type=int, default=30, show_default=True, help="Of --grids, per seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first seed of --grids.")
@click.option("--part", "parts", multiple=True, help="Of --grids: ranges, many, shapes, joins, skewed, households.")
def accuracy(
    data: str | None,
    rows: int,
    runs: int,
    grids: bool,
    users: int,
    questions: int,
    seed: int,
    parts: tuple[str, ...],
) -> None:
    """Standard errors of the averages of [XDW20, Table 2], beside the printed ones.

    Exits 1 if the defaults are not at least twice as accurate as the best printed value of a cell (ε up to 2; at ε = 5
    no worse). Takes some minutes.

    \b
    Example:
      deniable bench accuracy --runs 1
    """
    if grids:
        _grid_accuracy(data, users, runs, questions, seed, parts)
        return
    from deniable.benchmarks.table_two import EPSILONS, METHODS, measure

    made = table(
        "AVG(hours), standard errors", "ε", "question", "method", "ours", "printed", "printed/ours", numbers_from=3
    )
    missed = []
    with progress("measuring", len(EPSILONS) * len(METHODS)) as advance:
        for cell in measure(data, rows, runs, advance):
            ratio = f"{cell.printed / cell.stderr:.2f}"
            made.add_row(
                f"{cell.epsilon:g}", cell.question, cell.method, f"{cell.stderr:,.3g}", f"{cell.printed:,.3g}", ratio
            )
            if cell.wanted and cell.printed / cell.stderr < cell.wanted:
                missed.append(f"{cell.question} at ε = {cell.epsilon:g}")
    show(made)
    if missed:
        raise Failure(f"targets missed: {', '.join(missed)}. The table above has the figures.")


def _grid_accuracy(
    data: str | None, users: int, seeds: int, questions: int, first_seed: int, parts: tuple[str, ...]
) -> None:
    """Mean absolute errors per user (of averages: relative to the domain), with the share of intervals that cover."""
    from deniable.benchmarks.grid_accuracy import CONSISTENT, GRID, HIO, measure

    made = table(
        "Mean absolute errors", "question", "data", "ε", GRID, "covered", "consistent", HIO, "wanted", numbers_from=2
    )
    missed = []
    with progress("measuring", 28) as advance:
        for row in measure(users, seeds, questions, first_seed, data, advance, parts):
            cells = [f"{row.errors[name]:.4f}" if name in row.errors else "" for name in (GRID, CONSISTENT, HIO)]
            cells.insert(1, f"{row.covered[GRID]:.0%}")
            wanted = "" if row.wanted is None else f"{row.wanted:g}"
            made.add_row(row.question, row.shape, f"{row.epsilon:g}", *cells, wanted)
            best = min(row.errors.get(name, math.inf) for name in (GRID, CONSISTENT))
            if row.wanted is not None and best > row.wanted:
                missed.append(f"{row.question} at ε = {row.epsilon:g}")
    show(made)
    if missed:
        raise Failure(f"targets missed: {', '.join(missed)}. The table above has the figures.")


@bench.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    help="Folder of streams as Parquet files; without it only what needs none.",
)
@click.option("--repetitions", type=click.IntRange(2), default=40, show_default=True, help="Of every error cell.")
@click.option("--part", "parts", multiple=True, help="Only these parts; all if left out.")
@click.option("--large", is_flag=True, help="Also 10^8 values and a horizon of 2^24, with their memory.")
@click.option("--local", is_flag=True, help="Streams without trust; parts: speed, errors, alternatives, coverage.")
def streams(data: str | None, repetitions: int, parts: tuple[str, ...], large: bool, local: bool) -> None:
    """Error and speed of private streams, beside the authors' code and numpy.

    Parts: speed, variances, calibration, intervals, defaults, thresholds, paper, hierarchies, smoothers, percentiles,
    coverage, other. Those after `intervals` need `--data`. `paper` takes half an
    hour, `variances` five minutes (25 times the repetitions: single trees vary much), the rest a few. Exits 1 if a
    target is missed.

    \b
    Example:
      deniable bench streams --part speed --part defaults
    """
    from pathlib import Path

    from deniable.benchmarks import local_streams, stream_coverage, stream_error, stream_speed

    folder = Path(data or "")
    speeds = local_streams.speed if local else partial(stream_speed.measure, large=large)
    tables: dict[str, Callable[[], Iterator[Any]]] = {
        "variances": lambda: stream_error.variances(25 * repetitions),
        "calibration": lambda: stream_error.calibration(repetitions),
        "intervals": lambda: stream_coverage.drawn(5 * repetitions),
        "defaults": lambda: stream_error.defaults(folder, repetitions),
        "thresholds": lambda: stream_error.thresholds(folder),
        "paper": lambda: stream_error.paper(folder, repetitions),
        "hierarchies": lambda: stream_error.hierarchies(folder, repetitions),
        "smoothers": lambda: stream_error.smoothers(folder, repetitions),
        "percentiles": lambda: stream_error.percentiles(folder, repetitions),
        "coverage": lambda: stream_coverage.real(folder, repetitions),
        "other": lambda: stream_error.other_streams(folder, repetitions),
    }
    if local:
        tables = {
            "errors": lambda: local_streams.errors(folder, repetitions),
            "alternatives": lambda: local_streams.alternatives(folder, repetitions),
            "coverage": lambda: local_streams.coverage(folder, repetitions),
        }
    if unknown := set(parts) - set(tables) - {"speed"}:
        raise InvalidParameter("--part", f"{', '.join(sorted(unknown))} is not known", "See --help.")
    missed: list[str] = []
    if not parts or "speed" in parts:
        made = table("Speed of streams", "what", "figure", "target")
        for speed in speeds():
            figure = (
                f"{speed.figure:.3g} {speed.unit}" if speed.figure < 1000 else f"{_short(speed.figure)} {speed.unit}"
            )
            sign = "≤" if speed.most else "≥"
            goal = "" if speed.target is None else f"{sign} {speed.target:,.6g} {'✓' if speed.met else 'MISSED'}"
            made.add_row(speed.what, figure, goal)
            missed += [speed.what] if speed.met is False else []
        show(made)
    for name, rows in tables.items():
        if parts and name not in parts:
            continue
        if name not in ("variances", "calibration", "intervals") and (data is None or not folder.is_dir()):
            click.echo(f"{name}: skipped, there are no streams at hand", err=True)
            continue
        made = table(name, "what", "ours", "± %", "theirs", "± %", "ratio", "", "", numbers_from=1)
        with progress(name, 1):
            for row in rows():
                theirs = ("", "") if row.theirs is None else (f"{row.theirs.mean:.3g}", _percent(row.theirs))
                verdict = "" if row.met is None else "✓" if row.met else "MISSED"
                made.add_row(
                    row.what, f"{row.ours.mean:.3g}", _percent(row.ours), *theirs, f"{row.ratio:.3g}", verdict, row.note
                )
                missed += [row.what] if row.met is False else []
        show(made)
    if missed:
        raise Failure(f"targets missed: {', '.join(missed)}. The tables above have the figures.")


def _percent(figure: Figure) -> str:
    return f"{100 * figure.stderr / figure.mean:.0f}" if figure.stderr else ""


@bench.command()
@click.option("--sizes", default="1000000,10000000", show_default=True, help="Reports per table.")
@click.option("--partitions", default="2,8,32", show_default=True)
@click.option("--udf", "udf_size", type=int, default=10_000_000, show_default=True, help="Size for the paper's way.")
def spark(sizes: str, partitions: str, udf_size: int) -> None:
    """Warm time of questions on Spark (local[2]), beside DuckDB and beside the paper's way; × is paper's over Spark's.

    MiB are peaks so far, with a JVM of their own for each number of partitions: the driver's Python, the JVM (of driver
    and executor, 4 GiB of heap), the largest Python worker. DuckDB runs in another process.

    Exits 1 if at ten million reports Spark takes more than four times DuckDB plus two seconds, or if the paper's way,
    a Python function per row and inversion, is not 20 times slower. Takes many minutes; thirty million reports need
    6 GiB of memory.

    \b
    Example:
      deniable bench spark --sizes 1000000 --partitions 2 --udf 1000000
      deniable bench spark --sizes 30000000 --partitions 8,32
    """
    from deniable.benchmarks.spark_speed import measure

    chosen, counts = (tuple(int(one) for one in text.split(",")) for text in (sizes, partitions))
    made = table("Questions on Spark", "question", "reports", "parts", "Spark s", "DuckDB s", "paper s", "×", "MiB")
    missed: list[str] = []
    with progress("measuring", len(chosen) * len(counts) * 4) as advance:
        for row in measure(chosen, counts, udf_size):
            paper = ("", "") if row.udf is None else (f"{row.udf:.1f}", f"{row.udf / row.spark:.0f}")
            memory = "/".join(f"{figure:.0f}" for figure in (row.driver, row.jvm, row.workers))
            seconds = (f"{row.spark:.2f}", f"{row.duckdb:.2f}")
            made.add_row(row.what, f"{row.reports / 1e6:g} M", str(row.partitions), *seconds, *paper, memory)
            missed += row.missed
            advance(1)
    show(made)
    if missed:
        raise Failure(f"targets missed: {'; '.join(missed)}. The table above has the figures.")


def _short(rate: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.3g} {letter}"
    return f"{rate:.3g}"
