"""Answers: exact without noise, right on average and honest about their error with it."""

import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.errors import InvalidParameter, QueryRefused
from deniable.queries.answers.estimation import Moments, answer
from deniable.queries.parsing.sql import parse
from deniable.randomness import SeededSource
from many_collections import simulated

USERS = dn.Table("users", age=dn.Ordinal(0, 49), kind=dn.Categorical("a", "b", "c"))
JOBS = dn.Table("jobs", hours=dn.Ordinal(0, 24))
ORDERS = dn.Table("orders", many=3, tau=3, amount=dn.Ordinal(0, 24))
QUESTIONS = [
    "SELECT COUNT(*) AS x FROM users WHERE age BETWEEN 7 AND 31",
    "SELECT SUM(age) AS x FROM users WHERE kind = 'a'",
    "SELECT AVG(age) AS x FROM users WHERE kind <> 'c'",
    "SELECT COUNT(*) AS x FROM users JOIN jobs USING (uid) WHERE age < 25 AND hours >= 10",
    "SELECT COUNT(*) AS x FROM orders JOIN users USING (uid) WHERE amount < 10 AND kind = 'b'",
    "SELECT AVG(amount) AS x FROM orders",
]


def frames(users):
    random = np.random.default_rng(5)
    uid = np.repeat(np.arange(users), random.integers(0, 4, users))
    kinds = np.array(["a", "b", "c"])[random.integers(0, 3, users)]
    return {
        "users": pa.table({"uid": np.arange(users), "age": random.binomial(49, 0.4, users), "kind": kinds}),
        "jobs": pa.table({"uid": np.arange(users), "hours": random.integers(0, 25, users)}),
        "orders": pa.table({"uid": uid, "amount": random.binomial(24, 0.3, uid.size)}),
    }


def plain(rows, text):
    """The answer of plain SQL on the raw rows."""
    with duckdb.connect() as connection:
        for name, frame in rows.items():
            connection.register(name, frame)
        return connection.sql(text).fetchall()


def test_without_noise_answers_equal_plain_sql_on_the_raw_tables():
    # The design with one view, so that every row is seen at its finest; one row per user, so that nothing is sampled.
    rows = {name: frame for name, frame in frames(2_000).items() if name != "orders"}
    exact = dn.Collection(USERS, JOBS, epsilon=math.inf, design="mg")
    database = dn.connect(exact.perturb(**rows, simulation=True))
    for text in QUESTIONS[:4]:
        assert database.sql(text).scalar().value == pytest.approx(plain(rows, text)[0][0], rel=1e-12)
    text = "SELECT kind, COUNT(*) AS n, SUM(hours) AS s, AVG(age) AS a FROM users JOIN jobs USING (uid) GROUP BY kind"
    answered = database.sql(text).to_arrow().to_pylist()
    for row, expected in zip(answered, plain(rows, text + " ORDER BY kind"), strict=True):
        assert (row["kind"], row["n"], row["s"]) == pytest.approx(expected[:3])
        assert row["a"] == pytest.approx(expected[3])


def test_results_print_and_convert():
    database = dn.connect(dn.Collection(USERS, epsilon=8.0).perturb(users=frames(3_000)["users"]))
    result = database.sql("SELECT kind, COUNT(*) AS n FROM users GROUP BY kind", confidence=0.9)
    assert result.groups == {"kind": ["a", "b", "c"]}
    assert result.to_arrow().column_names == ["kind", "n", "n_stderr", "n_low", "n_high"]
    assert result.to_pandas().shape == result.to_polars().shape == (3, 5)
    assert str(result).splitlines()[0].split() == ["kind", "n", "90", "%", "interval"]
    assert result.to_text(stderr=True).splitlines()[0].split() == ["kind", "n", "(±", "standard", "error)"]
    with pytest.raises(QueryRefused, match="several numbers"):
        result.scalar()
    with pytest.raises(QueryRefused, match="the answer has no row"):
        database.sql("SELECT COUNT(*) FROM users LIMIT 0").scalar()
    single = database.sql("SELECT COUNT(*) FROM users WHERE age < 20").scalar()
    assert "95%" in str(single)
    low, high = single.interval
    assert low < single.value < high


def test_an_average_over_nobody_says_so():
    database = dn.connect(
        dn.Collection(USERS, epsilon=1.0).perturb(users=frames(500)["users"], source=SeededSource(1), simulation=True)
    )
    result = database.sql("SELECT AVG(age) FROM users WHERE age = 49 AND kind = 'a'")
    assert math.isnan(result.scalar().value)
    assert "unclear" in str(result)


def test_public_attributes_filter_and_group():
    table = dn.Table("users", age=dn.Ordinal(0, 49), city=dn.Public())
    random = np.random.default_rng(3)
    cities = np.array(["Oslo", "Rome", "Bern"])[random.integers(0, 3, 900)]
    rows = {"users": pa.table({"uid": np.arange(900), "age": random.integers(0, 50, 900), "city": cities})}
    database = dn.connect(dn.Collection(table, epsilon=math.inf, design="mg").perturb(**rows, simulation=True))
    for text in (
        "SELECT COUNT(*) AS x FROM users WHERE city <> 'Rome' AND age < 20",
        "SELECT AVG(age) AS x FROM users WHERE city IN ('Rome', 'Bern') AND NOT city = 'Bern'",
        "SELECT SUM(age) AS x FROM users WHERE city = 'Rome' OR city > 'Q'",
        "SELECT COUNT(*) AS x FROM users WHERE city IS NULL",
    ):
        assert database.sql(text).scalar().value == pytest.approx(plain(rows, text)[0][0])
    text = "SELECT city, COUNT(*) AS n FROM users WHERE age > 9 GROUP BY city"
    answered = [(row["city"], row["n"]) for row in database.sql(text).to_arrow().to_pylist()]
    assert answered == plain(rows, text + " ORDER BY city")
    with pytest.raises(QueryRefused, match="used as the wrong type"):
        database.sql("SELECT COUNT(*) FROM users WHERE city = 3")


def test_users_are_joined_wherever_both_have_reports():
    collection = dn.Collection(USERS, JOBS, epsilon=math.inf, design="mg")
    rows = frames(100)
    half = rows["jobs"].slice(0, 50)
    database = dn.connect(collection.perturb(users=rows["users"], jobs=half, simulation=True))
    text = "SELECT COUNT(*) AS x FROM users JOIN jobs USING (uid)"
    assert database.sql(text).scalar().value == 50
    apart = half.set_column(0, "uid", pa.array(np.arange(1000, 1050)))
    database = dn.connect(collection.perturb(users=rows["users"], jobs=apart, simulation=True))
    assert database.sql(text).scalar().value == 0


def test_impossible_requests():
    database = dn.connect(dn.Collection(USERS, JOBS, epsilon=1.0).perturb(users=frames(50)["users"]))
    with pytest.raises(QueryRefused, match="no reports of table 'jobs'"):
        database.sql("SELECT COUNT(*) FROM jobs")
    with pytest.raises(InvalidParameter, match="confidence"):
        database.sql("SELECT COUNT(*) FROM users", confidence=1.0)
    with pytest.raises(InvalidParameter, match="weights are unknown"):
        database.sql("SELECT COUNT(*) FROM users", weights="best")


def test_clipping_is_marked_and_does_what_it_says():
    database = dn.connect(
        dn.Collection(USERS, epsilon=0.5).perturb(users=frames(400)["users"], source=SeededSource(1), simulation=True)
    )
    text = "SELECT age, COUNT(*) AS n FROM users GROUP BY age"
    plain, clipped = database.sql(text), database.sql(text, clip=True)
    cut = database.sql(text, nonnegative=True)
    values = np.array([estimate.value for estimate in plain.answers["n"]])
    assert values.min() < 0
    assert values.max() > 200
    np.testing.assert_allclose([estimate.value for estimate in clipped.answers["n"]], np.clip(values, 0, 400))
    few = dn.connect(
        dn.Collection(USERS, epsilon=0.1).perturb(users=frames(40)["users"], source=SeededSource(1), simulation=True)
    )
    assert max(estimate.value for estimate in few.sql(text).answers["n"]) > 40
    assert max(estimate.value for estimate in few.sql(text, clip=True).answers["n"]) == 40
    np.testing.assert_allclose([estimate.value for estimate in cut.answers["n"]], np.maximum(values, 0))
    assert plain.notes == ()
    assert "biased" in clipped.notes[0]
    assert "biased" in cut.notes[0]
    average = database.sql("SELECT SUM(age - 20) AS s FROM users", clip=True).scalar().value
    assert -20 * 400 <= average <= 29 * 400


def test_simultaneous_intervals_are_wider_and_say_so():
    database = dn.connect(dn.Collection(USERS, epsilon=2.0).perturb(users=frames(400)["users"]))
    text = "SELECT kind, COUNT(*) AS n FROM users GROUP BY kind"
    alone, together = database.sql(text), database.sql(text, simultaneous=True)
    for single, joint in zip(alone.answers["n"], together.answers["n"], strict=True):
        assert single.stderr == joint.stderr
        assert (joint.interval[1] - joint.value) / (single.interval[1] - single.value) == pytest.approx(
            2.394 / 1.960, rel=1e-3
        )
    assert together.notes == ("all 3 intervals hold at once with 95%",)
    # Two columns are twice as many intervals.
    two = database.sql(text.replace("COUNT", "SUM(age) AS s, COUNT"), simultaneous=True, confidence=0.999)
    assert two.notes == ("all 6 intervals hold at once with 99.9%",)
    estimate = two.answers["n"][0]
    assert (estimate.interval[1] - estimate.value) / estimate.stderr == pytest.approx(3.764, rel=1e-3)
    assert "(99.9%: " in str(estimate)


def test_rows_that_noise_has_chosen_are_marked_and_simultaneous_intervals_cover_them():
    rows = {"uid": range(2_500), "age": [*range(25)] * 100}  # all groups alike
    table, text = dn.Table("users", age=dn.Ordinal(0, 24)), "SELECT age, COUNT(*) AS n FROM users GROUP BY age"
    chosen = [f"{text} ORDER BY n DESC LIMIT 1", f"{text} HAVING COUNT(*) > 300"]
    held = {False: [], True: []}
    for database in simulated(dn.Collection(table, epsilon=2.0), {"users": rows}, users=2_500, runs=150):
        for together, inside in held.items():
            for estimate in database.sql(chosen[0], simultaneous=together).answers["n"]:
                inside.append(estimate.interval[0] < 100 < estimate.interval[1])
    assert np.mean(held[False]) < 0.75 < 0.93 < np.mean(held[True])
    for query in chosen:
        assert database.sql(query).notes[0].startswith("chosen by noisy estimates")
        assert not any("chosen" in note for note in database.sql(query, simultaneous=True).notes)
    for query in (text, f"{text} ORDER BY n DESC", f"{text} ORDER BY age LIMIT 2", f"{text} HAVING COUNT(*) > -1e9"):
        assert database.sql(query).notes == ()


def test_nobody_divides_by_a_number_of_people_below_zero():
    question = parse(
        "SELECT AVG(age) AS x, SUM(age) / SUM(age - 20) AS y FROM users", dn.Collection(USERS, epsilon=1.0)
    )
    moments = len(question.moments)
    (count,) = question.counts
    for sign in (-1.0, 1.0):
        sums = np.full((1, moments), sign * 100.0)
        result = answer(
            question,
            Moments(
                ((),),
                np.array([500.0]),
                sums,
                np.eye(moments)[None] * 40.0,
                np.zeros((1, moments, moments)),
                np.zeros(1, dtype=np.int64),
                np.zeros((1, moments), dtype=bool),
            ),
            single_rows=False,
        )
        assert math.isnan(result.answers["x"][0].value) == (sign < 0)  # a count of −100 ± 4 is no count
        assert not math.isnan(result.answers["y"][0].value)  # other sums may be negative
    assert question.moments[count].indicator


def test_a_result_is_a_table_in_a_notebook():
    database = dn.connect(dn.Collection(USERS, epsilon=2.0).perturb(users=frames(400)["users"]))
    html = database.sql('SELECT kind AS "a<b", COUNT(*) AS n FROM users GROUP BY kind')._repr_html_()
    assert html.count("<tr>") == 4
    assert "a&lt;b" in html
