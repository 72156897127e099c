"""`deniable bench`: speed beside peers."""

from __future__ import annotations

import click

from deniable.cli.terminal import progress, show, table
from deniable.errors import Failure


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


def _short(rate: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.3g} {letter}"
    return f"{rate:.3g}"
