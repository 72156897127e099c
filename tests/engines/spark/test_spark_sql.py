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
WORK = dn.Table("work", hours=dn.Ordinal(0, 9), desk=dn.Public())
# One of each kind. Questions about one table ask for as much as they can in one pass over its reports.
ASKED = [
    "SELECT p.city, COUNT(*) AS n, COUNT(w.uid) AS m, SUM(COALESCE(w.hours, 2)) AS h, COUNT(*) FILTER (WHERE w.uid IS NULL AND p.pay > 3) AS a FROM persons p LEFT JOIN work w ON w.uid = p.uid AND w.hours < 8 GROUP BY p.city",
    "SELECT w.desk, COUNT(*) AS n FROM persons p FULL JOIN work w ON w.uid = p.uid WHERE p.pay IS NULL OR p.city IS NULL OR w.hours > 3 GROUP BY w.desk",
    "SELECT a.kind, a.n, b.d / a.n AS r FROM (SELECT kind, COUNT(*) AS n FROM persons WHERE uid NOT IN (SELECT uid FROM work WHERE hours > 4) GROUP BY kind) a JOIN (SELECT kind, QUANTILE_CONT(pay, 0.75) - MEDIAN(pay) AS d FROM persons GROUP BY kind) b ON a.kind = b.kind",
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


# The rest of what analysts write, kind by kind.
MORE = [
    "SELECT COUNT(1) AS n, COUNT(age) AS m, COUNT_IF(pay > 3) AS c, COUNT(DISTINCT uid) AS d FROM persons",
    "SELECT COUNT(*) FILTER (WHERE kind = 'a') AS n, SUM(pay > 3) AS f, SUM(IF(pay > 3, pay, 0)) AS i FROM persons",
    "SELECT AVG(CASE WHEN kind = 'a' THEN pay END) AS a FROM persons",
    "SELECT ROUND(AVG(pay), 1) AS r, CAST(AVG(pay) AS INT) AS c, ABS(SUM(-pay)) AS a, GREATEST(COUNT(*), 5) AS g, LEAST(COUNT(*), 5) AS l, SQRT(COUNT(*)) AS s, COUNT(*) % 7 AS m FROM persons",
    "SELECT SUM(ABS(pay - 4)) AS a, AVG(SQRT(pay)) AS s, SUM(GREATEST(pay, 2)) AS g FROM persons",
    "SELECT COUNT(*) AS n FROM persons WHERE pay > 100 OR kind IN ('a', 'nobody')",
    "SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) AS n FROM persons GROUP BY y, m",
    "SELECT DAYOFWEEK(day) AS d, COUNT(*) AS n FROM persons GROUP BY d",
    "SELECT strftime(day, '%Y-%m') AS ym, AVG(pay) AS a FROM persons GROUP BY ym",
    "SELECT COUNT(*) AS n FROM persons WHERE kind LIKE 'A%' OR kind ILIKE 'A%' OR regexp_matches(kind, '^b') OR starts_with(kind, 'z')",
    "SELECT upper(kind) AS k, COUNT(*) AS n FROM persons WHERE lower(city) = 'rome' GROUP BY k",
    "WITH rich AS (SELECT * FROM persons WHERE pay > 4) SELECT kind, COUNT(*) AS n FROM rich GROUP BY kind",
    "SELECT COUNT(*) AS n FROM main.persons AS p, work AS w WHERE p.uid = w.uid AND w.hours > 3",
    'SELECT "kind", AVG(hours) AS "mean hours" FROM "persons" NATURAL JOIN work GROUP BY "kind"',
    "SELECT COUNT(*) AS n FROM persons WHERE uid IN (SELECT uid FROM work WHERE hours > 5)",
    "SELECT kind, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM persons) AS pct FROM persons GROUP BY kind",
    "SELECT 'poor' AS g, COUNT(*) AS n FROM persons WHERE pay < 3 UNION ALL SELECT 'rich', COUNT(*) FROM persons WHERE pay > 6",
    "SELECT kind, city, COUNT(*) AS n FROM persons GROUP BY CUBE(kind, city)",
    "SELECT kind, pay, COUNT(*) AS n FROM persons GROUP BY GROUPING SETS ((kind), (pay), ())",
    "SELECT pay, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY pay) AS d FROM persons GROUP BY pay",
    "SELECT pay, COUNT(*) AS n FROM persons WHERE pay BETWEEN 2 AND 4 GROUP BY pay HAVING COUNT(*) > 0 ORDER BY n DESC LIMIT 2",
    "SELECT QUANTILE_CONT(pay, [0.25, 0.5]) AS q FROM persons WHERE kind = 'a'",
    "SELECT MEDIAN(pay) AS m FROM persons JOIN work USING (uid) WHERE hours > 2",
    "SELECT kind, MODE(pay) AS m FROM persons GROUP BY kind",
    "SELECT COVAR_POP(age, pay) AS c, REGR_INTERCEPT(age, pay) AS i, REGR_R2(age, pay) AS r FROM persons",
    "SELECT REGR_SLOPE(hours, pay) AS s FROM persons JOIN work USING (uid)",
    "SELECT AVG(age) AS a FROM persons WHERE pay = 0 AND kind = 'b' AND city = 'Rome'",
    "SELECT STDDEV(pay) AS s, VAR_POP(pay) AS v FROM persons",
]


@pytest.fixture(scope="module")
def connected(spark):
    """The same reports here and there."""
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
        "work": pa.table({
            "uid": np.arange(20, USERS + 10),
            "hours": random.integers(0, 10, USERS - 10),
            "desk": some(random, ["high", "low"], USERS - 10),
        }),
    }  # fmt: skip
    collection = dn.Collection(PERSONS, WORK, epsilon=16.0)
    reports = collection.perturb(**rows, source=dn.SeededSource(1), simulation=True)
    here, there = dn.connect(reports), dn.connect(reports, engine=spark)
    yield here, there
    there.close()


def test_one_question_of_each_kind_is_answered_as_by_duckdb(connected):
    here, there = connected
    for text in ASKED:
        agree(there.sql(text), here.sql(text))


@pytest.mark.slow
@pytest.mark.parametrize("text", MORE)
def test_whatever_analysts_write_is_answered_as_by_duckdb(connected, text):
    here, there = connected
    agree(there.sql(text), here.sql(text))


@pytest.mark.slow
def test_statements_about_tables_are_answered_as_by_duckdb(connected):
    here, there = connected
    for text in ("DESCRIBE persons", "SHOW TABLES"):
        assert [str(result) for result in there.statements(text)] == [str(result) for result in here.statements(text)]
    for database in connected:
        with pytest.raises(dn.errors.QueryRefused, match="COUNT"):
            database.sql("SELECT age FROM persons")
