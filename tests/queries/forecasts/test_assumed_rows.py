"""Forecasts that are told how many rows people have, next to what answers say, and ranges where nobody knows."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidParameter
from deniable.queries.forecasts.assumed_rows import Assumption, assumed_rows
from deniable.queries.forecasts.compare import compare
from deniable.queries.forecasts.forecast import epsilon_needed, users_needed

PEOPLE = 30_000
USERS = dn.Table("users", age=dn.Ordinal(0, 9))
JOBS = dn.Table("jobs", pay=dn.Ordinal(0, 9))
ORDERS = dn.Table("orders", many=6, amount=dn.Ordinal(0, 9))
COUNT = "SELECT COUNT(*) FROM orders WHERE amount < 3"
AVERAGE = "SELECT AVG(amount) FROM orders WHERE amount < 3"
JOINED = "SELECT COUNT(*) FROM users JOIN jobs USING (uid) WHERE age < 3 AND pay < 5"


def reported(design):
    """Reports of people of whom few have orders and half have a job; and their rows and matching rows."""
    random = np.random.default_rng(1)
    collection = dn.Collection(USERS, JOBS, ORDERS, epsilon=12.0, design=design)
    uid = np.arange(PEOPLE)
    buyers = np.repeat(uid, np.where(random.random(PEOPLE) < 0.5, random.integers(1, 4, PEOPLE), 0))
    amount = np.where(random.random(buyers.size) < 0.6, 9, random.integers(0, 10, buyers.size))
    employed = uid[random.random(PEOPLE) < 0.5]
    frames = {
        "users": {"uid": uid, "age": random.integers(0, 10, PEOPLE)},
        "jobs": {"uid": employed, "pay": random.integers(0, 10, employed.size)},
        "orders": {"uid": buyers, "amount": amount},
    }
    reports = collection.perturb(**frames, source=dn.SeededSource(2), simulation=True)
    rows = {"orders": buyers.size / PEOPLE, "jobs": employed.size / PEOPLE}
    return collection, dn.connect(reports), rows, float((amount < 3).mean())


@pytest.mark.parametrize("design", ["hio", "grid", "ahio"])
def test_told_of_rows_a_forecast_says_what_answers_say(design):
    collection, db, rows, matching = reported(design)
    # The error that an average states depends on its own noisy number of rows.
    for text, share, tolerance in ((COUNT, matching, 0.06), (AVERAGE, matching, 0.35), (JOINED, 0.15, 0.06)):
        stated = db.sql(text).scalar().stderr
        told = collection.forecast(text, PEOPLE, rows=rows, matching=share).scalar()
        assert told.stderr == pytest.approx(stated, rel=tolerance), text
        explained = db.explain(text, rows=rows, matching=share).forecast.scalar()
        assert explained.stderr == pytest.approx(stated, rel=tolerance), text
    unknowing = collection.forecast(AVERAGE, PEOPLE).scalar()
    assert db.sql(AVERAGE).scalar().stderr > 2 * unknowing.stderr


def test_what_is_not_known_makes_a_range_with_its_reasons():
    collection = dn.Collection(USERS, ORDERS, epsilon=8.0)
    unknown = collection.forecast(AVERAGE, 10**6)
    few = collection.forecast(AVERAGE, 10**6, rows=0.75, matching=0.1)
    many = collection.forecast(AVERAGE, 10**6, rows={"orders": 6}, matching=0.9)
    assert unknown.scalar().low == pytest.approx(many.scalar().error, rel=1e-9)
    assert unknown.scalar().high == pytest.approx(few.scalar().error, rel=1e-9)
    assert math.isnan(few.scalar().low)
    assert not few.reasons
    text = str(unknown)
    assert "0.75 to 6 rows per user in orders (nobody said: rows)" in text.replace("\n", " ")
    assert "a third to three times as many matching rows" in text.replace("\n", " ")
    assert "range" in unknown._repr_html_()
    given = collection.forecast(AVERAGE, 10**6, rows=(1, 4), matching=(0.2, 0.4))
    assert "1 to 4 rows per user in orders; 0.2 to 0.4 of the rows match" in str(given).replace("\n", " ")
    assert given.scalar().low < given.scalar().error < given.scalar().high
    # Conditions do not matter to a sum, nor rows to a table that allows one.
    assert not collection.forecast("SELECT COUNT(*) FROM users WHERE age < 3", 10**6).reasons
    assert not collection.forecast("SELECT AVG(age) FROM users", 10**6).reasons
    (reason,) = collection.forecast("SELECT AVG(age) FROM users WHERE age < 3", 10**6).reasons
    assert "matching" in reason
    unclear = collection.forecast(AVERAGE, 3_000).scalar()
    assert math.isinf(unclear.high)
    assert "to unclear" in str(collection.forecast(AVERAGE, 3_000))


def test_every_way_to_forecast_takes_rows():
    collection = dn.Collection(USERS, ORDERS, epsilon=8.0)
    fitted = dn.fit(collection, users=10**5, workload=[AVERAGE, COUNT])
    (low, high), _ = fitted.spans
    assert low < fitted.errors["grid"][0] < high
    assert "grid, range" in str(fitted)
    told = dn.plan(collection, [AVERAGE], users=10**5, rows=0.8).fitted
    assert told.errors["grid"][0] > 1.5 * fitted.errors["grid"][0]
    comparison = compare(collection, [AVERAGE], 10**5, rows=0.8)
    (grid,) = [choice for choice in comparison.choices if choice.design == "grid"]
    assert grid.errors == told.errors["grid"]
    assert comparison.spans[0][0] < grid.errors[0] < comparison.spans[0][1]
    shares = [0.1, (0.3, 0.4)]
    shared = dn.plan(collection, [AVERAGE, COUNT], users=10**5, rows=0.8, matching=shares).fitted
    single = [
        shared.collection.forecast(text, users=10**5, rows=0.8, matching=share)
        for text, share in zip((AVERAGE, COUNT), shares, strict=True)
    ]
    assert shared.errors["grid"][0] == pytest.approx(single[0].scalar().error)
    assert shared.spans[0] == pytest.approx((math.nan, math.nan), nan_ok=True)  # nothing is left open
    assert shared.errors["grid"][1] == pytest.approx(single[1].scalar().error / 10**5)
    comparison = compare(collection, [AVERAGE, COUNT], 10**5, rows=0.8, matching=shares)
    (grid,) = [choice for choice in comparison.choices if choice.design == "grid"]
    assert grid.errors == shared.errors["grid"]
    with pytest.raises(InvalidParameter, match="3 entries for 2 questions"):
        dn.fit(collection, users=10**5, workload=[AVERAGE, COUNT], matching=[0.1, 0.2, 0.3])
    few, many = (users_needed(collection, AVERAGE, 0.1, rows=rows, matching=0.3) for rows in (0.8, 4.0))
    assert few > 2 * many
    few, many = (epsilon_needed(collection, AVERAGE, 0.1, 10**6, rows=rows) for rows in (0.8, 4.0))
    assert few > many


def test_impossible_rows_are_refused():
    collection = dn.Collection(USERS, ORDERS, epsilon=8.0)
    for rows in (0, -1, 7, math.nan, True, "2", (2, 1), (1, 2, 3), {"orders": (1, 9)}, {"users": 1.2}):
        with pytest.raises(InvalidParameter, match="must be above 0 and at most"):
            assumed_rows(collection, rows)
    with pytest.raises(InvalidParameter, match="which is no table"):
        assumed_rows(collection, {"jobs": 1})
    with pytest.raises(InvalidParameter, match="Name the table"):
        assumed_rows(dn.Collection(USERS, epsilon=1.0), 0.5)
    for matching in (0, 1.1, "half"):
        with pytest.raises(InvalidParameter, match="matching"):
            assumed_rows(collection, None, matching)
    assert Assumption().times_matching(1.0) == 1.0
    assert Assumption(matching=0.6).times_matching(0.3) == pytest.approx(2)
    assert Assumption(times=9.0).times_matching(0.3) == pytest.approx(1 / 0.3)
