"""`deniable bench scale`: what a report, a question and a value cost, and what a billion people would take."""

from __future__ import annotations

import click

from deniable.cli.terminal import count, progress, short, show, table

_HOUR_S, _DAY_S = 3_600, 86_400


@click.command()
@click.option("--people", type=count, default=200_000, show_default=True, help="How many people are measured.")
def scale(people: int) -> None:
    """Unit costs by CPU time, and what a cluster would need.

    CPU time is that of all threads, and of the collector's process; the machine may be busy with other things. The
    second table multiplies: a billion people with two reports each, a million streams with a value a minute. The third
    simulates parts of uneven size and slow machines.

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
    drawing, counting, joining, taking, _, keyed = costs
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


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR_S:,.2f}"
