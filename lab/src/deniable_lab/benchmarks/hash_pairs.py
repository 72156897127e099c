"""How close the hash of local hashing is to a random one, pair of cells by pair of cells, and what it costs.

Of two cells, the share of seeds under which they fall into the same one of g buckets should be 1/g. It is counted over
all 2^32 seeds, or over a part of them, for g = 2, 4, …, 64, for pairs whose keys differ in one bit or in two, in the
pattern in which two rounds of multiplications fail, and for random cells. Over all seeds a random function would be
off by √(g − 1)/2^16 of 1/g: between 0.00002 and 0.0001.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers, Words32
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms._support import hash_cell
from deniable.mechanisms.hashing import CELL_OFFSET, FIRST_MULTIPLIER, SECOND_MULTIPLIER, cell_keys, mix_array

EXPONENTS = np.arange(1, 7)
"""g = 2^e for these e."""
SEEDS = 2**32
_BLOCK = 1 << 16
_M1, _M2 = np.uint32(FIRST_MULTIPLIER), np.uint32(SECOND_MULTIPLIER)


@compiled
def earlier_hash(seed: np.uint32, key: np.uint32, factor: np.uint32) -> np.uint32:  # noqa: ARG001 - has none
    """Two rounds of the seed and the mixed cell number: what this package had before."""
    x = np.uint32(seed ^ key)
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * _M1)
    x = np.uint32(x ^ (x >> np.uint32(13)))
    x = np.uint32(x * _M2)
    return np.uint32(x ^ (x >> np.uint32(16)))


@compiled
def _collisions(low: Any, blocks: Any, first: Any, second: Any, counts: Any) -> None:
    """Add, for each g, the seeds (low bits from `low`, high bits from `blocks`) under which two cells collide."""
    for block in blocks:
        high = np.uint32(block << np.uint32(16))
        found1 = found2 = found3 = found4 = found5 = found6 = np.uint32(0)
        for index in range(low.size):
            seed = np.uint32(high | low[index])
            apart = np.uint32(hash_cell(seed, first[0], first[1]) ^ hash_cell(seed, second[0], second[1]))
            found1 = np.uint32(found1 + np.uint32(apart < np.uint32(1 << 31)))
            found2 = np.uint32(found2 + np.uint32(apart < np.uint32(1 << 30)))
            found3 = np.uint32(found3 + np.uint32(apart < np.uint32(1 << 29)))
            found4 = np.uint32(found4 + np.uint32(apart < np.uint32(1 << 28)))
            found5 = np.uint32(found5 + np.uint32(apart < np.uint32(1 << 27)))
            found6 = np.uint32(found6 + np.uint32(apart < np.uint32(1 << 26)))
        counts[0] += found1
        counts[1] += found2
        counts[2] += found3
        counts[3] += found4
        counts[4] += found5
        counts[5] += found6


def _blocks(seeds: int) -> Words32:
    """The high halves of so many seeds, spread over all."""
    count = max(1, seeds // _BLOCK)
    return (np.arange(count, dtype=np.uint64) * np.uint64(_BLOCK) // np.uint64(count)).astype(np.uint32)


def relative_errors(keys: Words32, others: Words32, seeds: int) -> Floats:
    """For each pair of keys and each g, how far the share of collisions is from 1/g, relative to it."""
    low, blocks = np.arange(_BLOCK, dtype=np.uint32), _blocks(seeds)
    ends = [np.stack((key, _factors(key)), axis=1) for key in (keys, others)]
    errors = np.empty((keys.size, EXPONENTS.size))
    for pair in range(keys.size):
        counts: Integers = np.zeros(EXPONENTS.size, dtype=np.int64)
        _collisions(low, blocks, ends[0][pair], ends[1][pair], counts)
        errors[pair] = counts / (blocks.size * _BLOCK) * 2.0**EXPONENTS - 1
    return errors


def _factors(keys: Words32) -> Words32:
    return mix_array(keys + np.uint32(CELL_OFFSET)) | np.uint32(1)


def key_pairs(differences: Sequence[int], seed: int = 1) -> tuple[Words32, Words32]:
    """Random keys, and those that differ from them by the given bits."""
    keys = np.random.default_rng(seed).integers(0, SEEDS, len(differences), dtype=np.uint32)
    return keys, keys ^ np.array(differences, dtype=np.uint32)


def cell_pairs(count: int, below: int = 2**24, seed: int = 2) -> tuple[Words32, Words32]:
    """The keys of pairs of different random cells."""
    cells = np.random.default_rng(seed).integers(0, below, (2, count))
    cells[1] = np.where(cells[0] == cells[1], (cells[1] + 1) % below, cells[1])
    return cell_keys(cells[0])[0], cell_keys(cells[1])[0]


@dataclass(frozen=True, slots=True)
class Class:
    """What was measured for one kind of pairs. Arrays have an entry for each g."""

    name: str
    pairs: int
    seeds: int
    worst: Floats
    """The largest relative error."""
    excess: Floats
    """The root of the mean squared error, less what a random function would have: 0 if there is nothing to see."""


def measured(name: str, pairs: tuple[Words32, Words32], seeds: int) -> Class:
    """Measure one kind of pairs."""
    errors = relative_errors(*pairs, seeds)
    chance = (2.0**EXPONENTS - 1) / (max(1, seeds // _BLOCK) * _BLOCK)
    excess = np.sqrt(np.maximum((errors**2).mean(axis=0) - chance, 0))
    return Class(name, len(errors), seeds, np.abs(errors).max(axis=0), excess)


def measure(seeds: int = SEEDS, pairs: int = 100_000, random_seeds: int = 2**24) -> Iterator[Class]:
    """Every kind of pairs: those with a chosen difference under `seeds` seeds, random ones under `random_seeds`."""
    single = [1 << bit for bit in range(32)]
    double = [1 << bit | 1 << other for bit in range(32) for other in range(bit)]
    failing = [pattern << 24 | pattern << 8 for pattern in range(1, 256)]
    for name, differences in (("one bit", single), ("t<<24 | t<<8", failing), ("two bits", double)):
        yield measured(name, key_pairs(differences), seeds)
    yield measured("random cells", cell_pairs(pairs), random_seeds)


@compiled
def _time_ours(seeds: Any, keys: Any, factors: Any) -> Any:
    hits = np.uint32(0)
    for cell in range(keys.size):
        key, factor = keys[cell], factors[cell]
        for report in range(seeds.size):
            hits = np.uint32(hits + np.uint32(hash_cell(seeds[report], key, factor) < np.uint32(1 << 29)))
    return hits


@compiled
def _time_earlier(seeds: Any, keys: Any, factors: Any) -> Any:
    hits = np.uint32(0)
    for cell in range(keys.size):
        key, factor = keys[cell], factors[cell]
        for report in range(seeds.size):
            hits = np.uint32(hits + np.uint32(earlier_hash(seeds[report], key, factor) < np.uint32(1 << 29)))
    return hits


def slowdown(repeats: int = 15) -> float:
    """Processor time of the loop over reports with this hash, in multiples of that with the earlier one."""
    seeds = np.arange(2048, dtype=np.uint32) * np.uint32(CELL_OFFSET)
    keys, factors = cell_keys(np.arange(2_000))
    best = []
    for loop in (_time_ours, _time_earlier):
        loop(seeds[:8], keys[:2], factors[:2])
        best.append(np.inf)
    for _ in range(repeats):
        for number, loop in enumerate((_time_ours, _time_earlier)):
            start = time.process_time()
            loop(seeds, keys, factors)
            best[number] = min(best[number], time.process_time() - start)
    return float(best[0] / best[1])
