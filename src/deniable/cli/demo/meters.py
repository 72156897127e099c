"""A stream that nobody may publish as it is: made-up meter readings, sent to a live stream, and a shift in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable.addresses import KEY_BYTES
from deniable.arrays import Integers
from deniable.cli.demo.running_collector import RunningCollector
from deniable.errors import Failure
from deniable.queries.answers.result import Estimate
from deniable.stores import DurablePublisher, StoredStream
from deniable.streams import Released, ToPS
from deniable.streams.central.settings import usual_warmup

METER_STREAM = "watts"
SECONDS_OF_A_DAY = 86_400
EPSILON_PER_READING, MOST_WATTS, DAYS = 0.5, 20_000, 3
READINGS = DAYS * SECONDS_OF_A_DAY
WARMUP_READINGS = usual_warmup(EPSILON_PER_READING)
FAILURE_AT, FAILED_SHARE = SECONDS_OF_A_DAY * 3 // 2, 0.9
"""At noon of the second day the supply fails, and a tenth of the load stays. The stream takes a mean three times as low
for a shift, so it has to notice this one, at whatever hour θ was learnt; and its nights, at three fifths of a day's
load, must not count as one."""
_READINGS_AT_ONCE = 3_600
_SECOND_DAY = (("midnight to six", 0), ("six to noon", 6), ("noon to six", 12), ("six to midnight", 18))
WINDOWS = (
    *(
        (f"second day, {name}", SECONDS_OF_A_DAY + hour * 3_600, SECONDS_OF_A_DAY + (hour + 6) * 3_600)
        for name, hour in _SECOND_DAY
    ),
    ("third day", 2 * SECONDS_OF_A_DAY, 3 * SECONDS_OF_A_DAY),
)
"""By the number of the reading, the warm-up included: the quarters of the day of the failure, and the day after it."""


def meter_readings(count: int, rng: np.random.Generator, bound: int) -> Integers:
    """Made-up watts, one reading per second: a mean that swings from day to night, and much chance around it."""
    days = np.arange(count) / SECONDS_OF_A_DAY
    level = 600 + 450 * np.sin(2 * np.pi * (days - 0.3)) + 150 * np.sin(4 * np.pi * days)
    return np.asarray(np.clip(rng.gamma(2.0, np.maximum(level, 80) / 2), 0, bound).round(), dtype=np.int64)


def made_up() -> Integers:
    """Watts of a district, one reading per second from midnight on, until the supply fails."""
    random = np.random.default_rng(2)
    days = np.arange(READINGS) / SECONDS_OF_A_DAY
    level = 600 + 150 * np.sin(2 * np.pi * (days - 0.3))
    level[FAILURE_AT:] *= 1 - FAILED_SHARE
    return np.asarray(np.clip(random.gamma(2.0, level / 2), 0, MOST_WATTS).round(), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Published:
    """What was published, some windows next to the truth, and when the shift was noticed."""

    released: Released
    theta_before: float
    """Of the epoch in which the supply fails."""
    theta_after: float
    """Of the last epoch."""
    noticed_at: int | None
    """The reading from which a new θ holds, if an epoch ended early for it; None if none did."""
    rows: tuple[tuple[str, float, Estimate], ...]


def make_stream(folder: Path, seed: int | None) -> None:
    """An empty live stream in the folder of a collector, with the usual settings; an epoch is a day."""
    publisher = ToPS(
        EPSILON_PER_READING,
        MOST_WATTS,
        horizon=SECONDS_OF_A_DAY,
        key=None if seed is None else seed.to_bytes(KEY_BYTES, "big", signed=True),
        simulation=seed is not None,
    )
    DurablePublisher(folder / "live" / METER_STREAM, publisher).close()


def publish(
    collector: RunningCollector, folder: Path, watts: Integers, keys: dict[str, str], advance: Callable[[float], None]
) -> Published:
    """Send all readings over HTTP; then read from what the collector published whether it noticed the failure."""
    for first in range(0, watts.size, _READINGS_AT_ONCE):
        values = watts[first : first + _READINGS_AT_ONCE].tolist()
        body = json.dumps({"position": first, "values": values}).encode()
        answer = collector.ask(f"/v1/streams/{METER_STREAM}", body, key=keys["publish"])
        if answer.get("taken") != len(values):
            raise Failure("the collector did not take the readings. The demonstration has ended. Run it again.")
        advance(len(values) / watts.size)
    stream = StoredStream(folder / "live" / METER_STREAM)
    released, epochs = stream.released(), stream.epochs
    failed = max(number for number, epoch in enumerate(epochs) if epoch.begin + WARMUP_READINGS <= FAILURE_AT)
    of_failure, *later = epochs[failed:]
    early = bool(later) and later[0].begin < of_failure.begin + of_failure.length
    rows = tuple(
        (name, float(watts[start:stop].mean()), released.mean(start - WARMUP_READINGS, stop - WARMUP_READINGS))
        for name, start, stop in WINDOWS
    )
    return Published(
        released,
        float(of_failure.learnt.theta),
        float(epochs[-1].learnt.theta),
        later[0].begin + WARMUP_READINGS if early else None,
        rows,
    )
