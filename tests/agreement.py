"""Does a sample follow a law? A test that raises a false alarm with probability at most 1e-9, whatever the seed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.stats import binom

FALSE_ALARM = 1e-9


def agrees(outcomes: np.ndarray, law: Sequence[Fraction | float]) -> bool:
    """Every outcome, every group of equally likely ones and every beginning of the list is as frequent as the law says.

    Exact binomial tails, with the false alarms shared out over all of these events.
    """
    chances = np.array([float(chance) for chance in law])
    counts = np.bincount(outcomes, minlength=chances.size)
    if counts.size > chances.size or counts[chances == 0].any():
        return False
    values, group = np.unique(chances, return_inverse=True)
    grouped = np.bincount(group, weights=counts)
    expected = np.minimum(values * np.bincount(group), 1.0)
    seen = np.concatenate((counts, grouped, np.cumsum(counts)[:-1]))
    chance = np.concatenate((chances, expected, np.minimum(np.cumsum(chances)[:-1], 1.0)))
    tail = FALSE_ALARM / (2 * seen.size)
    n = outcomes.size
    return bool(np.all((binom.ppf(tail, n, chance) <= seen) & (seen <= binom.isf(tail, n, chance))))
