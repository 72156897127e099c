"""Functions that points determine, below and above one that they do not.

A value between two points is rounded to one of them so that it is right on average. So points show, for all rows
between them, how many there are and what they add up to, and with that every function that is a line there. Of all
lines below a function the closest one, for the rows that are expected, touches it on both sides of their average.
Bounds are multiplied with those of other attributes, so that what is below a function without negative values has none.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from deniable.arrays import Floats, Integers

MOST_TOUCHED = 200
"""Places where a function bends; with more of them between two points, lines are level."""


def between_points(points: Integers, values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """The closest functions below and above, lines between points, where this part of the rows has each value."""
    return _below(points, values, mass), -_below(points, -values, mass)


def _below(points: Integers, values: Floats, mass: Floats) -> Floats:
    """What is known on both sides of a point: lines that meet there are lowered to the lower of them."""
    positions = np.arange(values.size)
    level = np.minimum(np.minimum.reduceat(values, points[:-1]), values[points[1:]])
    touching = np.array([_touching(values, mass, *ends) for ends in pairwise(points.tolist())])
    if values.min() >= 0:
        touching = np.where((touching < 0).any(axis=1, keepdims=True), level[:, None], touching)
    lines = []
    for left, right in ((level, level), (touching[:, 0], touching[:, 1])):
        at = np.minimum(np.append(left, np.inf), np.append(np.inf, right))
        lines.append(np.interp(positions, points, at))
    return max(lines, key=lambda line: float(mass @ line))


def _touching(values: Floats, mass: Floats, first: int, last: int) -> tuple[float, float]:
    """At two points, the line below a function between them that is highest where rows are on average."""
    inside, weights = values[first : last + 1], mass[first : last + 1]
    bends = np.flatnonzero(np.diff(inside, 2)) + 1
    if bends.size > MOST_TOUCHED:
        return float(inside.min()), float(inside.min())
    places = np.concatenate(([0], bends, [last - first])).astype(np.float64)
    heights = inside[places.astype(np.int64)]
    total = float(weights.sum())
    middle = float(weights @ np.arange(weights.size)) / total if total > 0 else (last - first) / 2
    left, right = places <= middle, places >= middle
    wide = places[right][None, :] - places[left][:, None]
    slopes = (heights[right][None, :] - heights[left][:, None]) / np.where(wide > 0, wide, np.inf)
    at = heights[left][:, None] + slopes * (middle - places[left][:, None])
    before, after = np.unravel_index(int(np.argmin(at)), at.shape)
    slope, start = float(slopes[before, after]), float(places[left][before])
    height = float(heights[left][before])
    # Rounding, and a middle that is itself a bend, may leave the line a little above.
    line = height + slope * (places - start)
    lowered = height - max(float((line - heights).max()), 0.0)
    return lowered - slope * start, lowered + slope * (last - first - start)
