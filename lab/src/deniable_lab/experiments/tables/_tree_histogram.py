"""TreeHist: a tree of prefixes, one level per person, and counts by one bit of a Hadamard transform.  [BNST17]"""

from __future__ import annotations

import math

import numpy as np

from deniable.mechanisms.hashing import mix_array
from deniable_lab.experiments.tables._prefix_extending import folded

ROWS = 16
"""Hash functions of the count sketch."""
KEPT = 4
"""Prefixes that are kept at each level, as a multiple of k."""


def tree_histogram(
    held: np.ndarray, numbers: np.ndarray, bits: int, k: int, epsilon: float, random: np.random.Generator, *, step: int
) -> list[int]:
    """The k values that seem most common. Everybody holds one of `numbers`, by its index; each has so many bits.

    A level of the tree has `step` bits more than the one before: a character, so that there are fewer levels than in
    the paper's binary tree, and more people in each. One half of the people is divided among the levels, the other
    estimates what is left. The paper has everybody do both with ε/2, and takes medians over hash functions; dividing
    people and taking means have less noise.
    """
    first = random.random(held.size) < 0.5
    level = random.integers(1, bits // step + 1, held.size)
    kept, tails = np.array([0], dtype=object), np.array(range(2**step), dtype=object)
    for number in range(1, bits // step + 1):
        candidates = (kept[:, None] * 2**step + tails).ravel()
        own = folded(numbers >> (bits - number * step))[held[first & (level == number)]]
        estimates = _sketched(own, candidates, epsilon, random)
        kept = candidates[np.argsort(-estimates, kind="stable")[: KEPT * k]]
    final = _sketched(folded(numbers)[held[~first]], kept, epsilon, random)
    return [int(value) for value in kept[np.argsort(-final, kind="stable")[:k]]]


def _sketched(cells: np.ndarray, candidates: np.ndarray, epsilon: float, random: np.random.Generator) -> np.ndarray:
    """Estimated counts of candidates: each person sends one bit of the transform of one row of a count sketch."""
    width = 2 ** math.ceil(math.log2(math.sqrt(max(cells.size, 16))))
    asked = folded(candidates)
    row, column = random.integers(0, ROWS, cells.size), random.integers(0, width, cells.size)
    bucket, sign = _hashed(cells, row, width)
    bit = sign * _hadamard(column, bucket)
    keep = random.random(cells.size) < math.exp(epsilon) / (math.exp(epsilon) + 1)
    sums = np.zeros((ROWS, width))
    np.add.at(sums, (row, column), np.where(keep, bit, -bit))
    sketch = _transformed(sums) * ROWS * (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    total = np.zeros(candidates.size)
    for number in range(ROWS):
        where, signs = _hashed(asked, np.full(candidates.size, number), width)
        total += signs * sketch[number, where]
    return total / ROWS


def _hashed(cells: np.ndarray, row: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Where a cell falls in a row of the sketch, and its sign."""
    hashed = mix_array(mix_array(cells.astype(np.uint32) + np.uint32(0x51ED27)) ^ mix_array(row.astype(np.uint32) + 1))
    return (hashed >> np.uint32(1)).astype(np.int64) % width, 1 - 2 * (hashed & np.uint32(1)).astype(np.int64)


def _hadamard(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(−1) to the number of common bits."""
    common = left & right
    for shift in (16, 8, 4, 2, 1):
        common ^= common >> shift
    return np.asarray(1 - 2 * (common & 1))


def _transformed(rows: np.ndarray) -> np.ndarray:
    """The Walsh-Hadamard transform of every row."""
    made: np.ndarray = rows.copy()
    half = 1
    while half < made.shape[1]:
        pairs = made.reshape(made.shape[0], -1, 2, half)
        made = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        made = made.reshape(rows.shape)
        half *= 2
    return made
