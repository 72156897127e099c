"""How close the hash of local hashing is to a random one, pair of cells by pair of cells, and what it costs.

Of two cells, the share of seeds under which they fall into the same one of g buckets should be 1/g. It is counted over
all 2^32 seeds, or over a part of them, for powers of two or for every g from 2 to 64, for pairs whose keys differ in
one bit or in two, in the pattern in which two rounds of multiplications fail, and for all pairs of some random cells.
Over all seeds a random function would be off by √(g − 1)/2^16 of 1/g: between 0.00002 and 0.0001.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers, Words32
from deniable.errors import InvalidParameter
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms._support import hash_cell
from deniable.mechanisms.hashing import CELL_OFFSET, FIRST_MULTIPLIER, SECOND_MULTIPLIER, cell_keys, mix_array
from deniable_lab.benchmarks.bit_planes import BLOCK, MOST_BUCKETS, collisions, doubled

POWERS = (1,)
EVERY = tuple(range(1, MOST_BUCKETS, 2))
"""Odd numbers: what is counted is g = these and their doubles, up to 64."""
SEEDS = 2**32
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


def _factors(keys: Words32) -> Words32:
    return mix_array(keys + np.uint32(CELL_OFFSET)) | np.uint32(1)


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Keys of cells of which every pair is measured."""

    name: str
    keys: Words32

    @property
    def differences(self) -> Words32:
        """The bits in which the two keys of a pair differ, in the order of `collisions`."""
        first, second = np.tril_indices(self.keys.size, -1)
        return np.asarray(self.keys[first] ^ self.keys[second])


def one_and_two_bits(seed: int = 1) -> Keys:
    """A random key and the 32 that differ from it in one bit: any two of these differ in two bits."""
    return Keys("one or two bits", _around([0] + [1 << bit for bit in range(32)], seed))


def failing_pattern(seed: int = 2) -> Keys:
    """31 keys whose differences are all t<<24 | t<<8: any t is that of a low half byte and a high one."""
    halves = [*range(16), *(half << 4 for half in range(1, 16))]
    return Keys("t<<24 | t<<8", _around([t << 24 | t << 8 for t in halves], seed))


def random_cells(pairs: int, below: int = 2**24, seed: int = 3) -> Keys:
    """The keys of so many different random cells that they make at least this number of pairs."""
    count = 2
    while count * (count - 1) // 2 < pairs:
        count += 1
    cells = np.random.default_rng(seed).choice(below, count, replace=False)
    return Keys("random cells", cell_keys(cells)[0])


def _around(differences: list[int], seed: int) -> Words32:
    base = np.random.default_rng(seed).integers(0, SEEDS, dtype=np.uint32)
    return np.asarray(base ^ np.array(differences, dtype=np.uint32))


def piece_starts(piece: int, pieces: int, seeds: int) -> Words32:
    """The blocks of seeds of one of several pieces: every piece is spread over all seeds, and no two share any."""
    blocks = seeds // BLOCK
    chosen = np.arange(piece, blocks, pieces, dtype=np.uint64)
    return (chosen * np.uint64(SEEDS // blocks)).astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Collisions of every pair, for each g, under the seeds that have been tried so far."""

    keys: Keys
    seeds: int
    counts: Integers
    buckets: Integers
    """The g of each column."""

    @property
    def errors(self) -> Floats:
        """How far the share of collisions is from 1/g, relative to it: a row for each pair, a column for each g."""
        return np.asarray(self.counts / self.seeds * self.buckets - 1)

    @property
    def chance(self) -> Floats:
        """The standard deviation of these errors for a random function."""
        return np.asarray(np.sqrt((self.buckets - 1) / self.seeds))


def count_in_pieces(
    keys: Keys, seeds: int, kept: Path | None = None, pieces: int = 256, odd: Sequence[int] = POWERS
) -> Iterator[Counted]:
    """Count under so many seeds, piece by piece; `kept` is a file in which an interrupted count is continued."""
    pieces = min(pieces, seeds // BLOCK)
    buckets = np.array([g for number in odd for g in doubled(number)])
    counts, done = np.zeros((keys.keys.size * (keys.keys.size - 1) // 2, buckets.size), dtype=np.int64), 0
    if kept is not None and kept.exists():
        with np.load(kept) as file:
            if not (np.array_equal(file["keys"], keys.keys) and file["of"].tolist() == [seeds, pieces]):
                raise InvalidParameter("keep", f"{kept.name} holds another count", "Name another file.")
            counts, done = file["counts"], int(file["done"])
            if counts.shape[1] != buckets.size:
                raise InvalidParameter("keep", f"{kept.name} holds another count", "Name another file.")
    per_piece = seeds // pieces
    if done == pieces:
        yield Counted(keys, seeds, counts, buckets)
    for piece in range(done, pieces):
        starts, factors = piece_starts(piece, pieces, seeds), _factors(keys.keys)
        counts += np.hstack([collisions(starts, keys.keys, factors, number) for number in odd])
        if kept is not None:
            unfinished = kept.with_name(kept.name + ".part.npz")
            np.savez(unfinished, keys=keys.keys, of=np.array([seeds, pieces]), done=piece + 1, counts=counts)
            unfinished.replace(kept)
        yield Counted(keys, (piece + 1) * per_piece, counts, buckets)


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
