"""Ordinary statements over a shop (`shop_statements.sql`): the answers of plain DuckDB without noise, or a reason."""

from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.plain_sql import Pair

import deniable as dn

LINES = (Path(__file__).parent / "shop_statements.sql").read_text().splitlines()
REASON = "-- refused: "
REFUSED = {line: before.removeprefix(REASON) for before, line in pairwise(LINES) if before.startswith(REASON)}
ANSWERED = [line for line in LINES if line and not line.startswith("--") and line not in REFUSED]
LOOKING_AROUND = ("SHOW", "DESCRIBE", "EXPLAIN", "SELECT 1")
DIMENSIONS = {
    "countries": pa.table({"country": ["DE", "FR", "IT", "ES"], "region": ["north", "west", "south", "south"]}),
    "departments": pa.table({
        "category": ["books", "toys", "food", "shoes"],
        "department": ["media", "fun", "food", "wear"],
        "margin": [0.25, 0.5, 0.125, 0.75],
    }),
}  # fmt: skip
PEOPLE, BUYERS = 400, 250


def days(random, first, count, size):
    return [first + timedelta(days=int(number)) for number in random.integers(0, count, size)]


def shop():
    """Rows of everything that statements name. Whoever buys has one order: then nothing is sampled."""
    random = np.random.default_rng(7)
    return {
        "customers": {
            "uid": np.arange(PEOPLE),
            "age": np.clip(random.normal(37, 9, PEOPLE).astype(int), 18, 57),
            "gender": random.choice(["f", "m", "x"], PEOPLE, p=[0.5, 0.4, 0.1]),
            "plan": random.choice(["free", "basic", "premium"], PEOPLE, p=[0.5, 0.3, 0.2]),
            "income": random.integers(0, 10, PEOPLE) * 10_000,
            "signup": days(random, date(2023, 1, 1), 365, PEOPLE),
            "newsletter": random.random(PEOPLE) < 0.4,
            "country": random.choice(["DE", "FR", "IT", "ES"], PEOPLE),
        },
        "orders": {
            "uid": random.permutation(PEOPLE)[:BUYERS],
            "amount": random.integers(0, 50, BUYERS),
            "items": random.integers(1, 7, BUYERS),
            "category": random.choice(["books", "toys", "food", "shoes"], BUYERS),
            "status": random.choice(["paid", "refunded", "cancelled"], BUYERS, p=[0.8, 0.1, 0.1]),
            "day": days(random, date(2023, 5, 1), 90, BUYERS),
        },
    }


DOMAINS = {
    "customers": {
        "age": dn.Ordinal(18, 57),
        "gender": dn.Categorical("f", "m", "x"),
        "plan": dn.Categorical("free", "basic", "premium"),
        "income": dn.Ordinal(0, 90_000, 10_000),
        "signup": dn.Dates("2023-01-01", "2023-12-31"),
        "newsletter": dn.Categorical(True, False),
        "country": dn.Public(),
    },
    "orders": {
        "amount": dn.Ordinal(0, 49),
        "items": dn.Ordinal(1, 6),
        "category": dn.Categorical("books", "toys", "food", "shoes"),
        "status": dn.Categorical("paid", "refunded", "cancelled"),
        "day": dn.Dates("2023-05-01", "2023-07-29"),
    },
}
# Without noise a report is a cell of all attributes at once. Dates would multiply the cells of every question.
WITHOUT_DATES = {
    name: [column for column in columns if column not in ("signup", "day")] for name, columns in DOMAINS.items()
}
WITH_DATES = {"customers": ["age", "plan", "signup", "country"], "orders": ["amount", "category", "day"]}


def collected(columns):
    raw = {name: {column: rows[column] for column in ("uid", *columns[name])} for name, rows in shop().items()}
    tables = [
        dn.Table("customers", **{column: DOMAINS["customers"][column] for column in columns["customers"]}),
        dn.Table("orders", many=1, **{column: DOMAINS["orders"][column] for column in columns["orders"]}),
    ]
    frames = {name: pa.table(rows) for name, rows in raw.items()}
    return Pair(tables=tables, raw=frames, dimensions=DIMENSIONS)


@pytest.fixture(scope="module")
def shops():
    return {False: collected(WITHOUT_DATES), True: collected(WITH_DATES)}


def pair_for(shops, statement):
    words = statement.lower()
    return shops["signup" in words or "day " in words or "day)" in words]


def test_the_list_is_long_and_mostly_answered():
    assert len(ANSWERED) > 165
    assert len(REFUSED) > 25


@pytest.mark.parametrize("statement", [line for line in ANSWERED if not line.startswith(LOOKING_AROUND)])
def test_answers_are_those_of_plain_sql(shops, statement):
    pair_for(shops, statement).check(statement.rstrip(";"), clear_from=1)


@pytest.mark.parametrize("statement", [line for line in ANSWERED if line.startswith(LOOKING_AROUND)])
def test_tools_may_look_around(shops, statement):
    assert len(shops[False].database.sql(statement.rstrip(";"))) > 0


@pytest.mark.parametrize("statement", REFUSED)
def test_refusals_say_why_and_what_to_do(shops, statement):
    with pytest.raises(dn.DeniableError) as refused:
        pair_for(shops, statement).database.sql(statement.rstrip(";"))
    assert REFUSED[statement] in str(refused.value)
    assert len(str(refused.value).split("Nothing was computed. ")[1]) > 10


def test_columns_stand_in_the_order_of_the_question(shops):
    text = "SELECT COUNT(*) AS n, plan, AVG(age) AS age, gender FROM customers GROUP BY plan, gender"
    answer = shops[False].database.sql(text)
    assert answer.columns == ("n", "plan", "age", "gender")
    assert [name for name in answer.to_arrow().column_names if "_" not in name] == list(answer.columns)
    assert list(next(iter(answer))) == list(answer.columns)
    assert shops[False].database.sql(text).columns == answer.columns  # when it is planned already


def test_groups_alone_are_ordered_by_what_is_not_shown(shops):
    pair, text = shops[False], "SELECT plan FROM customers GROUP BY plan ORDER BY COUNT(*) DESC"
    assert [(row["plan"],) for row in pair.database.sql(text)] == pair.plain.sql(text).fetchall()


def test_the_largest_of_several_answers_has_an_interval_that_holds_it():
    shop = dn.Collection(dn.Table("t", kind=dn.Categorical(*"abcdef")), epsilon=1.0)
    frame = {"uid": np.arange(3_000), "kind": list("abcdef" * 500)}  # all are as large: noise alone chooses
    held = 0
    for seed in range(12):
        db = dn.connect(shop.perturb(t=frame, source=dn.SeededSource(seed), simulation=True))
        answer = db.sql("SELECT MAX(n) AS most FROM (SELECT kind, COUNT(*) AS n FROM t GROUP BY kind) AS x")
        low, high = answer.scalar().interval
        held += low <= 500 <= high
        assert any("noise has favoured" in note for note in answer.notes)
    assert held >= 10
