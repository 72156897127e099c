"""SQL as analysts and BI tools write it: without noise, answers equal those of plain SQL on the raw tables."""
# ruff: noqa: E501 - a query reads best on one line

import pytest

pytest.register_assert_rewrite("plain_sql")

from deniable.errors import QueryRefused  # noqa: E402
from plain_sql import Pair  # noqa: E402


@pytest.fixture(scope="module")
def pair():
    return Pair()


COUNTS = [
    "SELECT COUNT(1) AS n, COUNT(age) AS m, COUNT(city) AS c, COUNT_IF(age > 3) AS d, SUM(flag) AS f FROM people",
    "SELECT COUNT(score) AS a, COUNT(score + points) AS b, COUNT(NULLIF(kind, 'a')) AS c FROM people",
    "SELECT COUNT(DISTINCT uid) AS n, COUNT(uid) AS m, COUNT(CASE WHEN age > 3 THEN 'x' END) AS d FROM people WHERE age > 1",
    "SELECT COUNT(*) FILTER (WHERE kind LIKE 'a%') AS n FROM people WHERE TRUE AND 1 = 1",
]
CASES = [
    "SELECT SUM(CASE WHEN age > 3 THEN 1 ELSE 0 END) AS a, AVG(CASE WHEN kind = 'a' AND age > 2 THEN weight END) AS b FROM people",
    "SELECT SUM(CASE WHEN city = 'Rome' THEN age ELSE score END) AS c, SUM(CASE kind WHEN 'a' THEN 1 WHEN 'b' THEN age ELSE weight END) AS d FROM people",
    "SELECT SUM(IF(age > 3, weight, 0)) AS a, SUM(COALESCE(score, 0)) AS b, AVG(COALESCE(score, age)) AS c, SUM(NULLIF(age, 3)) AS d FROM people",
    "SELECT SUM(age > 3) AS a, SUM(CAST(kind = 'a' AS INT)) AS b, AVG(CAST(age > 3 AS DOUBLE)) AS c FROM people",
    "SELECT VAR_POP(CASE WHEN flag THEN age ELSE 0 END) AS v, STDDEV(ABS(age)) AS s FROM people",
    "SELECT CASE WHEN age < 3 THEN 'young' WHEN age < 9 THEN 'mid' END AS g, COUNT(*) AS n FROM people GROUP BY 1",
    "SELECT COUNT(*) AS n FROM people WHERE CASE WHEN age > 3 THEN kind = 'a' ELSE flag END",
    "SELECT COUNT(*) AS n FROM people WHERE CASE WHEN flag THEN 'x' ELSE kind END = 'x'",
    "SELECT COUNT(*) AS n FROM people WHERE NOT CASE WHEN city = 'Rome' THEN score > 0 WHEN flag THEN age > 3 END",
]
FUNCTIONS = [
    "SELECT LEAST(SUM(age), 1e12) AS l, COUNT(*) AS n FROM people WHERE age < 2.5e+11",
    "SELECT SUM(age % 3) AS a, SUM(ABS(age)) AS b, AVG(SQRT(age + 5)) AS c, SUM(ROUND(weight, 1)) AS d, SUM(GREATEST(age, 2)) AS e FROM people",
    "SELECT SUM(grade) AS s, AVG(grade) AS a, SUM(LEAST(grade, 15) * 2) AS l FROM visits",
    "SELECT ROUND(AVG(age), 1) AS a, CAST(AVG(age) AS INT) AS b, ABS(SUM(-age)) AS c, GREATEST(COUNT(*), 1000) AS d, SQRT(COUNT(*)) AS e FROM people",
    "SELECT 100.0 * SUM(CASE WHEN flag THEN 1 ELSE 0 END) / COUNT(*) AS share, SUM(age) / NULLIF(COUNT(*), 0) AS m, COALESCE(AVG(age), 0) AS c FROM people",
    "SELECT flag, ROUND(AVG(age), 2) AS a, ROUND(100.0 * COUNT(*) / 600, 1) AS s, POWER(COUNT(*), 2) AS p FROM people GROUP BY flag",
    "SELECT CAST(age AS VARCHAR) AS a, COUNT(*) AS n FROM people WHERE age % 5 = 0 GROUP BY 1",
    "SELECT age % 3 AS r, COUNT(*) AS n FROM people WHERE ABS(age) > 2 GROUP BY r",
    "SELECT CAST(SUM(weight) AS DECIMAL(10, 1)) AS d, FLOOR(SUM(weight)) AS f, CEIL(SUM(weight)) AS c FROM people WHERE flag",
]
CONSTANTS = [
    "SELECT COUNT(*) AS n FROM people WHERE age > 200 OR kind IN ('a', 'z')",
    "SELECT COUNT(*) AS n FROM people WHERE age NOT IN (1, 2, 99) AND kind <> 'z' AND age > -100",
    "SELECT COUNT(*) AS n FROM people WHERE age IN (1, NULL) OR age = 200",
    "SELECT COUNT(*) AS n FROM people WHERE age NOT IN (1, NULL)",
    "SELECT kind, COUNT(*) AS n FROM people WHERE age = NULL GROUP BY kind",
    "SELECT city, COUNT(*) AS n FROM people WHERE age > 500 GROUP BY city",
    "SELECT COUNT(*) AS n FROM people WHERE age IS NULL OR kind IS NOT NULL AND age > 3",
    "SELECT COUNT(*) AS n FROM visits WHERE joined < '1999-01-01' OR joined >= DATE '2020-01-05' AND joined < DATE '2030-01-01'",
]
TEXTS = [
    "SELECT COUNT(*) AS n FROM people WHERE kind LIKE 'A%' OR kind ILIKE 'A%' OR upper(kind) = 'B'",
    "SELECT UPPER(kind) AS k, COUNT(*) AS n FROM people WHERE regexp_matches(kind, '[ab]') GROUP BY 1",
    "SELECT COUNT(*) AS n FROM people WHERE starts_with(kind, 'a') OR kind NOT LIKE '%a%' AND city LIKE 'R%'",
    "SELECT COUNT(*) AS n FROM people WHERE city ILIKE 'rOM_' OR upper(city) = 'OSLO' OR starts_with(city, 'B')",
    "SELECT COUNT(*) AS n FROM people WHERE NOT (city LIKE 'R%') OR regexp_matches(city, '^O') OR lower(city) LIKE 'b%'",
    "SELECT COUNT(*) AS n FROM people JOIN kinds USING (kind) WHERE label LIKE 'x%'",
]
DATES = [
    "SELECT DATE_TRUNC('week', joined) AS w, COUNT(*) AS n FROM visits GROUP BY w",
    "SELECT strftime(joined, '%Y-%m') AS w, EXTRACT(dow FROM joined) AS d, COUNT(*) AS n FROM visits WHERE joined < DATE '2020-01-01' + INTERVAL 5 DAY GROUP BY 1, 2",
    "SELECT YEAR(joined) AS y, MONTH(joined) AS m, COUNT(*) AS n FROM visits GROUP BY y, m",
    "SELECT DAYOFWEEK(joined) AS d, COUNT(*) AS n FROM visits WHERE joined BETWEEN DATE '2020-01-02' AND DATE '2020-01-02' + INTERVAL 3 DAY GROUP BY d",
    "SELECT HOUR(seen) AS h, COUNT(*) AS n FROM visits WHERE DATE_TRUNC('day', seen) = DATE '2020-01-01' GROUP BY h",
    "SELECT COUNT(*) AS n FROM visits WHERE joined >= DATE '2020-01-10' - INTERVAL '3 days' AND seen < TIMESTAMP '2020-01-01 00:00:00' + INTERVAL 3 HOUR",
    "SELECT dayname(joined) AS d, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n FROM people WHERE YEAR(born) = 1990 AND MONTH(born) = 1 AND COALESCE(points, 0) > 0",
]
DERIVED = [
    "WITH t AS (SELECT age AS a, kind FROM people WHERE age > 2) SELECT kind, COUNT(*) AS n, SUM(a) AS s FROM t WHERE a < 9 GROUP BY kind",
    "WITH a AS (SELECT uid, age FROM people), b AS (SELECT uid, hours FROM jobs) SELECT COUNT(*) AS n, SUM(age * hours) AS s FROM a JOIN b USING (uid)",
    "WITH t(x, y) AS (SELECT age, kind FROM people) SELECT y, SUM(x) AS s FROM t GROUP BY y",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM people) AS q WHERE q.age > 3",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM (SELECT age + 1 AS b, kind FROM people) x WHERE b > 3) AS q WHERE q.b < 9",
    "SELECT k, n FROM (SELECT kind AS k, COUNT(*) AS n FROM people GROUP BY kind) AS virtual_table WHERE n > 10 ORDER BY n DESC LIMIT 2",
    "SELECT * FROM (SELECT kind AS k, COUNT(*) AS n FROM people GROUP BY kind) AS t WHERE k <> 'a' ORDER BY k",
    "SELECT k AS k, SUM(n) AS total FROM (SELECT kind AS k, flag, COUNT(*) AS n FROM people GROUP BY kind, flag) AS virtual_table GROUP BY k ORDER BY total DESC LIMIT 1000",
    "SELECT SUM(n) AS t, SUM(s) AS u FROM (SELECT kind, COUNT(*) AS n, SUM(age) AS s FROM people WHERE flag GROUP BY kind) AS v",
    "SELECT source.kind AS kind, COUNT(*) AS count FROM (SELECT people.uid AS uid, people.kind AS kind, people.age AS age FROM people) AS source WHERE source.age > 1 GROUP BY source.kind ORDER BY source.kind ASC",
    "SELECT COUNT(*) AS n, SUM(o.h) AS s FROM people p JOIN (SELECT uid, hours AS h FROM jobs WHERE hours > 5) o ON o.uid = p.uid WHERE p.age > 2",
    "SELECT CASE WHEN age < 3 THEN 'low' ELSE 'high' END AS band, COUNT(*) AS n FROM (SELECT * FROM people WHERE flag) q GROUP BY band ORDER BY band",
    "SELECT n * 2 AS d FROM (SELECT COUNT(*) AS n FROM people) t",
]
NAMES = [
    "SELECT COUNT(*) AS n FROM main.people WHERE main.people.age > 3",
    'SELECT COUNT(*) AS n FROM "main"."people" AS "P" WHERE "P"."age" > 3',
    "SELECT COUNT(*) AS n FROM people, jobs WHERE people.uid = jobs.uid AND age > 3",
    "SELECT COUNT(*) AS n FROM people CROSS JOIN jobs WHERE people.uid = jobs.uid",
    "SELECT COUNT(*) AS n FROM people NATURAL JOIN jobs",
    "SELECT COUNT(*) AS n FROM people NATURAL JOIN kinds WHERE label = 'x'",
    "SELECT COUNT(*) AS n FROM people p, cities c WHERE p.city = c.name AND c.country = 'it'",
    "SELECT COUNT(*) AS n FROM people WHERE uid IN (SELECT uid FROM jobs WHERE hours > 10) AND age > 2",
    "SELECT COUNT(*) AS n FROM people WHERE uid IN (SELECT uid FROM people WHERE flag) AND age > 2",
    "SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM jobs j WHERE j.uid = p.uid AND j.hours > 10)",
]

MOMENTS = [
    "SELECT CORR(age, weight) AS a, COVAR_POP(age, weight) AS b, COVAR_SAMP(age, weight) AS c, REGR_SLOPE(age, weight) AS d, REGR_INTERCEPT(age, weight) AS e, REGR_R2(age, weight) AS f FROM people",
    "SELECT CORR(age, hours) AS a, REGR_SLOPE(hours, age) AS b FROM people JOIN jobs USING (uid) WHERE flag",
    "SELECT kind, CORR(age, score) AS a, COVAR_POP(points, CASE WHEN flag THEN 1 ELSE 0 END) AS b FROM people GROUP BY kind",
]
QUANTILES = [
    "SELECT MEDIAN(age) AS m, QUANTILE_CONT(age, 0.9) AS q, QUANTILE_DISC(age, 0.25) AS d, COUNT(*) AS n FROM people",
    "SELECT kind, MEDIAN(age) AS m, AVG(age) AS a FROM people WHERE flag GROUP BY kind ORDER BY kind",
    "SELECT city, QUANTILE_CONT(weight, 0.3) AS m FROM people GROUP BY city",
    "SELECT PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) AS p, PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY weight) AS q FROM people",
    "SELECT MEDIAN(hours) AS m, MEDIAN(age) FILTER (WHERE hours > 5) AS f FROM people JOIN jobs USING (uid) WHERE sector = 'it'",
    "SELECT MEDIAN(amount) AS m FROM gifts",
    "SELECT MEDIAN(age * 2) AS m, QUANTILE_DISC(age, 0) AS z, QUANTILE_DISC(age, 1) AS o, QUANTILE_CONT(age, 1.0) AS c FROM people",
    "SELECT MEDIAN(age) AS m FROM (SELECT age FROM people WHERE kind = 'a') t",
]
COMPOUND = [
    "SELECT kind, COUNT(*) AS n, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY kind ORDER BY kind",
    "SELECT kind, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM people WHERE age > 2 GROUP BY kind ORDER BY pct DESC",
    "SELECT weight, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY weight) AS running FROM people GROUP BY weight",
    "SELECT kind, flag, SUM(COUNT(*)) OVER (PARTITION BY kind ORDER BY flag) AS r FROM people GROUP BY kind, flag ORDER BY kind, flag",
    "SELECT joined, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY joined) AS d FROM visits GROUP BY joined ORDER BY joined",
    "SELECT city, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS s FROM people GROUP BY city",
    "SELECT 'young' AS g, COUNT(*) AS n FROM people WHERE age < 5 UNION ALL SELECT 'old' AS g, COUNT(*) AS n FROM people WHERE age >= 5 ORDER BY n DESC",
    "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind UNION ALL SELECT NULL, COUNT(*) FROM people",
    "SELECT kind, flag, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY ROLLUP(kind, flag)",
    "SELECT kind, flag, COUNT(*) AS n FROM people GROUP BY CUBE(kind, flag) HAVING COUNT(*) > 0",
    "SELECT kind, city, COUNT(*) AS n FROM people WHERE city IS NOT NULL GROUP BY GROUPING SETS ((kind), (city))",
    "SELECT k, n, n * 1.0 / SUM(n) OVER () AS share FROM (SELECT kind AS k, COUNT(*) AS n FROM people GROUP BY kind) AS t ORDER BY k",
    "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)",
    "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS r FROM people JOIN jobs USING (uid) WHERE hours > 3",
    "WITH t AS (SELECT kind AS k, age FROM people) SELECT k, COUNT(*) AS n FROM t GROUP BY k UNION ALL SELECT 'all', COUNT(*) FROM t",
    "SELECT COUNT(*) AS n, 'x' AS label FROM people",
]
OF_GROUPS = [
    "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind HAVING kind = 'd' OR COUNT(*) > 160",
    "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind HAVING NOT (kind = 'd' AND COUNT(*) > 5) AND COUNT(*) > 0",
    "SELECT kind, flag, AVG(age) AS a FROM people GROUP BY kind, flag HAVING (kind = 'a' AND NOT flag) OR AVG(age) > 5",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING NOT (city = 'Rome' OR COUNT(*) < 10)",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING city IS NULL OR COUNT(*) > 150",
    "SELECT kind, MAX(n) AS m FROM (SELECT kind, flag, COUNT(*) AS n FROM people GROUP BY kind, flag) t GROUP BY kind",
    "SELECT flag, MAX(n) AS m, MIN(n) AS l, AVG(n) AS a, SUM(n) AS s "
    "FROM (SELECT kind, flag, COUNT(*) AS n FROM people GROUP BY kind, flag) t GROUP BY flag ORDER BY m DESC",
    "SELECT MAX(n) AS m FROM (SELECT kind, COUNT(*) AS n FROM people GROUP BY kind) t LIMIT 10",
    "SELECT kind AS k, MIN(a) AS m FROM (SELECT kind, flag, AVG(age) AS a FROM people GROUP BY kind, flag) t "
    "GROUP BY kind ORDER BY kind LIMIT 2",
    "WITH t AS (SELECT kind, flag, COUNT(*) AS n FROM people GROUP BY kind, flag) SELECT flag, MAX(n) AS m FROM t GROUP BY flag",
    "SELECT SUM(n) AS m FROM (SELECT COUNT(*) AS n FROM people WHERE age < 5 UNION ALL SELECT COUNT(*) FROM people WHERE age < 9) t",
    "SELECT SUM(n) AS m, SUM(s) AS t FROM (SELECT COUNT(*) AS n, SUM(age) AS s FROM people UNION ALL SELECT COUNT(*), SUM(hours) "
    "FROM jobs UNION ALL SELECT COUNT(*), SUM(age) FROM people WHERE flag) t",
    "SELECT SUM(n) AS m FROM (SELECT kind AS k, COUNT(*) AS n FROM people GROUP BY kind UNION ALL SELECT sector, COUNT(*) FROM jobs "
    "GROUP BY sector) t",
    # As Superset limits the series of a chart.
    "SELECT kind AS kind, flag AS flag, COUNT(*) AS count FROM people JOIN (SELECT kind AS kind__, COUNT(*) AS mme_inner__ "
    "FROM people GROUP BY kind ORDER BY mme_inner__ DESC LIMIT 2) AS anon_1 ON kind = kind__ GROUP BY kind, flag ORDER BY kind, flag",
    "SELECT people.flag, SUM(people.age) AS n FROM people JOIN (SELECT kind AS k, flag AS f, SUM(age) AS s FROM people WHERE "
    "age > 2 GROUP BY kind, flag ORDER BY s DESC LIMIT 3) AS top ON people.kind = top.k AND people.flag = top.f GROUP BY people.flag ORDER BY people.flag",
    "SELECT kind, COUNT(*) AS n FROM people WHERE kind IN (SELECT kind FROM people GROUP BY kind ORDER BY COUNT(*) DESC LIMIT 2) "
    "GROUP BY kind ORDER BY kind",
    "SELECT COUNT(*) AS n FROM people WHERE kind NOT IN (SELECT kind FROM people GROUP BY kind HAVING COUNT(*) > 160) AND age > 3",
    "SELECT sector, COUNT(*) AS n FROM people JOIN jobs USING (uid) JOIN (SELECT city AS c, COUNT(*) AS m FROM people "
    "GROUP BY 1 ORDER BY m DESC LIMIT 2) AS lim ON people.city = lim.c GROUP BY sector ORDER BY sector",
]


@pytest.mark.parametrize(
    "text",
    [
        *COUNTS,
        *CASES,
        *FUNCTIONS,
        *CONSTANTS,
        *TEXTS,
        *DATES,
        *DERIVED,
        *NAMES,
        *MOMENTS,
        *QUANTILES,
        *COMPOUND,
        *OF_GROUPS,
    ],
)
def test_answers_are_those_of_plain_sql(pair, text):
    pair.check(text, ordered="ORDER BY" in text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "SELECT MAX(n) AS m FROM (SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM jobs) t",
            "only SUM",
        ),
        (
            "SELECT SUM(n) AS m FROM (SELECT COUNT(*) AS n FROM people UNION SELECT COUNT(*) FROM jobs) t",
            "equal answers",
        ),
        (
            "SELECT SUM(x) AS m FROM (SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM jobs) t",
            "no column",
        ),
        (
            "SELECT COUNT(*) AS n FROM people WHERE city NOT IN (SELECT city FROM people GROUP BY city HAVING COUNT(*) > 5)",
            "a chosen group is NULL",
        ),
        (
            "SELECT city, MAX(n) AS m FROM (SELECT kind, COUNT(*) AS n FROM people GROUP BY kind) t GROUP BY city",
            "not a group",
        ),
    ],
)
def test_what_noise_or_null_would_decide_is_refused(pair, text, problem):
    with pytest.raises(QueryRefused, match=problem):
        pair.database.sql(text)


def test_groups_that_where_excludes_do_not_appear(pair):
    shown = pair.database.sql("SELECT age, COUNT(*) AS n FROM people WHERE age BETWEEN 3 AND 5 OR age = 9 GROUP BY age")
    assert shown.groups["age"] == [3, 4, 5, 9]
    pairs = pair.database.sql(
        "SELECT age, kind, COUNT(*) AS n FROM people WHERE age = 3 AND kind = 'a' OR age = 4 AND kind = 'b' GROUP BY ALL"
    )
    assert list(zip(*pairs.groups.values(), strict=True)) == [(3, "a"), (4, "b")]
    kept = pair.database.sql("SELECT kind, COUNT_IF(kind = 'a') AS n FROM people WHERE kind <> 'd' GROUP BY kind")
    assert kept.groups["kind"] == ["a", "b", "c"]
    nothing = pair.database.sql("SELECT kind, COUNT(*) AS n FROM people WHERE age > 3 AND age < 2 GROUP BY kind")
    assert len(nothing) == 0


def test_constants_that_nobody_can_have_are_named(pair):
    notes = pair.database.sql("SELECT COUNT(*) FROM people WHERE age = 200 OR kind IN ('a', 'z') OR age < 3").notes
    assert notes == (
        "200 is outside the domain of age, which is -5 to 20",
        "'z' is not in the list of kind: nobody has it",
    )


def test_a_note_says_what_values_that_are_not_listed_count_as():
    import deniable as dn

    city = dn.Categorical("Bonn", "Ulm", "other", map={"bonn": "Bonn"}, other="other")
    people = dn.Collection(dn.Table("people", city=city), epsilon=1.0)
    database = dn.connect(people.perturb(people={"uid": range(2), "city": ["Bonn", "Ulm"]}))
    notes = database.sql("SELECT COUNT(*) FROM people WHERE city IN ('Kiel', 'bonn')").notes
    assert notes == (
        "'Kiel' is not in the list of city: its rows count as 'other'",
        "'bonn' is not in the list of city: its rows count as 'Bonn'",
    )


def test_intervals_of_functions_of_answers_hold_what_the_function_makes_of_the_interval():
    import deniable as dn

    people = dn.Collection(dn.Table("people", age=dn.Ordinal(0, 9)), epsilon=1.0)
    frame = {"uid": range(2_000), "age": [1, 8] * 1_000}
    database = dn.connect(people.perturb(people=frame, source=dn.SeededSource(4), simulation=True))
    plain = database.sql("SELECT AVG(age) - 4 AS a FROM people").scalar()
    low, high = plain.interval
    rounded = database.sql("SELECT ROUND(AVG(age) - 4, 1) AS a FROM people").scalar()
    assert rounded.interval == (pytest.approx(round(low, 1)), pytest.approx(round(high, 1)))
    absolute = database.sql("SELECT ABS(AVG(age) - 4.5) AS a FROM people").scalar()
    assert low < 0.5 < high
    assert absolute.interval[0] == 0.0
    assert absolute.interval[1] == pytest.approx(max(abs(low - 0.5), abs(high - 0.5)))
    floor = database.sql("SELECT GREATEST(AVG(age) - 4, 0) AS a FROM people").scalar()
    assert floor.interval == (pytest.approx(max(low, 0.0)), pytest.approx(max(high, 0.0)))


def test_modes_and_those_that_noise_may_have_hidden(pair):
    modes = pair.database.sql("SELECT MODE(kind) AS k, MODE(age) AS a FROM people")
    (expected,) = pair.plain.sql("SELECT MODE(kind), MODE(age) FROM people").fetchall()
    assert (modes.groups["k"][0], modes.groups["a"][0]) == expected
    assert modes.notes == ()


def test_statements_that_describe(pair):
    shown, described, explained, counted = pair.database.statements(
        "SHOW TABLES; DESCRIBE people; EXPLAIN SELECT COUNT(*) FROM people; SELECT COUNT(*) AS n FROM people"
    )
    assert shown.groups["name"][:2] == ["people", "jobs"]
    assert described.groups["column_name"][:3] == ["uid", "age", "weight"]
    assert described.groups["column_type"][1:4] == ["BIGINT", "DOUBLE", "VARCHAR"]
    assert any("table people" in line for line in explained.groups["explain"])
    assert counted.scalar().value == 600
    assert pair.database.sql("SELECT COUNT(*) FROM jobs; SELECT COUNT(*) AS n FROM people").scalar().value == 600
    assert [row["n"].value for row in counted] == [600]


def test_parts_that_do_not_fit(pair):
    for text, message in (
        ("SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM jobs", "UNION would compare noisy rows"),
        (
            "SELECT COUNT(*) FROM people UNION ALL SELECT kind, COUNT(*) FROM people GROUP BY kind",
            "different numbers of columns",
        ),
        ("SELECT kind, RANK() OVER (ORDER BY kind) FROM people GROUP BY kind", "noise would decide ranks"),
        (
            "SELECT kind, SUM(COUNT(*)) OVER (ORDER BY COUNT(*)) FROM people GROUP BY kind",
            "the order of answers is noisy",
        ),
        ("SELECT COUNT(*) / (SELECT age FROM people) FROM people", "a subquery here is one aggregate"),
        ("SELECT MEDIAN(kind) FROM people", "quantiles are of numbers"),
        ("SELECT SIN(MEDIAN(age)) FROM people", "SIN of such answers is not possible"),
        ("SELECT QUANTILE_CONT(age, 3) FROM people", "a share from 0 to 1"),
        ("DESCRIBE nothing", "there is no table 'nothing'"),
        ("SHOW DATABASES", "only tables are shown"),
    ):
        with pytest.raises(QueryRefused, match=message):
            pair.database.sql(text)
