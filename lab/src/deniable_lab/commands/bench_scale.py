"""`deniable bench scale`: what a report, a question and a value cost, and what a billion people would take."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import click

from deniable.cli.terminal import count, progress, short, show, table

_HOUR_S, _DAY_S = 3_600, 86_400


@click.command()
@click.option("--people", type=count, default=200_000, show_default=True, help="How many people are measured.")
@click.option("--cluster", is_flag=True, help="Also run stragglers under Spark's own scheduler. Needs Java.")
def scale(people: int, cluster: bool) -> None:
    """Unit costs by CPU time, and what a cluster would need.

    CPU time is that of all threads, and of the collector's process; the machine may be busy with other things. The
    second table multiplies: a billion people with two reports each, a million streams with a value a minute. The third
    simulates parts of uneven size and slow machines. With --cluster the same simulation is compared with Spark's own
    scheduler: three workers on this machine, one of them slow, whose tasks sleep.

    \b
    Example:
      deniable bench scale --people 50000
    """
    from deniable_lab.benchmarks.straggling import Stage, lost_share
    from deniable_lab.benchmarks.unit_costs import PEOPLE, STREAMS, unit_costs

    with progress("measuring", 3) as advance:
        costs = unit_costs(people, lambda: advance(1))
    made = table("Unit costs", "what", "unit", "CPU-s per million", "bytes each", numbers_from=2)
    for cost in costs:
        size = "" if cost.size_bytes is None else f"{cost.size_bytes:,.0f}"
        made.add_row(cost.what, cost.unit, f"{cost.per_million:,.2f}", size)
    show(made)
    drawing, counting, joining, taking, _, keyed, kept = costs
    made = table("A billion people, a million streams", "what", "core-hours", "bytes")
    reports = 2 * PEOPLE
    made.add_row(
        "draw all reports in bulk", _hours(drawing.cpu_s * reports), short(reports * (drawing.size_bytes or 0))
    )
    made.add_row(
        "take all reports over HTTP", _hours(taking.cpu_s * reports), short(reports * (taking.size_bytes or 0))
    )
    made.add_row("one count", _hours(counting.cpu_s * PEOPLE), "")
    made.add_row("one average over a join", _hours(joining.cpu_s * PEOPLE), "")
    a_day = STREAMS * _DAY_S / 60
    made.add_row("a day of a million streams", _hours(keyed.cpu_s * a_day), short(STREAMS * (keyed.size_bytes or 0)))
    made.add_row("the same, kept on the disk", _hours(kept.cpu_s * a_day), short(a_day * (kept.size_bytes or 0)))
    show(made)
    made = table(
        "Time that skew and stragglers cost, 1,000 cores",
        "parts per core",
        "skew",
        "slow cores",
        "no speculation",
        "speculation",
    )
    for parts, skew, slow in ((1, 0.0, 0.0), (1, 0.5, 0.0), (4, 0.5, 0.0), (4, 0.5, 0.02), (16, 0.5, 0.02)):
        stage = Stage(1_000 * parts, 1_000, 60 / parts, skew, slow, 5.0)
        lost = (f"{lost_share(stage, speculative=again):.0%}" for again in (False, True))
        made.add_row(str(parts), f"{skew:g}", f"{slow:.0%}", *lost)
    show(made)
    if cluster:
        _show_cluster()


def _show_cluster() -> None:
    """The simulation next to Spark's scheduler, on tasks of uneven length."""
    from deniable_lab.benchmarks.spark_cluster import compared, slow_factors
    from deniable_lab.benchmarks.straggling import Stage, drawn

    cores, parts = slow_factors().size, (2, 8)
    works = [drawn(Stage(many * cores, cores, 12.0 / many, 0.5, 0.0, 1.0), 1)[0] for many in parts]
    made = table(
        "Spark's own cluster, a third of it slow", "parts per core", "speculation", "Spark s", "simulated s", "copies"
    )
    for speculative in (False, True):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:  # one Java each
            measured = process.submit(compared, works, speculative=speculative).result()
        for many, result in zip(parts, measured, strict=True):
            low, high = result.simulated_s
            cells = (f"{result.spark_s:.1f}", f"{low:.1f} to {high:.1f}", str(result.copies))
            made.add_row(str(many), "yes" if speculative else "no", *cells)
    show(made)


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR_S:,.2f}"
