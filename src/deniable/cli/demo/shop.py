"""A shop whose data nobody may hold: made-up people, questions about them, and the answers of plain SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.collection import Collection
from deniable.database import Database
from deniable.engines.duckdb.duckdb_session import open_duckdb
from deniable.queries.answers.result import Estimate, Result
from deniable.tables import Categorical, Cells, GridView, Ordinal, Points, Rounds, Table

EPSILON_PER_PERSON = 4.0
MOST_ORDERS = 10
WEEKS = 3
MARITAL, CITIES, ORDER_CATEGORIES = (
    ("married", "single", "widowed"),
    ("Lima", "Oslo", "Rome"),
    ("books", "food", "sports"),
)
_CATEGORIES_BY_WEEK = ((0.30, 0.40, 0.30), (0.30, 0.40, 0.30), (0.25, 0.30, 0.45))
"""In the last week there is a sale of sports goods."""

QUESTIONS = (
    (
        "How old are the customers?",
        "SELECT FLOOR(age / 10) * 10 AS ages, COUNT(*) AS people FROM users WHERE round = 3 GROUP BY ages ORDER BY "
        "ages",
    ),
    (
        "What does an order of a single person cost?",
        "SELECT AVG(amount) AS amount FROM orders JOIN users USING (uid) WHERE marital = 'single'",
    ),
    (
        "What is ordered, week by week?",
        "SELECT round, category, COUNT(*) AS orders FROM orders GROUP BY round, category ORDER BY round, category",
    ),
)
CHANGED_ORDERS = (
    "What has changed from the first week to the third?",
    "SELECT category, COUNT(*) FILTER (WHERE round = 3) - COUNT(*) FILTER (WHERE round = 1) AS more "
    "FROM orders GROUP BY category ORDER BY category",
)
TOO_MUCH = (
    "SELECT AVG(amount) AS amount FROM orders JOIN users USING (uid) "
    "WHERE category = 'sports' AND age BETWEEN 20 AND 40 AND round = 3"
)
"""A question that needs more people: the demonstration shows the answer then."""


def specification() -> Collection:
    """What the two services collect week after week, and the one ε over both and over all weeks.

    Views were chosen for these questions by `deniable plan`.
    """
    users = Table("users", age=Ordinal(1, 95), marital=Categorical(*MARITAL))
    orders = Table("orders", many=MOST_ORDERS, amount=Ordinal(0, 500), category=Categorical(*ORDER_CATEGORIES))
    by_ten_years = Cells((0, 9, 19, 29, 39, 49, 59, 69, 79, 89))
    grids = {
        "users": [GridView({"age": by_ten_years}, 109), GridView({"marital": Cells(3)}, 291)],
        "orders": [
            GridView({"amount": Cells(2)}, 12),
            GridView({"amount": Points(2)}, 127),
            GridView({"category": Cells(3)}, 171),
            GridView({"amount": Points(2), "category": Cells(3)}, 90),
        ],
    }
    weekly = Rounds(WEEKS, every="week")
    return Collection(
        users,
        orders,
        epsilon=EPSILON_PER_PERSON,
        name="shop",
        coins="assigned",
        rounds=weekly,
        design="grid",
        grids=grids,
    )


@dataclass(frozen=True, slots=True)
class Shop:
    """The rows of both services in one week. They are made up, so the truth may be shown."""

    users: pa.Table
    orders: pa.Table

    @property
    def orders_per_user(self) -> Integers:
        """How many orders each user has, which nobody may learn."""
        bought = self.orders["number"].to_numpy()
        return np.bincount(bought, minlength=self.users.num_rows).astype(np.int64)

    def rows_of(self, number: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What the device of one person holds: her row of the first service, and those of the second."""
        own = self.orders.filter(pc.equal(self.orders["number"], number))
        return self.users.select(["age", "marital"]).slice(number, 1).to_pylist()[0], own.select(
            ["amount", "category"]
        ).to_pylist()

    def from_person(self, first: int) -> tuple[pa.Table, pa.Table]:
        """The rows of both services, without those of the first people."""
        orders = self.orders.filter(pc.greater_equal(self.orders["number"], first))
        return self.users.slice(first), orders.drop_columns(["number"])


def user_id(number: int) -> str:
    """The id under which a made-up person reports.

    >>> user_id(17)
    'p0000017'
    """
    return f"p{number:07d}"


def made_up(people: int, week: int = 1) -> Shop:
    """Single people are younger, order more often and spend more; a fifth of all people have no orders."""
    random = np.random.default_rng(1)
    marital = random.choice(3, people, p=[0.5, 0.4, 0.1])
    age = random.normal(np.array([48, 31, 70])[marital], np.array([14, 12, 11])[marital])
    uid = pc.binary_join_element_wise("p", pc.utf8_lpad(pc.cast(pa.array(np.arange(people)), pa.string()), 7, "0"), "")
    users = pa.table(
        {
            "uid": uid,
            "age": np.clip(age.round().astype(np.int64), 1, 95),
            "marital": np.array(MARITAL)[marital],
            "city": np.array(CITIES)[random.choice(3, people, p=[0.2, 0.3, 0.5])],
        }
    )
    random = np.random.default_rng([1, week])
    count = random.binomial(MOST_ORDERS, np.where(marital == 1, 0.55, 0.4)) * (random.random(people) > 0.2)
    number = np.repeat(np.arange(people), count)
    category = random.choice(3, number.size, p=_CATEGORIES_BY_WEEK[week - 1])
    amount = random.normal(np.where(marital[number] == 1, 260, 180) - 60 * (category == 1), 90)
    orders = pa.table(
        {
            "uid": uid.take(pa.array(number)),
            "number": number,
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
                group = ", ".join(
                    f"week {values[row]}" if column == "round" else _plain(values[row])
                    for column, values in self.result.groups.items()
                )
                yield group or name, self.truth[name][row], estimate


class TrueAnswers:
    """Plain SQL on the rows of all weeks, in which every person has her row of the first service."""

    def __init__(self, weeks: Sequence[Shop]) -> None:
        self._plain = open_duckdb(memory_limit=2**32)
        for name in ("users", "orders"):
            parts = [_with_round(getattr(shop, name), week) for week, shop in enumerate(weeks, 1)]
            self._plain.register(name, pa.concat_tables(parts))

    def __call__(self, sql: str, names: Iterator[str]) -> dict[str, tuple[float, ...]]:
        """The columns of these names. Tables are joined within a week, as reports are."""
        rows = self._plain.sql(sql.replace("USING (uid)", "USING (uid, round)")).to_arrow_table()
        return {name: tuple(map(float, rows[name].to_pylist())) for name in names}


def ask(database: Database, true_answers: TrueAnswers, title: str, sql: str) -> AnsweredQuestion:
    """Ask a question, of the reports and of the rows."""
    result = database.sql(sql)
    truth = true_answers(sql, iter(result.answers))
    if any(len(values) != len(result) for values in truth.values()):
        raise AssertionError("plain SQL has other groups")  # with enough people every group has somebody
    return AnsweredQuestion(title, sql, result, truth)


def _with_round(rows: pa.Table, week: int) -> pa.Table:
    return rows.append_column("round", pa.array(np.full(rows.num_rows, week)))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
