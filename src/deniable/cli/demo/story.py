"""The demonstration: collect over HTTP, ask, attack, publish; print a summary and write a page."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from deniable.cli.demo import meters, shop
from deniable.cli.demo.attacks import attack, moved_answers, reports_per_user
from deniable.cli.demo.console_keys import made_keys
from deniable.cli.demo.outcome import Outcome
from deniable.cli.demo.pictures import draw_all
from deniable.cli.demo.real_devices import RealDevices
from deniable.cli.demo.report_page import report
from deniable.cli.demo.running_collector import RunningCollector, ending_in_order
from deniable.cli.demo.summary import show_summary
from deniable.cli.demo.weeks import run_weeks
from deniable.cli.serve import require_server
from deniable.cli.terminal import progress
from deniable.collection import Collection
from deniable.database import connect
from deniable.disk_faults import writing
from deniable.errors import BadInput, DeniableError
from deniable.queries.forecasts.forecast import users_needed
from deniable.randomness import SecureSource, SeededSource, Source
from deniable.tables.specification.runs import SPECIFICATION_FILE

FEWEST_PEOPLE, MOST_PEOPLE = 20_000, 2_000_000
_WRITTEN = ("collected", "devices", "sealed")
_DEMO_STEPS = shop.WEEKS + 4
LABEL = "collecting, asking, attacking, publishing"


def run(out: str, users: int, seed: int | None) -> None:
    """Run the demonstration, from made-up rows to a page."""
    if not FEWEST_PEOPLE <= users <= MOST_PEOPLE:
        limits = f"{FEWEST_PEOPLE:,} to {MOST_PEOPLE:,}"
        raise BadInput(f"--users must be {limits}. Nothing was drawn. Leave it out for 200,000.")
    require_server()
    folder = Path(out)
    _make_room(folder, shop.specification())
    with writing(f"the folder {folder.name!r}", "The demonstration did not end"):
        with progress(LABEL, _DEMO_STEPS) as advance, ending_in_order():
            outcome = _outcome(folder, users, seed, advance)
        (folder / "report.html").write_text(report(outcome), encoding="utf-8")
    show_summary(outcome)


def _outcome(folder: Path, users: int, seed: int | None, advance: Callable[[float], None]) -> Outcome:
    """Everything that happens, in order."""
    from deniable.service.collector import init_folder

    collection, simulation = shop.specification(), seed is not None
    source: Source = SecureSource() if seed is None else SeededSource(seed)
    people, collected = [shop.made_up(users, week) for week in range(1, shop.WEEKS + 1)], folder / "collected"
    collection.save(folder / "shop.toml")
    init_folder(collection, collected, simulation=simulation)
    keys = made_keys(collected)
    meters.make_stream(collected, seed)
    watts = meters.made_up()
    with RunningCollector(collected) as collector:
        devices = RealDevices(folder / "devices", collection, collector.address, source, simulation=simulation)
        weeks = run_weeks(
            collector, collected, collection, people, devices, source, key=keys["operate"], simulation=simulation,
            advance=advance,
        )  # fmt: skip
        lies, person = devices.lie(people), devices.one_person()
        published = meters.publish(collector, collected, watts, keys, advance)
    database, true_answers = connect(collected), shop.TrueAnswers(people)
    answered = [shop.ask(database, true_answers, *question) for question in (*shop.QUESTIONS, shop.CHANGED_ORDERS)]
    too_much, moved = database.sql(shop.TOO_MUCH).scalar(), moved_answers(database)
    advance(1)
    orders, sent = people[0].orders_per_user, reports_per_user(collected, folder / "sealed", users)
    attacks = attack(collection, orders, sent, source)
    advance(1)
    pictures = draw_all(folder, answered, orders, sent, published, watts)
    advance(1)
    needed = users_needed(collection, shop.TOO_MUCH, 25.0)
    return Outcome(
        folder, users, collection, tuple(weeks), tuple(answered), attacks, moved, lies, published, person, too_much,
        needed, keys["ask"], pictures,
    )  # fmt: skip


def _make_room(folder: Path, collection: Collection) -> None:
    """Remove what an earlier run of this demonstration wrote; refuse a folder with anything else in it."""
    collected = folder / "collected"
    for existing, specification in ((folder, "shop.toml"), (collected, SPECIFICATION_FILE)):
        if existing.is_dir() and any(existing.iterdir()) and not _is_ours(existing / specification, collection):
            raise BadInput(
                f"{str(existing)!r} exists and was not written by this demonstration. Nothing was drawn or written. "
                "Name another folder with --out."
            )
    try:
        for name in _WRITTEN:
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise BadInput(f"{str(folder)!r} cannot be made. Nothing was drawn or written. Name another --out.") from None


def _is_ours(specification: Path, collection: Collection) -> bool:
    try:
        return Collection.load(specification) == collection
    except DeniableError:
        return False
