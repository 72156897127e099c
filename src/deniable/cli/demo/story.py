"""The demonstration: collects, asks, attacks and publishes; prints a summary and writes a page."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np

from deniable.cli.demo import meters, page, shop
from deniable.cli.plots import draw
from deniable.cli.terminal import progress, show, table, width
from deniable.engines.collecting import SPECIFICATION_FILE
from deniable.engines.figures import INK, TRUTH, new_figure, require_plotting, save, tidy
from deniable.engines.reading import connect
from deniable.engines.stream_plot import draw as draw_stream
from deniable.errors import BadInput, DeniableError, MissingExtra
from deniable.queries.forecast import users_needed
from deniable.queries.result import Estimate, number
from deniable.randomness import Integers, SecureSource, SeededSource, Source
from deniable.tables import Collection

FEWEST, MOST = 20_000, 2_000_000
HEADER = ("", "truth", "estimate", "95 % interval", "inside")
PICTURES = ("ages.png", "attack.png", "stream.png")


def run(out: str, users: int, seed: int | None) -> None:
    """From nothing to a page, in one go."""
    if not FEWEST <= users <= MOST:
        raise BadInput(f"--users must be {FEWEST:,} to {MOST:,}. Nothing was drawn. Leave it out for 200,000.")
    folder = Path(out)
    collection = shop.specification()
    _make_room(folder, collection)
    source: Source = SecureSource() if seed is None else SeededSource(seed)
    plots = _plots_possible()
    with progress("collecting, asking, publishing", 4) as advance:
        people = shop.made_up(users)
        collection.save(folder / "shop.toml")
        collection.perturb(
            users=people.users,
            orders=people.orders,
            out=folder / "reports",
            source=source.stream("demo", "tables"),
            simulation=seed is not None,
        )
        advance(1)
        database = connect(folder / "reports")
        answered = shop.ask(database, people)
        advance(1)
        orders, sent = people.orders_per_user, shop.reports_per_user(folder / "reports", users)
        attack = {
            "one report per order, however randomised": shop.share_guessed(orders, orders),
            "the reports of deniable": shop.share_guessed(sent, orders),
            "no reports at all": shop.share_guessed(np.zeros_like(orders), orders),
        }
        watts = meters.made_up()
        published = meters.publish(watts, source.stream("demo", "stream"), simulation=seed is not None)
        published.released.save(folder / "stream.parquet")
        advance(1)
        if plots:
            draw(answered[-1].result, folder / PICTURES[0], truth=answered[-1].truth, dpi=110)
            _draw_attack(orders, sent, folder / PICTURES[1])
            draw_stream(published.released, folder / PICTURES[2], truth=watts, unit="readings, watts", dpi=110)
        advance(1)
    needed = users_needed(collection, shop.TOO_MUCH, 25.0)
    unclear = math.isnan(database.sql(shop.TOO_MUCH).scalar().value)
    _tell(users, collection, answered, attack, published, needed if unclear else None)
    _write(folder, users, collection, answered, attack, published, needed if unclear else None, plots)
    click.echo(f"Written: {folder / 'report.html'}" + (f", {', '.join(PICTURES)}" if plots else ", without pictures"))
    if not plots:
        click.echo("Pictures need an extra: pip install 'deniable[plot]'.")
    click.echo("\nTry next:")
    for command in next_commands(folder):
        click.echo(f"  {command}")


def next_commands(folder: Path) -> tuple[str, str, str]:
    """Three commands that go on from what was written."""
    name = "deniable" if shutil.which("deniable") else _shown(Path(sys.argv[0]))
    return (
        f'{name} query {folder / "reports"} "SELECT AVG(age) FROM users"',  # noqa: S608 - shown, not run
        f'{name} explain {folder / "reports"} "SELECT COUNT(*) FROM orders"',  # noqa: S608 - as above
        f"{name} stream query {folder / 'stream.parquet'} 0:86400",
    )


def _shown(path: Path) -> str:
    """A path from here, where it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else str(path)


def _make_room(folder: Path, collection: Collection) -> None:
    """What an earlier run of this demonstration wrote is replaced; what somebody else wrote is not touched."""
    reports = folder / "reports"
    for place, specification in ((folder, "shop.toml"), (reports, SPECIFICATION_FILE)):
        if place.is_dir() and any(place.iterdir()) and not _is_ours(place / specification, collection):
            raise BadInput(
                f"{str(place)!r} exists and is not of this demonstration. Nothing was drawn or written. "
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


def _cells(label: str, truth: float, estimate: Estimate) -> tuple[str, str, str, str, str]:
    low, high = estimate.interval
    inside = "yes" if low <= truth <= high else "no"
    error = max(estimate.stderr, 1e-9)
    return (
        label,
        number(truth, error),
        number(estimate.value, error),
        f"{number(low, error)} to {number(high, error)}",
        inside,
    )


def _tell(
    users: int,
    collection: Collection,
    answered: Iterable[shop.Answered],
    attack: dict[str, float],
    published: meters.Published,
    needed: int | None,
) -> None:
    _say(
        f"{users:,} made-up people, two services, ε = {collection.epsilon:g} for all that one person sends to both. "
        "What the device of somebody who is 31 and single may send, drawn three times:"
    )
    for _ in range(3):
        report = collection.client().report("users", {"age": 31, "marital": "single", "city": "Rome"})
        click.echo(f"  view {report.view:>2}, seed {report.seed:>10}, y {report.y}")
    _say("Anybody could have sent any of these. All reports together still tell:\n")
    made = table("SQL over the reports", *HEADER)
    for one in answered:
        rows = list(one.rows())
        if len(rows) > 1:
            made.add_row(f"{one.title}:")
        for label, truth, estimate in rows:
            made.add_row(*_cells(f"  {label}" if len(rows) > 1 else one.title, truth, estimate))
    show(made)
    if needed is not None:
        _say(
            "Who asks too much is told so: what people of 20 to 40 spend on sports is unclear from these reports. For "
            f"a standard error of 25 it takes about {_round(needed):,} people.\n"
        )
    made = table("The frequency attack", "how many orders has each person, guessed from", "right")
    for name, share in attack.items():
        made.add_row(name, f"{share:.1%}")
    show(made)
    _say(
        "Everybody sends one report about orders, whether she has ten or none; their number tells no more than no "
        "reports at all.\n"
    )
    made = table(f"A private stream, ε = {meters.EPSILON:g} a reading", *HEADER)
    for row in published.rows:
        made.add_row(*_cells(*row))
    show(made)
    _say(
        f"Mean watts of meter readings, {meters.READINGS:,} of them. A 95 % interval misses now and then: one in "
        "twenty, here and above.\n"
    )


def _say(text: str) -> None:
    """Words that fit the terminal."""
    end = "\n" if text.endswith("\n") else ""
    click.echo(textwrap.fill(text, min(width(), 80)) + end)


def _round(users: int) -> int:
    return int(float(f"{users:.2g}"))


def _draw_attack(orders: Integers, sent: Integers, path: Path) -> None:
    """Reports that an attacker sees, against the orders he wants to know."""
    figure = new_figure(6, 3.6)
    axis = figure.subplots()
    places = np.arange(orders.max() + 1)
    seen = [sent[orders == place].mean() if (orders == place).any() else math.nan for place in places]
    axis.plot(places, places, "s--", color=TRUTH, label="one report per order: the number is known")
    axis.plot(places, seen, "o-", color=INK, label="deniable: one report, whoever it is")
    tidy(axis)
    axis.set_xlabel("orders a person has")
    axis.set_ylabel("reports she sends")
    axis.legend(frameon=False)
    save(figure, path, dpi=110)


def _write(
    folder: Path,
    users: int,
    collection: Collection,
    answered: Iterable[shop.Answered],
    attack: dict[str, float],
    published: meters.Published,
    needed: int | None,
    plots: bool,
) -> None:
    parts = [
        page.words(
            f"{users:,} made-up people use two services. Their devices randomise their rows and send reports; one "
            f"ε = {collection.epsilon:g} covers all that a person sends. The server joins the reports and answers SQL. "
            "The truth stands beside each answer because these people are made up: no one has it otherwise."
        )
    ]
    for one in answered:
        parts += [page.heading(one.title), page.code(one.sql), page.rows(HEADER, (_cells(*row) for row in one.rows()))]
    if plots:
        parts.append(page.picture(folder / PICTURES[0], "People by age: estimates with 95 % intervals, and the truth"))
    if needed is not None:
        parts += [
            page.heading("What cannot be answered says so"),
            page.code(shop.TOO_MUCH),
            page.words(
                "unclear: too few people, or too much noise, to divide by their number. For a standard error of 25 it "
                f"would take about {_round(needed):,} people, which could be known before anything was collected."
            ),
        ]
    parts += [
        page.heading("The frequency attack fails"),
        page.words(
            "The attacker sees how many reports each person sends and guesses how many orders she has. Where every "
            "order is reported on its own, however well each is randomised, the guess is always right. Here everybody "
            "sends the same number of reports, so the attacker can do no better than without any."
        ),
        page.rows(("guessed from", "right"), ((name, f"{share:.1%}") for name, share in attack.items())),
    ]
    if plots:
        parts.append(page.picture(folder / PICTURES[1], "Reports a person sends, by the number of orders she has"))
    parts += [
        page.heading("A private stream"),
        page.words(
            f"{meters.READINGS:,} meter readings, one private number published for each after a warm-up of "
            f"{meters.WARMUP:,}. ε = {meters.EPSILON:g} protects one reading; whoever publishes is trusted. Values "
            f"above θ = {published.theta:g} watts, which was chosen privately, count as θ."
        ),
        page.rows(HEADER, (_cells(*row) for row in published.rows)),
    ]
    if plots:
        parts.append(page.picture(folder / PICTURES[2], "Mean watts over the stream: private with interval, and truth"))
    parts += [
        page.heading("Try next"),
        page.code("\n".join(next_commands(folder))),
        "<footer>95 % intervals miss the truth in about one of twenty cases: a “no” now and then is as it should be."
        "</footer>",
    ]
    (folder / "report.html").write_text(page.page("deniable: what was asked, what was learnt", parts), encoding="utf-8")
