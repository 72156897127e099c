"""`deniable bench accuracy` and `streams`: errors next to printed ones, the authors' code, and targets."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.terminal import progress, short, show, table, width, wrapped
from deniable.errors import InvalidParameter
from deniable_lab.commands.data_option import data_option
from deniable_lab.commands.targets import fail_where_missed

if TYPE_CHECKING:
    from deniable_lab.experiments.data import Data
    from deniable_lab.experiments.stream_reference import Figure


GRID_PARTS = ("ranges", "many", "shapes", "joins", "skewed", "households")


@click.command()
@data_option(without="rows are drawn")
@click.option("--rows", type=click.IntRange(1), default=3_000_000, show_default=True, help="Rows of a table.")
@click.option(
    "--runs", type=click.IntRange(1), default=3, show_default=True, help="Releases per cell; with --grids, seeds."
)
@click.option("--grids", is_flag=True, help="Fitted grids next to HIO, on data of several shapes.")
@click.option("--users", type=int, default=1_000_000, show_default=True, help="Users, with --grids.")
@click.option("--questions", type=int, default=30, show_default=True, help="Questions per seed, with --grids.")
@click.option("--seed", type=int, default=0, show_default=True, help="First seed, with --grids.")
@click.option("--part", "parts", type=click.Choice(GRID_PARTS), multiple=True, help="Parts of --grids; all by default.")
@click.option("--oracles", is_flag=True, help="Errors with subset selection next to those without, on drawn tables.")
@click.option("--cases", type=click.IntRange(1), default=300, show_default=True, help="Drawn cases, with --oracles.")
@click.option("--fitted", is_flag=True, help="Of fitted grids too, with --oracles: takes minutes for each case.")
@click.option("--alone", is_flag=True, help="Plain answers of grids only, with --grids: a quarter of the time.")
def accuracy(
    data: Data,
    rows: int,
    runs: int,
    grids: bool,
    users: int,
    questions: int,
    seed: int,
    parts: tuple[str, ...],
    oracles: bool,
    cases: int,
    fitted: bool,
    alone: bool,
) -> None:
    """Standard errors of [XDW20, Table 2], next to the printed ones.

    Exits 1 if the defaults are not at least twice as accurate as the best printed value of a cell (ε up to 2; at ε = 5
    no worse). Takes some minutes.

    \b
    Example:
      deniable bench accuracy --runs 1
    """
    if oracles:
        _subset_gains(range(seed, seed + cases), fitted=fitted)
        return
    if grids:
        _grid_accuracy(data, users, runs, questions, seed, parts, alone=alone)
        return
    from deniable_lab.benchmarks.table_two import EPSILONS, METHODS, measure

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
    fail_where_missed(missed)


def _subset_gains(seeds: range, *, fitted: bool) -> None:
    """Errors with `oracle = "subset"` over those with `oracle = "auto"`, where a question reads a view that changes."""
    from deniable_lab.benchmarks.subset_gain import measured_gains, summarised

    made = table(
        "Errors with subset selection over errors without",
        *("design", "about", "questions", "changed", "median", "best", "worst", "median in reports"),
        numbers_from=2,
    )
    with progress("measuring", len(seeds)) as advance:
        gains = list(measured_gains(seeds, advance, fitted=fitted))
    missed = []
    for row in summarised(gains):
        ratios = [f"{ratio:.3f}" for ratio in (row.median, row.best, row.worst, row.measured)]
        made.add_row(row.design, row.joined, str(row.questions), str(row.changed), *ratios)
        if row.worst > 1:
            missed.append(f"{row.design}, {row.joined}: a question gets worse")
    show(made)
    fail_where_missed(missed)


def _grid_accuracy(
    data: Data, users: int, seeds: int, questions: int, first_seed: int, parts: tuple[str, ...], *, alone: bool
) -> None:
    """Mean absolute errors per user (of averages: relative to the domain), with the share of intervals that cover."""
    from deniable_lab.benchmarks.grid_accuracy import CONSISTENT, GRID, HIO, measure

    made = table(
        "Mean absolute errors", "question", "data", "ε", GRID, "covered", "consistent", HIO, "wanted", numbers_from=2
    )
    missed = []
    with progress("measuring", 28) as advance:
        for row in measure(users, seeds, questions, first_seed, data, advance, parts, alone=alone):
            cells = [f"{row.errors[name]:.4f}" if name in row.errors else "" for name in (GRID, CONSISTENT, HIO)]
            cells.insert(1, f"{row.covered[GRID]:.0%}")
            wanted = "" if row.wanted is None else f"{row.wanted:g}"
            made.add_row(row.question, row.shape, f"{row.epsilon:g}", *cells, wanted)
            best = min(row.errors.get(name, math.inf) for name in (GRID, CONSISTENT))
            if row.wanted is not None and best > row.wanted:
                missed.append(f"{row.question} at ε = {row.epsilon:g}")
    show(made)
    fail_where_missed(missed)


@click.command()
@data_option(without="only what needs no streams is measured")
@click.option(
    "--repetitions", type=click.IntRange(2), default=40, show_default=True, help="Repetitions of every error cell."
)
@click.option("--part", "parts", multiple=True, help="Only these parts; all by default.")
@click.option("--large", is_flag=True, help="Also 10^8 values and a horizon of 2^24, with their memory.")
@click.option(
    "--local",
    is_flag=True,
    help="Streams without trust; parts: speed, errors, alternatives, tails, drawn, renewal, drawn-renewal, coverage.",
)
@click.option("--quick", is_flag=True, help="A fifth of the repetitions.")
@click.option("--csv", "figures", type=click.Path(dir_okay=False), help="Write errors here, too.")
def streams(
    data: Data, repetitions: int, parts: tuple[str, ...], large: bool, local: bool, quick: bool, figures: str | None
) -> None:
    """Error and speed of private streams.

    Compared with the authors' code and numpy. Parts: speed, durable, variances, calibration, intervals, rare,
    renewal, predictions, bursts, defaults, thresholds, paper, hierarchies, smoothers, percentiles, coverage, other,
    drift. Parts after `bursts` need `--data`. `paper` takes half an hour, `variances` five minutes (25 times the
    repetitions: single trees vary much), the rest a few. "Theirs" in `bursts`, `other` and `drift` is our code with the
    paper's settings, in `predictions` the smoother `recent`. Exits 1 if a target is missed.

    \b
    Example:
      deniable bench streams --part speed --part defaults
    """
    from deniable_lab.benchmarks import (
        durable_speed,
        local_renewal,
        local_streams,
        stream_coverage,
        stream_error,
        stream_predictions,
        stream_renewal,
        stream_speed,
    )

    repetitions = max(repetitions // 5, 2) if quick else repetitions
    speeds = {"speed": local_streams.speed if local else partial(stream_speed.measure, large=large)}
    if not local:
        speeds["durable"] = partial(durable_speed.measure, large=large)
    tables: dict[str, Callable[[], Iterator[Any]]] = {
        "variances": lambda: stream_error.variances(25 * repetitions),
        "calibration": lambda: stream_error.calibration(repetitions),
        "intervals": lambda: stream_coverage.drawn(repetitions),
        "rare": lambda: stream_coverage.rare(repetitions),
        "renewal": lambda: stream_renewal.renewal(repetitions),
        "predictions": lambda: stream_predictions.predictions(max(repetitions // 10, 2)),
        "bursts": lambda: stream_error.bursts(repetitions),
        "defaults": lambda: stream_error.defaults(data, repetitions),
        "thresholds": lambda: stream_error.thresholds(data),
        "paper": lambda: stream_error.paper(data, repetitions),
        "hierarchies": lambda: stream_error.hierarchies(data, repetitions),
        "smoothers": lambda: stream_error.smoothers(data, repetitions),
        "percentiles": lambda: stream_error.percentiles(data, repetitions),
        "coverage": lambda: stream_coverage.real(data, repetitions),
        "other": lambda: stream_error.other_streams(data, repetitions),
        "drift": lambda: stream_error.drift(data, repetitions),
    }
    if local:
        tables = {
            "errors": lambda: local_streams.errors(data, repetitions),
            "alternatives": lambda: local_streams.alternatives(data, repetitions),
            "tails": lambda: local_streams.tails(data, repetitions),
            "drawn": lambda: local_streams.drawn_tails(repetitions),
            "renewal": lambda: local_renewal.renewed_streams(data, repetitions),
            "drawn-renewal": lambda: local_renewal.drawn_renewals(repetitions),
            "coverage": lambda: local_streams.coverage(data, repetitions),
        }
    if unknown := set(parts) - set(tables) - set(speeds):
        raise InvalidParameter("--part", f"{', '.join(sorted(unknown))} is not known", "See --help.")
    missed: list[str] = []
    written: list[tuple[str, Any]] = []
    for name, measured in speeds.items():
        if not parts or name in parts:
            missed += _show_speeds(name, measured())
    for name, rows in tables.items():
        if parts and name not in parts:
            continue
        if name not in _WITHOUT_DATA and data.folder is None:
            click.echo(f"{name}: skipped, it needs --data", err=True)
            continue
        made = table(name, "what", "ours", "± %", "theirs", "± %", "ratio", "", numbers_from=1, folding=0)
        notes = []
        with progress(name, 1):
            for row in rows():
                theirs = ("", "") if row.theirs is None else (f"{row.theirs.mean:.3g}", _percent(row.theirs))
                verdict = "" if row.met is None else "✓" if row.met else "MISSED"
                ours = f"{row.ours.mean:.3g}", _percent(row.ours)
                made.add_row(row.what, *ours, *theirs, f"{row.ratio:.3g}", verdict)
                notes += [f"{row.what}: {row.note}"] * bool(row.note)
                missed += [row.what] if row.met is False else []
                written.append((name, row))
        show(made)
        for note in notes:  # a column of them would be a few letters wide
            click.echo(wrapped(note, width()))
    if figures:
        _write_figures(Path(figures), written)
    fail_where_missed(missed)


_WITHOUT_DATA = ("variances", "calibration", "intervals", "rare", "renewal", "predictions", "bursts", "drawn-renewal")


def _write_figures(path: Path, rows: list[tuple[str, Any]]) -> None:
    """One line for each error."""
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("part", "what", "ours", "stderr", "theirs", "met", "note"))
        for part, row in rows:
            theirs = "" if row.theirs is None else f"{row.theirs.mean:.6g}"
            met = "" if row.met is None else row.met
            lines.writerow((part, row.what, f"{row.ours.mean:.6g}", f"{row.ours.stderr:.3g}", theirs, met, row.note))


def _show_speeds(name: str, rows: Iterable[Any]) -> list[str]:
    """A table of figures and targets; returns what was missed."""
    made, missed = table(f"Streams: {name}", "what", "figure", "target"), []
    for row in rows:
        figure = f"{row.figure:.3g} {row.unit}" if row.figure < 1000 else f"{short(row.figure)} {row.unit}"
        sign = "≤" if row.most else "≥"
        goal = "" if row.target is None else f"{sign} {row.target:,.6g} {'✓' if row.met else 'MISSED'}"
        made.add_row(row.what, figure, goal)
        missed += [row.what] if row.met is False else []
    show(made)
    return missed


def _percent(figure: Figure) -> str:
    return f"{100 * figure.stderr / figure.mean:.0f}" if figure.stderr else ""
