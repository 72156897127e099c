"""Second moments of what a report contributes, from the law of its view's oracle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.arrays import Floats
from deniable.queries.weights.table_plan import ViewWeights


def oracle_second_moments(
    view: ViewWeights,
    own: Floats,
    every: Floats,
    sums: Floats,
    means: Floats,
    pairs: Callable[[Floats, Floats], Floats],
) -> Floats:
    """From the law of the view's oracle; `pairs` multiplies what two columns have."""
    p, q = view.p, view.q
    if q == 0.0:
        return own
    if view.buckets:
        return np.asarray(q * (1 - q) / (p - q) ** 2 * every + (1 - 2 * q) / (p - q) * own)
    crossed = pairs(means, sums) + pairs(sums, means)
    return np.asarray((q * every - q * q * pairs(sums, sums) + (p - q) * own - q * (p - q) * crossed) / (p - q) ** 2)
