"""A shop whose data nobody may hold: made-up people, questions about them, and the answers of plain SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.arrays import Integers
from deniable.collection import Collection
from deniable.database import Database
from deniable.engines.duckdb.duckdb_session import open_duckdb
from deniable.queries.answers.result import Estimate, Result
from deniable.tables import Categorical, Ordinal, Public, Table

EPSILON_PER_PERSON = 4.0
MOST_ORDERS = 10
MARITAL, CITIES, ORDER_CATEGORIES = (
    ("married", "single", "widowed"),
    ("Lima", "Oslo", "Rome"),
    ("books", "food", "sports"),
)

QUESTIONS = (
    ("Aged 20 to 39 in Rome", "SELECT COUNT(*) AS people FROM users WHERE age BETWEEN 20 AND 39 AND city = 'Rome'"),
    (
        "Mean order of singles",
        "SELECT AVG(amount) AS amount FROM orders JOIN users USING (uid) WHERE marital = 'single'",
    ),
    ("Orders by category", "SELECT category, COUNT(*) AS orders FROM orders GROUP BY category ORDER BY category"),
    ("People by age", "SELECT FLOOR(age / 10) * 10 AS ages, COUNT(*) AS people FROM users GROUP BY ages ORDER BY ages"),
)
TOO_MUCH = (
    "SELECT AVG(amount) AS amount FROM orders JOIN users USING (uid) "
    "WHERE category = 'sports' AND age BETWEEN 20 AND 40"
)
"""A question that needs more people: the demonstration shows the answer then."""


def specification() -> Collection:
    """What the two services collect, and the one ε over both."""
    users = Table("users", age=Ordinal(1, 95), marital=Categorical(*MARITAL), city=Public())
    orders = Table("orders", many=MOST_ORDERS, amount=Ordinal(0, 500), category=Categorical(*ORDER_CATEGORIES))
    return Collection(users, orders, epsilon=EPSILON_PER_PERSON)


@dataclass(frozen=True, slots=True)
class Shop:
    """The rows of both services. They are made up, so the truth may be shown."""

    users: pa.Table
    orders: pa.Table

    @property
    def orders_per_user(self) -> Integers:
        """How many orders each user has, which nobody may learn."""
        bought = self.orders["uid"].to_numpy()
        return np.bincount(bought, minlength=self.users.num_rows).astype(np.int64)


def made_up(people: int) -> Shop:
    """Single people are younger, order more often and spend more; a fifth of all people have no orders."""
    random = np.random.default_rng(1)
    marital = random.choice(3, people, p=[0.5, 0.4, 0.1])
    age = random.normal(np.array([48, 31, 70])[marital], np.array([14, 12, 11])[marital])
    users = pa.table(
        {
            "uid": np.arange(people),
            "age": np.clip(age.round().astype(np.int64), 1, 95),
            "marital": np.array(MARITAL)[marital],
            "city": np.array(CITIES)[random.choice(3, people, p=[0.2, 0.3, 0.5])],
        }
    )
    count = random.binomial(MOST_ORDERS, np.where(marital == 1, 0.55, 0.4)) * (random.random(people) > 0.2)
    uid = np.repeat(np.arange(people), count)
    category = random.choice(3, uid.size, p=[0.3, 0.4, 0.3])
    amount = random.normal(np.where(marital[uid] == 1, 260, 180) - 60 * (category == 1), 90)
    orders = pa.table(
        {
            "uid": uid,
            "amount": np.clip(amount, 0, 500).round().astype(np.int64),
            "category": np.array(ORDER_CATEGORIES)[category],
        }
    )
    return Shop(users, orders)


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, its answer from reports, and the answer of plain SQL on the rows."""

    title: str
    sql: str
    result: Result
    truth: Mapping[str, tuple[float, ...]]

    def rows(self) -> Iterator[tuple[str, float, Estimate]]:
        """Label, truth and estimate of every number."""
        for name, estimates in self.result.answers.items():
            for row, estimate in enumerate(estimates):
                group = ", ".join(_plain(values[row]) for values in self.result.groups.values())
                yield group or name, self.truth[name][row], estimate


def ask(database: Database, shop: Shop) -> list[AnsweredQuestion]:
    """Ask every question, of the reports and of the rows."""
    plain = open_duckdb(memory_limit=2**32)
    plain.register("users", shop.users)
    plain.register("orders", shop.orders)
    answered = []
    for title, sql in QUESTIONS:
        result = database.sql(sql)
        rows = plain.sql(sql).to_arrow_table()
        truth = {name: tuple(map(float, rows[name].to_pylist())) for name in result.answers}
        if any(len(values) != len(result) for values in truth.values()):
            raise AssertionError("plain SQL has other groups")  # with enough people every group has somebody
        answered.append(AnsweredQuestion(title, sql, result, truth))
    return answered


def reports_per_user(folder: Path, people: int) -> Integers:
    """What an attacker sees of the second service: how many reports each user sent there."""
    uids: Any = pa.parquet.read_table(folder / "orders", columns=["uid"])["uid"]
    return np.bincount(pc.cast(uids, pa.int64()).to_numpy(), minlength=people).astype(np.int64)


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


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
