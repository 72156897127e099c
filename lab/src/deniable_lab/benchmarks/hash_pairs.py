"""How close the hash of local hashing is to a random one, pair of cells by pair of cells, and what it costs.

Of two cells, the share of seeds under which they fall into the same one of g buckets should be 1/g. It is counted over
all 2^32 seeds, or over a part of them, for powers of two or for every g from 2 to 64, for pairs whose keys differ in
one bit or in two, in the pattern in which two rounds of multiplications fail, and for pairs of random cells.
Over all seeds a random function would be off by √(g − 1)/2^16 of 1/g: between 0.00002 and 0.0001.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

from deniable.arrays import Floats, Integers, Words32
from deniable.errors import InvalidParameter
from deniable.mechanisms._compiled import compiled
from deniable.mechanisms._support import hash_cell
from deniable.mechanisms.hashing import CELL_OFFSET, FIRST_MULTIPLIER, SECOND_MULTIPLIER, cell_keys, mix_array
from deniable_lab.benchmarks import bit_planes, bucket_masks
from deniable_lab.benchmarks.bit_planes import MOST_BUCKETS, collisions, doubled
from deniable_lab.benchmarks.bucket_masks import COLUMNS, cross_collisions

EVERY = tuple(range(2, MOST_BUCKETS + 1))
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


class Pairs(Protocol):
    """Pairs of cells, and the collisions of each."""

    @property
    def name(self) -> str:
        """What the pairs have in common."""
        ...

    @property
    def keys(self) -> Words32:
        """The keys of all cells."""
        ...

    @property
    def block(self) -> int:
        """Seeds that one start stands for."""
        ...

    @property
    def differences(self) -> Words32:
        """The bits in which the two keys of a pair differ, pair by pair."""
        ...

    def count(self, starts: Words32, buckets: Sequence[int]) -> Integers:
        """Seeds under which the two cells share a bucket: a row for each pair, a column for each g."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class AllPairs:
    """Every pair of a few cells. All doubles of an odd number are counted at once."""

    name: str
    keys: Words32
    block: int = bit_planes.BLOCK

    @property
    def differences(self) -> Words32:
        """The bits in which the two keys of a pair differ, in the order of `collisions`."""
        first, second = np.tril_indices(self.keys.size, -1)
        return np.asarray(self.keys[first] ^ self.keys[second])

    def count(self, starts: Words32, buckets: Sequence[int]) -> Integers:
        """Collisions of every pair for each g."""
        factors = _factors(self.keys)
        counted: dict[int, Integers] = {}
        for odd in sorted({g // (g & -g) for g in buckets}):
            columns = collisions(starts, self.keys, factors, odd)
            counted.update(zip(doubled(odd), columns.T, strict=True))
        return np.column_stack([counted[g] for g in buckets])


@dataclass(frozen=True, slots=True, eq=False)
class CrossPairs:
    """Each of the first 512 cells with each of the others."""

    name: str
    keys: Words32
    block: int = bucket_masks.BLOCK

    @property
    def differences(self) -> Words32:
        """The bits in which the two keys of a pair differ."""
        return np.asarray(self.keys[COLUMNS:, None] ^ self.keys[None, :COLUMNS]).ravel()

    def count(self, starts: Words32, buckets: Sequence[int]) -> Integers:
        """Collisions of every pair for each g."""
        factors = _factors(self.keys)
        rows, columns = (self.keys[COLUMNS:], factors[COLUMNS:]), (self.keys[:COLUMNS], factors[:COLUMNS])
        return np.column_stack([cross_collisions(starts, rows, columns, g).ravel() for g in buckets])


def one_and_two_bits(seed: int = 1) -> AllPairs:
    """A random key and the 32 that differ from it in one bit: any two of these differ in two bits."""
    return AllPairs("one or two bits", _around([0] + [1 << bit for bit in range(32)], seed))


def failing_pattern(seed: int = 2) -> AllPairs:
    """31 keys whose differences are all t<<24 | t<<8: any t is that of a low half byte and a high one."""
    halves = [*range(16), *(half << 4 for half in range(1, 16))]
    return AllPairs("t<<24 | t<<8", _around([t << 24 | t << 8 for t in halves], seed))


def random_cells(pairs: int, below: int = 2**24, seed: int = 3) -> CrossPairs:
    """The keys of so many different random cells that 512 of them and the others make at least this number of pairs."""
    cells = np.random.default_rng(seed).choice(below, COLUMNS + -(-pairs // COLUMNS), replace=False)
    return CrossPairs("random cells", cell_keys(cells)[0])


def divided_cells(pairs: int, below: int = 2**24, seed: int = 4) -> dict[int, AllPairs]:
    """This number of pairs or more, divided over the odd numbers up to 64: each has cells of its own.

    >>> {odd: group.differences.size for odd, group in divided_cells(100).items()}[63]
    6
    """
    odds = range(1, MOST_BUCKETS, 2)
    of_each = math.ceil((1 + math.sqrt(1 + 8 * pairs / len(odds))) / 2)
    cells = np.random.default_rng(seed).choice(below, (len(odds), of_each), replace=False)
    return {odd: AllPairs("cells of its own", cell_keys(own)[0]) for odd, own in zip(odds, cells, strict=True)}


def _around(differences: list[int], seed: int) -> Words32:
    base = np.random.default_rng(seed).integers(0, SEEDS, dtype=np.uint32)
    return np.asarray(base ^ np.array(differences, dtype=np.uint32))


def piece_starts(piece: int, pieces: int, seeds: int, block: int) -> Words32:
    """The blocks of seeds of one of several pieces: every piece is spread over all seeds, and no two share any."""
    blocks = seeds // block
    chosen = np.arange(piece, blocks, pieces, dtype=np.uint64)
    return (chosen * np.uint64(SEEDS // blocks)).astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Collisions of every pair, for each g, under the seeds that have been tried so far."""

    pairs: Pairs
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


def worst_by_chance(pairs: int, share: float = 0.5) -> float:
    """The largest of so many errors of a random function, in standard deviations, or less, in this share of cases.

    >>> round(worst_by_chance(100_000), 2), round(worst_by_chance(100_000, 0.95), 2)
    (4.5, 5.02)
    """
    beyond = -math.expm1(math.log(share) / pairs)
    return NormalDist().inv_cdf(1 - beyond / 2)


def count_in_pieces(
    pairs: Pairs, seeds: int, buckets: Sequence[int], kept: Path | None = None, pieces: int = 256
) -> Iterator[Counted]:
    """Count under so many seeds, piece by piece; `kept` is a file in which an interrupted count is continued."""
    pieces = min(pieces, seeds // pairs.block)
    counts, done = np.zeros((pairs.differences.size, len(buckets)), dtype=np.int64), 0
    of = [seeds, pieces, *buckets]
    if kept is not None and kept.exists():
        with np.load(kept) as file:
            if not (np.array_equal(file["keys"], pairs.keys) and file["of"].tolist() == of):
                raise InvalidParameter("keep", f"{kept.name} holds another count", "Name another file.")
            counts, done = file["counts"], int(file["done"])
    per_piece = seeds // pieces
    if done == pieces:
        yield Counted(pairs, seeds, counts, np.array(buckets))
    for piece in range(done, pieces):
        counts += pairs.count(piece_starts(piece, pieces, seeds, pairs.block), buckets)
        if kept is not None:
            unfinished = kept.with_name(kept.name + ".part.npz")
            np.savez(unfinished, keys=pairs.keys, of=np.array(of), done=piece + 1, counts=counts)
            unfinished.replace(kept)
        yield Counted(pairs, (piece + 1) * per_piece, counts, np.array(buckets))


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
