"""All queries whose plans are written down: Spark and DuckDB answer them alike."""

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

pytest.register_assert_rewrite("spark_shop")

import deniable as dn  # noqa: E402
from deniable.randomness import SeededSource  # noqa: E402
from golden.regenerate import CASES, COLLECTIONS, DIMENSIONS  # noqa: E402
from spark_shop import agree, some  # noqa: E402

USERS = 800


def frames():
    random = np.random.default_rng(5)
    uid = np.arange(USERS)
    buyers, guests = (np.repeat(uid, random.integers(0, most, USERS)) for most in (8, 5))
    days = random.integers(0, 31, guests.size).tolist()
    return {
        "users": pa.table({
            "uid": uid,
            "age": random.integers(1, 96, USERS),
            "marital": some(random, ["married", "single", "widowed"], USERS, 0),
            "city": some(random, ["Rome", "Oslo", "Bern"], USERS),
            "score": some(random, [1.5, -2.25, 0.0, 4.0], USERS),
        }),
        "orders": pa.table({
            "uid": buyers,
            "amount": random.integers(0, 501, buyers.size),
            "category": some(random, ["sports", "books", "food"], buyers.size, 0),
        }),
        "visits": pa.table({
            "uid": guests,
            "minutes": random.integers(0, 61, guests.size),
            "day": [date(2020, 1, 1) + timedelta(days=day) for day in days],
        }),
        "jobs": pa.table({
            "uid": uid[50:],
            "hours": random.integers(0, 81, USERS - 50),
            "pay": random.integers(0, 200, USERS - 50) / 2,
            "remote": some(random, [True, False], USERS - 50, 0),
            "region": some(random, ["north", "south"], USERS - 50),
        }),
    }  # fmt: skip


# Designs differ in their plans, which both engines are given alike. Those of hio are asked in `test_spark_answers`.
ASKED = [name if name == "grid" else pytest.param(name, marks=pytest.mark.slow) for name in COLLECTIONS]


@pytest.fixture(scope="module", params=ASKED)
def pair(request, spark):
    """One collection at a time, in both engines."""
    collection = COLLECTIONS[request.param]
    rows = {name: frame for name, frame in frames().items() if name in {table.name for table in collection.tables}}
    reports = collection.perturb(
        **rows, everyone=pa.table({"uid": np.arange(USERS)}), source=SeededSource(1), simulation=True
    )
    return request.param, *(dn.connect(reports, dimensions=DIMENSIONS, engine=engine) for engine in (None, spark))


@pytest.mark.slow
def test_golden_queries_agree(pair):
    name, duckdb, on_spark = pair
    mine = [(weights, sums, text) for collection, weights, sums, text in CASES if collection == name]
    assert mine
    for weights, sums, text in mine:
        agree(*(engine.sql(text, weights=weights, sums=sums) for engine in (on_spark, duckdb)))
