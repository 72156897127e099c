"""`deniable ledger show` and `export`: what was spent, on what, when, and what is left."""

from __future__ import annotations

import csv
import io
from typing import Any

import click

from deniable.accounting import Unit
from deniable.cli.terminal import json_line, table
from deniable.cli.terminal import show as show_table
from deniable.ledger import Ledger
from deniable.wording import counted

EXPORTED = ("time", "what", "epsilon", "delta", "unit", "neighbours", "specification")

ledger_option = click.option(
    "--ledger", type=click.Path(dir_okay=False), default=None, help="Charge this ledger first; it must exist."
)


def opened(path: str | None) -> Ledger | None:
    """The ledger that a command charges, if one was named."""
    return None if path is None else Ledger(path)


@click.group()
def ledger() -> None:
    """Show what was spent, on what, when, and what is left."""


@ledger.command()
@click.argument("file", metavar="LEDGER", type=click.Path(dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(file: str, as_json: bool) -> None:
    """Print what was spent by specification, and what is left.

    \b
    Example:
      deniable ledger show ledger.json
    """
    book = Ledger(file)
    entries, limit = book.entries, book.limit
    totals = {unit: book.spent_on(unit) for unit in Unit}
    used = {unit: total for unit, total in totals.items() if any(total)} or {Unit.USER: totals[Unit.USER]}
    if as_json:
        units = {
            unit.name.lower(): {"spent": float(epsilon), "left": float(limit - epsilon), "delta": float(delta)}
            for unit, (epsilon, delta) in used.items()
        }
        click.echo(json_line({"limit": float(limit), "charges": len(entries), "units": units}))
        return
    made = table(f"Spent, {counted(len(entries), 'charge')}", "on what", "ε", "first", "last", "charges", folding=0)
    for name, group in _by_what(entries).items():
        epsilon = sum(entry.charge.spending.epsilon for entry in group)
        days = group[0].time[:10], group[-1].time[:10]
        made.add_row(name, f"{float(epsilon):.4g}", *days, str(len(group)))
    show_table(made)
    for unit, (epsilon, delta) in used.items():
        more = f", δ = {float(delta):.3g}" if delta else ""
        left = float(limit - epsilon)
        click.echo(f"For {unit.value}: ε = {float(epsilon):g}{more} of {float(limit):g} spent, {left:g} left.")


def _by_what(entries: Any) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for entry in entries:
        groups.setdefault(entry.charge.what, []).append(entry)
    return groups


@ledger.command()
@click.argument("file", metavar="LEDGER", type=click.Path(dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per charge instead of CSV.")
def export(file: str, as_json: bool) -> None:
    """Print every charge, with its exact amount, as CSV.

    \b
    Example:
      deniable ledger export ledger.json > charges.csv
    """
    rows = [{name: entry.to_dict()[name] for name in EXPORTED} for entry in Ledger(file).entries]
    if as_json:
        for row in rows:
            click.echo(json_line(row))
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, EXPORTED, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    click.echo(text.getvalue(), nl=False)
