"""The coins that are assigned to a report, as a device computes them. Standard library only.

They are the SHA-256 of

    bytes 0-31    the table's digest: SHA-256 of "(specification's SHA-256 in hexadecimal):(table)"
    bytes 32-55   what the coins are for: "deniable coins" in ASCII, then zeros
    bytes 56-63   0 if they hold for all rounds, else the round plus one
    bytes 64-65   the slot
    bytes 66-     the user id as text, in UTF-8                         all numbers unsigned, big-endian

Its first three groups of eight bytes are three numbers w. A choice among n is ⌊w·n/2^64⌋: the first number chooses the
group of views, the second the view in it, the third the seed. They never depended on data, so what y promises given
view and seed is unchanged; but a device cannot choose them, and a server can compute them again.

The first 64 bytes are one block of SHA-256, which is the same for all users of a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from deniable.tables.schema.rounds import MEMOISED
from deniable.tables.specification.specification import Specification

PURPOSE = b"deniable coins"
_WORD_BITS = 64


class Coins(NamedTuple):
    """Three numbers of 64 bits that decide the public part of a report."""

    group: int
    view: int
    seed: int


def scaled(word: int, count: int) -> int:
    """A number below `count` from 64 bits."""
    return word * count >> _WORD_BITS


def coin_prefix(
    specification: Specification, table: str, turn: int | None = None, *, purpose: bytes = PURPOSE
) -> bytes:
    """What the coins of all users of a table begin with: 64 bytes."""
    number = 0 if turn is None else turn + 1
    return specification.digest(table) + purpose.ljust(24, b"\0") + number.to_bytes(8, "big")


def user_bytes(user: str | int) -> bytes:
    """A user id as it is hashed: 7 and "7" are one user, as everywhere."""
    return str(user).encode()


def round_of_coins(specification: Specification, number: int) -> int | None:
    """The round whose coins a report has: its own, or none if coins hold for life or there are no rounds."""
    return None if specification.rounds is None or specification.rounds.mode == MEMOISED else number


def assigned_coins(
    specification: Specification, table: str, user: str | int, slot: int, turn: int | None = None
) -> Coins:
    """The coins of one report. `turn` is the round, if reports get new coins in every round.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, coins="assigned")
    >>> assigned_coins(shop, "users", 7, slot=0) == assigned_coins(shop, "users", "7", slot=0)
    True
    """
    return _coins(coin_prefix(specification, table, turn), user_bytes(user), slot)


def coins_of_slots(
    specification: Specification, table: str, user: str | int, turn: int | None = None
) -> Sequence[Coins]:
    """The coins of all of a user's reports for a table, in the order of their slots."""
    prefix, text = coin_prefix(specification, table, turn), user_bytes(user)
    return [_coins(prefix, text, slot) for slot in range(specification.reports_per_user(table))]


def _coins(prefix: bytes, user: bytes, slot: int) -> Coins:
    digest = hashlib.sha256(prefix + slot.to_bytes(2, "big") + user).digest()
    return Coins(*(int.from_bytes(digest[first : first + 8], "big") for first in (0, 8, 16)))
