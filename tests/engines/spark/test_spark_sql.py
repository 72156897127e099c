"""SQL as analysts and BI tools write it, on Spark: the answers are those of DuckDB on the same reports."""
# ruff: noqa: E501 - a query reads best on one line

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

pytest.register_assert_rewrite("spark_shop")

import deniable as dn  # noqa: E402
from spark_shop import agree, some  # noqa: E402

USERS = 300
PERSONS = dn.Table(
    "persons",
    age=dn.Ordinal(0, 24, missing="own"),
    kind=dn.Categorical("a", "b", missing="own"),
    day=dn.Dates("2024-01-01", "2024-03-31"),
    pay=dn.Ordinal(0, 9),
    city=dn.Public(),
    born=dn.Public(),
)
WORK = dn.Table("work", hours=dn.Ordinal(0, 9))
# One of each kind. Questions about one table ask for as much as they can in one pass over its reports.
ASKED = [
    "SELECT kind, MEDIAN(age) AS m, QUANTILE_DISC(age, 0.25) AS d, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) AS p FROM persons GROUP BY kind",
    "SELECT kind, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY kind) AS d FROM persons WHERE kind IS NOT NULL GROUP BY kind",
    "SELECT city, SUM(COUNT(*)) OVER (ORDER BY city) AS running FROM persons WHERE city IS NOT NULL GROUP BY city",
    "SELECT CORR(age, pay) AS c, COVAR_SAMP(age, pay) AS v, REGR_SLOPE(age, pay) AS s, COUNT(*) FILTER (WHERE age IS NULL) AS n FROM persons",
    "SELECT CORR(age, hours) AS c, MEDIAN(hours) AS m FROM persons JOIN work USING (uid) WHERE city LIKE 'R%'",
    "SELECT k, n FROM (SELECT kind AS k, COUNT(*) AS n FROM (SELECT * FROM persons WHERE pay > 2) AS inside GROUP BY kind) AS outside ORDER BY n DESC LIMIT 2",
    "SELECT DATE_TRUNC('month', day) AS month, EXTRACT(year FROM day) AS y, COUNT(*) AS n FROM persons WHERE day < DATE '2024-03-01' + INTERVAL 5 DAY GROUP BY 1, 2",
    "SELECT HISTOGRAM(pay, [0, 5, 10]) FROM persons WHERE YEAR(born) = 1990",
    "SELECT CASE WHEN age < 3 AND city = 'Rome' THEN 'x' WHEN pay > 4 THEN 'y' ELSE 'z' END AS g, COUNT(*) AS n FROM persons GROUP BY g",
    "SELECT EXTRACT(day FROM born) AS d, COUNT(*) AS n, SUM(CASE WHEN kind IS NULL THEN 1 ELSE pay END) AS s FROM persons WHERE upper(city) <> 'OSLO' GROUP BY d",
    "SELECT kind, city, COUNT(*) AS n FROM persons GROUP BY ROLLUP(kind, city)",
    "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM persons) AS share FROM persons p WHERE EXISTS (SELECT 1 FROM work w WHERE w.uid = p.uid AND w.hours > 3)",
    "SELECT MODE(kind) AS k, COUNT(city) AS n, SUM(COALESCE(age, 0)) AS s, ROUND(AVG(pay), 1) AS a, SUM(age % 3) AS r FROM persons",
]


def test_one_question_of_each_kind_is_answered_as_by_duckdb(spark):
    random = np.random.default_rng(3)
    rows = {
        "persons": pa.table({
            "uid": np.arange(USERS),
            "age": some(random, list(range(25)), USERS, 0.1),
            "kind": some(random, ["a", "b"], USERS),
            "day": [date(2024, 1, 1) + timedelta(days=int(day)) for day in random.integers(0, 91, USERS)],
            "pay": random.integers(0, 10, USERS),
            "city": some(random, ["Rome", "Oslo"], USERS),
            "born": some(random, [date(1990, 1, 1), date(1990, 1, 2), date(1991, 1, 1)], USERS),
        }),
        "work": pa.table({"uid": np.arange(20, USERS), "hours": random.integers(0, 10, USERS - 20)}),
    }  # fmt: skip
    collection = dn.Collection(PERSONS, WORK, epsilon=16.0)
    reports = collection.perturb(**rows, source=dn.SeededSource(1), simulation=True)
    here, there = dn.connect(reports), dn.connect(reports, engine=spark)
    for text in ASKED:
        agree(there.sql(text), here.sql(text))
    there.close()
