"""A collector that is killed while devices upload: what was acknowledged, and what is on its disk."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deniable.cli.demo import shop
from deniable.cli.demo.console_keys import made_keys
from deniable.cli.demo.fleet import Fleet, bodies, reports_in
from deniable.cli.demo.running_collector import RunningCollector
from deniable.cli.demo.weeks import set_round, stored_reports
from deniable.randomness import SeededSource
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.writing import markdown_table

PEOPLE = 30_000
KILLS = (0, 1, 3)
_TOLD = ("sent", "stored", "lost", "twice", "sent again", "unanswered")


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - made up
    """How often it is killed."""
    return [{"data": "DEVICES", "kills": kills} for kills in KILLS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - made up
    """Kill it with kill -9 at even distances, start it again each time, and count at the end."""
    from deniable.service.collector import init_folder

    collection, kills = shop.specification(), int(setting["kills"])
    requests = bodies(collection, 1, shop.made_up(PEOPLE), 0, SeededSource(seed), simulation=True)
    sent, missing = reports_in(requests), 0
    with TemporaryDirectory() as made:
        folder = Path(made) / "collected"
        init_folder(collection, folder, simulation=True)
        key = made_keys(folder)["operate"]
        with RunningCollector(folder) as collector:
            set_round(collector, 1, key, is_open=True)
            with Fleet(collector.address, f"/v1/collections/{collection.name}/reports", requests) as fleet:
                for kill in range(kills):
                    fleet.delivery.wait_for(sent * (kill + 1) // (kills + 1))
                    collector.kill()
                    acknowledged = fleet.delivery.accepted
                    missing += max(acknowledged - stored_reports(folder, 1), 0)
                    collector.start()
                delivery = fleet.finish()
            stored = stored_reports(folder, 1)
    return {
        "sent": sent,
        "stored": stored,
        "lost": missing + max(sent - stored, 0),
        "twice": max(stored - sent, 0),
        "sent again": delivery.repeated,
        "unanswered": delivery.unanswered,
    }


def plot(rows: Rows, figure: Any) -> None:
    """Sent, stored, and what came twice and was recognised."""
    axes = figure.subplots()
    for number, quantity in enumerate(("sent", "stored", "sent again", "lost")):
        part = rows.of(quantity)
        at = [index + 0.2 * (number - 1.5) for index in range(len(part))]
        bars = axes.bar(at, part.means, 0.18, label="recognised, sent again" if quantity == "sent again" else quantity)
        axes.bar_label(bars, [f"{mean:,.0f}" for mean in part.means], fontsize=5)
    axes.set_xticks(range(len(KILLS)), [f"killed {kills} times" for kills in KILLS])
    axes.set_ylabel("reports")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def describe(rows: Rows) -> str:
    """The counts."""
    lines = [[kills, *(f"{part.of(name).means[0]:,.0f}" for name in _TOLD)] for kills, part in rows.split("kills")]
    head = ["killed", "sent", "stored", "lost", "twice", "recognised", "requests without an answer"]
    return f"""Reports of {PEOPLE:,} devices, those whose turn it is. *Recognised* are reports that were on the disk
when their answer was lost, and that came again:

{markdown_table(head, lines)}

The test-suite goes further: lists of faults against a model, with the process ended in every call that writes."""


EXPERIMENT = Experiment(
    "A collector under fault",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(2, 10),
    size=(6.5, 3.0),
    setting="`deniable serve` on SQLite, six connections, kill -9 while requests are under way.",
)
