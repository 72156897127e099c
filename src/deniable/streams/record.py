"""What noisy sums of blocks tell: every value that was published, and how far predictions may be off."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.streams.hierarchy import Floats, Integers
from deniable.streams.layout import Layout
from deniable.streams.released import Smoothing
from deniable.streams.smoother import Smoother, publish_blocks

SLAB = 1 << 18
"""Values whose predictions are made together."""


def published_values(totals: Integers, layout: Layout, smoother: Smoother, initial: float, over: int) -> NDArray[Any]:
    """Every published value: those of complete blocks, and `over` values of the open one."""
    if layout.block == 1:
        return totals
    edges = layout.position(np.arange(totals.size + 1))
    lengths = np.diff(edges)
    rates = np.array([initial])
    if totals.size:
        memory = smoother.begin(initial, layout.block)
        rates = np.concatenate((rates, smoother.follow(memory, totals, lengths)[0]))
    result = np.full(int(edges[-1]) + over, rates[-1])
    place, slab = 0, max(SLAB // layout.block, 1)
    while place < totals.size:
        length = int(lengths[place])
        alike = lengths[place : place + slab]
        count = alike.size if (alike == length).all() else int(np.argmax(alike != length))
        part = slice(place, place + count)
        result[edges[place] : edges[place + count]] = publish_blocks(totals[part], rates[part], length)
        place += count
    return result


def measured_smoothing(
    totals: Integers, layout: Layout, *, node_variance: float, spread: float, expected_drift: float
) -> Smoothing:
    """How far predictions may be off: the given spread, and the drift that blocks show beyond their noise.

    The expected drift counts as one more change from block to block.
    """
    lengths = np.diff(layout.position(np.arange(totals.size + 1)))
    means: Floats = totals / np.maximum(lengths, 1)
    if means.size < 2:
        return Smoothing(layout, spread, expected_drift)
    changes = np.square(np.diff(means))
    noise = 2 * node_variance / layout.block**2 + 2 * spread / layout.block
    drift = (expected_drift + float((changes - noise).sum())) / (changes.size + 1)
    return Smoothing(layout, spread, max(drift, 0.0))
