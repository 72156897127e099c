"""The ε of laws that are known: no samples, no doubt."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from deniable.errors import InvalidParameter

Law = Sequence[Fraction | float]


def worst_ratio(laws: Iterable[tuple[Law, Law]], delta: float = 0.0) -> float:
    """The smallest ε that pairs of laws satisfy, in either direction, with the given δ.

    >>> worst_ratio([((0.75, 0.25), (0.25, 0.75))]) == math.log(3)
    True
    """
    laws = list(laws)
    if not laws or any(len(a) != len(b) for a, b in laws):
        raise InvalidParameter("laws", "must be pairs of equally many probabilities", "Give one pair at least.")
    return max(max(_smallest_epsilon(a, b, delta), _smallest_epsilon(b, a, delta)) for a, b in laws)


def _smallest_epsilon(likely: Law, unlikely: Law, delta: float) -> float:
    if delta == 0:
        # A law with 100,000 outputs holds few different numbers, each one object: look at every pair of them once.
        pairs = {(id(a), id(b)): (a, b) for a, b in zip(likely, unlikely, strict=True)}
        return max((_log_ratio(a, b) for a, b in pairs.values() if a), default=0.0)
    p, q = np.array(likely, dtype=float), np.array(unlikely, dtype=float)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        leak = float(np.maximum(p - math.exp(middle) * q, 0).sum())
        low, high = (low, middle) if leak <= delta else (middle, high)
    return high


def _log_ratio(a: Fraction | float, b: Fraction | float) -> float:
    return math.inf if not b else math.log(a / b)
