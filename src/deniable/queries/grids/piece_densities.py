"""Pieces of a domain between borders: how dense they are next to their neighbours, and where rows are in them."""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.tables.schema.ordinal import Ordinal

LEAST_INSIDE = 0.2
"""The least density inside a piece, relative to its average."""


def origin_of(domain: Ordinal) -> int:
    """The position of zero, if the domain has it, or else of its least value."""
    if domain.kind != "number" or not domain.low <= 0 <= domain.high:
        return 0
    return domain.encode(0)


def logarithmic(size: int, origin: int) -> Floats:
    """The positions of all borders between values on a logarithmic scale, on both sides of its origin."""
    borders = np.arange(size + 1.0) - origin
    return np.asarray(np.where(borders >= 0, np.log1p(np.maximum(borders, 0)), -np.log1p(np.maximum(-borders, 0))))


def contrasts_of(held: Floats, widths: Floats, values: Integers) -> Floats:
    """How much the density of each piece differs from its neighbours', from 0 to 1; single values have no inside."""
    wide = np.flatnonzero(values > 1)
    contrasts = np.zeros(held.size)
    if wide.size < 2:
        contrasts[wide] = 1.0
        return contrasts
    density = held[wide] / widths[wide]
    beside = np.append(density[1:2], (density[2:] + density[:-2]) / 2)
    beside = np.append(beside, density[-2])
    steps = np.abs(np.diff(density)) / np.maximum(density[1:] + density[:-1], 1e-300)
    steepest = np.maximum(np.append(steps[:1], steps), np.append(steps, steps[-1:]))
    bends = np.abs(density - beside) / np.maximum(density + beside, 1e-300)
    contrasts[wide] = np.sqrt((bends**2 + steepest**2) / 2)
    return contrasts


def parts_inside(density: Floats, starts: Integers) -> Floats:
    """For every value its part of its piece."""
    values = np.diff(np.append(starts, density.size))
    average = np.repeat(np.add.reduceat(density, starts) / values, values)
    bounded = np.where(average > 0, np.maximum(density, LEAST_INSIDE * average), 1.0)
    return np.asarray(bounded / np.repeat(np.add.reduceat(bounded, starts), values))
