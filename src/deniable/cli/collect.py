"""`deniable init`, `check` and `perturb`: from columns to a specification to reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.ledger import ledger_option, opened
from deniable.cli.terminal import json_line, progress, show, simulation_option, table
from deniable.collection import Collection
from deniable.disk_faults import writing
from deniable.errors import BadInput
from deniable.promise import PromiseNumbers, facts, in_words, page
from deniable.shuffled_promise import Mixer
from deniable.simulation import NOTE, check_noise
from deniable.tables.designs.views import View
from deniable.tables.schema.rounds import ROTATING
from deniable.tables.specification.runs import largest_epsilon
from deniable.wording import counted

if TYPE_CHECKING:
    from deniable.engines.collecting.inspecting import Inspection
    from deniable.engines.collecting.row_counts import Summary

MOST_VIEWS_SHOWN = 12
AXIS_SYMBOLS = {"rounded": "⇅", "embedded": "±", "weight and rounded": "⇅rows"}


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.option("--views", is_flag=True, help="List all views, not only the first few.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write the promise as an HTML page to sign.")
@click.option("--json", "as_json", is_flag=True, help="Print the promise as one JSON object.")
@click.option("--canonical", is_flag=True, help="Print the specification itself as canonical JSON, for web pages.")
@click.option(
    "--shuffled",
    type=click.IntRange(1),
    metavar="PEOPLE",
    help="Say what a trusted mixer of so many people's messages would add.",
)
@click.option("--delta", type=float, default=1e-9, show_default=True, help="The δ of that statement.")
@simulation_option
def check(
    specification: str,
    views: bool,
    report: str | None,
    as_json: bool,
    canonical: bool,
    shuffled: int | None,
    delta: float,
    simulation: bool,
) -> None:
    """Check a specification, and print what it promises.

    Prints who is protected against whom, the ε of a round and of a lifetime and what that means in odds, what travels
    in clear, what is not hidden, and what each user sends. An ε without noise is refused without --simulation.

    \b
    Example:
      deniable check shop.toml
      deniable check shop.toml --report promise.html
      deniable check shop.toml --shuffled 100000
      deniable check shop.toml --canonical > shop.json
    """
    collection = Collection.load(specification)
    check_noise(largest_epsilon(collection), simulation=simulation)
    if canonical:
        click.echo(collection.to_json())
        click.echo(f"SHA-256 {collection.sha256}", err=True)
        return
    mixer = None if shuffled is None else Mixer(shuffled, delta)
    if report is not None:
        with writing(f"the page {Path(report).name!r}", "Nothing was written"):
            Path(report).write_text(page(collection, mixer), encoding="utf-8")
    if as_json:
        click.echo(json_line(facts(collection, mixer)))
        return
    names = [table.name for table in collection.tables]
    reports = sum(collection.reports_per_user(name) for name in names if collection[name].owner is None)
    click.echo(f"Specification {collection.sha256[:16]}…, design {collection.design}, fan-out {collection.fanout}.")
    rounds = collection.rounds
    again = "in all" if rounds is None else "in a round that is hers" if rounds.mode == ROTATING else "in every round"
    each_round = PromiseNumbers.of(collection).one_round
    click.echo(f"Each user sends {counted(reports, 'report')} and spends ε = {each_round:g} {again}.")
    for owner in collection.owners or {}:
        key = next(table.key for table in collection.tables if table.owner == owner)
        spent = float(collection.spends_of(owner).epsilon)
        click.echo(f"What {owner} reports about each {key} spends ε = {spent:g} of its own.")
    click.echo()
    click.echo(f"{in_words(collection, mixer)}\n")
    spending = table("What each user sends", "table", "rows", "reports", "ε each", "ε in all", "views", folding=0)
    for name in names:
        many, count, each = (
            collection[name].many,
            collection.reports_per_user(name),
            collection.epsilon_per_report(name),
        )
        rows = f"1 per {key}" if (key := collection[name].key) else "1" if many is None else f"0 to {many}"
        spending.add_row(name, rows, str(count), f"{each:.4g}", f"{count * each:.4g}", f"{collection.views(name):,}")
    show(spending)
    for name in names:
        _show_views(collection, name, everything=views)
    if report is not None:
        click.echo(f"Wrote {report}.")


def _show_views(collection: Collection, name: str, *, everything: bool) -> None:
    design = collection.design_of(name)
    shown = design.views if everything else min(design.views, MOST_VIEWS_SHOWN)
    made = table(f"Views of {name}", "view", "cells", "chance", "oracle", "cells of each axis", numbers_from=0)
    for number in range(shown):
        view = design.view(number)
        made.add_row(
            str(number),
            f"{view.cells:,}",
            f"{float(view.probability):.4g}",
            view.oracle.label,
            _granularity(collection, name, view),
        )
    show(made)
    if shown < design.views:
        click.echo(f"… and {design.views - shown:,} more: deniable check --views\n")


def _granularity(collection: Collection, name: str, view: View) -> str:
    """The cells of a view on each axis. ⇅ marks an attribute rounded to its two ends, ± one with a doubled domain."""
    private = collection[name].private
    words = []
    for axis, level in zip(view.group.axes, view.levels, strict=True):
        label = private[axis.attribute] if axis.attribute >= 0 else "rows"
        words.append(f"{label}{AXIS_SYMBOLS.get(axis.kind, '')}:{axis.tree.cells(level)}")
    return " ".join(words)


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("tables", nargs=-1, required=True, metavar="TABLE=FILE...")
@click.option("-o", "--out", type=click.Path(), help="Folder for the reports: new, or of other rounds.")
@click.option("--dry-run", is_flag=True, help="Only say which rows would be rejected; nothing is drawn or written.")
@click.option(
    "--max-rejected", default=0.01, show_default=True, help="End before a draw if more of a table would be rejected."
)
@click.option("--key", default="uid", show_default=True, help="Column of user ids.")
@click.option(
    "--everyone", type=click.Path(), help="File with the ids of all users, for tables with many rows per user."
)
@simulation_option
@click.option("--spill", type=click.Path(), help="Folder for rows that do not fit into memory; default: next to -o.")
@click.option("--round", "number", type=int, default=None, help="Which round, in a collection with rounds.")
@click.option("--memory", type=click.Path(dir_okay=False), help="Private file that all rounds share, if they need one.")
@ledger_option
def perturb(
    specification: str,
    tables: tuple[str, ...],
    out: str | None,
    dry_run: bool,
    max_rejected: float,
    key: str,
    everyone: str | None,
    simulation: bool,
    spill: str | None,
    ledger: str | None,
    number: int | None,
    memory: str | None,
) -> None:
    """Randomise the rows of Parquet or CSV files into reports.

    All rows are checked first. If more than 1 % of a table's rows would be rejected, nothing is drawn or charged, and
    the message says which rule of the specification would mend that.

    \b
    Example:
      deniable perturb shop.toml users=users.csv --dry-run
      deniable perturb shop.toml users=users.csv orders=orders.parquet -o reports/
    """
    from deniable.engines.collecting.input_frames import count_rows
    from deniable.engines.collecting.perturbing import inspect_rows
    from deniable.engines.collecting.perturbing import perturb as collect

    collection = Collection.load(specification)
    frames = dict(_named_file(entry) for entry in tables)
    if len(frames) != len(tables):
        raise BadInput("a table is named twice. Nothing was read or written. Name each table once.")
    if dry_run:
        show_inspections(
            collection, inspect_rows(collection, frames, key=key, everyone=everyone, spill=spill), max_rejected
        )
        return
    if out is None:
        raise BadInput("there is no folder for the reports. Nothing was read or written. Name it with -o.")
    with progress("randomising", count_rows(frames)) as advance:
        options: dict[str, Any] = {
            "simulation": simulation,
            "advance": advance,
            "spill": spill,
            "ledger": opened(ledger),
            "number": number,
            "memory": memory,
            "max_rejected": max_rejected,
        }
        collected: Any = collect(collection, frames, key=key, out=out, everyone=everyone, **options)
    show_summaries(collected.summaries, "row")
    if collected.simulation:
        click.echo(NOTE)


def show_inspections(collection: Collection, inspections: Mapping[str, Inspection], most: float) -> None:
    """Print which rows would be rejected, why, and what would mend that."""
    from deniable.engines.collecting.inspecting import rule_for

    made = table("Would be rejected", "table", "attribute", "reason", "rows", "of rows", "what mends it")
    for name, inspection in inspections.items():
        for (attribute, reason), count in sorted(inspection.problems.items(), key=lambda item: -item[1]):
            share = f"{100 * count / max(inspection.rows, 1):.3g} %"
            made.add_row(
                name, attribute or "user id", reason, f"{count:,}", share, rule_for(collection[name], attribute, reason)
            )
    if any(inspection.problems for inspection in inspections.values()):
        show(made)
    for name, inspection in inspections.items():
        ends = f", more than {100 * most:g} %: nothing would be drawn" if inspection.share > most else ""
        rejected = f"{inspection.rejected:,} of {counted(inspection.rows, 'row')} would be rejected"
        click.echo(f"{name}: {rejected} ({100 * inspection.share:.3g} %{ends}).")
    click.echo("Nothing was drawn, charged or written.")


def show_summaries(summaries: Mapping[str, Summary], unit: str) -> None:
    """Print what became of the rows or lines of each table, and why some were rejected."""
    made = table("Collected", "table", f"{unit}s read", "users", "reports", "ε per report", "rejected", folding=0)
    for name, summary in summaries.items():
        made.add_row(
            name,
            f"{summary.rows:,}",
            f"{summary.users:,}",
            f"{summary.reports:,}",
            f"{summary.epsilon_per_report:.4g}",
            f"{sum(summary.rejected.values()):,}",
        )
    show(made)
    for name, summary in summaries.items():
        for reason, count in sorted(summary.rejected.items()):
            click.echo(f"{name}: {counted(count, unit)} rejected: {reason}")


def _named_file(entry: str) -> tuple[str, str]:
    name, equals, path = entry.partition("=")
    if not equals or not path:
        raise BadInput(f"{entry!r} is not TABLE=FILE. Nothing was read or written. Write users=users.csv, for example.")
    return name, path
