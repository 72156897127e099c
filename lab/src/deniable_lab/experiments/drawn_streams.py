"""A family of drawn streams: fourteen shapes, each with parameters of its own per seed.

Constants of the publishers are chosen on even seeds and reported on odd ones. Real streams take no part in the choice.
A seed decides the shape, its parameters and all values, so a stream can be drawn again anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers

Draw = Callable[[int, np.random.Generator], Floats]
LARGEST = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class DrawnStream:
    """Whole numbers from 0 to a bound that is public, and the shape that they have."""

    shape: str
    values: Integers
    bound: int


def drawn(seed: int, count: int) -> DrawnStream:
    """The stream of a seed. The bound is 1.5 to 50 times the largest value, as a careful owner would set it.

    >>> stream = drawn(3, 1000)
    >>> stream.shape, stream.values.size
    ('nearly always 0', 1000)
    """
    rng = np.random.default_rng([seed, 2021])
    shape = list(SHAPES)[seed // 2 % len(SHAPES)]
    values = np.rint(np.clip(SHAPES[shape](count, rng), 0, LARGEST)).astype(np.int64)
    return DrawnStream(shape, values, int(max(values.max(), 2) * np.exp(rng.uniform(np.log(1.5), np.log(50)))))


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """A scale: uniform in logs."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _geometric(count: int, rng: np.random.Generator) -> Floats:
    return rng.geometric(1 / _between(rng, 1.5, 200), count).astype(np.float64)


def _zeros_and_tail(count: int, rng: np.random.Generator) -> Floats:
    """Minutes late: mostly 0, with a long tail."""
    late = rng.random(count) < _between(rng, 0.02, 0.4)
    return np.where(late, rng.lognormal(np.log(_between(rng, 2, 50)), rng.uniform(0.5, 1.3), count), 0.0)


def _money(count: int, rng: np.random.Generator) -> Floats:
    """Amounts in cents, with prices that come again."""
    amounts = rng.lognormal(np.log(_between(rng, 300, 30_000)), rng.uniform(0.4, 1.1), count)
    return np.where(rng.random(count) < 0.3, np.ceil(amounts / 500) * 500, amounts)


def _pareto(count: int, rng: np.random.Generator) -> Floats:
    return _between(rng, 1, 300) * (1 + rng.pareto(rng.uniform(1.5, 3.0), count))


def _cycle(count: int, rng: np.random.Generator, depth: float | None = None) -> Floats:
    """A rate with days and nights, and weekends in half of the draws; around 1."""
    period = _between(rng, 200, 20_000)
    phase, depth = rng.uniform(0, 1), rng.uniform(0.2, 0.95) if depth is None else depth
    time = np.arange(count) / period + phase
    rate = 1 + depth * np.sin(2 * np.pi * time) + 0.3 * depth * np.sin(4 * np.pi * time + rng.uniform(0, 6))
    return np.clip(rate * np.where((time % 7 > 5) & bool(rng.integers(2)), rng.uniform(0.4, 0.9), 1.0), 0.02, None)


def _calls(count: int, rng: np.random.Generator) -> Floats:
    """Counts with days and nights."""
    return rng.poisson(_between(rng, 2, 300) * _cycle(count, rng)).astype(np.float64)


def _meter(count: int, rng: np.random.Generator) -> Floats:
    """Large values with days and nights and little chance: electricity."""
    rough = rng.normal(1, rng.uniform(0.005, 0.2), count)
    return _between(rng, 100, 20_000) * _cycle(count, rng, rng.uniform(0.1, 0.5)) * np.clip(rough, 0.1, None)


def _plateaus(count: int, rng: np.random.Generator) -> Floats:
    """Requests per second: levels that hold for a while."""
    lengths = rng.geometric(1 / _between(rng, 300, 50_000), count // 100 + 2)
    levels = rng.lognormal(np.log(_between(rng, 2, 500)), rng.uniform(0.2, 1.0), lengths.size)
    return rng.poisson(np.resize(np.repeat(levels, np.minimum(lengths, count))[:count], count)).astype(np.float64)


def _bursts(count: int, rng: np.random.Generator) -> Floats:
    base = _between(rng, 0.5, 50)
    rates = np.full(count, base)
    number = int(count / _between(rng, 700, 20_000)) + 1
    mean_length, mean_height = _between(rng, 20, 2_000), base * _between(rng, 3, 30)
    for start, length in zip(rng.integers(0, count, number), rng.geometric(1 / mean_length, number), strict=True):
        rates[start : start + length] += rng.gamma(2.0, mean_height / 2)
    return rng.poisson(rates).astype(np.float64)


def _trend(count: int, rng: np.random.Generator) -> Floats:
    """Growth or decline over the whole stream, by up to eight times."""
    growth = np.exp(np.linspace(0, rng.uniform(-2, 2), count))
    return rng.gamma(rng.uniform(0.7, 6), _between(rng, 2, 2_000) * growth)


def _shift(count: int, rng: np.random.Generator) -> Floats:
    """One to three changes of the level by up to ten times."""
    level = np.full(count, _between(rng, 5, 500))
    for _ in range(rng.integers(1, 4)):
        level[rng.integers(count // 8, count) :] *= _between(rng, 0.1, 10)
    return rng.gamma(rng.uniform(0.7, 6), level)


def _autocorrelated(count: int, rng: np.random.Generator) -> Floats:
    """A level that wanders and comes back, in logs."""
    memory = _between(rng, 30, 30_000)
    steps = rng.normal(0, np.sqrt(2 / memory), count)
    pieces = np.empty(count)
    decay, state, size = np.exp(-1 / memory), rng.normal(), 4096
    powers = decay ** np.arange(1, size + 1)
    for first in range(0, count, size):
        part = steps[first : first + size]
        weights = powers[: part.size]
        pieces[first : first + part.size] = (
            weights * (state + np.cumsum(part / weights)) if memory > 200 else _slow(part, decay, state)
        )
        state = pieces[min(first + size, count) - 1]
    return rng.gamma(rng.uniform(1, 8), _between(rng, 2, 1_000) * np.exp(rng.uniform(0.2, 0.7) * pieces))


def _slow(part: Floats, decay: float, state: float) -> Floats:
    result = np.empty(part.size)
    for index, step in enumerate(part.tolist()):
        state = decay * state + step
        result[index] = state
    return result


def _two_kinds(count: int, rng: np.random.Generator) -> Floats:
    """A mixture of small and large values, with a gap in between."""
    small = rng.normal(_between(rng, 5, 50), 1, count)
    return np.where(rng.random(count) < _between(rng, 0.005, 0.3), small * _between(rng, 5, 100), small).clip(0)


def _flags(count: int, rng: np.random.Generator) -> Floats:
    """0 or 1, or small counts."""
    return rng.binomial(rng.integers(1, 6), rng.uniform(0.02, 0.95), count).astype(np.float64)


def _rare(count: int, rng: np.random.Generator) -> Floats:
    """Nearly always 0; now and then one of several amounts, in clusters."""
    chance = _between(rng, 0.001, 0.05) * _cycle(count, rng)
    return np.where(rng.random(count) < chance, rng.gamma(2, _between(rng, 3, 300), count) + 1, 0.0)


SHAPES: dict[str, Draw] = {
    "geometric": _geometric,
    "nearly always 0": _rare,
    "zeros and a tail": _zeros_and_tail,
    "money": _money,
    "heavy tail": _pareto,
    "days and nights": _calls,
    "meter": _meter,
    "plateaus": _plateaus,
    "bursts": _bursts,
    "trend": _trend,
    "shifts": _shift,
    "autocorrelated": _autocorrelated,
    "two kinds": _two_kinds,
    "flags": _flags,
}
