"""PEM: prefixes of several bits more per group of people, the best k kept each time.  [WLJ21]"""

from __future__ import annotations

import math

import numpy as np

from deniable.mechanisms.hashing import CELL_OFFSET, mix_array
from deniable.mechanisms.local_hashing import LocalHashing

PEM_CANDIDATES = 2**20
"""Prefixes that are counted in one step. The paper asks for as many as can be computed; ours counts 2^15."""


def prefix_extending(
    held: np.ndarray, numbers: np.ndarray, bits: int, k: int, epsilon: float, random: np.random.Generator
) -> list[int]:
    """The k values that seem most common. Everybody holds one of `numbers`, by its index; each has so many bits.

    People are divided evenly among g groups. Group i reports its first s + ⌈i·(m − s)/g⌉ bits by optimal local hashing,
    s = ⌈log2 k⌉; candidates are the k best prefixes of the group before with every continuation. g is the smallest
    number of groups for which there are at most `PEM_CANDIDATES` of them.
    """
    start = math.ceil(math.log2(k))
    groups = math.ceil((bits - start) / (int(math.log2(PEM_CANDIDATES)) - start))
    lengths = [start + math.ceil((number + 1) * (bits - start) / groups) for number in range(groups)]
    which = random.permutation(np.arange(held.size) % groups)
    kept, before = list(range(2**start)), start
    for number, length in enumerate(lengths):
        more = length - before
        group = held[which == number]
        true = _held_by(group, numbers >> (bits - length), kept, more)
        best = np.argsort(-_supports(true, group.size, epsilon, random), kind="stable")[:k].tolist()
        kept = [kept[each >> more] << more | each & (1 << more) - 1 for each in best]
        before = length
    return kept


def _held_by(group: np.ndarray, prefixes: np.ndarray, kept: list[int], more: int) -> np.ndarray:
    """How many of a group have each continuation, by so many bits, of the prefixes that were kept."""
    numbers = {prefix: number for number, prefix in enumerate(kept)}
    true = np.zeros(len(kept) << more, dtype=np.int64)
    counts = np.bincount(group, minlength=prefixes.size)
    for prefix, count in zip(prefixes.tolist(), counts.tolist(), strict=True):
        number = numbers.get(prefix >> more)
        if number is not None:
            true[number << more | prefix & (1 << more) - 1] += count
    return true


def _supports(true: np.ndarray, people: int, epsilon: float, random: np.random.Generator) -> np.ndarray:
    """How many reports support each candidate, drawn from their law as the paper's authors do in their own code.

    Reports of optimal local hashing support a candidate with the chance p if it is theirs, else with q. To hash 2^20
    candidates for each of a million people would take most of an hour, and draw from the same law.
    """
    oracle = LocalHashing(epsilon, 2**32)
    p, q = float(oracle.p), float(oracle.q)
    drawn = random.binomial(people, q, true.size)
    own = np.flatnonzero(true)
    drawn[own] = random.binomial(true[own], p) + random.binomial(people - true[own], q)
    return drawn


def folded(numbers: np.ndarray) -> np.ndarray:
    """Numbers of up to 128 bits as cells of 32 bits."""
    cell = np.zeros(numbers.size, dtype=np.uint32)
    for shift in range(96, -1, -32):
        word = np.array([int(number) >> shift & 0xFFFFFFFF for number in numbers], dtype=np.uint32)
        cell = mix_array(cell + word + np.uint32(CELL_OFFSET))
    return cell.astype(np.int64)
