"""Reports of one table in the order of their views, kept in memory next to those in the order of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers, Words32

MOST_ORDERED_VIEWS = 2**16


@dataclass(frozen=True, slots=True, eq=False)
class ViewOrder:
    """Seeds and outcomes of reports, those of the first view first; 12 bytes a report, 16 if outcomes need 64 bits."""

    seed: Words32
    y: Words32 | Integers
    positions: Words32
    """Where each of them is in the order of users."""
    starts: Integers
    """Where the reports of each view begin, and where those of the last one end."""

    @classmethod
    def of(cls, view: NDArray[Any], seed: NDArray[Any], y: NDArray[Any], views: int) -> ViewOrder:
        """Sort reports by view; of one view they stay as they were."""
        order = np.argsort(view.astype(np.uint16, copy=False), kind="stable").astype(np.uint32)  # a radix sort
        starts = np.concatenate(([0], np.cumsum(np.bincount(view, minlength=views))))
        outcomes = np.take(y, order)
        wide = outcomes.size > 0 and int(outcomes.max()) >= 2**32
        narrow: Words32 | Integers = (
            outcomes.astype(np.int64, copy=False) if wide else outcomes.astype(np.uint32, copy=False)
        )
        seeds = np.take(seed, order).astype(np.uint32, copy=False)
        return cls(seeds, narrow, order, starts)

    @property
    def reports(self) -> int:
        """How many reports there are."""
        return int(self.seed.size)


def can_be_ordered(reports: int, views: int) -> bool:
    """Whether positions and views fit their types."""
    return views <= MOST_ORDERED_VIEWS and reports < 2**32
