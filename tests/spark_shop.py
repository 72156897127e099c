"""Tables, questions and comparisons for the tests of Spark."""

import math
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.randomness import SeededSource

PEOPLE = dn.Table(
    "people",
    age=dn.Ordinal(0, 24),
    kind=dn.Categorical("a", "b", "c"),
    city=dn.Public(),
    score=dn.Public(),
    points=dn.Public(),
    born=dn.Public(),
    seen=dn.Public(),
    member=dn.Public(),
)
JOBS = dn.Table("jobs", hours=dn.Ordinal(0, 9), region=dn.Public(), pay=dn.Public())
ORDERS = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 9), wrap=dn.Categorical("box", "bag"))
USERS = 3_000
DIMENSIONS = {
    "cities": pa.table({
        "name": ["Rome", "Oslo", "Paris", None],
        "country": pa.array(["it", None, "fr", "none"]).dictionary_encode(),
        "population": [28, 7, None, 1],
    }),
    "kinds": pa.table({"kind": ["a", "b", "z"], "label": ["x", None, "x"], "factor": [1.5, None, 9.0]}),
}  # fmt: skip


def some(random, values, size, missing=0.2):
    """Random values, some of them missing."""
    return [None if random.random() < missing else values[random.integers(len(values))] for _ in range(size)]


def frames(users=USERS):
    random = np.random.default_rng(4)
    uid = random.permutation(10 * users)[:users] - 2_000
    buyers = np.repeat(uid, random.integers(0, 5, users))
    return {
        "people": pa.table({
            "uid": uid,
            "age": random.binomial(24, 0.4, users),
            "kind": some(random, ["a", "b", "c"], users, 0),
            "city": some(random, ["Rome", "Oslo", "Bern", "O'Brien \"x\" \\n"], users),
            "score": some(random, [1.5, -2.25, 0.0, 4.0], users),
            "points": pa.array(some(random, [-3, 0, 1, 7], users), pa.int32()),
            "born": some(random, [date(1990, 1, day) for day in range(1, 5)], users),
            "seen": some(random, [datetime(2020, 1, 1, hour) for hour in range(1, 5)], users),
            "member": some(random, [True, False], users),
        }),
        "jobs": pa.table({
            "uid": uid[200:],
            "hours": random.integers(0, 10, users - 200),
            "region": some(random, ["north", "south"], users - 200),
            "pay": pa.array(some(random, [10, 20, 35], users - 200), pa.uint32()),
        }),
        "orders": pa.table({
            "uid": buyers,
            "amount": random.integers(0, 10, buyers.size),
            "wrap": some(random, ["box", "bag"], buyers.size, 0),
        }),
    }  # fmt: skip


def collect(folder, design="hio", **settings):
    """Reports in a folder; the same ones every time."""
    collection = dn.Collection(PEOPLE, JOBS, ORDERS, epsilon=8.0, design=design, **settings)
    collection.perturb(**frames(), out=folder, source=SeededSource(1), simulation=True)
    return collection


J = "people JOIN jobs USING (uid)"
ALL = "people p JOIN jobs j ON p.uid = j.uid JOIN orders o ON o.uid = p.uid"
C = "people JOIN cities ON city = cities.name"
GOLDEN = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM orders",
    "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a, VAR_POP(age) AS v FROM people WHERE age BETWEEN 3 AND 17",
    "SELECT AVG(age) AS a, STDDEV(score) AS d, SUM(points * score) AS s FROM people WHERE kind = 'a' OR score > 0",
    "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind ORDER BY n DESC LIMIT 2",
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY city",
    "SELECT city, member, kind, COUNT(*) AS n FROM people WHERE NOT (city = 'Rome' AND age > 5) GROUP BY ALL",
    "SELECT born, seen, COUNT(*) AS n FROM people GROUP BY born, seen",
    "SELECT COUNT(*) AS n FROM people WHERE city NOT IN ('Rome', NULL) OR city = 'O''Brien \"x\" \\n' AND age > 1",
    "SELECT COUNT(*) AS n FROM people WHERE NOT (city IN ('Rome', NULL) OR member) OR points * 2 - score > 1",
    "SELECT COUNT(*) AS n FROM people WHERE born = DATE '1990-01-02' OR seen > '2020-01-01 02:00:00' AND member",
    "SELECT COUNT(*) AS n FROM people WHERE member IS NOT TRUE AND (score = 0.0 OR points IS NULL OR -points >= 3)",
    "SELECT COUNT(*) AS n FROM people WHERE lower(city) LIKE 'r%' OR starts_with(city, 'O') AND NOT city ILIKE 'OS_O'",
    "SELECT COUNT_IF(age > 3) AS n, SUM(CASE WHEN city = 'Rome' THEN age ELSE points END) AS s FROM people "
    "WHERE YEAR(born) = 1990",
    "SELECT UPPER(k) AS u, ROUND(AVG(a), 1) AS r FROM (SELECT kind AS k, age AS a FROM people "
    "WHERE COALESCE(score, 1) > 0) AS t WHERE a % 3 = 1 GROUP BY u",
    f"SELECT COUNT(*) AS n, SUM(hours * age) AS s, AVG(hours - age) AS a FROM {J} WHERE age > 2 OR hours < 5",
    f"SELECT SUM(pay * age) AS s, SUM(score * pay) AS t FROM {J} WHERE NOT (city = 'Rome' OR region = 'north')",
    f"SELECT city, region, COUNT(*) AS n, SUM(pay) AS s FROM {J} WHERE pay > 10 GROUP BY city, region",
    "SELECT COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS a FROM orders WHERE wrap = 'box'",
    f"SELECT region, COUNT(*) AS n, SUM(amount * hours) AS s FROM {ALL} WHERE p.age > 1 GROUP BY region",
    f"SELECT country, COUNT(*) AS n, SUM(population * age) AS s FROM {C} GROUP BY country",
    f"SELECT COUNT(*) AS n FROM {C} WHERE NOT (country = 'it' OR age > 5) OR population > 10",
    "SELECT label, COUNT(*) AS n, SUM(factor * age) AS s FROM people JOIN kinds USING (kind) GROUP BY label",
    "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind HAVING kind = 'a' OR COUNT(*) > 100",
    "SELECT MAX(n) AS most FROM (SELECT kind, COUNT(*) AS n FROM people GROUP BY kind) AS t",
    "SELECT SUM(n) AS n FROM (SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) AS n FROM orders) AS t",
    "SELECT kind, city, COUNT(*) AS n FROM people JOIN (SELECT kind AS chosen, COUNT(*) AS most FROM people "
    "GROUP BY chosen ORDER BY most DESC LIMIT 2) AS series ON kind = chosen GROUP BY kind, city",
]


def agree(left, right, *, relative=1e-9):
    """Two answers are the same but for rounding: rows, groups, values, standard errors and intervals."""
    assert left.groups == right.groups
    assert left.notes == right.notes
    assert list(left.answers) == list(right.answers)
    for name, estimates in left.answers.items():
        for mine, theirs in zip(estimates, right.answers[name], strict=True):
            scale = max(abs(theirs.value), theirs.stderr) if not math.isnan(theirs.value) else 1.0
            shown = (mine.value, mine.stderr, mine.model, *mine.interval)
            for a, b in zip(shown, (theirs.value, theirs.stderr, theirs.model, *theirs.interval), strict=True):
                assert a == pytest.approx(b, rel=relative, abs=relative * scale, nan_ok=True)
