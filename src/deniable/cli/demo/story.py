"""The demonstration: collect, ask, attack and publish; print a summary and write a page."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from deniable.arrays import Integers
from deniable.cli.demo import meters, shop
from deniable.cli.demo.outcome import Outcome
from deniable.cli.demo.report_page import report
from deniable.cli.demo.summary import show_summary
from deniable.cli.terminal import progress
from deniable.collection import Collection
from deniable.database import connect
from deniable.disk_faults import writing
from deniable.errors import BadInput, DeniableError, MissingExtra
from deniable.figure import INK, TRUTH, new_figure, require_plotting, save, tidy
from deniable.plotting.stream_plot import draw as draw_stream
from deniable.queries.answers.answer_plot import draw
from deniable.queries.forecasts.forecast import users_needed
from deniable.randomness import SecureSource, SeededSource, Source
from deniable.tables.specification.runs import SPECIFICATION_FILE

FEWEST_PEOPLE, MOST_PEOPLE = 20_000, 2_000_000
PICTURES = ("ages.png", "attack.png", "stream.png")


def run(out: str, users: int, seed: int | None) -> None:
    """Run the demonstration, from made-up rows to a page."""
    if not FEWEST_PEOPLE <= users <= MOST_PEOPLE:
        limits = f"{FEWEST_PEOPLE:,} to {MOST_PEOPLE:,}"
        raise BadInput(f"--users must be {limits}. Nothing was drawn. Leave it out for 200,000.")
    folder = Path(out)
    _make_room(folder, shop.specification())
    with writing(f"the folder {folder.name!r}", "The demonstration did not end"):
        with progress("collecting, asking, publishing", 4) as advance:
            outcome = _outcome(folder, users, seed, advance)
        (folder / "report.html").write_text(report(outcome), encoding="utf-8")
    show_summary(outcome)


def _outcome(folder: Path, users: int, seed: int | None, advance: Callable[[int], None]) -> Outcome:
    """Everything that happens, in order."""
    collection, plots, simulation = shop.specification(), _plots_possible(), seed is not None
    source: Source = SecureSource() if seed is None else SeededSource(seed)
    people, reports = shop.made_up(users), folder / "reports"
    collection.save(folder / "shop.toml")
    noise = source.stream("demo", "tables")
    collection.perturb(users=people.users, orders=people.orders, out=reports, source=noise, simulation=simulation)
    advance(1)
    database = connect(reports)
    answered = shop.ask(database, people)
    too_much = database.sql(shop.TOO_MUCH).scalar()
    advance(1)
    orders, sent = people.orders_per_user, shop.reports_per_user(reports, users)
    attack = {
        "one report per order, however randomised": shop.share_guessed(orders, orders),
        "the reports of deniable": shop.share_guessed(sent, orders),
        "no reports at all": shop.share_guessed(np.zeros_like(orders), orders),
    }
    watts = meters.made_up()
    published = meters.publish(watts, source.stream("demo", "stream"), simulation=simulation)
    published.released.save(folder / "stream.parquet")
    advance(1)
    pictures = [folder / name if plots else None for name in PICTURES]
    if plots:
        draw(answered[-1].result, folder / PICTURES[0], truth=answered[-1].truth, dpi=130)
        _draw_attack(orders, sent, folder / PICTURES[1])
        draw_stream(published.released, folder / PICTURES[2], truth=watts, unit="readings, watts", dpi=130)
    advance(1)
    needed = users_needed(collection, shop.TOO_MUCH, 25.0)
    return Outcome(folder, users, collection, tuple(answered), attack, published, too_much, needed, *pictures)


def _make_room(folder: Path, collection: Collection) -> None:
    """Remove what an earlier run of this demonstration wrote; refuse a folder with anything else in it."""
    reports = folder / "reports"
    for existing, specification in ((folder, "shop.toml"), (reports, SPECIFICATION_FILE)):
        if existing.is_dir() and any(existing.iterdir()) and not _is_ours(existing / specification, collection):
            raise BadInput(
                f"{str(existing)!r} exists and was not written by this demonstration. Nothing was drawn or written. "
                "Name another folder with --out."
            )
    try:
        if reports.exists():
            shutil.rmtree(reports)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise BadInput(f"{str(folder)!r} cannot be made. Nothing was drawn or written. Name another --out.") from None


def _is_ours(specification: Path, collection: Collection) -> bool:
    try:
        return Collection.load(specification) == collection
    except DeniableError:
        return False


def _plots_possible() -> bool:
    try:
        require_plotting()
    except MissingExtra:
        return False
    return True


def _draw_attack(orders: Integers, sent: Integers, path: Path) -> None:
    """Plot the reports that an attacker sees against the orders he wants to know."""
    figure = new_figure(6, 3.6)
    axis = figure.subplots()
    counts = np.arange(orders.max() + 1)
    seen = [sent[orders == count].mean() if (orders == count).any() else math.nan for count in counts]
    axis.plot(counts, counts, "s--", color=TRUTH, label="one report per order: the number is known")
    axis.plot(counts, seen, "o-", color=INK, label="deniable: one report per person")
    tidy(axis)
    axis.set_xlabel("orders a person has")
    axis.set_ylabel("reports she sends")
    axis.legend(frameon=False)
    save(figure, path, dpi=130)
