"""Streams of [WCZ21] and stand-ins for them: heavy-tailed, bursty, drifting. Their ranges, and errors over these.

Every stream has 2^16 values for the warm-up and 2^20 to publish; shorter files are extended by their own reverse, as
the authors do. Questions are the sums over 200 random ranges, the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable_lab.experiments.parquet_files import read_columns
from deniable_lab.experiments.stream_reference import HORIZON, WARMUP, queries

SIZE = HORIZON + WARMUP
FILES = {
    "POS": "pos_length",
    "DNS": "dns_google_rps",
    "Kosarak": "kosarak_prefix_length",
    "Fare": "nyc_green_taxi_fare_cents",
    "NASA": "nasa_http_rps",
}
BOUNDS = {"POS": 1638, "DNS": 500, "Kosarak": 42_178, "Fare": 30_000, "NASA": 100}
"""B: those of the authors' code, and ours for NASA, which they do not have."""
_ABOUT = {
    "POS": "POS: real, items per basket (BMS-POS, 515,597 values), the paper's own",
    "DNS": "DNS: real, queries per second for one domain (355,872 values), a sibling of the paper's",
    "Kosarak": "Kosarak: real, clicks per session, the first 36,682 of the paper's 990,002",
    "Fare": "Fare: real, fares of green taxis of New York in cents, for the paper's yellow ones of January 2018",
    "NASA": "NASA: real, requests per second to a web server (5,059,950 values), not in the paper; it has no stand-in",
    "POS stand-in": "POS stand-in: synthetic, not real; heavy-tailed, independent (log-normal, mean 7.5)",
    "DNS stand-in": "DNS stand-in: synthetic, not real; bursty counts (Poisson, with bursts of some hundred seconds)",
    "Kosarak stand-in": "Kosarak stand-in: synthetic, not real; very heavy-tailed (Pareto, mean about 8)",
    "Fare stand-in": "Fare stand-in: synthetic, not real; drifting (log-normal around a daily and a slower wave)",
}
ABOUT = {name: f"{text}; B = {BOUNDS[name.removesuffix(' stand-in')]:,}." for name, text in _ABOUT.items()}


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of sums over the ranges, and of means: MSE, MAE, MMSE, MMAE."""

    mse: float
    mae: float
    mmse: float
    mmae: float

    def numbers(self) -> dict[str, float]:
        """By the paper's names."""
        return {"MSE": self.mse, "MAE": self.mae, "MMSE": self.mmse, "MMAE": self.mmae}


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A warm-up of 2^16 values and 2^20 to publish, with the true answers."""

    name: str
    values: Integers
    bound: int

    @property
    def starts(self) -> Integers:
        """Where the ranges begin."""
        return queries()[0]

    @property
    def stops(self) -> Integers:
        """Where they end."""
        return queries()[1]

    @property
    def published(self) -> Integers:
        """What comes after the warm-up."""
        return self.values[WARMUP:]

    def truth(self, theta: float = np.inf) -> Floats:
        """Sums over the ranges, of values cut at θ."""
        return self.answers(np.minimum(self.published, theta))

    def answers(self, published: Any) -> Floats:
        """Sums over the ranges."""
        prefix = np.concatenate(([0.0], np.cumsum(published, dtype=np.float64)))
        return np.asarray(prefix[self.stops] - prefix[self.starts])

    def errors(self, published: Any, theta: float = np.inf) -> Errors:
        """How far a published stream is off, from the truth or from the truth cut at θ."""
        return self.apart(self.answers(published), theta)

    def apart(self, answers: Floats, theta: float = np.inf) -> Errors:
        """How far answers for the ranges are off, from the truth or from the truth cut at θ."""
        off = answers - self.truth(theta)
        apart = off / (self.stops - self.starts)
        return Errors(*(float(np.mean(errors)) for errors in (off**2, np.abs(off), apart**2, np.abs(apart))))


@lru_cache(maxsize=8)
def stream(name: str, file: Path | None) -> Stream:
    """A stream of the paper from its file, or its stand-in."""
    plain = name.removesuffix(" stand-in")
    if file is not None:
        return read(name, file, BOUNDS[plain])
    values = _STAND_INS[plain](np.random.default_rng(list(plain.encode())))
    return Stream(name, np.clip(values, 0, BOUNDS[plain]), BOUNDS[plain])


def read(name: str, file: Path, bound: int) -> Stream:
    """A stream from the column `value` of a file, extended."""
    return Stream(name, extended(read_columns(file, "value")["value"].to_numpy().astype(np.int64)), bound)


def extended(values: Integers) -> Integers:
    """Extended by its own reverse to 2^20 + 2^16 values."""
    while values.size < SIZE:
        values = np.concatenate((values, values[SIZE - values.size : 0 : -1]))
    return values[:SIZE]


def _heavy_tailed(rng: np.random.Generator) -> Integers:
    return np.ceil(rng.lognormal(1.6, 0.85, SIZE)).astype(np.int64)


def _bursty(rng: np.random.Generator) -> Integers:
    rates = np.full(SIZE, 1.0)
    starts, lengths = rng.integers(0, SIZE, 1500), rng.geometric(1 / 300, 1500)
    for start, length, height in zip(starts, lengths, rng.pareto(2.5, 1500), strict=True):
        rates[start : start + length] += 2 * height
    return np.asarray(1 + rng.poisson(np.minimum(rates, 20.0)), dtype=np.int64)


def _very_heavy_tailed(rng: np.random.Generator) -> Integers:
    return np.ceil(3.2 * (1 + rng.pareto(1.7, SIZE)) - 2.2).astype(np.int64)


def _drifting(rng: np.random.Generator) -> Integers:
    time = np.arange(SIZE)
    level = 6.9 + 0.25 * np.sin(time * (2 * np.pi / 30_000)) + 0.35 * np.sin(time * (2 * np.pi / 450_000))
    return np.asarray(np.rint(np.exp(level + rng.normal(0.0, 0.55, SIZE))), dtype=np.int64)


_STAND_INS: dict[str, Callable[[np.random.Generator], Integers]] = {
    "POS": _heavy_tailed,
    "DNS": _bursty,
    "Kosarak": _very_heavy_tailed,
    "Fare": _drifting,
}
