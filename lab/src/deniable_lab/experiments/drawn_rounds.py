"""People who are asked in several rounds, some of whom change in between, and their reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable.arrays import Integers
from deniable.tables.schema.rounds import MEMOISED, ROTATING

CHANGING = 0.05
_TABLE = dn.Table("users", age=dn.Ordinal(1, 95))


def collection_of(mode: str, epsilon: float, count: int, answers: int = 1, design: str = "mg") -> dn.Collection:
    """One attribute, asked in so many rounds."""
    settings = {
        ROTATING: {"answers": answers},
        MEMOISED: {"permanent": epsilon + 0.5, "changes_are_public": True},
    }.get(mode, {})
    rounds = dn.Rounds(count, mode=mode, **settings)  # type: ignore[arg-type]
    return dn.Collection(_TABLE, epsilon=epsilon, design=design, coins="assigned", name="rounds", rounds=rounds)


def drawn_lives(users: int, count: int, changing: float, rng: np.random.Generator) -> list[Integers]:
    """Ages of people in each round: uneven, and some change."""
    ages = np.minimum(rng.geometric(0.03, users), 95)
    lives = [ages]
    for _ in range(count - 1):
        drawn = np.minimum(rng.geometric(0.03, users), 95)
        lives.append(np.where(rng.random(users) < changing, drawn, lives[-1]))
    return lives


def database_of(collection: dn.Collection, lives: list[Integers], number: int, folder: Path) -> dn.Database:
    """The reports of all rounds of the collection with this number."""
    memory = folder / f"{number}" if collection.rounds is not None and collection.rounds.mode == MEMOISED else None
    tables = [
        collection.perturb(
            users={"uid": np.arange(ages.size) + 1_000_000 * number, "age": ages},
            round=turn,
            memory=memory,
            source=dn.SeededSource(1_000 * number + turn),
            simulation=True,
        )["users"]
        for turn, ages in enumerate(lives, 1)
    ]
    database = dn.connect(dn.Reports(collection, {"users": pa.concat_tables(tables)}, {}))
    assert isinstance(database, dn.Database)  # noqa: S101 - one collection has one
    return database
