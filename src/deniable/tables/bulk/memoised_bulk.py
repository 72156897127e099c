"""Memoised rounds in bulk: what `device/lifetimes.py` does for one user, for arrays of users.

Everything that must come again is SHA-256 of a secret, a label, the slot and the user id. The chance that a permanent
answer is the truth is rounded down by so much that no other answer is rarer than it should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from deniable.arrays import Booleans, Integers, Words, Words32
from deniable.mechanisms.frequency_oracle import FrequencyOracle, HashedCells
from deniable.mechanisms.hashing import bucket_array
from deniable.mechanisms.memoised_response import MemoisedResponse
from deniable.randomness import Source
from deniable.tables.coins.coin_columns import scaled_words, secret_coins
from deniable.tables.coins.turns import secret_prefix

_ANSWERS = b"deniable answers"


class StickySource(Source):
    """Draws for the rows of users that come again whenever they are made for the same users and purpose.

    Privacy does not rest on them: they choose rows and round values, before anything is randomised.
    """

    def __init__(self, secret: bytes, users: pa.Array, purpose: bytes, slots: Integers | None = None) -> None:
        super().__init__(secret)
        self._secret, self._users, self._purpose, self._calls = secret, users, purpose, 0
        self._slots = np.zeros(len(users), dtype=np.int64) if slots is None else slots

    def for_rows(self, rows: Integers | slice) -> StickySource:
        """Draws for some of the users, under the next label."""
        self._calls += 1
        chosen = self._users if isinstance(rows, slice) else self._users.take(pa.array(rows))
        return StickySource(self._secret, chosen, self._purpose + b" %d" % self._calls, self._slots[rows])

    def for_numbered(self, users: Integers, numbers: Integers) -> StickySource:
        """Draws for several numbered things of the users at these positions, under the next label."""
        self._calls += 1
        purpose = self._purpose + b" %d" % self._calls
        return StickySource(self._secret, self._users.take(pa.array(users)), purpose, numbers)

    def words(self, size: int) -> Words:
        """A number of 64 bits for each of the users."""
        if size != len(self._users):
            raise ValueError("one draw for each user")
        self._calls += 1
        prefix = secret_prefix(self._secret, self._purpose, self._calls)
        return secret_coins(prefix, self._users, self._slots).group

    def below(self, bound: int, size: int) -> Integers:
        """A number below a bound for each of the users."""
        return scaled_words(self.words(size), bound)

    def below_each(self, bounds: Integers) -> Integers:
        """A number below each bound."""
        return scaled_words(self.words(bounds.size), bounds)

    def ratio_coins(self, numerators: Integers, denominator: int) -> Booleans:
        """Heads where a number that stays the same lies below the ratio."""
        return np.asarray(scaled_words(self.words(numerators.size), denominator) < numerators)


@dataclass(frozen=True, slots=True, eq=False)
class BulkLife:
    """What stays the same in all rounds, for the rows of users that are reported, in their order."""

    permanent: float
    secret: bytes
    users: pa.Array
    first_slots: Integers
    """The slot of the first part of each row."""

    @classmethod
    def of(cls, permanent: float, secret: bytes, users: pa.Array, tau: int, parts: int) -> BulkLife:
        """For `tau` rows of every user, each reported in so many parts."""
        owners = pa.array(np.repeat(np.arange(len(users)), tau))
        return cls(permanent, secret, users.take(owners), np.tile(np.arange(tau) * parts, len(users)))

    def source(self, part: int) -> StickySource:
        """Draws that round the values of a part's reports."""
        return StickySource(self.secret, self.users, b"rounding", self.first_slots + part)

    def responses(
        self,
        oracles: Sequence[FrequencyOracle],
        which: Integers,
        cells: Integers,
        seeds: Words32,
        part: int,
        source: Source,
    ) -> Integers:
        """An instantaneous answer on top of the permanent one, for each report."""
        outcomes = np.array([oracle.outcomes for oracle in oracles], dtype=np.int64)[which]
        truth = cells.copy()
        for number, oracle in enumerate(oracles):
            rows = which == number
            if isinstance(oracle.support, HashedCells) and rows.any():
                truth[rows] = bucket_array(seeds[rows], cells[rows], oracle.support.buckets)
        mechanisms = [
            MemoisedResponse(oracle.epsilon, max(self.permanent, oracle.epsilon), max(oracle.outcomes, 2))
            for oracle in oracles
        ]
        kept = self._permanent([made.kept.p for made in mechanisms], which, outcomes, truth, part)
        chances = [
            made.p_instantaneous if oracle.outcomes > 1 else Fraction(1)
            for made, oracle in zip(mechanisms, oracles, strict=True)
        ]
        keep = source.bernoulli_each(chances, which)
        other = source.below_each(np.maximum(outcomes - 1, 1))
        other += other >= kept
        return np.where(keep, kept, other)

    def _permanent(
        self, chances: Sequence[Fraction], which: Integers, outcomes: Integers, truth: Integers, part: int
    ) -> Integers:
        """The permanent answers to outcomes: the truth, or another that is as likely as any."""
        margin = max(int(outcomes.max(initial=1)), 1)
        limits = np.array([_limit(chance, margin) for chance in chances], dtype=np.uint64)[which]
        kept = truth.copy()
        for outcome in np.unique(truth).tolist():
            rows = np.flatnonzero((truth == outcome) & (outcomes > 1))
            prefix = secret_prefix(self.secret, _ANSWERS, outcome)
            words = secret_coins(prefix, self.users.take(pa.array(rows)), self.first_slots[rows] + part)
            other = scaled_words(words.view, outcomes[rows] - 1)
            other += other >= outcome
            kept[rows] = np.where(words.group < limits[rows], outcome, other)
        return kept


def _limit(chance: Fraction, margin: int) -> int:
    """Below this a word of 64 bits means the truth. The margin covers what another answer's chance is rounded down."""
    if chance == 1:
        return 2**64 - 1
    return max((chance.numerator << 64) // chance.denominator - margin, 0)
