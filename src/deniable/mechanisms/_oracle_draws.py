"""Reports of many rows at once, each by the oracle of its own view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Integers, Words32
from deniable.mechanisms.frequency_oracle import FrequencyOracle, HashedCells
from deniable.mechanisms.hashing import bucket_array
from deniable.randomness import Source


def draw_reports(
    oracles: Sequence[FrequencyOracle],
    which: Integers,
    cells: Integers,
    source: Source,
    assigned: Words32 | None = None,
) -> tuple[Words32, Integers]:
    """Seeds and y of cells; cell i is randomised by oracles[which[i]]. The caller has checked cells and source.

    `assigned` are the seeds where nobody draws them.
    """
    draws = [oracle.draw_reports for oracle in oracles]
    seeds, y = np.zeros(cells.size, dtype=np.uint32), np.zeros(cells.size, dtype=np.int64)
    for draw in dict.fromkeys(draws):
        mine = np.array([other is draw for other in draws])
        rows = np.flatnonzero(mine[which]) if not mine.all() else ...
        given = () if assigned is None else (assigned[rows],)
        alike = [oracle for oracle in oracles if oracle.draw_reports is draw]
        renumbered = (np.cumsum(mine) - 1)[which[rows]]
        seeds[rows], y[rows] = draw(alike, renumbered, cells[rows], source, *given)
    return seeds, y


def draw_responses(
    oracles: Sequence[FrequencyOracle],
    which: Integers,
    cells: Integers,
    source: Source,
    seeds: Words32 | None = None,
) -> tuple[Words32, Integers]:
    """Randomized response over cells or over their buckets: the true outcome with probability p, else another one.

    Every row draws the same: a seed (reported where the oracle has one) unless seeds are assigned, a coin and another
    outcome.
    """
    kinds: dict[tuple[int, int], FrequencyOracle] = {}  # hashed views differ in their cells, not in their law
    for oracle in oracles:
        kinds.setdefault(_kind(oracle), oracle)
    numbers = {kind: number for number, kind in enumerate(kinds)}
    kind_of = np.array([numbers[_kind(oracle)] for oracle in oracles], dtype=np.int64)[which]
    if seeds is None:
        seeded = np.array([oracle.seeds > 1 for oracle in oracles], dtype=np.bool_)[which]
        seeds = np.where(seeded, source.seeds(cells.size), np.uint32(0))
    truth = cells
    for number, (_, buckets) in enumerate(kinds):
        if buckets:
            hashed = bucket_array(seeds, cells, buckets)
            truth = hashed if len(kinds) == 1 else np.where(kind_of == number, hashed, truth)
    keep = source.bernoulli_each([oracle.p for oracle in kinds.values()], kind_of)
    outcomes = np.array([outcomes for outcomes, _ in kinds], dtype=np.int64)[kind_of]
    other = source.below_each(np.maximum(outcomes - 1, 1))
    other += other >= truth
    return seeds, np.where(keep, truth, other)


def _kind(oracle: FrequencyOracle) -> tuple[int, int]:
    """What the draws of a report depend on: the number of outcomes, and of hash buckets if there are any."""
    return oracle.outcomes, oracle.support.buckets if isinstance(oracle.support, HashedCells) else 0
