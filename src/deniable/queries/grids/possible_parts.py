"""Parts of a whole that noisy sums speak of, none of them negative, and none of them nothing for sure.

The most likely parts are often exactly zero, while noise hides some rows. So parts x minimise

    ½·|A·x − b|² − SEEN²·Σ log x ,

A and b being what is known, in standard errors. A part that looks like zero, and is known on its own, then holds `SEEN`
standard errors. A floor under every part on its own would do the same there. But many parts may each be known badly,
and well all together, as where a few cells say that hardly a row is above twenty and many finer ones are mostly noise:
their floors would add up to most of the rows.
"""

from __future__ import annotations

import numpy as np
import scipy

from deniable.arrays import Floats

SEEN = 0.5
"""How many of its standard errors a part counts as holding that looks like zero."""
NEWTON_STEPS = 100
SETTLED = 1e-9
"""What a step may still gain, in units of the likelihood, when nothing changes any more."""
INSIDE = 0.95
"""How much of the way to zero a part may go in one step of Newton's."""
ENOUGH, SHORTEST = 0.1, 1e-9
"""Steps are halved until they gain this part of what their slope promises."""


def possible_parts(known: Floats, wanted: Floats, near: Floats) -> Floats:
    """The parts x for which known @ x is closest to what is wanted; the search begins `near` some positive ones.

    >>> possible_parts(np.eye(2), np.array([0.0, 30.0]), np.ones(2)).round(2).tolist()
    [0.5, 30.01]
    """
    scaled = known * near  # parts are found relative to these
    square, pull = scaled.T @ scaled, scaled.T @ wanted
    parts = np.ones(near.size)
    for _ in range(NEWTON_STEPS):
        slope = square @ parts - pull - SEEN**2 / parts
        factor = scipy.linalg.cho_factor(square + np.diag(SEEN**2 / parts**2), check_finite=False)
        step = -scipy.linalg.cho_solve(factor, slope, check_finite=False)
        gain = float(-slope @ step)
        if gain <= SETTLED:
            break
        length = min(1.0, INSIDE / max(float(np.max(-step / parts)), 1e-300))
        while length > SHORTEST:
            changed = length * step
            quadratic = slope @ changed + changed @ square @ changed / 2
            logarithms = SEEN**2 * float(np.sum(changed / parts - np.log1p(changed / parts)))
            if quadratic + logarithms <= -ENOUGH * length * gain:
                break
            length /= 2
        parts = parts + length * step
    return np.asarray(parts * near)
