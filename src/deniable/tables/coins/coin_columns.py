"""The coins that are assigned to many reports: what `assigned_coins.py` computes for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers, Words
from deniable.mechanisms._compiled import compiled
from deniable.tables.coins.assigned_coins import coin_prefix
from deniable.tables.coins.sha256_blocks import digest_words
from deniable.tables.designs.views import Design, chances
from deniable.tables.schema.rounds import Rounds
from deniable.tables.specification.specification import Specification

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class CoinColumns:
    """`Coins` of many reports."""

    group: Words
    view: Words
    seed: Words

    def of(self, rows: NDArray[np.int64] | slice) -> CoinColumns:
        """Those of some reports."""
        return CoinColumns(self.group[rows], self.view[rows], self.seed[rows])


def scaled_words(words: Words, counts: int | Integers) -> Integers:
    """⌊w·n/2^64⌋ of every word, for one n or one for each, in halves of 32 bits."""
    n = np.asarray(counts).astype(np.uint64)
    high, low, n_high, n_low = words >> _HALF, words & _LOW, n >> _HALF, n & _LOW
    middle = high * n_low + (low * n_low >> _HALF)
    carried = low * n_high + (middle & _LOW)
    numbers: Integers = (high * n_high + (middle >> _HALF) + (carried >> _HALF)).astype(np.int64)
    return numbers


def coin_columns(
    specification: Specification, table: str, users: pa.Array, slots: Integers, turn: int | None = None
) -> CoinColumns:
    """The coins of reports, given by their users (integers or texts) and slots."""
    return secret_coins(coin_prefix(specification, table, turn), users, slots)


def secret_coins(prefix: bytes, users: pa.Array, slots: Integers) -> CoinColumns:
    """Coins that come again, from a prefix that nobody else knows."""
    return CoinColumns(*digest_words(prefix, slots, *_texts(users)))


def turn_columns(rounds: Rounds, prefix: bytes, users: pa.Array) -> Integers:
    """The rounds in which users answer, users × answers: what `turns_of` says of each."""
    texts = _texts(users)
    chosen = np.zeros((len(users), 0), dtype=np.int64)
    for answer in range(rounds.answers):
        words, *_ = digest_words(prefix, np.full(len(users), answer), *texts)
        turn = scaled_words(words, rounds.count - answer)
        for earlier in np.sort(chosen, axis=1).T:
            turn = turn + (turn >= earlier)
        chosen = np.column_stack((chosen, turn))
    return chosen + 1


def _texts(users: pa.Array) -> tuple[Integers, NDArray[np.uint8]]:
    """Where the texts of user ids begin and end, and their bytes."""
    is_short = users.type == pa.string()  # as most are; a cast takes longer than the coins of a few reports
    texts = users if is_short else users.cast(pa.large_string())
    _, starts, characters = texts.buffers()
    edges = np.frombuffer(starts or bytes(8), dtype=np.int32 if is_short else np.int64)
    wanted: Integers = edges[texts.offset : texts.offset + len(texts) + 1].astype(np.int64, copy=False)
    return wanted, np.frombuffer(characters or b"", dtype=np.uint8)


def assigned_views(design: Design, slots: Integers, coins: CoinColumns) -> tuple[Integers, Integers]:
    """The view that each report has to be of, and how many seeds that view's oracle has."""
    views, seeds = np.empty(slots.size, dtype=np.int64), np.empty(slots.size, dtype=np.int64)
    for part, groups in enumerate(design.parts):
        mine = np.flatnonzero(slots % len(design.parts) == part)
        reach = np.array(chances(groups))
        chosen = np.searchsorted(reach, scaled_words(coins.group[mine], int(reach[-1])), side="right")
        for index, group in enumerate(groups):
            rows = mine[chosen == index]
            local = scaled_words(coins.view[rows], group.views)
            listed, which = np.unique(local, return_inverse=True)
            counts = [design.oracle(group.cells(group.choice(number))).seeds for number in listed.tolist()]
            views[rows] = design.offset(part, index) + local
            seeds[rows] = np.array(counts, dtype=np.int64)[which]
    return views, seeds


def matches(
    specification: Specification,
    table: str,
    users: pa.Array,
    slots: Integers,
    views: Integers,
    seeds: Integers,
    turn: int | None = None,
) -> Booleans:
    """Whether reports have the view and the seed that are assigned to their users. Slots must be possible ones."""
    coins = coin_columns(specification, table, users, slots, turn)
    expected, counts = assigned_views(specification.design_of(table), slots, coins)
    assigned: Booleans = (views == expected) & (seeds == scaled_words(coins.seed, counts))
    return assigned


MOST_TABULATED_VIEWS = 1 << 12


class CoinCheck:
    """`matches` for reports of one table that arrive in small groups: what the design says is tabulated once."""

    def __init__(self, specification: Specification, table: str) -> None:
        self._specification, self._table = specification, table
        design = specification.design_of(table)
        if design.views > MOST_TABULATED_VIEWS:
            self._groups = None
            return
        numbered = [
            (part, index, group) for part, groups in enumerate(design.parts) for index, group in enumerate(groups)
        ]
        self._firsts = np.cumsum([0, *map(len, design.parts)])
        self._groups = np.array(
            [
                (chances(design.parts[part])[index], design.offset(part, index), group.views)
                for part, index, group in numbered
            ],
            dtype=np.int64,
        )
        self._seeds = np.array([view.oracle.seeds for view in design], dtype=np.int64)

    def matches(
        self, users: pa.Array, slots: Integers, views: Integers, seeds: Integers, turn: int | None = None
    ) -> Booleans:
        """Whether reports have the view and the seed that are assigned to their users."""
        if self._groups is None:
            return matches(self._specification, self._table, users, slots, views, seeds, turn)
        words = digest_words(coin_prefix(self._specification, self._table, turn), slots, *_texts(users))
        good = np.empty(slots.size, dtype=np.bool_)
        _agree(words, slots, views, seeds, self._firsts, self._groups, self._seeds, good)
        return good


@compiled
def _scaled(word: Any, count: Any) -> Any:
    """What `scaled_words` does, for one word."""
    n, low_half = np.uint64(count), np.uint64(0xFFFFFFFF)
    high, low, n_high, n_low = word >> np.uint64(32), word & low_half, n >> np.uint64(32), n & low_half
    middle = high * n_low + (low * n_low >> np.uint64(32))
    carried = low * n_high + (middle & low_half)
    return np.int64(high * n_high + (middle >> np.uint64(32)) + (carried >> np.uint64(32)))


@compiled
def _agree(words: Any, slots: Any, views: Any, seeds: Any, firsts: Any, groups: Any, counts: Any, good: Any) -> None:
    parts = firsts.size - 1
    for row in range(good.size):
        part = slots[row] % parts
        group, last = firsts[part], firsts[part + 1] - 1
        drawn = _scaled(words[0, row], groups[last, 0])
        while drawn >= groups[group, 0]:
            group += 1
        view = groups[group, 1] + _scaled(words[1, row], groups[group, 2])
        good[row] = views[row] == view and seeds[row] == _scaled(words[2, row], counts[view])
