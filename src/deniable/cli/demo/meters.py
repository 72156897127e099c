"""A stream that nobody may publish as it is: made-up meter readings, and windows of their private release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Integers
from deniable.queries.answers.result import Estimate
from deniable.randomness import Source
from deniable.streams import Expectation, Released, ToPS

SECONDS_OF_A_DAY = 86_400
EPSILON_PER_READING, MOST_WATTS, READINGS, WARMUP_READINGS = 0.2, 20_000, 500_000, 2**16
WINDOWS = (
    ("all", 0, READINGS - WARMUP_READINGS),
    ("a day", 0, SECONDS_OF_A_DAY),
    ("six hours", 180_000, 201_600),
    ("one hour", 300_000, 303_600),
)


def meter_readings(count: int, rng: np.random.Generator, bound: int) -> Integers:
    """Made-up watts, one reading per second: a mean that swings from day to night, and much chance around it."""
    days = np.arange(count) / SECONDS_OF_A_DAY
    level = 600 + 450 * np.sin(2 * np.pi * (days - 0.3)) + 150 * np.sin(4 * np.pi * days)
    return np.asarray(np.clip(rng.gamma(2.0, np.maximum(level, 80) / 2), 0, bound).round(), dtype=np.int64)


def made_up() -> Integers:
    """Watts, one reading per second."""
    return meter_readings(READINGS, np.random.default_rng(2), MOST_WATTS)


@dataclass(frozen=True, slots=True)
class Published:
    """What was published, and the mean of some windows next to the truth."""

    released: Released
    theta: float
    rows: tuple[tuple[str, float, Estimate], ...]


def publish(watts: Integers, source: Source, *, simulation: bool) -> Published:
    """All readings through ToPS; drift is public knowledge: everybody knows that there are nights."""
    tops = ToPS(
        EPSILON_PER_READING,
        MOST_WATTS,
        warmup=WARMUP_READINGS,
        horizon=2**19,
        expectation=Expectation(drift=0.02),
        source=source,
        simulation=simulation,
    )
    tops.push_many(watts)
    released, truth = tops.released, watts[WARMUP_READINGS:]
    rows = tuple((name, float(truth[start:stop].mean()), released.mean(start, stop)) for name, start, stop in WINDOWS)
    return Published(released, float(tops.learnt.theta) if tops.learnt else float(MOST_WATTS), rows)
