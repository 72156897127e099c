"""Values of people in several shapes, from which quantiles are asked."""

from __future__ import annotations

import numpy as np

from deniable.arrays import Integers

LARGEST = 199


def _normal(rng: np.random.Generator, users: int) -> Integers:
    return np.clip(np.rint(rng.normal(100, 30, users)), 0, LARGEST).astype(np.int64)


def _skewed(rng: np.random.Generator, users: int) -> Integers:
    return np.clip(rng.lognormal(3, 0.8, users), 0, LARGEST).astype(np.int64)


def _spiky(rng: np.random.Generator, users: int) -> Integers:
    """Half of the people are at one of three values, the others anywhere."""
    return np.where(rng.random(users) < 0.5, rng.choice([20, 90, 150], users), rng.integers(0, LARGEST + 1, users))


def _ties(rng: np.random.Generator, users: int) -> Integers:
    """Multiples of ten only."""
    return _normal(rng, users) // 10 * 10


SHAPES = {"normal": _normal, "skewed": _skewed, "spiky": _spiky, "ties": _ties}
