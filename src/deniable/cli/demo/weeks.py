"""Three weeks of uploads to a collector that is killed in the middle of the second, and what was lost: nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deniable.cli.demo import shop
from deniable.cli.demo.fleet import DeliveryCounts, Fleet, bodies, reports_in
from deniable.cli.demo.real_devices import REAL_DEVICES, RealDevices
from deniable.cli.demo.running_collector import RunningCollector
from deniable.collection import Collection
from deniable.engines.collecting.stored_reports import collector_folder
from deniable.errors import Failure
from deniable.randomness import Source

CRASH_WEEK = 2
_DELIVERY_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Crash:
    """What was known when the collector was killed, and what was on its disk."""

    acknowledged: int
    on_disk: int
    queued: int
    """Reports that single devices could not deliver meanwhile, and kept."""


@dataclass(frozen=True, slots=True)
class Week:
    """What devices sent in a week, and what is stored."""

    number: int
    sent: int
    stored: int
    requests: int
    sent_again: int
    """Requests without an answer, which were sent again."""
    repeated: int
    """Reports that were known when they came again."""
    crash: Crash | None


def run_weeks(
    collector: RunningCollector,
    folder: Path,
    collection: Collection,
    people: Sequence[shop.Shop],
    devices: RealDevices,
    source: Source,
    *,
    key: str,
    simulation: bool,
    advance: Callable[[float], None],
) -> list[Week]:
    """Collect every week: open its round, let devices report, close it, and count."""
    weeks = []
    for number, rows in enumerate(people, 1):
        requests = bodies(collection, number, rows, REAL_DEVICES, source, simulation=simulation)
        set_round(collector, number, key, is_open=True)
        devices.report(number, rows)
        by_hand, crash = devices.waiting, None
        with Fleet(collector.address, f"/v1/collections/{collection.name}/reports", requests) as fleet:
            if number == CRASH_WEEK:
                fleet.delivery.wait_for(reports_in(requests) // 2)
                crash = _killed_and_started(collector, folder, number, fleet.delivery, devices)
            delivery = fleet.finish()
        if not any(devices.send() for _ in range(_DELIVERY_ATTEMPTS)):
            raise Failure("devices are not answered. The demonstration has ended. Run it again.")
        set_round(collector, number, key, is_open=False)
        sent, stored = by_hand + reports_in(requests), stored_reports(folder, number)
        if sent != stored or delivery.refused or devices.refused:
            raise Failure("reports were lost or refused. The demonstration has ended. Please report this.")
        weeks.append(Week(number, sent, stored, delivery.attempts, delivery.unanswered, delivery.repeated, crash))
        advance(1)
    return weeks


def _killed_and_started(
    collector: RunningCollector, folder: Path, week: int, delivery: DeliveryCounts, devices: RealDevices
) -> Crash:
    """Kill the collector while devices send, look at its disk, and start it again."""
    collector.kill()
    devices.send()  # nobody answers
    crash = Crash(delivery.accepted, stored_reports(folder, week), devices.waiting)
    if crash.on_disk < crash.acknowledged:
        raise Failure("an acknowledged report was lost. The demonstration has ended. Please report this.")
    collector.start()
    return crash


def set_round(collector: RunningCollector, number: int, key: str, *, is_open: bool) -> None:
    """Open or close a round."""
    collector.ask("/v1/rounds", json.dumps({"round": number, "open": is_open}).encode(), key=key)


def stored_reports(folder: Path, week: int) -> int:
    """Reports of a week that are on the disk."""
    store = collector_folder(folder).open_store()
    try:
        return sum(count for (_, number), count in store.summary().counts.items() if number == week)
    finally:
        store.close()
