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
from deniable.streams import Expectation, Released, ToPS

METER_STREAM = "watts"
SECONDS_OF_A_DAY = 86_400
EPSILON_PER_READING, MOST_WATTS, READINGS, WARMUP_READINGS = 0.5, 20_000, 240_000, 2**13
LONGEST_EPOCH = 2**16
FAILURE_AT, FAILED_SHARE = 130_000, 0.8
"""From this reading on a part of the supply fails: so much of the load is gone."""
_READINGS_AT_ONCE = 10_000
WINDOWS = (
    ("an hour of the first day", 50_000, 53_600),
    ("six hours before the failure", FAILURE_AT - 30_000, FAILURE_AT - 8_400),
    ("six hours after it", FAILURE_AT + 8_400, FAILURE_AT + 30_000),
    ("the last twelve hours", READINGS - 43_200, READINGS),
)
"""By the number of the reading, the warm-up included."""


def meter_readings(count: int, rng: np.random.Generator, bound: int) -> Integers:
    """Made-up watts, one reading per second: a mean that swings from day to night, and much chance around it."""
    days = np.arange(count) / SECONDS_OF_A_DAY
    level = 600 + 450 * np.sin(2 * np.pi * (days - 0.3)) + 150 * np.sin(4 * np.pi * days)
    return np.asarray(np.clip(rng.gamma(2.0, np.maximum(level, 80) / 2), 0, bound).round(), dtype=np.int64)


def made_up() -> Integers:
    """Watts of a district, one reading per second, until a part of the supply fails."""
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
    theta_after: float
    noticed_at: int | None
    """Readings that had been sent when a lower θ was learnt; None if the stream ended before."""
    rows: tuple[tuple[str, float, Estimate], ...]


def make_stream(folder: Path, seed: int | None) -> None:
    """An empty live stream in the folder of a collector. Drift is public: everybody knows that there are nights."""
    publisher = ToPS(
        EPSILON_PER_READING,
        MOST_WATTS,
        warmup=WARMUP_READINGS,
        horizon=LONGEST_EPOCH,
        expectation=Expectation(drift=0.02),
        key=None if seed is None else seed.to_bytes(KEY_BYTES, "big", signed=True),
        simulation=seed is not None,
    )
    DurablePublisher(folder / "live" / METER_STREAM, publisher).close()


def publish(
    collector: RunningCollector, folder: Path, watts: Integers, keys: dict[str, str], advance: Callable[[float], None]
) -> Published:
    """Send all readings over HTTP, and look after each request whether the collector has noticed anything."""
    thetas: list[tuple[int, float]] = []
    for first in range(0, watts.size, _READINGS_AT_ONCE):
        values = watts[first : first + _READINGS_AT_ONCE].tolist()
        body = json.dumps({"position": first, "values": values}).encode()
        answer = collector.ask(f"/v1/streams/{METER_STREAM}", body, key=keys["publish"])
        if answer.get("taken") != len(values):
            raise Failure("the collector did not take the readings. The demonstration has ended. Run it again.")
        described = next(
            stream
            for stream in collector.ask("/v1/streams", key=keys["ask"])["streams"]
            if stream["name"] == METER_STREAM
        )
        if described["theta"] is not None:
            thetas.append((first + len(values), float(described["theta"])))
        advance(len(values) / watts.size)
    before = next(theta for sent, theta in reversed(thetas) if sent <= FAILURE_AT)
    lower = [(sent, theta) for sent, theta in thetas if sent > FAILURE_AT and theta < before / 2]
    noticed_at, after = lower[0] if lower else (None, thetas[-1][1])
    released = StoredStream(folder / "live" / METER_STREAM).released()
    rows = tuple(
        (name, float(watts[start:stop].mean()), released.mean(start - WARMUP_READINGS, stop - WARMUP_READINGS))
        for name, start, stop in WINDOWS
    )
    return Published(released, before, after, noticed_at, rows)
