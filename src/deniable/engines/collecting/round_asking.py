"""What a run in bulk asks: all users once, or one round; whose turn it is, and what stays the same in all rounds."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from deniable.errors import Failure, InvalidParameter
from deniable.files import LockedFile
from deniable.ledger import key_of
from deniable.tables.bulk.memoised_bulk import BulkLife, StickySource
from deniable.tables.coins.assigned_coins import PURPOSE, round_of_coins
from deniable.tables.coins.coin_columns import CoinColumns, coin_columns, secret_coins, turn_columns
from deniable.tables.coins.turns import SECRET_BYTES, secret_prefix, turn_prefix
from deniable.tables.schema.report_format import ASSIGNED
from deniable.tables.schema.rounds import MEMOISED, ROTATING
from deniable.tables.specification.specification import Specification

_MEMORY_COST = "Nothing was read or written"


@dataclass(frozen=True, slots=True)
class Asking:
    """A specification and, if it has rounds, the one that is asked and the secret that all of them share."""

    collection: Specification
    number: int | None = None
    secret: bytes | None = None

    @classmethod
    def of(
        cls,
        collection: Specification,
        number: int | None,
        memory: str | Path | None,
        *,
        simulation: bool = False,
    ) -> Asking:
        """Refuse a round that there is not, and a run that could not answer the next round."""
        rounds = collection.rounds
        if rounds is None:
            if number is not None or memory is not None:
                raise InvalidParameter("round and memory", "are for collections with rounds", "Leave them out.")
            return cls(collection)
        number = rounds.check(number)
        needs = rounds.mode == MEMOISED or (rounds.mode == ROTATING and collection.coins != ASSIGNED)
        if not needs:
            return cls(collection, number)
        if memory is None:
            problem = f"is missing: {rounds.mode} rounds need to know what was drawn in earlier ones"
            raise InvalidParameter("memory", problem, "Name a private file, the same in every round.")
        return cls(collection, number, _kept_secret(collection, Path(memory), simulation=simulation))

    def whose_turn(self, rows: pa.Table) -> pa.Table:
        """The rows of users who answer in this round."""
        rounds = self.collection.rounds
        if rounds is None or rounds.mode != ROTATING:
            return rows
        turns = turn_columns(rounds, turn_prefix(self.collection, self.secret), rows["uid"].combine_chunks())
        return rows.filter(pa.array((turns == self.number).any(axis=1)))

    def coins(self, name: str, users: pa.Array, slots: np.ndarray) -> CoinColumns | None:
        """Assigned coins, or those that are kept for life; None if views and seeds are drawn anew."""
        if self.collection.coins == ASSIGNED:
            return coin_columns(self.collection, name, users, slots, round_of_coins(self.collection, self.number or 0))
        if self.is_memoised:
            return secret_coins(secret_prefix(self._secret_of(name), PURPOSE), users, slots)
        return None

    @property
    def is_memoised(self) -> bool:
        """Whether answers are kept for life."""
        return self.collection.rounds is not None and self.collection.rounds.mode == MEMOISED

    def sticky_source(self, name: str, users: pa.Array) -> StickySource | None:
        """Draws for the rows of users, before anything is randomised, that come again in every round."""
        return StickySource(self._secret_of(name), users, b"rows") if self.is_memoised else None

    def life(self, name: str, users: pa.Array) -> BulkLife | None:
        """What stays the same in all rounds."""
        if not self.is_memoised:
            return None
        tau, parts = self.collection[name].tau, len(self.collection.design_of(name).parts)
        return BulkLife.of(self.collection.permanent_per_report(name), self._secret_of(name), users, tau, parts)

    @property
    def group(self) -> str:
        """What the ledger calls rounds that share turns and permanent answers; empty without rounds."""
        return "" if self.number is None else key_of("rounds", self.secret or self.collection.sha256.encode())

    def _secret_of(self, name: str) -> bytes:
        """A secret of its own for each table."""
        return hashlib.sha256((self.secret or b"") + self.collection.digest(name)).digest()


def _kept_secret(collection: Specification, path: Path, *, simulation: bool) -> bytes:
    """The secret in a private file, made in the first round. It belongs to one specification."""
    head = f"deniable rounds {collection.sha256}{' simulation' * simulation} ".encode()
    with LockedFile(path, "the memory", cost=_MEMORY_COST, wait_s=10.0) as file:
        content = file.read()
        if content is None:
            content = head + secrets.token_bytes(SECRET_BYTES).hex().encode() + b"\n"
            file.write(content)
    digits = content.removeprefix(head).removesuffix(b"\n")
    try:
        secret = bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES or not content.startswith(head):
        raise Failure(
            f"the memory {path.name!r} is damaged, or of another specification, so what was drawn in earlier rounds is "
            f"not known. {_MEMORY_COST}. Restore it; with a new one everybody would answer anew and spend ε again."
        )
    return secret
