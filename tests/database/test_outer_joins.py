"""LEFT, RIGHT and FULL JOIN, NOT IN, NOT EXISTS: the answers of plain DuckDB without noise, and identities with it."""
# ruff: noqa: E501 - a query reads best on one line

import numpy as np
import pyarrow as pa
import pytest
from tests.plain_sql import Pair

import deniable as dn

STATEMENTS = [
    "SELECT COUNT(*) AS n FROM people LEFT JOIN jobs USING (uid)",
    "SELECT COUNT(*) AS n, COUNT(j.uid) AS m, SUM(j.hours) AS h, AVG(j.hours) AS a, AVG(p.age) AS g FROM people p LEFT JOIN jobs j ON p.uid = j.uid",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid WHERE j.uid IS NULL",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid WHERE j.hours IS NULL AND p.age > 5",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid WHERE j.hours > 10 OR j.hours IS NULL",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid WHERE NOT (j.hours > 10)",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid AND j.hours > 10",
    "SELECT COUNT(*) AS n, SUM(j.hours) AS h, COUNT(j.sector) AS s FROM people p LEFT JOIN jobs j ON p.uid = j.uid AND j.hours > 10 WHERE p.kind = 'a'",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid AND j.hours > 10 WHERE j.uid IS NULL",
    "SELECT p.kind, COUNT(*) AS n, COUNT(j.uid) AS m FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY p.kind",
    "SELECT j.sector, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY j.sector",
    "SELECT j.sector, p.kind, COUNT(*) AS n, AVG(p.age) AS a FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY ALL",
    "SELECT COALESCE(j.sector, 'none') AS s, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY s",
    "SELECT j.region, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY j.region",
    "SELECT p.city, COUNT(*) AS n, SUM(COALESCE(j.hours, 0)) AS h, SUM(COALESCE(j.pay, 0)) AS pay FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY p.city",
    "SELECT SUM(CASE WHEN j.uid IS NULL THEN 1 ELSE 0 END) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid",
    "SELECT COUNT(*) FILTER (WHERE j.region IS NULL) AS n, COUNT(j.pay) AS p FROM people p LEFT JOIN jobs j ON p.uid = j.uid",
    "SELECT COUNT(*) AS n FROM visits v RIGHT JOIN people p ON p.uid = v.uid WHERE v.grade IS NULL",
    "SELECT COUNT(*) AS n, COUNT(p.uid) AS a, COUNT(j.uid) AS b FROM visits p FULL JOIN jobs j ON p.uid = j.uid",
    "SELECT p.grade, j.sector, COUNT(*) AS n FROM visits p FULL OUTER JOIN jobs j ON p.uid = j.uid GROUP BY ALL",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN gifts g USING (uid)",
    "SELECT COUNT(g.uid) AS n, SUM(g.amount) AS s FROM people p LEFT JOIN gifts g USING (uid)",
    "SELECT p.kind, AVG(g.amount) AS s, COUNT(g.amount) AS n FROM people p LEFT JOIN gifts g ON p.uid = g.uid AND g.amount > 3 GROUP BY p.kind",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN gifts g USING (uid) WHERE g.amount > 3",
    "SELECT g.wrap, COUNT(*) AS n FROM people p LEFT JOIN gifts g USING (uid) WHERE g.wrap IS NOT NULL GROUP BY g.wrap",
    "SELECT label, COUNT(*) AS n FROM people LEFT JOIN kinds ON people.kind = kinds.kind GROUP BY label",
    "SELECT COUNT(*) AS n, SUM(factor) AS f FROM people LEFT JOIN kinds ON people.kind = kinds.kind WHERE kinds.kind IS NULL",
    "SELECT country, COUNT(*) AS n FROM people LEFT JOIN cities ON people.city = cities.name GROUP BY country",
    "SELECT COUNT(*) AS n FROM people LEFT JOIN cities ON people.city = cities.name WHERE cities.name IS NULL",
    "SELECT COUNT(*) AS n, SUM(j.hours) AS h FROM people p LEFT JOIN jobs j USING (uid) LEFT JOIN visits v USING (uid) WHERE v.uid IS NULL OR j.uid IS NULL",
    "SELECT climate, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON j.uid = p.uid LEFT JOIN regions r ON r.region = j.region GROUP BY climate",
    "SELECT climate, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON j.uid = p.uid JOIN regions r ON r.region = j.region GROUP BY climate",
    "SELECT COUNT(*) AS n FROM kinds k JOIN people p ON p.kind = k.kind",
    "SELECT COUNT(*) AS n FROM people p JOIN jobs j ON p.uid = j.uid AND j.hours > 3 AND p.age < 10",
    "SELECT MEDIAN(j.hours) AS m FROM people p LEFT JOIN jobs j USING (uid)",
    "SELECT CASE WHEN j.hours > 10 THEN 'much' WHEN j.uid IS NULL THEN 'none' ELSE 'little' END AS x, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY x",
    "SELECT CASE WHEN j.hours > 10 THEN 'much' ELSE 'little' END AS x, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY x",
    "SELECT COUNT(DISTINCT p.uid) AS n, COUNT(DISTINCT j.uid) AS m FROM people p LEFT JOIN jobs j ON p.uid = j.uid",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid WHERE j.hours IN (3, 4) AND j.region IS NULL",
    "SELECT STDDEV(j.hours) AS s, CORR(p.age, j.hours) AS c FROM people p LEFT JOIN jobs j ON p.uid = j.uid",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid AND p.age > 10 AND j.region = 'north' WHERE j.region IS NULL",
    "SELECT SUM(p.age * j.hours) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid WHERE p.age * 2 > 10",
    "SELECT country, COUNT(*) AS n FROM people JOIN cities ON people.city = cities.name GROUP BY country",
    "SELECT COUNT(v.grade) AS n, COUNT(j.uid), COUNT(*) AS m FROM people p LEFT JOIN jobs j ON j.uid = p.uid LEFT JOIN visits v ON v.uid = j.uid",
    "SELECT CASE WHEN j.uid IS NULL THEN 'none' ELSE 'job' END AS x, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY x",
    "SELECT j.uid IS NOT NULL AS x, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY x",
    "SELECT COUNT(*) AS n FROM people WHERE uid NOT IN (SELECT uid FROM jobs)",
    "SELECT COUNT(*) AS n FROM people WHERE uid NOT IN (SELECT uid FROM jobs WHERE hours > 10 AND region = 'north') AND age > 3",
    "SELECT COUNT(*) AS n FROM people p WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.uid = p.uid AND j.hours BETWEEN 3 AND 9)",
    "SELECT kind, COUNT(*) AS n FROM people p WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.uid = p.uid) GROUP BY kind",
    "SELECT COUNT(*) AS n FROM people WHERE age > 10 OR uid IN (SELECT uid FROM jobs WHERE hours < 5)",
    "SELECT COUNT(*) AS n FROM people WHERE uid NOT IN (SELECT uid FROM people WHERE age > 10)",
    "SELECT COUNT(*) AS n FROM people WHERE uid NOT IN (SELECT uid FROM people WHERE city = 'Rome')",
    "SELECT COUNT(*) AS n FROM people p JOIN jobs j USING (uid) WHERE p.uid NOT IN (SELECT uid FROM jobs WHERE region = 'north')",
    "SELECT COUNT(*) AS n FROM people WHERE uid NOT IN (SELECT uid FROM gifts)",
    "SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM jobs j WHERE j.uid = p.uid AND p.age > 5 AND sector = 'it' AND city = 'Rome')",
    "SELECT SUM(CASE WHEN uid IN (SELECT uid FROM jobs WHERE sector = 'it') THEN 1 ELSE 0 END) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE uid IN (SELECT uid FROM jobs) AND uid NOT IN (SELECT uid FROM visits WHERE grade = 10)",
    "SELECT COUNT(*) AS n, SUM(j.h) AS h FROM people p LEFT JOIN (SELECT uid, hours * 2 AS h, region FROM jobs WHERE hours > 5) j ON p.uid = j.uid",
    "SELECT COUNT(*) AS n, SUM(j.flag) AS h, SUM(j.c) AS c FROM people p LEFT JOIN (SELECT uid, 1 AS flag, COALESCE(pay, 7) AS c FROM jobs) j ON p.uid = j.uid",
    "SELECT COUNT(*) AS n, COUNT(j.flag) AS m FROM people p LEFT JOIN (SELECT uid, 1 AS flag FROM jobs WHERE sector = 'it') j ON p.uid = j.uid WHERE j.flag IS NULL",
    "WITH j AS (SELECT uid, hours FROM jobs WHERE hours > 12) SELECT p.kind, COUNT(*) AS n, COUNT(j.uid) AS m FROM people p LEFT JOIN j ON p.uid = j.uid GROUP BY p.kind",
    "SELECT COUNT(*) AS n FROM (SELECT uid, age FROM people WHERE age > 5) p LEFT JOIN jobs j ON p.uid = j.uid",
    "SELECT t.kind, SUM(t.n) AS n FROM (SELECT p.kind, j.sector, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY p.kind, j.sector) t GROUP BY t.kind",
    "SELECT COUNT(*) AS n FROM (SELECT p.kind AS kind, j.hours AS hours FROM people p LEFT JOIN jobs j ON p.uid = j.uid) t WHERE t.hours IS NULL",
    "SELECT kind, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people p LEFT JOIN jobs j USING (uid) WHERE j.hours IS NULL GROUP BY kind",
    "SELECT COUNT(*) AS n FROM people p LEFT JOIN jobs j USING (uid) HAVING COUNT(*) > 3",
    "SELECT COUNT(*) AS n FROM jobs j RIGHT OUTER JOIN (SELECT uid FROM people WHERE age > 4) p ON p.uid = j.uid AND j.hours > 4 WHERE j.uid IS NULL",
    "SELECT j.uid IS NOT NULL AS x, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid WHERE p.uid IS NOT NULL GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n FROM people p FULL JOIN jobs j ON p.uid = j.uid WHERE p.uid IS NULL OR j.uid IS NULL",
    "SELECT COUNT(*) AS n, COUNT(g.uid) AS m, SUM(COALESCE(g.amount, 2)) AS s FROM people p LEFT JOIN gifts g USING (uid) WHERE p.age > 3",
    "SELECT g.wrap, COUNT(*) AS n FROM people p LEFT JOIN gifts g USING (uid) GROUP BY g.wrap",
    "SELECT MEDIAN(COALESCE(j.hours, 0)) AS m, QUANTILE_CONT(COALESCE(j.hours, 30), 0.9) AS q FROM people p LEFT JOIN jobs j USING (uid)",
    "SELECT p.kind, MEDIAN(COALESCE(j.hours, 7.5)) AS m FROM people p LEFT JOIN jobs j USING (uid) GROUP BY p.kind",
    "SELECT COALESCE(j.sector, 'box') AS s, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY s ORDER BY s",
    "SELECT FLOOR(j.hours / 10) AS d, COUNT(*) AS n FROM people p LEFT JOIN jobs j ON p.uid = j.uid GROUP BY d HAVING d IS NULL OR d > 0",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM jobs j WHERE j.uid = p.uid) THEN 'job' ELSE 'none' END AS k, COUNT(*) AS n FROM people p GROUP BY k",
    "SELECT COUNT(*) AS n FROM people SEMI JOIN jobs USING (uid) WHERE age > 3",
    "SELECT COUNT(*) AS n FROM people p ANTI JOIN jobs j ON p.uid = j.uid AND j.hours > 5",
    "SELECT COUNT(*) AS n FROM people WHERE uid IN (SELECT uid FROM gifts WHERE amount > 4) OR age < 0",
    "SELECT COUNT(DISTINCT p.uid) AS n, COUNT(DISTINCT CASE WHEN g.amount > 3 THEN p.uid END) AS m FROM people p LEFT JOIN gifts g USING (uid)",
]


@pytest.fixture(scope="module")
def pair():
    return Pair()


@pytest.mark.parametrize("text", STATEMENTS)
def test_answers_are_those_of_plain_sql(pair, text):
    pair.check(text)


def several():
    """People with no to three orders each; some have no job."""
    random, people = np.random.default_rng(4), 300
    buyer = np.repeat(np.arange(people), random.integers(0, 4, people))
    return {
        "users": {"uid": np.arange(people), "age": random.integers(0, 8, people)},
        "jobs": {"uid": np.arange(0, people, 2), "hours": random.integers(0, 8, people // 2)},
        "orders": {"uid": buyer, "amount": random.integers(0, 8, buyer.size)},
    }


@pytest.fixture(scope="module")
def noisy():
    tables = (
        dn.Table("users", age=dn.Ordinal(0, 7)),
        dn.Table("jobs", hours=dn.Ordinal(0, 7)),
        dn.Table("orders", many=4, tau=2, amount=dn.Ordinal(0, 7)),
    )
    shop = dn.Collection(*tables, epsilon=6.0)
    return dn.connect(shop.perturb(**several(), source=dn.SeededSource(1), simulation=True))


def test_rows_with_a_partner_and_those_without_one_are_all_rows(noisy):
    text = """SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE j.uid IS NULL) AS alone, COUNT(j.uid) AS met,
                     COUNT(*) FILTER (WHERE age < 4) AS young, COUNT(*) FILTER (WHERE age < 4 AND j.uid IS NULL)
                     + COUNT(j.uid) FILTER (WHERE age < 4) AS sum
              FROM users u LEFT JOIN jobs j USING (uid)"""
    (answer,) = noisy.sql(text)
    assert [answer[name].value for name in ("n", "alone", "met")] == [300, 150, 150]
    assert all(answer[name].error == 0 for name in ("n", "alone", "met"))  # who has a report is public
    assert answer["young"].value == pytest.approx(answer["sum"].value)
    assert answer["young"].error == pytest.approx(answer["sum"].error, rel=0.2)
    assert answer["young"].value == pytest.approx(noisy.sql("SELECT COUNT(*) FROM users WHERE age < 4").scalar().value)


def test_columns_of_the_right_side_are_those_of_a_join(noisy):
    items = "COUNT(o.uid) AS n, SUM(o.amount) AS s"
    (left,), (inner,) = (
        list(noisy.sql(f"SELECT {items} FROM users u {join} orders o ON u.uid = o.uid WHERE u.age > 2"))
        for join in ("LEFT JOIN", "JOIN")
    )
    for name in ("n", "s"):
        assert abs(left[name].value - inner[name].value) < inner[name].error  # which counts reports by view
        assert left[name].error == pytest.approx(inner[name].error, rel=0.2)


def test_people_are_counted_once_whatever_they_ordered(noisy):
    text = "SELECT COUNT(DISTINCT u.uid) AS n, SUM(o.amount) AS s FROM users u LEFT JOIN orders o USING (uid) WHERE age > 2"
    (answer,), alone = noisy.sql(text), noisy.sql("SELECT COUNT(*) FROM users WHERE age > 2").scalar()
    assert answer["n"].value == pytest.approx(alone.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT COUNT(*) FROM users LEFT JOIN orders USING (uid)", "reports hide how many rows somebody has"),
        ("SELECT SUM(age) FROM users LEFT JOIN orders USING (uid)", "reports hide how many rows somebody has"),
        ("SELECT COUNT(*) FROM users u LEFT JOIN orders o USING (uid) WHERE o.uid IS NULL", "reports hide how many"),
        ("SELECT COUNT(*) FROM users WHERE uid NOT IN (SELECT uid FROM orders)", "reports hide how many"),
        ("SELECT COUNT(*) FROM users u SEMI JOIN orders o USING (uid)", "reports hide how many"),
        (
            "SELECT amount, COUNT(amount) FROM users LEFT JOIN orders USING (uid) GROUP BY amount",
            "reports hide how many",
        ),
        ("SELECT COUNT(DISTINCT uid) FROM orders", "reports hide how many"),
        ("SELECT COUNT(DISTINCT u.uid) FROM users u LEFT JOIN orders o USING (uid) WHERE o.amount > 3", "reports hide"),
        ("SELECT hours, COUNT(*) FROM users u LEFT JOIN jobs j ON u.uid = j.uid AND hours > 2 GROUP BY hours", "in ON"),
        ("SELECT COUNT(*) FROM users u FULL JOIN jobs j ON u.uid = j.uid AND hours > 2", "on the user id alone"),
        ("SELECT COUNT(*) FROM users u CROSS JOIN jobs j", "this kind of join"),
    ],
)
def test_what_reports_hide_is_refused(noisy, text, reason):
    with pytest.raises(dn.errors.QueryRefused, match=reason):
        noisy.sql(text)


def test_conditions_of_a_subquery_are_of_the_tables_that_they_name():
    """A column that both tables have is that of the table in front of it."""
    frames = {
        "a": {"uid": [1, 2, 3], "x": [1, 1, 0]},
        "b": {"uid": [1, 2, 3], "x": [0, 1, 1]},
    }
    tables = (dn.Table("a", x=dn.Ordinal(0, 1)), dn.Table("b", x=dn.Ordinal(0, 1)))
    pair = Pair(tables=tables, raw={name: pa.table(frame) for name, frame in frames.items()}, dimensions={})
    pair.check("SELECT COUNT(*) AS n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.uid = a.uid AND a.x = 1 AND b.x = 1)")
    pair.check(
        "SELECT COUNT(*) AS n FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.uid = a.uid AND a.x = 1 AND x = 1)"
    )
