"""PEM: prefixes of several bits more per group of people, the best k kept each time.  [WLJ21, Section 5]"""

from __future__ import annotations

import math

import numpy as np

from deniable.mechanisms._support import support_counts
from deniable.mechanisms.hashing import CELL_OFFSET, bucket_array, cell_keys, mix_array
from deniable.mechanisms.local_hashing import LocalHashing

PEM_CANDIDATES = 2**16
"""Prefixes that are counted in one step: twice as many as ours."""


def prefix_extending(
    held: np.ndarray, numbers: np.ndarray, bits: int, k: int, epsilon: float, random: np.random.Generator
) -> list[int]:
    """The k values that seem most common. Everybody holds one of `numbers`, by its index; each has so many bits.

    People are divided evenly among g groups. Group i reports its first s + ⌈i·(m − s)/g⌉ bits by optimal local hashing,
    s = ⌈log2 k⌉; candidates are the k best prefixes of the group before with every continuation. g is the smallest
    number of groups for which there are at most `PEM_CANDIDATES` of them.
    """
    start = math.ceil(math.log2(k))
    step = int(math.log2(PEM_CANDIDATES)) - start
    groups = math.ceil((bits - start) / step)
    lengths = [start + math.ceil((number + 1) * (bits - start) / groups) for number in range(groups)]
    which = random.permutation(np.arange(held.size) % groups)
    kept = np.array(list(range(2**start)), dtype=object)
    before = start
    for number, length in enumerate(lengths):
        tails = np.arange(2 ** (length - before))
        candidates = (kept[:, None] * 2 ** (length - before) + tails.astype(object)).ravel()
        cells = folded(numbers >> (bits - length))[held[which == number]]
        counts = hashed_counts(cells, folded(candidates), epsilon, random)
        kept = candidates[np.argsort(-counts, kind="stable")[:k]]
        before = length
    return [int(value) for value in kept]


def folded(numbers: np.ndarray) -> np.ndarray:
    """Numbers of up to 128 bits as cells of 32 bits."""
    cell = np.zeros(numbers.size, dtype=np.uint32)
    for shift in range(96, -1, -32):
        word = np.array([int(number) >> shift & 0xFFFFFFFF for number in numbers], dtype=np.uint32)
        cell = mix_array(cell + word + np.uint32(CELL_OFFSET))
    return cell.astype(np.int64)


def hashed_counts(cells: np.ndarray, asked: np.ndarray, epsilon: float, random: np.random.Generator) -> np.ndarray:
    """How many of some people's reports by optimal local hashing support each cell."""
    oracle = LocalHashing(epsilon, 2**32)
    seeds = random.integers(0, 2**32, cells.size, dtype=np.uint32)
    truth = bucket_array(seeds, cells, oracle.g)
    other = random.integers(0, oracle.g - 1, cells.size)
    sent = np.where(random.random(cells.size) < float(oracle.p), truth, other + (other >= truth))
    return support_counts(seeds, sent, oracle.g, *cell_keys(asked))
