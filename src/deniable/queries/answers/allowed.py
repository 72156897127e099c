"""What cells allow an answer to be, and how far an interval reaches inside of that.

A model error is a standard deviation, and what it describes lies between two bounds. Far from both it is about normal.
But where a single value may hold all rows of a cell, or none of them, the answer is at either bound, and one and a half
standard deviations away from both there may be nothing at all. Of a mean m and a variance ρ·m·(1 − m) on the way from
the lower bound to the upper one, which may not be more than m·(1 − m), a Beta distribution is what is assumed:

    Beta(m·(1/ρ − 1), (1 − m)·(1/ρ − 1)) ,

a bell for a small ρ, and for one of ρ near 1 two points at the bounds. An interval holds its quantiles. An answer that
is closer to a bound than its model error allows is no mean. Then a bound d away is reached if all of the error may come
from there more often than an interval may miss: if it is at least √tail·d.

Bounds are known but for their noise. What they allow ends as many of their standard errors further as an interval has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from deniable.arrays import Booleans, Floats

TWO_POINTS = 0.999
"""The largest ρ: at 1 the distribution is two points."""
NEARLY_NORMAL = 1e-4
"""Below this ρ it is a normal one."""


@dataclass(frozen=True, slots=True, eq=False)
class Allowed:
    """What cells allow moments to be, whatever the data is like: rows × moments; infinite where nobody knows."""

    least: Floats
    most: Floats
    errors: tuple[Floats, Floats]
    """The standard errors of both."""

    @classmethod
    def nothing(cls, shape: tuple[int, ...]) -> Allowed:
        """Bounds that nobody knows."""
        return cls(np.full(shape, -np.inf), np.full(shape, np.inf), (np.zeros(shape), np.zeros(shape)))

    def interval(
        self, moment: int, values: Floats, near: tuple[Floats, Floats], reach: float, tail: float, sure: float
    ) -> tuple[Floats, Floats]:
        """The interval of a moment around its values.

        `near` are standard errors and model errors, and `reach` and `tail` how many of the former an interval reaches,
        and how likely it is that a normal one is beyond it on a side. What bounds exclude by `sure` of their own
        errors is not in it.
        """
        errors, biases = near
        of_least, of_most = (each[:, moment] for each in self.errors)
        least, most = self.least[:, moment], self.most[:, moment]
        below, above = left_open(values, biases, least - reach * of_least, most + reach * of_most, tail)
        both = reach * np.hypot(errors, biases)
        below, above = (np.maximum(both, np.hypot(reach * errors, side)) for side in (below, above))
        least, most = np.minimum(least - sure * of_least, values), np.maximum(most + sure * of_most, values)
        return np.maximum(values - below, least), np.minimum(values + above, most)


def left_open(values: Floats, biases: Floats, least: Floats, most: Floats, tail: float) -> tuple[Floats, Floats]:
    """How far below and above an answer something may be but for a `tail` on each side, if it lies between two bounds.

    Zero where nothing is open, or bounds are not known.

    >>> ends = np.array([0.0]), np.array([100.0])
    >>> [side.round(1).tolist() for side in left_open(np.array([50.0]), np.array([5.0]), *ends, 0.025)]
    [[9.8], [9.8]]
    >>> [side.round(1).tolist() for side in left_open(np.array([20.0]), np.array([40.0]), *ends, 0.025)]
    [[20.0], [80.0]]
    """
    below, above = np.zeros_like(values), np.zeros_like(values)
    rows = np.isfinite(most - least) & (biases > 0) & (least < most)
    if not rows.any():
        return below, above
    width, error = (most - least)[rows], biases[rows]
    down = np.clip((values - least)[rows], 0.0, width)
    up = width - down
    part = np.divide(error**2, down * up, out=np.full_like(width, np.inf), where=down * up > 0)
    part = np.clip(part, NEARLY_NORMAL, TWO_POINTS)
    weight = 1 / part - 1
    low, high = (
        width * scipy.special.betaincinv(down / width * weight, up / width * weight, at) for at in (tail, 1 - tail)
    )
    both = part == TWO_POINTS
    low = np.where(both, np.where(error >= np.sqrt(tail) * down, 0.0, down), low)
    high = np.where(both, np.where(error >= np.sqrt(tail) * up, width, down), high)
    below[rows], above[rows] = np.maximum(down - low, 0.0), np.maximum(high - down, 0.0)
    return below, above


def cut(
    bounds: tuple[Floats, Floats], values: Floats, possible: tuple[Floats, Floats], where: Booleans
) -> tuple[Floats, Floats]:
    """In some rows intervals without what cannot be; they still hold their values."""
    least, most = np.minimum(possible[0], values), np.maximum(possible[1], values)
    return np.where(where, np.maximum(bounds[0], least), bounds[0]), np.where(
        where, np.minimum(bounds[1], most), bounds[1]
    )
