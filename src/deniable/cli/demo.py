"""`deniable demo`: what local privacy looks like, in under a minute."""

from __future__ import annotations

import click
import numpy as np

from deniable.cli.terminal import show, table
from deniable.mechanisms import LocalHashing
from deniable.randomness import SecureSource

USERS, ITEMS, EPSILON = 200_000, 1_000, 2.0


@click.command()
def demo() -> None:
    """Count what 200,000 people prefer without learning it of any one of them.

    \b
    Example:
      deniable demo
    """
    mechanism = LocalHashing(EPSILON, ITEMS)
    preferences = np.minimum(np.random.default_rng(1).geometric(0.04, USERS) - 1, ITEMS - 1)  # made-up data
    reports = mechanism.perturb(preferences, source=SecureSource())
    estimates = mechanism.estimate(reports)
    margin = 1.96 * np.sqrt(mechanism.variance(USERS, np.maximum(estimates, 0.0)))
    truth = np.bincount(preferences, minlength=ITEMS)

    click.echo(f"{USERS:,} people, {ITEMS:,} items, ε = {EPSILON:g}. What one device sends, run four times:\n")
    for _ in range(4):
        seed, bucket = mechanism.perturb_one(0)
        click.echo(f"  item 0  →  seed {seed:>10}, bucket {bucket} of {mechanism.g}")
    click.echo(f"\nAny item could have sent any of these: no report is more than e^{EPSILON:g} times as")
    click.echo("likely for one item as for another. All together they still tell:\n")
    made = table("Most popular items", "item", "true count", "estimate", "95 % interval", "inside")
    for item in np.argsort(-estimates)[:8]:
        low, high = estimates[item] - margin[item], estimates[item] + margin[item]
        inside = "yes" if low <= truth[item] <= high else "no"
        made.add_row(str(item), f"{truth[item]:,}", f"{estimates[item]:,.0f}", f"{low:,.0f} to {high:,.0f}", inside)
    show(made)
    covered = np.mean(np.abs(estimates - truth) <= margin)
    click.echo(f"{covered:.1%} of all {ITEMS:,} intervals contain the truth.\n")
    click.echo("Next:  deniable audit local-hashing    deniable audit    deniable --help")
