"""In which rounds a person answers, where rounds rotate: some of all, chosen without looking. Standard library only.

The j-th answer falls into one of the rounds that are left: ⌊w·(left)/2^64⌋, where w is the first number of the SHA-256
of 64 bytes, j and the user id, as for coins. With assigned coins the bytes are public; otherwise they begin with a
secret of the device, or of whoever runs a collection in bulk.
"""

from __future__ import annotations

import hashlib

from deniable.tables.coins.assigned_coins import coin_prefix, scaled, user_bytes
from deniable.tables.schema.report_format import ASSIGNED
from deniable.tables.schema.rounds import Rounds
from deniable.tables.specification.specification import Specification

TURNS_PURPOSE = b"deniable turns"
SECRET_BYTES = 32


def turn_prefix(specification: Specification, secret: bytes | None) -> bytes:
    """What the turns of all users begin with: 64 bytes. They hold for all tables, so that these can be joined."""
    if specification.coins == ASSIGNED:
        return coin_prefix(specification, "", purpose=TURNS_PURPOSE)
    return secret_prefix(secret or b"", TURNS_PURPOSE)


def secret_prefix(secret: bytes, purpose: bytes, number: int = 0) -> bytes:
    """64 bytes that nobody else knows."""
    if len(secret) != SECRET_BYTES:
        raise ValueError("a secret has 32 bytes")
    return secret + purpose.ljust(24, b"\0") + number.to_bytes(8, "big")


def turns_of(rounds: Rounds, prefix: bytes, user: str | int = "") -> frozenset[int]:
    """The rounds in which a person answers.

    >>> sorted(turns_of(Rounds(52, answers=3), bytes(64), "ann"))
    [23, 35, 46]
    """
    chosen: list[int] = []
    for answer in range(rounds.answers):
        digest = hashlib.sha256(prefix + answer.to_bytes(2, "big") + user_bytes(user)).digest()
        turn = scaled(int.from_bytes(digest[:8], "big"), rounds.count - answer)
        for earlier in sorted(chosen):
            turn += turn >= earlier
        chosen.append(turn)
    return frozenset(turn + 1 for turn in chosen)
