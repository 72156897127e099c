"""Nothing is left out in silence, nothing slips into SQL, nothing crashes: whatever is not understood is refused by name."""
# ruff: noqa: E501 - a query reads best on one line

import math
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.errors import BadInput, InvalidData, QueryRefused

USERS = dn.Table(
    "users",
    age=dn.Ordinal(0, 9),
    other=dn.Ordinal(0, 9),
    share=dn.Ordinal(0, 1, "0.25"),
    kind=dn.Categorical("a", "b", "c"),
    flag=dn.Categorical(True, False),
    day=dn.Ordinal(date(2020, 1, 1), date(2020, 1, 31)),
    week=dn.Ordinal(date(2020, 1, 1), date(2020, 1, 29), "week"),
    seen=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 1, 23), "hour"),
    city=dn.Public(),
    score=dn.Public(),
)
JOBS = dn.Table("jobs", hours=dn.Ordinal(0, 9))
PETS = dn.Table("pets", paws=dn.Ordinal(0, 9))
ODD = 'x"; DROP TABLE rows; --'
DIMENSIONS = {
    "kinds": pa.table({"kind": ["a", "b", "c"], ODD: ["1", "2", "3"], "it's": [1.0, 2.0, 3.0], "rank": [1, 2, 3]}),
    "cities": pa.table({"city": ["Rome", "Oslo"], ODD: ["south", "north"]}),
    "dates": pa.table({"when": [date(2020, 1, 1)], "what": ["x"]}),
    "twice": pa.table({"kind": ["a", "a"], "what": ["x", "y"]}),
}


@pytest.fixture(scope="module")
def database():
    random = np.random.default_rng(2)
    shop = dn.Collection(USERS, JOBS, PETS, epsilon=40.0, design="sc")
    size = 300
    rows = {
        "uid": np.arange(size),
        "age": random.integers(0, 10, size),
        "other": random.integers(0, 10, size),
        "share": random.integers(0, 5, size) * 0.25,
        "kind": np.array(["a", "b", "c"])[random.integers(0, 3, size)],
        "flag": random.integers(0, 2, size) == 1,
        "day": [date(2020, 1, 1 + int(day)) for day in random.integers(0, 31, size)],
        "week": [date(2020, 1, 1 + 7 * int(week)) for week in random.integers(0, 5, size)],
        "seen": [datetime(2020, 1, 1, int(hour)) for hour in random.integers(0, 24, size)],
        "city": np.array(["Rome", "secret 4711"])[random.integers(0, 2, size)],
        "score": random.integers(0, 5, size),
    }
    jobs = pa.table({"uid": np.arange(size), "hours": random.integers(0, 10, size)})
    pets = pa.table({"uid": np.arange(size), "paws": random.integers(0, 10, size)})
    return dn.connect(shop.perturb(users=pa.table(rows), jobs=jobs, pets=pets), dimensions=DIMENSIONS)


COUNT = "SELECT COUNT(*) FROM users "


@pytest.mark.parametrize(
    ("text", "message", "shown"),
    [
        # Parts that would be read over.
        ("SELECT COUNT(*) FROM users TABLESAMPLE 10%", "SAMPLE of TABLE is not supported", "users"),
        ("SELECT COUNT(*) FROM users USING SAMPLE 10%", "SAMPLE is not supported", None),
        ("SELECT COUNT(*) FROM users AS u(a, b)", "COLUMNS of TABLE ALIAS is not supported", "u(a"),
        ("SELECT COUNT(*, age) FROM users", "EXPRESSIONS of COUNT is not supported", "COUNT"),
        (COUNT + "WHERE age BETWEEN SYMMETRIC 5 AND 2", "not SQL", None),
        ("SELECT kind, COUNT(*) AS n FROM users GROUP BY kind ORDER BY n NULLS FIRST", "NULLS FIRST is not supported", "n NULLS"),
        (COUNT + "LIMIT 10 PERCENT", "is not supported", None),
        (COUNT + "LIMIT 10%", "LIMIT OPTIONS of LIMIT is not supported", None),
        ("SELECT SUM(age ORDER BY kind) FROM users", "THIS of ORDER is not supported", "age"),
        # Two attributes in one condition: each would be taken for the first.
        (COUNT + "WHERE 3 IN (age, other)", "a condition has two attributes", "3 IN"),
        (COUNT + "WHERE 3 BETWEEN age AND other", "a condition has two attributes", "3 BETWEEN"),
        # A join that leaves the new table free.
        ("SELECT COUNT(*) FROM users JOIN jobs USING (uid) JOIN pets ON users.uid = jobs.uid", "joined on the user id only", "pets"),
        ("SELECT COUNT(*) FROM users JOIN jobs ON users.uid = users.uid", "joined on the user id only", "jobs"),
        ("SELECT COUNT(*) FROM users JOIN jobs ON users.uid = jobs.uid OR users.age = 3", "joined on the user id only", "jobs"),
        ("SELECT COUNT(*) FROM users JOIN jobs ON users.uid <> jobs.uid", "joined on the user id only", "jobs"),
        ("SELECT COUNT(*) FROM users, jobs", "joined on the user id only", "jobs"),
        ("SELECT COUNT(*) FROM users, jobs WHERE users.age = jobs.hours", "joined on the user id only", "jobs"),
        ("SELECT COUNT(*) FROM users CROSS JOIN jobs", "this kind of join is not possible", "jobs"),
        # Derived tables.
        ("SELECT COUNT(*) FROM (SELECT age AS a FROM users) t WHERE age = 3", "the derived table has no column 'age'", "age"),
        ("SELECT COUNT(*) FROM (SELECT age FROM users LIMIT 3) t", "rows of a derived table cannot be chosen", "age"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT age FROM users) t", "rows of a derived table cannot be chosen", "age"),
        ("SELECT AVG(n) FROM (SELECT kind, AVG(age) AS n FROM users GROUP BY kind) t", "only sums and counts can be added", None),
        ("SELECT MAX(kind) FROM (SELECT kind, COUNT(*) AS n FROM users GROUP BY kind) t", "not an answer of the derived table", None),
        ("SELECT COUNT(*) > 10 AS many FROM users", "a comparison of answers would be decided by noise", "COUNT"),
        ("SELECT kind, MAX(COUNT(*)) OVER () FROM users GROUP BY kind", "noise would decide ranks", None),
        ("SELECT age, SUM(COUNT(*)) OVER (ORDER BY age RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM users GROUP BY age", "frames of windows are counted in rows", None),
        ("SELECT LOG(1, COUNT(*)) FROM users", "the base of a logarithm is a number above 1", "LOG"),
        ("SELECT SUM(n) FROM (SELECT kind, COUNT(*) AS n FROM users GROUP BY kind) t WHERE n > 3", "chosen and then added up", None),
        ("SELECT n FROM (SELECT kind, COUNT(*) AS n FROM users GROUP BY kind LIMIT 2) t WHERE n > 3", "LIMIT in a derived table", None),
        ("SELECT COUNT(*) FROM users JOIN (SELECT kind, COUNT(*) AS n FROM users GROUP BY kind) t USING (kind)", "answers cannot be joined", None),
        ("WITH RECURSIVE t AS (SELECT age FROM users) SELECT COUNT(*) FROM t", "WITH takes SELECTs", None),
        ("SELECT COUNT(*) FROM users WHERE uid NOT IN (SELECT uid FROM jobs LIMIT 3)", "a semi-join is with one table", None),
        ("SELECT COUNT(*) FROM users WHERE uid IN (SELECT uid FROM jobs GROUP BY uid)", "a semi-join is with one table", None),
        ("SELECT COUNT(*) FROM users ASOF JOIN jobs USING (uid)", "this kind of join is not possible", "jobs"),
        ("SELECT COUNT(*) FROM kinds", "a dimension cannot come first", "kinds"),
        ("SELECT COUNT(*) FROM users JOIN kinds ON kinds.kind <> users.kind", "a dimension is joined on one attribute", "kinds"),
        # What one name means.
        ("SELECT SUM(age) AS kind FROM users GROUP BY kind", "the name of an answer and of another attribute", "kind"),
        ("SELECT other AS kind, COUNT(*) FROM users GROUP BY kind", "the name of an answer and of another attribute", "kind"),
        ("SELECT 7 AS x FROM users", "nothing is aggregated", "7"),
        # Constants.
        (COUNT + "WHERE age = 1e999999999", "too long", "1e9"),
        (COUNT + "WHERE age < 0.00000000000000000000001", "too long", "0.0"),
        ("SELECT SUM(age * 1e999999999) FROM users", "too long", "1e9"),
        ("SELECT COUNT(*) * 1e999 FROM users", "too long", "1e9"),
        ("SELECT SUM(1e9 * 1e9 * 1e9 * 1e9 * age) FROM users", "too large", "1e9"),
        (COUNT + "LIMIT 99999999999999999999999", "whole number", "99"),
        (COUNT + "WHERE kind = CAST('a' AS INTEGER)", "cannot be calculated for every value", "'a'"),
        (COUNT + "WHERE kind = DATE '2020-01-01'", "has another type than the attribute", "'2020"),
        (COUNT + "WHERE day < TIMESTAMP '2020-01-03 10:00:00'", "has another type than the attribute", "'2020"),
        (COUNT + "WHERE seen < '2020-01-01 10:00:00+02:00'", "not a date or time", "'2020"),
        (COUNT + "WHERE seen < '2020-01-01 10:30:00'", "lies inside an interval", "'2020"),
        (COUNT + "WHERE week >= '2020-01-09'", "lies inside an interval", "'2020"),
        (COUNT + "WHERE age = 'NaN'", "has another type than the attribute", "'NaN'"),
        (COUNT + "WHERE kind", "has another type than the attribute", "kind"),
        (COUNT + "WHERE age = ?", "PLACEHOLDER is not known here", None),
        (COUNT + "WHERE age = $1", "PLACEHOLDER is not known here", None),
        (COUNT + "WHERE day < CURRENT_DATE", "depend on the day it is asked on", "CURRENT_DATE"),
        (COUNT + "WHERE seen < now()", "depend on the day it is asked on", "now"),
        (COUNT + "WHERE DATE_TRUNC('minute', seen) = TIMESTAMP '2020-01-01 10:00:00'", "divides the intervals", "DATE_TRUNC"),
        (COUNT + "WHERE DATE_TRUNC('month', week) = DATE '2020-01-01'", "divides the intervals", "DATE_TRUNC"),
        # Text that one parser forgives.
        ("SELECT FLOOR(age / 5 AS bin, COUNT(*) FROM users GROUP BY bin", "the text is not SQL", "AS bin"),
        (COUNT + "WHERE age BETWEEN 2 5", "the text is not SQL", "5"),
        ("SELECT , COUNT(*) FROM users", "the text is not SQL", ", COUNT"),
        ("SELECT COUNT(*) FROM @ users", "the text is not SQL", "@"),
        ("SELECT COUNT(*)\nFROM users\nWHERE age = (3", "the text is not SQL", None),
        ("SELECT COUNT(*) FROM users WHERE kind = 'a", "the text is not SQL", "'a"),
        (COUNT + "/* never closed", "the text is not SQL", None),
        # Other statements, other places of SQL.
        ("COPY users TO 'x.csv'", "one SELECT is expected", "COPY"),
        ("SELECT COUNT(*) FROM 'x.parquet'", "there is no table", "'x.parquet'"),
        ("SELECT COUNT(*) FROM read_csv('x.csv')", "collection's own tables", None),
        ("SELECT COUNT(*) FROM users; DROP TABLE users", "one SELECT is expected", None),
        ("SELECT COUNT(*) FROM users UNION SELECT COUNT(*) FROM users", "UNION would compare noisy rows", None),
        (COUNT + "WHERE city IN (SELECT city FROM users)", "subqueries are not supported", "city"),
        (COUNT + "WHERE EXISTS (SELECT 1)", "subqueries are not supported", "1"),
        (COUNT + "WHERE city = (SELECT 'Rome')", "a subquery here is one aggregate", None),
        (COUNT + "WHERE city = read_text('x')", "READ_TEXT is not known here", "read_text"),
        (COUNT + "WHERE city = getenv('HOME')", "GETENV is not known here", "getenv"),
        (COUNT + "WHERE CAST(city AS INTEGER) = 3", "this condition is not supported", "city"),
        (COUNT + "WHERE city COLLATE nocase = 'rome'", "COLLATE is not known here", "city"),
        (COUNT + "WHERE score / 0 = 1", "DIV is for private attributes", "score"),
        (COUNT + "WHERE age = read_text('x')", "READ_TEXT is not known here", "read_text"),
        (COUNT + "WHERE age + random() > 3", "RAND is not known here", None),
        (COUNT + "WHERE rowid = 3", "there is no attribute 'rowid'", "rowid"),
        (COUNT + "WHERE uid = 3", "users cannot be distinguished by their id", "uid"),
        ("SELECT uid, COUNT(*) FROM users GROUP BY uid", "users cannot be distinguished by their id", "uid"),
        ("SELECT users.* FROM users", "rows of single people cannot be shown", "users"),
        ("SELECT COLUMNS(*) FROM users", "rows of single people cannot be shown", None),
        ("SELECT COUNT(users.*) FROM users", "rows of one table cannot be counted apart", "COUNT"),
        ("SELECT SUM(COUNT(*)) FROM users", "this cannot be summed", "COUNT"),
        ("SELECT SUM(CASE WHEN age > 3 THEN 'x' END) FROM users", "this cannot be summed", None),
        ("SELECT SUM(LOWER(kind)) FROM users", "this is not a number", None),
        ("SELECT GREATEST(AVG(age), AVG(other)) FROM users", "decided by noise", None),
        ("SELECT COUNT(*) % COUNT(*) FROM users", "% divides an answer by a number", None),
        ("SELECT STRING_AGG(kind, ',') FROM users", "STRING_AGG would show values", None),
        ("SELECT ANY_VALUE(kind) FROM users", "ANY_VALUE would show a value", None),
        ("SELECT KURTOSIS(age) FROM users", "KURTOSIS is not a function that can be answered", None),
        ("SELECT SUM(age) FILTER (WHERE age = kind) FROM users", "two attributes of one person cannot be compared", None),
        ("SELECT SUM(age) FILTER (WHERE uid = 3) FROM users", "users cannot be distinguished by their id", "uid"),
        ("SELECT kind, COUNT(*) AS n FROM users GROUP BY kind ORDER BY other", "does not select", "other"),
        ("SELECT kind, COUNT(*) AS n FROM users GROUP BY kind ORDER BY n USING >", "not SQL", None),
        ("SELECT COUNT(*) FROM users WHERE " + "(" * 3000 + "age = 1" + ")" * 3000, "nested more than 32", "(("),
        ("SELECT COUNT(*) FROM users WHERE age = 1" + " OR age = 1" * 300, "more than 200 conditions", "age"),
        ("SELECT COUNT(*) FROM users " + " " * 100_000, "longer than", None),
        ("SELECT COUNT(*) FROM users WHERE city = '\0'", "a NUL character", "\0"),
    ],
)  # fmt: skip
def test_what_is_refused_and_where(database, text, message, shown):
    with pytest.raises(QueryRefused) as caught:
        database.sql(text)
    assert message in str(caught.value)
    assert "Nothing was computed" in str(caught.value)
    if shown is not None:
        assert text[caught.value.start :].startswith(shown), str(caught.value)


def test_names_and_texts_cannot_leave_their_quotes(database):
    quoted = '"' + ODD.replace('"', '""') + '"'
    joined = "users JOIN kinds k USING (kind)"
    whole = database.sql(f"SELECT COUNT(*) FROM {joined} WHERE k.{quoted} = '1'").scalar().value
    assert whole == pytest.approx(database.sql(COUNT + "WHERE kind = 'a'").scalar().value)
    for constant in ("' OR 1 = 1 --", "''; DROP TABLE rows", '\\', "\\' OR true --", "%", "é😀", '"'):  # fmt: skip
        text = "'" + constant.replace("'", "''") + "'"
        assert database.sql(f"SELECT COUNT(*) FROM users WHERE city = {text}").scalar().value == 0.0
        assert database.sql(f"SELECT COUNT(*) FROM {joined} WHERE {quoted} = {text}").scalar().value == 0.0
        nobody = database.sql(f"SELECT COUNT(*) FROM users WHERE kind = {text}")
        assert nobody.scalar().value == 0.0
        assert "is not in the list of kind: nobody has it" in nobody.notes[0]
    looked = f"users JOIN cities c ON c.city = users.city WHERE c.{quoted} = 'south'"
    assert (
        database.sql(f"SELECT COUNT(*) FROM {looked}").scalar().value
        == database.sql(COUNT + "WHERE city = 'Rome'").scalar().value
    )
    assert database.sql(f'SELECT SUM("it\'s") FROM {joined}').scalar().value == pytest.approx(
        database.sql(f"SELECT SUM(rank) FROM {joined}").scalar().value
    )
    assert database.sql('SELECT COUNT(*) AS "a""b; --" FROM users').answers.keys() == {'a"b; --'}


def test_errors_do_not_quote_data(database):
    for condition in ("city = 3", "city > DATE '2020-01-01'", "score = 'x'", "city + 1 = 2", "city AND flag"):
        with pytest.raises(BadInput) as caught:
            database.sql(COUNT + "WHERE " + condition)
        assert "4711" not in str(caught.value)
    with pytest.raises(BadInput) as caught:
        database.sql("SELECT SUM(city) FROM users")
    assert "4711" not in str(caught.value)


def test_dimensions_that_do_not_fit(database):
    with pytest.raises(InvalidData, match="twice"):
        database.sql("SELECT COUNT(*) FROM users JOIN twice USING (kind)")
    for on in (
        "users.score = dates.when",
        "users.age = dates.when",
        "users.kind = dates.when",
    ):
        with pytest.raises(BadInput, match="of another type"):
            database.sql(f"SELECT COUNT(*) FROM users JOIN dates ON {on}")
    with pytest.raises(QueryRefused, match="contains a dot"):
        database.sql('SELECT COUNT(*) FROM users JOIN cities AS "a.b" ON "a.b".city = users.city')
    same = database.sql("SELECT COUNT(*) FROM users JOIN dates ON day = dates.when").scalar()
    assert math.isfinite(same.value)
