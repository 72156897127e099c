"""Filters that say which runs of the store may hold a key.

A filter (Bloom's, in blocks of 512 bits) has 28 bits for each key and sets 10. One key in about 50,000 that a run does
not hold passes its filter, and costs a look at a page; a key that it holds always passes.

In memory the filters of up to 32 runs lie across each other:

    on the disk   run 3:  block 0: bit 0, bit 1, …, bit 511;  block 1: …
    in memory     block 0, bit 0: of all runs;  block 0, bit 1: of all runs;  …

So a key is looked up in all of them with a few words that are near each other, and what a commit costs hardly grows
with the number of runs. Only filters of the same size can lie like this, so sizes are rounded up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms._compiled import compiled
from deniable.stores.collector.key_digests import Digests

_BITS_PER_KEY, _BITS_SET, _BLOCK_BITS, _WORDS = 28, 10, 512, 8
_SIZES = 8
"""Sizes between a power of two and the next."""
_FIRST, _WIDEST = np.uint8, np.uint32
MOST_ACROSS = 32


class _Across:
    """Filters of one size, each in a bit of its own of every word."""

    def __init__(self, blocks: int) -> None:
        self.runs: list[int] = []
        self._words: NDArray[Any] = np.zeros(blocks * _BLOCK_BITS, dtype=_FIRST)

    @property
    def is_full(self) -> bool:
        return len(self.runs) == MOST_ACROSS

    def append(self, run: int, words: Digests) -> None:
        """Add a filter; words become wider where they have no bit left."""
        if len(self.runs) == 8 * self._words.itemsize:
            self._words = self._words.astype(_WIDEST)
        _put_across(words, self._words, self._words.dtype.type(1 << len(self.runs)))
        self.runs.append(run)

    def may_hold(self, wanted: Digests) -> list[tuple[int, int]]:
        """(which key, which run), wherever a run may hold a key."""
        passed = np.empty(wanted.size, dtype=self._words.dtype)
        _pass(self._words, wanted, passed)
        return [
            (row, run)
            for row in np.flatnonzero(passed).tolist()
            for bit, run in enumerate(self.runs)
            if int(passed[row]) >> bit & 1
        ]


class RunFilters:
    """The filters of all runs."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[int, _Across] = {}
        self._all: list[_Across] = []

    def append(self, words: Digests) -> None:
        """Add the filter of the next run."""
        across = self._open.get(words.size)
        if across is None or across.is_full:
            across = self._open[words.size] = _Across(words.size // _WORDS)
            self._all.append(across)
        across.append(self._count, words)
        self._count += 1

    def may_hold(self, wanted: Digests) -> list[tuple[int, int]]:
        """(which key, which run), wherever a run may hold a key."""
        return [pair for across in self._all for pair in across.may_hold(wanted)]


def run_filter(held: Digests) -> Digests:
    """The filter of a run with these keys.

    >>> filters = RunFilters()
    >>> filters.append(run_filter(np.array([7, 8], dtype=np.uint64)))
    >>> filters.may_hold(np.array([9, 8], dtype=np.uint64))
    [(1, 0)]
    """
    words = np.zeros(_blocks_for(held.size) * _WORDS, dtype=np.uint64)
    _fill(words, held)
    return words


def _blocks_for(keys: int) -> int:
    """Enough blocks, of few different numbers.

    >>> [_blocks_for(keys) for keys in (1, 1_000, 262_144, 262_145, 280_000)]
    [1, 56, 14336, 15360, 15360]
    """
    blocks = max(1, -(-_BITS_PER_KEY * keys // _BLOCK_BITS))
    step = max(1, (1 << blocks.bit_length() - 1) // _SIZES)
    return -(-blocks // step) * step


@compiled
def _place(digest: Any, blocks: Any) -> Any:
    """The key's block, and bits that say which of the block are set."""
    block = (digest >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)
    spread = digest * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(block), spread ^ spread >> np.uint64(32)


@compiled
def _bit(spread: Any, number: Any) -> Any:
    """The bit of the block that a key sets as its so-manieth: nine bits of 63, then of 63 others."""
    if number >= 7:
        spread, number = spread * np.uint64(0xC2B2AE3D27D4EB4F), number - 7
        spread ^= spread >> np.uint64(29)
    return np.int64(spread >> np.uint64(9 * number) & np.uint64(_BLOCK_BITS - 1))


@compiled
def _fill(words: Any, held: Any) -> None:
    blocks = words.size // _WORDS
    for row in range(held.size):
        block, spread = _place(held[row], blocks)
        for number in range(_BITS_SET):
            bit = _bit(spread, number)
            words[block * _WORDS + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@compiled
def _put_across(words: Any, across: Any, mine: Any) -> None:
    for number in range(words.size):
        word, at = words[number], number << 6
        while word:
            if word & np.uint64(1):
                across[at] |= mine
            word >>= np.uint64(1)
            at += 1


@compiled
def _pass(across: Any, wanted: Any, passed: Any) -> None:
    """For every key the runs that may hold it, as bits."""
    blocks = across.size // _BLOCK_BITS
    for row in range(wanted.size):
        block, spread = _place(wanted[row], blocks)
        block *= _BLOCK_BITS
        runs = across[block + _bit(spread, np.int64(0))]
        number = np.int64(1)
        while runs and number < _BITS_SET:
            runs &= across[block + _bit(spread, number)]
            number += 1
        passed[row] = runs
