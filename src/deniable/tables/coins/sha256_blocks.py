"""SHA-256 of many short messages that begin with the same 64 bytes, in compiled loops. [FIPS 180-4]

The constants are the first digits of the square and cube roots of primes; computing them says where they come from.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers, Words
from deniable.mechanisms._compiled import compiled

_WORDS = 3
_MASK = 0xFFFFFFFF
# A loop that is called with literals is compiled once for each.
_u32 = np.uint32


def _primes(count: int) -> list[int]:
    listed: list[int] = []
    number = 2
    while len(listed) < count:
        if all(number % prime for prime in listed):
            listed.append(number)
        number += 1
    return listed


def _cube_root(number: int) -> int:
    """The largest integer whose cube is at most the number."""
    low, high = 0, 1 << (number.bit_length() // 3 + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle - 1)
    return low


_START = np.array([math.isqrt(prime << 64) & _MASK for prime in _primes(8)], dtype=np.uint32)
_ROOTS = np.array([_cube_root(prime << 96) & _MASK for prime in _primes(64)], dtype=np.uint32)


@compiled
def _turned(x: np.uint32, bits: np.uint32) -> np.uint32:
    return _u32((x >> bits) | _u32(x << _u32(32 - bits)))


@compiled
def _compress(state: Any, schedule: Any, roots: Any) -> None:
    """Take one block, whose 16 words `schedule` begins with, into the state."""
    for t in range(16, 64):
        x, y = schedule[t - 15], schedule[t - 2]
        first = _turned(x, _u32(7)) ^ _turned(x, _u32(18)) ^ (x >> np.uint32(3))
        second = _turned(y, _u32(17)) ^ _turned(y, _u32(19)) ^ (y >> np.uint32(10))
        schedule[t] = np.uint32(schedule[t - 16] + first + schedule[t - 7] + second)
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for t in range(64):
        mixed = _turned(e, _u32(6)) ^ _turned(e, _u32(11)) ^ _turned(e, _u32(25))
        added = np.uint32(h + mixed + ((e & f) ^ (~e & g)) + roots[t] + schedule[t])
        spread = _turned(a, _u32(2)) ^ _turned(a, _u32(13)) ^ _turned(a, _u32(22))
        total = np.uint32(spread + ((a & b) ^ (a & c) ^ (b & c)))
        h, g, f, e, d, c, b, a = g, f, e, np.uint32(d + added), c, b, a, np.uint32(added + total)
    state[0], state[1], state[2], state[3] = state[0] + a, state[1] + b, state[2] + c, state[3] + d
    state[4], state[5], state[6], state[7] = state[4] + e, state[5] + f, state[6] + g, state[7] + h


@compiled
def _digests(middle: Any, slots: Any, starts: Any, texts: Any, roots: Any, out: Any) -> None:
    schedule, state = np.empty(64, np.uint32), np.empty(8, np.uint32)
    for message in range(slots.size):
        first, length = starts[message], starts[message + 1] - starts[message]
        size = 2 + length  # what follows the prefix: the slot and the text
        blocks = (size + 9 + 63) // 64
        state[:] = middle
        for number in range(blocks):
            schedule[:16] = 0
            for position in range(number * 64, min(number * 64 + 64, size + 1)):
                if position == 0:
                    byte = np.uint32(slots[message] >> 8 & 255)
                elif position == 1:
                    byte = np.uint32(slots[message] & 255)
                elif position < size:
                    byte = np.uint32(texts[first + position - 2])
                else:
                    byte = np.uint32(128)  # the end of the message
                schedule[position >> 2 & 15] |= byte << np.uint32(24 - 8 * (position & 3))
            if number == blocks - 1:
                schedule[15] = np.uint32(8 * (64 + size))  # the length in bits, which needs no more than 32
            _compress(state, schedule, roots)
        for word in range(out.shape[0]):
            out[word, message] = np.uint64(state[2 * word]) << np.uint64(32) | np.uint64(state[2 * word + 1])


@lru_cache(maxsize=256)
def _middle_state(prefix: bytes) -> NDArray[np.uint32]:
    """The state after the block that all messages begin with."""
    schedule = np.zeros(64, dtype=np.uint32)
    schedule[:16] = np.frombuffer(prefix, dtype=">u4")
    state = _START.copy()
    _compress(state, schedule, _ROOTS)
    state.flags.writeable = False
    return state


def digest_words(prefix: bytes, slots: Integers, starts: Integers, texts: NDArray[np.uint8]) -> Words:
    """The first three 64-bit numbers of SHA-256(prefix + slot + text) of every message, as three rows.

    `prefix` has 64 bytes and a slot two; text i is texts[starts[i]:starts[i + 1]].
    """
    words = np.empty((_WORDS, slots.size), dtype=np.uint64)
    _digests(_middle_state(prefix), slots, starts, texts, _ROOTS, words)
    return words
