"""The demonstration as a newcomer reads it in a terminal."""

from __future__ import annotations

import textwrap

import click

from deniable.cli.demo import meters, shop
from deniable.cli.demo.outcome import HEADER, MOVED_HEADER, WEEKS_HEADER, Outcome, cells, moved_cells, week_cells
from deniable.cli.demo.real_devices import REAL_DEVICES, left_of
from deniable.cli.terminal import show, table, width


def show_summary(outcome: Outcome) -> None:
    """Print all of it, and what to do next."""
    _collected(outcome)
    _answers(outcome)
    _attackers(outcome)
    _stream_and_ledger(outcome)
    drawn = ", ".join(picture.name for picture in outcome.pictures.values()) or "without pictures"
    click.echo(f"Written: {outcome.folder / 'report.html'}, {drawn}")
    if not outcome.pictures:
        click.echo("Pictures need an extra: pip install 'deniable[plot]'.")
    click.echo("\nThe console, on what was collected:")
    click.echo(f"  {outcome.console_command}")
    click.echo(f"  then open http://127.0.0.1:8710/ with the key {outcome.ask_key}")
    click.echo("With devices that report while you look, and a survey to answer yourself:")
    click.echo(f"  {outcome.program} demo --serve")
    click.echo("\nTry next:")
    for command in outcome.next_commands:
        click.echo(f"  {command}")


def _collected(outcome: Outcome) -> None:
    _say(
        f"{outcome.users:,} made-up people use two services for three weeks; ε = {outcome.collection.epsilon:g} "
        "covers all "
        "that one person sends to both in all weeks. Five examples of what the device of a single person aged 31 "
        "may send:"
    )
    client_of = outcome.collection.with_settings(coins="drawn", rounds=None).client
    for _ in range(5):
        (report,) = client_of().reports("users", [{"age": 31, "marital": "single"}])
        click.echo(f"  view {report.view}, seed {report.seed:>10}, y {report.y}")
    _say(
        f"Anybody could have sent any of these. {REAL_DEVICES} devices run the client for devices; the others are "
        "simulated "
        "in bulk and send a hundred at a time.\n"
    )
    made = table("Is anything lost when the collector is killed?", *WEEKS_HEADER)
    for week in outcome.weeks:
        made.add_row(*week_cells(week))
    show(made)
    _say(f"{outcome.crash_in_words} Every week a third of the people answer, so that each answers once.\n")


def _answers(outcome: Outcome) -> None:
    for answer in outcome.answered:
        made = table(answer.title, *HEADER)
        for row in answer.rows():
            made.add_row(*cells(*row))
        show(made)
    _say(
        "An answer says when it is too uncertain. What people aged 20 to 40 spend on sports is, from these reports, "
        f"{outcome.too_much_in_words}. A standard error of 25 takes about {outcome.people_needed_in_words}.\n"
    )


def _attackers(outcome: Outcome) -> None:
    made = table("Can an attacker learn how many orders a person has?", "guessed from", "right")
    for name, share in outcome.attacks.guessed.items():
        made.add_row(name, f"{share:.1%}")
    show(made)
    reached, allowed = outcome.attacks.odds
    _say(
        "Everybody sends one report about orders, with ten orders or none. Between two people who differ in "
        "everything, the "
        f"best attack found in {outcome.attacks.runs:,} runs moves even odds to {reached:.0f} to one at least; "
        f"ε = {outcome.attacks.claimed_epsilon:g} allows {allowed:.0f} to one. The promise is "
        f"{'REFUTED' if outcome.attacks.refuted else 'not refuted'}.\n"
    )
    made = table("How far can a liar move an answer?", *MOVED_HEADER)
    for moved in outcome.moved:
        made.add_row(*moved_cells(moved))
    show(made)
    _say(
        "A liar who reports under a view of his own choice is refused "
        f"({outcome.lies.other_view}), and so is a second report ({outcome.lies.second_report}).\n"
    )


def _stream_and_ledger(outcome: Outcome) -> None:
    made = table(f"Is a shift of a live stream noticed? ε = {meters.EPSILON_PER_READING:g} a reading", *HEADER)
    for row in outcome.published.rows:
        made.add_row(*cells(*row))
    show(made)
    _say(f"Mean watts of {meters.READINGS:,} readings, sent over HTTP. {outcome.shift_in_words}\n")
    person = outcome.person
    made = table("What has one person spent?", "on what", "ε")
    for what, epsilon in person.charges:
        made.add_row(what, f"{epsilon:g}")
    show(made)
    _say(
        f"{person.spent:g} of {person.limit:g}, {left_of(person):g} left, after {shop.WEEKS} weeks. The device of "
        "the same "
        f"person answers to one more collection: {person.refusal}\n"
    )


def _say(text: str) -> None:
    """Print a text, wrapped to the terminal."""
    end = "\n" if text.endswith("\n") else ""
    click.echo(textwrap.fill(text, min(width(), 80)) + end)
