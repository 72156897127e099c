"""Commands of `deniable bench` that measure time and memory, next to peers or plain loops."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from deniable.cli.terminal import progress, short, show, table
from deniable.wording import counted
from deniable_lab.commands.targets import fail_where_missed


@click.command()
def mechanisms() -> None:
    """Values per second of every mechanism, next to peers.

    The peers are pure-ldp, multi-freq-ldpy and OpenDP. Needs the extra `peers` of deniable-lab (`make bench` installs
    it). Takes a minute; exits 1 if a target is missed.

    \b
    Example:
      deniable bench mechanisms
    """
    from deniable_lab.benchmarks.mechanism_speed import measure

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
            made.add_row(row.mechanism, row.step, f"{short(row.rate)} {row.unit}", *against, goal)
            if row.met is False:
                missed.append(f"{row.mechanism} {row.step} against {row.peer}")
            advance(1)
    show(made)
    fail_where_missed(missed)


@click.command()
@click.option("--repetitions", type=click.IntRange(2), default=8, show_default=True, help="Repetitions of every job.")
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Whole runs, shown as ranges.")
def peers(repetitions: int, runs: int) -> None:
    """Error and time of five peers on the same jobs.

    The peers are pure-ldp, multi-freq-ldpy, diffprivlib, OpenDP and PyDP, which is Google's library: same jobs, same
    data, same ε. Columns: root mean square error and time as multiples of ours (above 1: ours is better), the standard
    error of the first in per cent, and both times. Where a peer clips negative counts, so do we. Peers that are not
    installed are named and left out; the extra `peers` installs them all. Takes a minute per run.

    Times depend on what else the machine does, so the date and the load are printed too. With --runs, figures are
    ranges over the runs: quote these.

    Jobs: counts of 10,000 or 20,000 users without trust; marginals of three attributes; noise on 10,000 counts; the
    percentile 99.5 of 65,536 values; sums over 200 ranges of 4,096 values from a consistent noisy tree.

    \b
    Example:
      deniable bench peers --runs 3
    """
    from deniable_lab.benchmarks.peers import by_comparison, count, measure, missing

    absent = missing()
    for peer, reason in absent.items():
        click.echo(f"{peer}: not measured ({reason})", err=True)
    made = table("Next to peers", "job", "peer", "error ×", "time ×", "ours ms", "peer ms", numbers_from=2, folding=0)
    load = _load()
    rows = []
    with progress("measuring", runs * count()) as advance:
        for _ in range(runs):
            for row in measure(absent, repetitions):
                rows.append(row)
                advance(1)
    for same in by_comparison(rows):
        error = _range([row.error for row in same], 3 if runs == 1 else 2) + (
            f" ± {100 * same[0].doubt:.0f} %" if runs == 1 else ""
        )
        times = zip(*((row.time, 1e3 * row.seconds, 1e3 * row.peer_seconds) for row in same), strict=True)
        made.add_row(same[0].job, same[0].peer, error, *map(_range, times))
    show(made)
    click.echo(f"{datetime.now(UTC):%Y-%m-%d}, {counted(runs, 'run')}, load {load} before and {_load()} after")


def _range(figures: Sequence[float], digits: int = 2) -> str:
    """The least and the largest of several runs, in few digits; a single number if they look the same."""
    ends = (float(f"{figure:.{digits}g}") for figure in (min(figures), max(figures)))
    return "\N{EN DASH}".join(dict.fromkeys(short(end) for end in ends))


def _load() -> str:
    """Processes that wanted a core in the last minute, and how many cores there are."""
    average = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return f"{average} on {counted(os.cpu_count() or 1, 'core')}"


@click.command()
@click.option("--large", is_flag=True, help="Also with ten million rows; takes a minute more.")
def collecting(large: bool) -> None:
    """Time and memory of `perturb`, next to a plain sort.

    Columns: seconds, seconds of the plain sort, their ratio, and the peak memory.

    \b
    Example:
      deniable bench collecting
    """
    from deniable_lab.benchmarks.collecting_speed import measure

    made = table("Collecting", "rows and design", "seconds", "plain", "ratio", "MiB")
    with progress("measuring", 6 if large else 3) as advance:
        for row in measure(large=large):
            figures = (row.seconds, row.plain_seconds, row.seconds / row.plain_seconds)
            made.add_row(row.what, *(f"{figure:.2f}" for figure in figures), f"{row.mebibytes:,.0f}")
            advance(1)
    show(made)


@click.command()
@click.option("--large", is_flag=True, help="Also with ten million reports; takes two minutes more.")
def queries(large: bool) -> None:
    """Warm time of questions, next to a bare compiled loop.

    The loop goes over the same reports and cells; times are those of all processors together. Exits 1 if a question
    about a million reports takes more than twice the bare loop, or a join more than three times.

    \b
    Example:
      deniable bench queries
    """
    from deniable_lab.benchmarks.query_speed import (
        CHECKED,
        MOST_FIRST,
        first_calls,
        grouped_first,
        many_groups,
        measure,
    )

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
            if row.ratio > row.target and row.reports >= CHECKED:
                missed.append(f"{row.what} within {row.target:g} times the bare loop")
            advance(1)
    show(made)
    for call in first_calls():
        click.echo(
            f"`deniable query` on a million reports, {call.what}: {call.elapsed:.2f} s, {call.seconds:.2f} s of "
            f"processor time, {call.seconds / call.loop_seconds:.2f} times ten million additions in Python "
            f"({call.loop_seconds:.2f} s)"
        )
        if call.seconds > MOST_FIRST:
            missed.append(f"{call.what} by `deniable query` within {MOST_FIRST:g} s")
    first, again = grouped_first()
    click.echo(
        f"2,000 groups, 100,000 reports: {first:.2f} s of processor time the first time, {again:.2f} s from then on"
    )
    if first > MOST_FIRST:
        missed.append(f"2,000 groups within {MOST_FIRST:g} s")
    groups = many_groups()
    gains = [groups.read_seconds / seconds for seconds in (groups.counted_seconds, groups.next_seconds)]
    click.echo(
        f"{groups.groups:,} groups on a grid, {groups.reports:,} reports read: {groups.read_seconds:.2f} s\n"
        f"  pairs of cells counted: {groups.counted_seconds:.2f} s, {gains[0]:.0f} times faster\n"
        f"  from then on:           {groups.next_seconds:.2f} s, {gains[1]:.0f} times faster"
    )
    fail_where_missed(missed)


@click.command()
@click.option("--sizes", default="1000000,10000000", show_default=True, help="Reports per table.")
@click.option("--partitions", default="2,8,32", show_default=True, help="Numbers of partitions.")
@click.option("--udf", "udf_size", type=int, default=10_000_000, show_default=True, help="Size for the paper's way.")
def spark(sizes: str, partitions: str, udf_size: int) -> None:
    """Warm time of questions on Spark, next to DuckDB.

    Spark is local[2]. × is the paper's way over Spark. MiB are peaks so far, with a JVM of their own for each number of
    partitions: the driver's Python, the JVM (of driver and executor, 4 GiB of heap), the largest Python worker. DuckDB
    runs in another process.

    Exits 1 if at ten million reports Spark takes more than four times DuckDB plus two seconds, or if the paper's way,
    a Python function per row and inversion, is not 20 times slower. Takes many minutes; thirty million reports need
    6 GiB of memory.

    \b
    Example:
      deniable bench spark --sizes 1000000 --partitions 2 --udf 1000000
      deniable bench spark --sizes 30000000 --partitions 8,32
    """
    from deniable_lab.benchmarks.spark_speed import measure

    chosen, counts = (tuple(int(number) for number in text.split(",")) for text in (sizes, partitions))
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
    fail_where_missed(missed)
