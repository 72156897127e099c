"""Without noise, answers equal those of plain SQL on the raw tables."""
# ruff: noqa: E501 - a query reads best on one line

import pytest

pytest.register_assert_rewrite("plain_sql")

from plain_sql import Pair  # noqa: E402

J = "people JOIN jobs USING (uid)"
ALL = "people p JOIN jobs j ON p.uid = j.uid JOIN gifts g ON g.uid = p.uid"


@pytest.fixture(scope="module")
def pair():
    return Pair()


AGGREGATES = [
    "COUNT(*)", "SUM(age)", "AVG(age)", "VAR_POP(age)", "VAR_SAMP(age)", "VARIANCE(age)", "STDDEV(age)",
    "STDDEV_POP(age)", "STDDEV_SAMP(weight)", "SUM(weight)", "AVG(weight)", "VAR_POP(weight - age)",
    "SUM(2 * age - 3 * weight + 1)", "AVG(-age / 4)", "SUM(age * weight)", "AVG(age * age)", "SUM(age * 0)", "SUM(3)",
    "AVG(2.5)", "SUM(age) / COUNT(*)", "SUM(age) - 2 * SUM(weight) + COUNT(*) * 1.5", "-(AVG(age) + 1)",
    "SUM(score)", "AVG(score)", "VAR_POP(score)", "VAR_SAMP(points)", "STDDEV(points)", "SUM(points * age)",
    "SUM(points * score)", "AVG(score * weight)", "SUM(score + age)", "AVG(points - 2 * score)", "SUM(score * score)",
    "AVG(score) - AVG(points)", "SUM(score) / SUM(weight)", "COUNT(*) * 0.1 - 3",
]  # fmt: skip
CONDITIONS = [
    "age BETWEEN -2 AND 7",
    "age NOT BETWEEN -2 AND 7",
    "weight > 0.6 AND weight <= 2",
    "weight = 0.25 OR weight <> 1",
    "kind IN ('a', 'c') AND NOT flag",
    "NOT (kind = 'a' OR age > 3 OR flag IS TRUE)",
    "city = 'Rome'",
    "NOT city = 'Rome'",
    "city <> 'Rome' OR age > 5",
    "NOT (city = 'Rome' AND age > 5)",
    "NOT (city = 'Rome' OR score > 0)",
    "NOT (NOT (city = 'Rome') AND NOT (score > 0 OR kind = 'a'))",
    "city IS NULL OR age < 0",
    "NOT city IS NULL AND NOT age < 0",
    "city IS NOT NULL AND (score IS NULL OR kind IN ('b', 'd'))",
    "city IN ('Rome', 'O''Brien \"x\"') AND age >= 0",
    "city NOT IN ('Rome', NULL)",
    "NOT (city IN ('Rome', NULL) OR flag)",
    "score BETWEEN 0 AND 2 OR age = 0 OR kind = 'b'",
    "points * 2 - score > 1 AND weight < 2",
    "points = score OR age = 1",
    "born = DATE '1990-01-02' OR born > '1990-01-03' AND flag",
    "member AND age > 2",
    "NOT member OR age > 2",
    "member IS TRUE OR kind = 'a'",
    "NOT (member IS TRUE) AND kind = 'a'",
    "member IS NOT TRUE",
    "age + 3 > 2 * 4 OR FLOOR(age / 5) = 0",
    "3 < age AND 'a' = kind",
    "10 - age BETWEEN 0 AND 5",
    "age * age < 20",
    "age // 2 = -1 OR age // 4 = 3",
    "(age = 1 OR weight = 1) AND (flag OR kind = 'a') AND (city = 'Rome' OR score < 0)",
    "age < 0 AND age > 3",
    "weight = 0.3",
    "(((age > 1)))",
    "NOT NOT NOT age > 1",
    "flag = TRUE",
]
VISITS = [
    "grade = 20 OR grade = 30 AND seen < '2020-01-01 03:00:00'",
    "grade NOT IN (10, 30)",
    "joined < DATE '2020-01-04' OR joined = '2020-01-09'",
    "seen >= TIMESTAMP '2020-01-01 03:00:00' AND seen <> '2020-01-01 05:00:00'",
    "grade = 10 AND NOT (seen < '2020-01-01 03:00:00' OR joined BETWEEN '2020-01-02' AND '2020-01-05')",
]


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_aggregates(pair, aggregate):
    pair.check(f"SELECT {aggregate} AS x FROM people")
    pair.check(f"SELECT {aggregate} AS x FROM people WHERE flag OR city = 'Rome'")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(pair, condition):
    pair.check(
        f"SELECT COUNT(*) AS n, SUM(age) AS s, SUM(score * weight) AS t, AVG(points) FROM people WHERE {condition}"
    )


@pytest.mark.parametrize("condition", VISITS)
def test_conditions_on_dates_times_and_numbered_categories(pair, condition):
    pair.check(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}")


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) AS n FROM {J}",
        f"SELECT COUNT(*) AS n, SUM(hours * age) AS s, AVG(hours - age) AS a FROM {J} WHERE age > 2 OR hours < 5",
        f"SELECT SUM(pay * age) AS s, SUM(score * pay) AS t, AVG(score * hours) AS u, VAR_POP(pay) AS v FROM {J}",
        f"SELECT SUM(points * points) AS s, SUM(score * pay) AS t FROM {J} WHERE NOT (city = 'Rome' OR region = 'north')",
        f"SELECT COUNT(*) AS n FROM {J} WHERE (city = 'Rome' OR region = 'north') AND (kind = 'a' OR sector = 'it')",
        f"SELECT COUNT(*) AS n FROM {J} WHERE NOT (city = 'Rome' AND region = 'north') OR age < 2 AND hours > 20",
        f"SELECT COUNT(*) AS n, AVG(hours) AS h, STDDEV(age + hours) AS d FROM {J} WHERE city IS NULL OR region IS NULL",
        "SELECT COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS a FROM gifts WHERE wrap = 'box'",
        "SELECT COUNT(*) AS n, VAR_POP(amount) AS s FROM gifts WHERE wrap = 'box' OR amount > 4",
        "SELECT SUM(amount * age) AS s FROM gifts JOIN people USING (uid) WHERE flag OR wrap = 'bag'",
        f"SELECT COUNT(*) AS n FROM {ALL}",
        f"SELECT COUNT(*) AS n, SUM(amount * hours) AS s, AVG(p.age + j.hours - g.amount) AS a FROM {ALL} WHERE p.age > 1",
        f"SELECT COUNT(*) AS n, SUM(score * pay) AS s FROM {ALL} WHERE p.age > 9 OR hours > 9 OR amount > 5 OR pay = 10",
        "SELECT COUNT(*) AS n FROM gifts JOIN jobs USING (uid) JOIN people USING (uid) WHERE NOT (flag AND wrap = 'box')",
        "SELECT COUNT(*) AS n FROM gifts JOIN jobs USING (uid) JOIN people ON people.uid = gifts.uid",
    ],
)  # fmt: skip
def test_joins(pair, text):
    pair.check(text)


def test_users_may_be_named_by_texts():
    named = Pair(text_ids=True)
    named.check(f"SELECT COUNT(*) AS n, SUM(hours * age) AS s FROM {J} WHERE age > 2 OR hours < 5 OR region = 'north'")
    named.check(f"SELECT wrap, city, COUNT(*) AS n, SUM(amount * hours) AS s FROM {ALL} GROUP BY wrap, city")


@pytest.mark.parametrize(
    ("groups", "source"),
    [
        ("kind", "people"),
        ("age", "people"),
        ("flag", "people"),
        ("weight", "people"),
        ("city", "people"),
        ("score", "people"),
        ("points", "people"),
        ("born", "people"),
        ("member", "people"),
        ("FLOOR(age / 10)", "people"),
        ("FLOOR(age / 7) * 7", "people"),
        ("age // 3", "people"),
        ("-age", "people"),
        ("FLOOR(weight * 2)", "people"),
        ("kind, flag", "people"),
        ("city, kind", "people"),
        ("city, member, flag", "people"),
        ("FLOOR(age / 10), city", "people"),
        ("kind, sector", J),
        ("city, region", J),
        ("city, sector, FLOOR(hours / 8)", J),
        ("kind, wrap", ALL),
        ("wrap", "gifts"),
        ("grade", "people JOIN visits USING (uid)"),
        ("joined", "people JOIN visits USING (uid)"),
        ("seen, flag", "people JOIN visits USING (uid)"),
    ],
)
def test_groups(pair, groups, source):
    named = ", ".join(f"{group} AS g{index}" for index, group in enumerate(groups.split(", ")))
    measured = (
        "COUNT(*) AS n, SUM(amount) AS s" if source == "gifts" else "COUNT(*) AS n, SUM(age) AS s, AVG(weight) AS a"
    )
    pair.check(f"SELECT {named}, {measured} FROM {source} GROUP BY {groups}")
    if source != "gifts":
        pair.check(f"SELECT {named}, {measured} FROM {source} WHERE age > 2 OR city = 'Rome' GROUP BY ALL")
        if "score" not in groups:
            pair.check(
                f"SELECT {named}, COUNT(*) AS n, SUM(score) AS t FROM {source} WHERE NOT city = 'Oslo' GROUP BY {groups}"
            )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT age, COUNT(*) AS n FROM people GROUP BY age HAVING COUNT(*) > 30 ORDER BY age",
        "SELECT age, COUNT(*) AS n FROM people GROUP BY 1 HAVING n > 30 AND NOT n = 60 ORDER BY 1 DESC",
        "SELECT age, COUNT(*) AS n FROM people GROUP BY 1 HAVING n BETWEEN 10 AND 60 OR AVG(weight) > 1.4 ORDER BY 1",
        "SELECT kind, flag, SUM(age) AS s FROM people GROUP BY kind, flag ORDER BY s DESC LIMIT 3",
        "SELECT kind, flag, SUM(age) AS s FROM people GROUP BY kind, flag ORDER BY kind DESC, flag LIMIT 3 OFFSET 2",
        "SELECT kind, COUNT(*) FROM people GROUP BY kind ORDER BY SUM(weight) DESC",
        "SELECT kind, COUNT(*) n, SUM(age) s FROM people GROUP BY kind ORDER BY n * 2 - s, kind",
        "SELECT kind, 3 AS three, COUNT(*) n FROM people GROUP BY ALL ORDER BY -n",
        "SELECT FLOOR(age / 5) AS bin, COUNT(*) n FROM people GROUP BY bin HAVING n > 0 ORDER BY bin DESC",
        "SELECT kind, COUNT(*) FROM people GROUP BY kind ORDER BY AVG(weight) - AVG(age), kind",
        "SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY city",
        "SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY city DESC",
        "SELECT city AS place, COUNT(*) AS people FROM people AS p WHERE p.city IS NOT NULL GROUP BY place ORDER BY people, place DESC",
        "SELECT COUNT(*) AS n, kind FROM people GROUP BY kind ORDER BY 1",
        "SELECT kind AS k, COUNT(*) AS n FROM people GROUP BY k ORDER BY k DESC LIMIT 2",
        "SELECT COUNT(*) AS n FROM people HAVING COUNT(*) > 10",
        "SELECT COUNT(*) AS n FROM people HAVING COUNT(*) < 10",
        "SELECT kind, COUNT(*) AS n FROM people GROUP BY kind ORDER BY kind LIMIT 0",
        "SELECT p.kind, COUNT(*) AS n FROM people p GROUP BY kind ORDER BY p.kind",
        "SELECT (kind), COUNT(*) AS n FROM people p GROUP BY (kind) ORDER BY (kind) DESC",
        "FROM people SELECT COUNT(*) AS n",
        "SELECT COUNT(*) AS \"two words\" FROM \"people\" AS \"P\" WHERE \"P\".\"age\" > 3",
        "SELECT SUM(AGE) AS n FROM People WHERE PEOPLE.Kind = 'a'",
        "SELECT flag, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY flag HAVING a > 0 ORDER BY a",
    ],
)  # fmt: skip
def test_order_limits_having_and_names(pair, text):
    pair.check(text, ordered=True)


K = "people JOIN kinds USING (kind)"
C = "people JOIN cities ON city = cities.name"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) AS n, SUM(age) AS s FROM {K}",
        f"SELECT COUNT(*) AS n, SUM(factor) AS s, AVG(factor) AS a, SUM(factor * age) AS t FROM {K}",
        f"SELECT COUNT(*) AS n FROM {K} WHERE label = 'x'",
        f"SELECT COUNT(*) AS n FROM {K} WHERE NOT label = 'x'",
        f"SELECT COUNT(*) AS n FROM {K} WHERE NOT (label = 'x' OR age > 4)",
        f"SELECT COUNT(*) AS n FROM {K} WHERE label IS NULL OR factor > 1 AND flag",
        f"SELECT COUNT(*) AS n FROM {K} WHERE NOT (label = 'y' AND factor > 0)",
        f"SELECT COUNT(*) AS n FROM {K} WHERE city = 'Rome' OR label = 'x'",
        f"SELECT label, COUNT(*) AS n, SUM(factor) AS s FROM {K} GROUP BY label",
        f"SELECT label, COUNT(*) AS n, SUM(factor) AS s FROM {K} WHERE kind <> 'b' GROUP BY label",
        f"SELECT kind, COUNT(*) AS n FROM {K} GROUP BY kind",
        "SELECT k.kind, label, COUNT(*) AS n FROM people p JOIN kinds k ON p.kind = k.kind GROUP BY k.kind, label",
        "SELECT label, flag, COUNT(*) AS n FROM people p JOIN kinds k ON k.kind = p.kind GROUP BY ALL",
        "SELECT SUM(k.factor * b.price) AS s, SUM(age * price) AS t FROM people JOIN kinds k USING (kind) "
        "JOIN bands b USING (age)",
        "SELECT band, COUNT(*) AS n, AVG(price) AS p FROM people JOIN bands USING (age) GROUP BY band",
        "SELECT band, AVG(people.age) AS p FROM people JOIN bands ON people.age = bands.age WHERE band <> 'old' GROUP BY band",
        f"SELECT COUNT(*) AS n, SUM(population) AS s, AVG(population) AS a FROM {C}",
        f"SELECT COUNT(*) AS n FROM {C} WHERE country = 'it' OR age > 5",
        f"SELECT COUNT(*) AS n FROM {C} WHERE NOT country = 'it'",
        "SELECT COUNT(*) AS n FROM people JOIN cities ON city = name WHERE NOT country = 'it'",
        f"SELECT COUNT(*) AS n FROM {C} WHERE NOT (country = 'it' OR age > 5)",
        f"SELECT COUNT(*) AS n, SUM(population * age) AS s FROM {C} WHERE population > 10 OR score > 0",
        f"SELECT country, COUNT(*) AS n, SUM(age) AS s FROM {C} GROUP BY country",
        f"SELECT city, country, COUNT(*) AS n FROM {C} WHERE age > 0 GROUP BY city, country",
        f"SELECT cities.name AS c, flag, COUNT(*) AS n FROM {C} GROUP BY cities.name, flag",
        f"SELECT climate, label, COUNT(*) AS n FROM {J} JOIN regions USING (region) JOIN kinds USING (kind) GROUP BY ALL",
        f"SELECT climate, SUM(regions.pay * hours) AS n FROM {J} JOIN regions USING (region) GROUP BY climate",
        f"SELECT region, COUNT(*) AS n FROM {J} JOIN regions USING (region) GROUP BY region",
        f"SELECT COUNT(*) AS n FROM {J} JOIN regions r ON r.region = jobs.region JOIN cities c ON c.name = people.city "
        "WHERE climate = 'cold' OR country = 'it'",
        f"SELECT COUNT(*) AS n FROM {J} JOIN regions r ON r.region = jobs.region WHERE r.climate = 'cold' AND r.pay = 1",
    ],
)  # fmt: skip
def test_dimensions(pair, text):
    pair.check(text)


def test_one_dimension_joined_twice(pair):
    pair.check(
        "SELECT a.label, b.label AS other, COUNT(*) AS n FROM people p JOIN kinds a ON p.kind = a.kind "
        "JOIN kinds b ON p.kind = b.kind GROUP BY a.label, b.label"
    )
    pair.check(
        "SELECT COUNT(*) AS n FROM people p JOIN cities a ON p.city = a.name JOIN cities b ON p.city = b.name "
        "WHERE a.country = 'it' OR b.country = 'no'"
    )
    pair.check(
        "SELECT b.country, COUNT(*) AS n FROM people p JOIN cities a ON p.city = a.name "
        "JOIN cities b ON p.city = b.name WHERE a.country = 'it' GROUP BY b.country"
    )
