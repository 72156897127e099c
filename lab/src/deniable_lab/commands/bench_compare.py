"""`deniable bench compare`: how often equal groups are called different."""

from __future__ import annotations

import math

import click

from deniable.cli.terminal import progress, show, table
from deniable_lab.commands.targets import fail_where_missed


@click.command()
@click.option(
    "--releases", type=click.IntRange(2), default=300, show_default=True, help="How often people are drawn anew."
)
@click.option("--seed", type=int, default=1, show_default=True, help="First seed.")
def compare(releases: int, seed: int) -> None:
    """Errors of group comparisons, over all pairs at once.

    Groups of 600 people have the same rows: public groups, private ones whose estimates share reports, and memoised
    rounds that share answers. In the last case one group differs. Columns: the share of releases in which any two equal
    groups are called different (error), and what chance adds to 5 % (±); the same if each pair were tested alone; the
    share in which some simultaneous interval does not hold the truth (missed); and of pairs that differ the share that
    is found. Exits 1 if there are more errors than in 5 % of releases, by more than two standard errors.

    \b
    Example:
      deniable bench compare --releases 3
    """
    from deniable_lab.experiments.compared_groups import CASES, LEVEL, measure

    made = table(
        "Comparisons",
        *("groups", "asks", "pairs", "error", "±", "alone", "missed", "found"),
        numbers_from=2,
    )
    missed = []
    with progress("collecting", len(CASES) * releases) as advance:
        for row in measure(releases, seed, advance):
            error = (LEVEL * (1 - LEVEL) / row.releases) ** 0.5
            shares = [f"{share:.1%}" for share in (row.wrong, error, row.single, row.missed)]
            share = "" if math.isnan(row.discovered) else f"{row.discovered:.1%}"
            made.add_row(row.case.groups, row.case.question.split()[1], str(row.pairs), *shares, share)
            if row.wrong > LEVEL + 2 * error:
                missed.append(f"{row.case.groups}: more than {LEVEL:.0%} of releases have an error")
    show(made)
    fail_where_missed(missed)
