"""Quantiles of more values than can be counted one by one: counts at some borders, then at closer ones.

A border stands for all values above the border before it. Whether a quantile can lie between two borders is tested as
for single values, so every interval ends at borders and holds what counts at all values would leave. The next counts
put borders closer together between its ends, until the last steps are single values or short next to the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.answers.quantiles import PrefixCounts
from deniable.queries.answers.result import Estimate
from deniable.queries.parsing.quantile_questions import AskedQuantile
from deniable.queries.question.question import MOST_GROUPS

Key = tuple[Any, ...]
Counted = Mapping[Key, PrefixCounts]

MOST_SINGLE_VALUES = 1_000
"""Of so few values each may be counted, whatever it is grouped by."""
MOST_POSITIONS = 1 << 24
"""Borders of a stretch, times positions of the domain, times groups: what questions hold in memory at a time."""
FEWEST_BORDERS, MOST_BORDERS = 8, 32
"""In the stretch of one quantile, from below its interval to above."""
SHORT_STEP = 1 / 16
"""Of an interval: so short its last steps have to be. It is an eighth longer at most then; stages may end before."""
STRETCHES = 4
"""How many quantiles that lie apart get as many borders as a single one."""
MOST_STAGES = 8


def borders_at_once(values: int, groups: int) -> int:
    """How many borders the stretch of a quantile gets; 0 with too many groups for that, or few enough values."""
    if values * groups <= MOST_GROUPS:
        return 0
    borders = min(MOST_BORDERS, MOST_GROUPS // (STRETCHES * groups), MOST_POSITIONS // (values * groups))
    return borders if borders >= FEWEST_BORDERS else 0


def narrowed(
    values: Sequence[Any],
    most: int,
    counted: Callable[[Sequence[Any]], Counted],
    asked: Sequence[AskedQuantile],
    quantile_of: Callable[[PrefixCounts, AskedQuantile], Estimate],
) -> Counted:
    """Counts at borders that are as close together as intervals of the quantiles need."""
    numbers = np.array([float(value) for value in values])
    everywhere = borders = _spread(0, len(values) - 1, most)
    known: dict[Key, PrefixCounts] = {}
    for _ in range(MOST_STAGES):
        counts = counted([values[at] for at in borders])
        known = {key: _standing_for(each, numbers) for key, each in counts.items()}
        stretches = [
            _stretch(quantile_of(each, wanted), numbers, borders) for each in known.values() for wanted in asked
        ]
        if all(fine for _, _, fine in stretches):
            break
        closer = np.unique(np.concatenate([_spread(first, last, most) for first, last, _ in stretches]))
        borders = np.union1d(_that_fit(closer, STRETCHES * most), everywhere)
    return known


def _spread(first: int, last: int, most: int) -> Integers:
    """At most so many positions from the first to the last, both included."""
    return np.unique(np.linspace(first, last, min(most, last - first + 1)).round().astype(np.int64))


def _stretch(estimate: Estimate, values: Floats, borders: Integers) -> tuple[int, int, bool]:
    """From a border that is too low for a quantile to one that is too high, and whether the interval ends finely."""
    low, high = estimate.interval
    at_low, at_high = np.searchsorted(values[borders], (low, high))
    ends = borders[[max(at_low - 1, 0), at_low, max(at_high - 1, 0), at_high]]
    steps = max(int(ends[1] - ends[0]), int(ends[3] - ends[2]))
    first = int(borders[max(at_low - 2, 0)]) if at_low > 1 else 0
    return first, int(borders[min(at_high + 1, len(borders) - 1)]), steps <= max(1, SHORT_STEP * int(ends[3] - ends[0]))


def _that_fit(borders: Integers, room: int) -> Integers:
    """Stretches of several quantiles and groups share how many borders there may be."""
    return borders[:: -(-len(borders) // room)]


def _standing_for(counts: PrefixCounts, values: Floats) -> PrefixCounts:
    """Counts that know the smallest value that each border stands for."""
    before = np.searchsorted(values, counts.values[:-1], side="right")
    return replace(counts, firsts=np.concatenate((values[:1], values[before])))
