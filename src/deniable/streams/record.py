"""What a publisher has published, kept as noisy sums of blocks: they tell every value again."""

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


class Record:
    """Noisy sums of complete blocks, in order. `keep=False` remembers none of them."""

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        self._parts: list[Integers] = []
        self.singles: list[int] = []
        """Blocks of one value that came one by one, newest last; they go behind the parts."""

    def add(self, totals: Integers) -> None:
        """Blocks that are complete now."""
        if self.keep:
            self._settle()
            self._parts.append(totals)

    def totals(self) -> Integers:
        """All of them."""
        self._settle()
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0] if self._parts else np.zeros(0, dtype=np.int64)

    def forget(self) -> None:
        """Drop everything, and what comes."""
        self.keep, self._parts, self.singles = False, [], []

    def _settle(self) -> None:
        if self.singles:
            self._parts.append(np.array(self.singles, dtype=np.int64))
            self.singles = []


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
