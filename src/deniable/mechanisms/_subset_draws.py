"""Sets of cells drawn in bulk: reports of subset selection as masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from deniable.arrays import Integers, Words32
from deniable.mechanisms._compiled import compiled, compiler_is_loaded
from deniable.mechanisms.frequency_oracle import FrequencyOracle, MaskedCells
from deniable.randomness import Source

MOST_PLAIN_STEPS = 2**26
"""Rows × cells up to which importing the compiler takes longer than numpy."""


def draw_masks(
    oracles: Sequence[FrequencyOracle], which: Integers, cells: Integers, source: Source
) -> tuple[Words32, Integers]:
    """Seeds, which are zero, and masks. Every row draws the same: a coin, and one set for each of its two answers."""
    sizes = [_size(oracle) for oracle in oracles]
    counts = [
        [math.comb(oracle.k - 1, size - named) for oracle, size in zip(oracles, sizes, strict=True)] for named in (1, 0)
    ]
    named = source.bernoulli_each([oracle.p for oracle in oracles], which)
    with_it, without = (source.below_each(np.array(each, dtype=np.int64)[which]) for each in counts)
    ranks = np.where(named, with_it, without)
    left = np.array(sizes, dtype=np.int64)[which] - named
    others = np.array([oracle.k - 1 for oracle in oracles], dtype=np.int64)
    masks = unranked_each(ranks, left, others[which])
    below = masks & ((np.int64(1) << cells) - 1)
    return np.zeros(cells.size, dtype=np.uint32), ((masks - below) << 1) | (named.astype(np.int64) << cells) | below


def _size(oracle: FrequencyOracle) -> int:
    support = oracle.support
    assert isinstance(support, MaskedCells)  # noqa: S101 - only such oracles are drawn here
    return support.size


def unranked_each(ranks: Integers, sizes: Integers, cells: Integers) -> Integers:
    """`subset_selection.unranked` of every row."""
    most = int(cells.max(initial=0))
    if not compiler_is_loaded() and ranks.size * most <= MOST_PLAIN_STEPS:
        return _plain(ranks, sizes, cells, most)
    masks = np.empty_like(ranks)
    _unrank(ranks, sizes, cells, binomials(), masks)
    return masks


def _plain(ranks: Integers, sizes: Integers, cells: Integers, most: int) -> Integers:
    rank, left, masks = ranks.copy(), sizes.copy(), np.zeros_like(ranks)
    table = binomials()
    for cell in reversed(range(most)):
        before = table[cell][left]
        taken = (rank >= before) & (left > 0) & (cell < cells)
        masks |= taken.astype(np.int64) << cell
        rank -= np.where(taken, before, 0)
        left -= taken
    return masks


@compiled
def _unrank(ranks: Any, sizes: Any, cells: Any, table: Any, masks: Any) -> None:
    for row in range(ranks.size):
        rank, left, mask = ranks[row], sizes[row], np.int64(0)
        for cell in range(cells[row] - 1, -1, -1):
            before = table[cell, left]
            taken = left > 0 and rank >= before  # free of branches, as those could not be foreseen
            mask |= np.int64(taken) << cell
            rank -= before * taken
            left -= taken
        masks[row] = mask


@lru_cache(maxsize=1)
def binomials() -> Integers:
    """C(n, i) for n up to 62 and i up to half of it and one more: C(n, i) with a larger i is not asked for here."""
    return np.array([[min(math.comb(n, i), 2**63 - 1) for i in range(64)] for n in range(63)], dtype=np.int64)
