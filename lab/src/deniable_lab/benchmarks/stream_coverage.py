"""How often 95 % intervals of windows hold the truth of the cut stream: on real data, and on drawn ones of many shapes.

Each window is asked in every repetition, so that not only the mean over windows is seen but also how the worst ones do:
those that begin or end where the stream changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.cli.demo.meters import SECONDS_OF_A_DAY, meter_readings
from deniable.randomness import SeededSource
from deniable.streams import Expectation, ToPS
from deniable_lab.benchmarks.stream_error import Row, figure, load
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.stream_reference import BOUNDS, HORIZON, WARMUP, Figure

BOUND = 20_000
LENGTHS = {"six hours": 21_600, "a day": SECONDS_OF_A_DAY, "a week": 7 * SECONDS_OF_A_DAY}
LEAST, MOST = 0.93, 0.97
NINETY_FIVE = 1.959964


def _heavy_tailed(count: int, rng: np.random.Generator) -> Floats:
    return 300 * rng.pareto(2.5, count)


def _bursty(count: int, rng: np.random.Generator) -> Floats:
    """A steady stream, and now and then some minutes of much more."""
    values = rng.gamma(2.0, 150, count)
    number = count // 6000
    starts, lengths = rng.integers(0, count, number), rng.integers(200, 1500, number)
    for start, length, height in zip(starts, lengths, rng.gamma(2.0, 800, number), strict=True):
        part = values[start : start + length]
        part += rng.gamma(4.0, height / 4, part.size)
    return values


def _stepwise(count: int, rng: np.random.Generator) -> Floats:
    """Another level every 10,000 values."""
    return rng.gamma(2.0, np.repeat(rng.choice([100, 300, 750], count // 10_000 + 1), 10_000)[:count])


SHAPES: dict[str, Callable[[int, np.random.Generator], Floats | Integers]] = {
    "meter readings": lambda count, rng: meter_readings(count, rng, BOUND),
    "heavy-tailed": _heavy_tailed,
    "bursty": _bursty,
    "stepwise": _stepwise,
}


def shares_inside(
    shape: str,
    lengths: Sequence[int],
    *,
    repetitions: int,
    days: float = 9,
    windows: int = 300,
    smoother: str = "recent",
) -> dict[int, Floats]:
    """By length: for each of some random windows, in which share of the repetitions its interval holds the truth."""
    rng = np.random.default_rng(2)
    values = SHAPES[shape](WARMUP + int(days * SECONDS_OF_A_DAY), rng)
    whole = np.clip(values, 0, BOUND).round().astype(np.int64)
    starts = {length: rng.integers(0, values.size - WARMUP - length, windows) for length in lengths}
    inside = {length: np.zeros(windows) for length in lengths}
    plan: dict[str, Any] = {"horizon": 1 << 19, "expectation": Expectation(drift=0.02), "smoother": smoother}
    for seed in range(repetitions):
        tops = ToPS(0.2, BOUND, **plan, source=SeededSource(seed), simulation=True)
        tops.push_many(whole)
        for length in lengths:
            inside[length] += _inside(tops, whole, starts[length], length)
    return {length: hits / repetitions for length, hits in inside.items()}


def drawn(repetitions: int) -> Iterator[Row]:
    """Streams of several shapes at ε = 0.2, by length of the window."""
    for shape in SHAPES:
        by_length = shares_inside(shape, list(LENGTHS.values()), repetitions=repetitions)
        for name, length in LENGTHS.items():
            shares = by_length[length]
            note = f"worst twentieth of the windows: {np.quantile(shares, 0.05):.1%}"
            met = LEAST <= shares.mean() <= MOST if shape == "meter readings" else bool(shares.mean() >= LEAST)
            yield Row(f"{shape}, {name}", figure(shares), Figure(0.95, 0.0), met, note)


def real(data: Data, repetitions: int) -> Iterator[Row]:
    """POS at ε = 0.05 and 1, by length of the window."""
    stream = load(data, "pos_length")
    rng = np.random.default_rng(8)
    for epsilon in (0.05, 1.0):
        for length in (1, 60, 1440, 65_536, 1 << 19):
            inside = np.empty(repetitions)
            for seed in range(repetitions):
                tops = ToPS(epsilon, BOUNDS["pos_length"], source=SeededSource(seed), simulation=True)
                tops.push_many(stream.values)
                inside[seed] = _inside(tops, stream.values, rng.integers(0, HORIZON - length, 2000), length).mean()
            yield Row(f"coverage ε={epsilon:g} length {length:,}", figure(inside), Figure(0.95, 0.0), None)


def _inside(tops: ToPS, values: Integers, starts: Integers, length: int) -> Floats:
    """1 for each window whose 95 % interval holds the sum of the cut values."""
    theta = tops.learnt.theta if tops.learnt else 0
    prefix = np.concatenate(([0], np.cumsum(np.minimum(values[WARMUP:], theta))))
    answers = tops.released.sums(starts, starts + length)
    off = np.abs(answers.values - prefix[starts + length] + prefix[starts])
    return np.asarray(off <= NINETY_FIVE * np.hypot(answers.stderrs, answers.smoothing), dtype=np.float64)
