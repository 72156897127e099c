"""What an attacker who sees every report learns, and how far liars move an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.audit import audit, collection_targets
from deniable.collection import Collection
from deniable.database import Database
from deniable.engines.collecting.stored_reports import collector_folder, seal
from deniable.randomness import Source

RUNS = 40_000
_AUDITED = "bulk, lowest or highest"
MOVED_QUESTIONS = (
    ("people aged 20 to 39", "SELECT COUNT(*) AS people FROM users WHERE age BETWEEN 20 AND 39 AND round = 3"),
    ("orders of sports goods", "SELECT COUNT(*) AS orders FROM orders WHERE category = 'sports' AND round = 3"),
)


@dataclass(frozen=True, slots=True)
class Attacks:
    """How often an attacker is right."""

    guessed: Mapping[str, float]
    """The share of people whose number of orders he guesses, by what he sees."""
    proven_epsilon: float
    """What the strongest event that he found proves about ε: claims of less would be refuted."""
    claimed_epsilon: float
    refuted: bool
    runs: int

    @property
    def odds(self) -> tuple[float, float]:
        """How far he moves even odds between two people, and how far ε would allow: so many to one."""
        return math.exp(self.proven_epsilon), math.exp(self.claimed_epsilon)


@dataclass(frozen=True, slots=True)
class MovedAnswer:
    """How far liars move one answer."""

    title: str
    value: float
    stderr: float
    one_liar: float
    worst_liar: float
    one_percent: float


def attack(collection: Collection, orders: Integers, sent: Integers, source: Source) -> Attacks:
    """Count reports, then compare what two people send who differ in everything."""
    guessed = {
        "one report per order, however randomised": share_guessed(orders, orders),
        "the reports of deniable": share_guessed(sent, orders),
        "no reports at all": share_guessed(np.zeros_like(orders), orders),
    }
    asked_once = collection.with_settings(rounds=None)  # nobody answers in more than one of these rounds
    target = collection_targets(asked_once)[_AUDITED](collection.epsilon)
    finding = audit(target, RUNS, source.stream("demo", "attack"))
    return Attacks(guessed, finding.bound, collection.epsilon, finding.refuted, finding.samples)


def moved_answers(database: Database) -> tuple[MovedAnswer, ...]:
    """How far one liar, and one in a hundred, move answers."""
    moved = []
    for title, sql in MOVED_QUESTIONS:
        (influence,), estimate = database.influence(sql), database.sql(sql).scalar()
        few = influence.of_share(0.01)
        moved.append(MovedAnswer(title, estimate.value, estimate.stderr, influence.typical, influence.reached, few))
    return tuple(moved)


def reports_per_user(folder: Path, sealed: Path, people: int) -> Integers:
    """What an attacker sees of the second service: how many reports each user has sent there, over all weeks."""
    from pyarrow import parquet

    opened = collector_folder(folder)
    store = opened.open_store()
    try:
        seal(opened, store, sealed)
    finally:
        store.close()
    counts = np.zeros(people, dtype=np.int64)
    for file in sorted((sealed / "orders").rglob("*.parquet")):
        uids = parquet.ParquetFile(file).read(columns=["uid"])["uid"]
        numbers = pc.cast(pc.utf8_slice_codeunits(uids, 1), "int64").to_numpy()
        counts += np.bincount(numbers, minlength=people)
    return counts


def share_guessed(sent: Integers, secret: Integers) -> float:
    """The frequency attack [XDW20, Section 5.1]: the share of users for whom the best guess is right.

    The attacker knows how often every pair of numbers occurs and guesses the likeliest secret for each number of
    reports.

    >>> import numpy as np
    >>> secret = np.array([0, 3, 3, 5])
    >>> share_guessed(secret, secret), share_guessed(np.ones(4, dtype=np.int64), secret)
    (1.0, 0.5)
    """
    pairs = np.zeros((int(sent.max()) + 1, int(secret.max()) + 1), dtype=np.int64)
    np.add.at(pairs, (sent, secret), 1)
    return float(pairs.max(axis=1).sum() / sent.size)
