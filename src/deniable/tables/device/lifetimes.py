"""Draws that come again: what a device needs for answers that it keeps for life. Standard library only.

A device has one secret per collection, drawn once and kept in its memory. Everything that must stay the same from round
to round (view, seed, which rows are chosen, where values are rounded, permanent answers) is drawn from SHA-256 of the
secret and a label, which comes out the same again. A permanent answer is so drawn when it is first needed, and kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from deniable.exact import RandBelow
from deniable.mechanisms.frequency_oracle import FrequencyOracle, HashedCells
from deniable.mechanisms.hashing import bucket
from deniable.mechanisms.memoised_response import MemoisedResponse

_DIGEST_BITS = 256


@dataclass(frozen=True, slots=True)
class StickyDraws:
    """Numbers that depend on a secret and a label alone, each exactly uniform."""

    secret: bytes

    def of(self, label: str) -> RandBelow:
        """A function like `secrets.randbelow` that begins with the same numbers whenever it is made anew.

        >>> StickyDraws(bytes(32)).of("rows")(10) == StickyDraws(bytes(32)).of("rows")(10)
        True
        """
        count = 0

        def randbelow(bound: int) -> int:
            nonlocal count
            most = 2**_DIGEST_BITS // bound * bound
            while True:
                text = f"{label}:{count}".encode()
                number = int.from_bytes(hashlib.sha256(self.secret + text).digest(), "big")
                count += 1
                if number < most:  # with a chance above 1 − 2^-128
                    return number % bound

        return randbelow


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The part of a person's answers for one table that stays the same in all rounds."""

    table: str
    permanent: float
    draws: StickyDraws

    def of(self, label: str) -> RandBelow:
        """Draws for one purpose, the same in every round."""
        return self.draws.of(f"{self.table}:{label}")

    def answer(self, slot: int, oracle: FrequencyOracle, cell: int, seed: int, randbelow: RandBelow) -> tuple[int, int]:
        """(seed, y): an instantaneous answer on top of the permanent one."""
        if oracle.outcomes == 1:
            return oracle.draw_report(cell, randbelow)
        hashed = isinstance(oracle.support, HashedCells)
        outcome = bucket(seed, cell, oracle.outcomes) if hashed else cell
        mechanism = MemoisedResponse(oracle.epsilon, max(self.permanent, oracle.epsilon), oracle.outcomes)
        kept = mechanism.draw_permanent(outcome, self.of(f"{slot}:answer to {outcome}"))
        return seed, mechanism.draw_instantaneous(kept, randbelow)
