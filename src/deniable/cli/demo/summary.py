"""The demonstration as a newcomer reads it in a terminal."""

from __future__ import annotations

import textwrap

import click

from deniable.cli.demo import meters
from deniable.cli.demo.outcome import HEADER, Outcome, cells
from deniable.cli.terminal import show, table, width


def show_summary(outcome: Outcome) -> None:
    """Print all of it, and what to do next."""
    _say(
        f"{outcome.users:,} made-up people use two services; ε = {outcome.collection.epsilon:g} covers all that one "
        "person sends to both. Three examples of what the device of a single person aged 31 may send:"
    )
    for _ in range(3):
        (report,) = outcome.collection.client().reports("users", [{"age": 31, "marital": "single", "city": "Rome"}])
        click.echo(f"  view {report.view:>2}, seed {report.seed:>10}, y {report.y}")
    _say("Anybody could have sent any of these. All reports together still show:\n")
    made = table("SQL over the reports", *HEADER)
    for answer in outcome.answered:
        rows = list(answer.rows())
        if len(rows) > 1:
            made.add_row(f"{answer.title}:")
        for label, truth, estimate in rows:
            made.add_row(*cells(f"  {label}" if len(rows) > 1 else answer.title, truth, estimate))
    show(made)
    _say(
        "An answer says when it is too uncertain. What people aged 20 to 40 spend on sports is, from these reports, "
        f"{outcome.too_much_in_words}. A standard error of 25 takes about {outcome.people_needed_in_words}.\n"
    )
    made = table("The frequency attack", "how many orders has each person, guessed from", "right")
    for name, share in outcome.attack.items():
        made.add_row(name, f"{share:.1%}")
    show(made)
    _say(
        "Everybody sends one report about orders, with ten orders or none, so the number of reports does not help the "
        "attacker at all.\n"
    )
    made = table(f"A private stream, ε = {meters.EPSILON_PER_READING:g} a reading", *HEADER)
    for row in outcome.published.rows:
        made.add_row(*cells(*row))
    show(made)
    _say(
        f"Mean watts of {meters.READINGS:,} meter readings. A 95 % interval misses the truth one time in twenty, here "
        "and above.\n"
    )
    drawn = ", ".join(picture.name for picture in outcome.pictures) or "without pictures"
    click.echo(f"Written: {outcome.folder / 'report.html'}, {drawn}")
    if not outcome.pictures:
        click.echo("Pictures need an extra: pip install 'deniable[plot]'.")
    click.echo("\nLook in a browser, with devices that report while you look:")
    click.echo(f"  {outcome.program} demo --serve")
    click.echo("\nTry next:")
    for command in outcome.next_commands:
        click.echo(f"  {command}")


def _say(text: str) -> None:
    """Print a text, wrapped to the terminal."""
    end = "\n" if text.endswith("\n") else ""
    click.echo(textwrap.fill(text, min(width(), 80)) + end)
