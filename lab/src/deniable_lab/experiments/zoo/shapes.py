"""Columns of many shapes, over domains of any size; parameters are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import ndtr, ndtri

from deniable.arrays import Floats, Integers

Draw = Callable[[Floats, int, np.random.Generator], Integers]
"""Ranks between 0 and 1, the size of the domain, and where parameters come from → values."""


def _placed(quantiles: Floats, size: int) -> Integers:
    """Parts of the domain as values of it."""
    return np.clip(np.floor(quantiles * size), 0, size - 1).astype(np.int64)


def _smooth(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    middle, width = random.uniform(0.25, 0.75), random.uniform(0.08, 0.3)
    low, high = ndtr(-middle / width), ndtr((1 - middle) / width)
    return _placed(middle + width * ndtri(low + ranks * (high - low)), size)


def _skewed(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    median, sigma = random.choice([0.003, 0.01, 0.04, 0.12]), random.uniform(0.5, 1.5)
    return _placed(median * np.exp(sigma * ndtri(ranks)), size)


def _zero_inflated(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    zeros, power = random.uniform(0.4, 0.97), random.uniform(0.7, 1.6)
    start = random.uniform(1, max(2.0, size**0.5))
    tail = np.maximum((ranks - zeros) / (1 - zeros), 0.0)
    values = np.clip(start * (1 - np.minimum(tail, 1 - 1e-9)) ** (-1 / power), 1, size - 1)
    return np.where(ranks < zeros, 0, values).astype(np.int64)


def _heaped(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    values = _smooth(ranks, size, random)
    steps = [step for step in (5, 10, 100, 1000) if step * 4 <= size] or [2]
    step, share = int(random.choice(steps)), random.uniform(0.5, 1.0)
    return np.where(random.random(ranks.size) < share, values // step * step, values)


def _atoms(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    count = int(random.integers(2, 5))
    places = random.choice(size, min(count, size), replace=False)
    if random.random() < 0.6:
        places[0] = 0
    shares = random.dirichlet(np.ones(places.size))
    dust = random.uniform(0.0, 0.3)
    which = np.searchsorted(np.cumsum(shares), ranks, side="right")
    ordered = np.sort(places)[np.minimum(which, places.size - 1)]
    return np.where(random.random(ranks.size) < dust, random.integers(0, size, ranks.size), ordered)


def _codes(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    kinds = min(size, 2000)
    shares = np.arange(1, kinds + 1) ** -random.uniform(0.6, 1.5)
    reach = np.cumsum(shares) / shares.sum()
    places = random.choice(size, kinds, replace=False)
    return np.asarray(places[np.minimum(np.searchsorted(reach, ranks), kinds - 1)], dtype=np.int64)


def _constant(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    most, position = (
        random.uniform(0.95, 0.999),
        int(random.choice(np.array([0, size - 1, int(random.integers(size))]))),
    )
    return np.where(random.random(ranks.size) < most, position, random.integers(0, size, ranks.size))


def _bimodal(ranks: Floats, size: int, random: np.random.Generator) -> Integers:
    share, width = random.uniform(0.2, 0.8), random.uniform(0.02, 0.08)
    left, right = random.uniform(0.1, 0.35), random.uniform(0.6, 0.9)
    low = ranks < share
    inner = np.clip(np.where(low, ranks / share, (ranks - share) / (1 - share)), 1e-9, 1 - 1e-9)
    return _placed(np.where(low, left, right) + width * ndtri(inner), size)


SHAPES: Mapping[str, Draw] = {
    "smooth": _smooth,
    "skewed": _skewed,
    "zero-inflated": _zero_inflated,
    "heaped": _heaped,
    "atoms": _atoms,
    "codes": _codes,
    "constant": _constant,
    "bimodal": _bimodal,
}
"""Each attribute of a table is one of these; tables of the shape `drifting` are drawn as a whole."""
DRIFTING, CATEGORIES, MIXED = "drifting", "categories", "mixed"
"""All attributes follow the first one; all are categorical; each is of a shape of its own."""


def drawn_columns(
    shapes: list[str], sizes: list[int], users: int, correlated: bool, random: np.random.Generator
) -> list[Integers]:
    """The columns of a table: each of its shape, with parameters of its own, correlated or not."""
    if DRIFTING in shapes:
        first = random.random(users)
        slope, width = random.uniform(0.4, 0.8), random.uniform(0.03, 0.15)
        columns = [_placed(first, sizes[0])]
        for size in sizes[1:]:
            middle = 0.1 + slope * first + width * random.standard_normal(users)
            columns.append(_placed(middle, size))
        return columns
    common = random.standard_normal(users)
    columns = []
    for size, each in zip(sizes, shapes, strict=True):
        own = random.standard_normal(users)
        mixed = 0.95 * common + np.sqrt(1 - 0.95**2) * own if correlated else own
        ranks = np.clip(ndtr(mixed), 1e-9, 1 - 1e-9)
        columns.append(SHAPES["codes" if each == CATEGORIES else each](ranks, size, random))
    return columns


def shapes_of(shape: str, attributes: int, random: np.random.Generator) -> list[str]:
    """The shape of each attribute of a table."""
    if shape != MIXED:
        return [shape] * attributes
    return [str(name) for name in random.choice([*SHAPES, CATEGORIES], attributes)]
