"""Distributions drawn from many shapes, for choices that must not be fitted to the streams at hand.

Even seeds choose a setting, odd seeds report what it is worth; both go through all shapes. A distribution has its own
scale, over three orders of magnitude, and a public bound of up to thirty times its largest value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats

_VALUES = 200_000
Generator = np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A distribution of whole or rounded numbers, and the public bound of its values."""

    shape: str
    values: Floats
    shares: Floats
    bound: float

    def excess(self, thetas: Floats) -> Floats:
        """What cutting at each θ takes from a value on average."""
        return np.asarray(np.maximum(self.values - thetas[:, None], 0.0) @ self.shares)


def drawn(seed: int) -> Drawn:
    """The distribution of a seed. Seeds 2i and 2i + 1 have the same shape and different parameters."""
    rng = np.random.default_rng([77, seed])
    shape = list(SHAPES)[seed // 2 % len(SHAPES)]
    scale = _log_uniform(rng, 3, 3000)
    values = SHAPES[shape](rng, _VALUES) * scale
    if rng.random() < 0.7:
        values = np.rint(values)
    values = np.maximum(values, 0.0)
    largest = max(float(np.quantile(values, 1 - 3 / _VALUES)), 1.0)
    bound = float(f"{largest * _log_uniform(rng, 1, 30):.3g}")
    return of_values(shape, np.minimum(values, bound), bound)


def of_values(shape: str, values: Any, bound: float) -> Drawn:
    """The distribution of given values, in steps of at most a thousandth of each."""
    floats = np.asarray(values, dtype=np.float64)
    steps = 10.0 ** np.floor(np.log10(np.maximum(floats, 1e-12)) - 2)
    different, counts = np.unique(np.where(floats < 1000, floats, np.rint(floats / steps) * steps), return_counts=True)
    if different.size > 50_000:
        different, counts = np.unique(np.rint(floats / steps) * steps, return_counts=True)
    return Drawn(shape, different, counts / counts.sum(), bound)


def _log_uniform(rng: Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _two(rng: Generator, size: int, share: float, first: Floats, second: Floats) -> Floats:
    return np.where(rng.random(size) < share, first, second)


def _bimodal(rng: Generator, size: int) -> Floats:
    second = rng.lognormal(math.log(_log_uniform(rng, 3, 100)), rng.uniform(0.1, 0.6), size)
    return _two(rng, size, rng.uniform(0.05, 0.95), rng.lognormal(0, rng.uniform(0.1, 0.8), size), second)


def _plateaus(rng: Generator, size: int) -> Floats:
    levels = rng.choice(np.exp(rng.uniform(-2, 3, 5)), size, p=rng.dirichlet(np.ones(5)))
    return np.asarray(levels * (1 + rng.uniform(0.02, 0.2) * rng.standard_normal(size)))


def _bursts(rng: Generator, size: int) -> Floats:
    calm = rng.gamma(_log_uniform(rng, 0.5, 5), 1.0, size)
    burst = calm * (1 + _log_uniform(rng, 3, 60) * rng.random(size))
    return _two(rng, size, _log_uniform(rng, 0.002, 0.1), burst, calm)


def _zeros(rng: Generator, size: int) -> Floats:
    return _two(rng, size, rng.uniform(0.3, 0.97), np.zeros(size), rng.lognormal(0, rng.uniform(0.3, 1.3), size))


def _two_exponentials(rng: Generator, size: int) -> Floats:
    large = rng.exponential(_log_uniform(rng, 3, 40), size)
    return _two(rng, size, _log_uniform(rng, 0.003, 0.3), large, rng.exponential(1.0, size))


def _cycle(rng: Generator, size: int) -> Floats:
    rates = _log_uniform(rng, 2, 50) * (1 + rng.uniform(0.3, 1) * np.sin(rng.uniform(0, 2 * np.pi, size)))
    return np.asarray(rng.poisson(np.maximum(rates, 0.0)) / 5)


def _gamma(rng: Generator, size: int) -> Floats:
    shape = _log_uniform(rng, 0.3, 30)
    return rng.gamma(shape, 1 / shape, size)


def _atoms(rng: Generator, size: int) -> Floats:
    return rng.choice(np.exp(rng.uniform(-3, 3, 4)), size, p=rng.dirichlet(np.full(4, 0.7)))


SHAPES: dict[str, Callable[[Generator, int], Floats]] = {
    "exponential": lambda rng, size: rng.exponential(1.0, size),
    "lognormal": lambda rng, size: rng.lognormal(0, rng.uniform(0.2, 1.5), size),
    "gamma": _gamma,
    "weibull": lambda rng, size: rng.weibull(_log_uniform(rng, 0.5, 3), size),
    "pareto": lambda rng, size: rng.pareto(rng.uniform(1.3, 3.5), size) + rng.uniform(0, 1),
    "bimodal": _bimodal,
    "plateaus": _plateaus,
    "bursts": _bursts,
    "zeros": _zeros,
    "uniform": lambda rng, size: rng.uniform(rng.uniform(0, 0.8), 1, size),
    "atoms": _atoms,
    "normal": lambda rng, size: 1 + rng.uniform(0.01, 0.4) * rng.standard_normal(size),
    "cycle": _cycle,
    "two exponentials": _two_exponentials,
}
