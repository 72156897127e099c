"""Levels, changes and sums over rounds: how often their intervals cover, and how large stated errors are.

Each collection has people of its own, of whom some change from one round to the next. What is covered is the truth
about these people: a count or a sum in one round, the difference of two rounds, and the sum over all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from deniable.tables.schema.rounds import FRESH, MEMOISED, ROTATING
from deniable_lab.experiments.drawn_rounds import CHANGING, collection_of, database_of, drawn_lives

KINDS = ("level", "change", "pooled")
QUESTIONS = {"count": "COUNT(*) FILTER (WHERE age < 30 AND {})", "sum": "SUM(age) FILTER (WHERE {})"}
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Covered:
    """One kind of answer under one mode, over many collections."""

    mode: str
    question: str
    kind: str
    collections: int
    covered: float
    """The share of 95 % intervals that hold the truth."""
    error: float
    """The root of the mean squared error."""
    stated: float
    """The root of the mean squared standard error."""
    bias: float
    """The mean error, in its own standard errors."""


def measure(
    mode: str,
    *,
    epsilon: float = 2.0,
    users: int = 2_000,
    rounds: int = 3,
    answers: int = 1,
    changing: float = CHANGING,
    collections: int = 200,
    design: str = "mg",
    seed: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[Covered]:
    """Coverage of levels, changes and pooled rounds, for a count and for a sum."""
    collection, rng = collection_of(mode, epsilon, rounds, answers, design), np.random.default_rng(seed)
    errors: dict[tuple[str, str], list[tuple[float, float]]] = {(q, k): [] for q in QUESTIONS for k in KINDS}
    with TemporaryDirectory() as folder:
        for number in range(collections):
            lives = drawn_lives(users, rounds, changing, rng)
            database = database_of(collection, lives, number, Path(folder))
            for question, text in QUESTIONS.items():
                last, before = (text.format(f"round = {turn}") for turn in (rounds, rounds - 1))
                asked = {"level": last, "change": f"{last} - {before}", "pooled": text.format("round > 0")}
                asked = {kind: f"SELECT {formula} AS n FROM users" for kind, formula in asked.items()}  # noqa: S608 - ours
                true = [float((ages < 30).sum() if question == "count" else ages.sum()) for ages in lives]
                truths = {"level": true[-1], "change": true[-1] - true[-2], "pooled": sum(true)}
                for kind in KINDS:
                    answer = database.sql(asked[kind]).scalar()
                    errors[question, kind].append((answer.value - truths[kind], answer.stderr))
            advance(1)
    for (question, kind), pairs in errors.items():
        off, stated = np.array(pairs).T
        yield Covered(
            mode,
            question,
            kind,
            collections,
            float((np.abs(off) <= _Z * stated).mean()),
            float(np.sqrt(np.square(off).mean())),
            float(np.sqrt(np.square(stated).mean())),
            float(off.mean() / off.std() * collections**0.5),
        )


MODES = (ROTATING, FRESH, MEMOISED)
