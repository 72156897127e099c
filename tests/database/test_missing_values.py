"""Missing values with a cell of their own, and dates by units of the calendar: without noise, as plain SQL has them."""
# ruff: noqa: E501 - a query reads best on one line

import math
from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

import deniable as dn

pytest.register_assert_rewrite("plain_sql")

from deniable.errors import InvalidParameter, QueryRefused  # noqa: E402
from plain_sql import Pair  # noqa: E402

AGES = [3, None, 7, 9, None, 12, 15, 1, 20, 4, 4, None]
ROWS = 240
DAYS = [date(2023, 12, 31) + timedelta(days=5 * number) for number in range(ROWS)]
FRAME = pa.table(
    {
        "uid": range(ROWS),
        "age": [AGES[number % 12] for number in range(ROWS)],
        "kind": [("a", "b", None, "a")[number % 4] for number in range(ROWS)],
        "flag": [(True, None, False)[number % 3] for number in range(ROWS)],
        "code": [(10, 20, None, 20, 10)[number % 5] for number in range(ROWS)],
        "month": [None if number % 9 == 4 else DAYS[number] for number in range(ROWS)],
        "quarter": DAYS,
        "year": DAYS,
        "week": DAYS,
        "hour": [datetime(2024, 1, 1) + timedelta(minutes=7 * number) for number in range(ROWS)],
    }
)
PEOPLE = dn.Table(
    "people",
    age=dn.Ordinal(1, 20, missing="own"),
    kind=dn.Categorical("a", "b", missing="own"),
    flag=dn.Categorical(True, False, missing="own"),
    code=dn.Categorical(10, 20, missing="own"),
)
TRIPS = dn.Table(
    "trips",
    month=dn.Dates("2023-12-01", "2027-12-31", unit="month", missing="own"),
    quarter=dn.Dates("2023-12-01", "2027-12-31", unit="quarter"),
    year=dn.Dates("2023-12-01", "2027-12-31", unit="year"),
)
WEEKS = dn.Table("weeks", week=dn.Dates("2023-12-01", "2027-12-31", unit="week"))
HOURS = dn.Table("hours", hour=dn.Dates("2024-01-01", "2024-01-03", unit="hour"))
TABLES = (PEOPLE, TRIPS, WEEKS, HOURS)
QUESTIONS = [
    "SELECT COUNT(*) AS n, COUNT(age) AS k, SUM(age) AS s, AVG(age) AS a, STDDEV(age) AS d FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE age IS NULL",
    "SELECT COUNT(*) AS n FROM people WHERE age IS NOT NULL AND kind IS NULL",
    "SELECT COUNT(*) AS n FROM people WHERE NOT age > 7",
    "SELECT COUNT(*) AS n FROM people WHERE age <> 4 OR kind = 'b'",
    "SELECT COUNT(*) AS n FROM people WHERE NOT (age < 4 AND kind = 'a')",
    "SELECT COUNT(*) AS n FROM people WHERE age NOT BETWEEN 3 AND 9",
    "SELECT COUNT(*) AS n FROM people WHERE kind NOT IN ('a')",
    "SELECT COUNT(*) AS n FROM people WHERE age * 2 + 1 > 9",
    "SELECT COUNT(*) AS n FROM people WHERE NOT (age * 2 > 9)",
    "SELECT COUNT(*) AS n FROM people WHERE flag",
    "SELECT COUNT(*) AS n FROM people WHERE NOT flag",
    "SELECT COUNT(*) AS n FROM people WHERE flag IS NOT TRUE",
    "SELECT SUM(flag::INT) AS s, AVG(flag::INT) AS a, COUNT(flag) AS n FROM people",
    "SELECT SUM(code) AS s, AVG(code) AS a FROM people WHERE kind = 'a'",
    "SELECT kind, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY kind ORDER BY kind NULLS LAST",
    "SELECT age, COUNT(*) AS n FROM people WHERE age > 3 GROUP BY age HAVING COUNT(*) > 0 ORDER BY age NULLS LAST",
    "SELECT age // 10 AS bin, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY bin NULLS LAST",
    "SELECT upper(kind) AS k, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY k NULLS LAST",
    "SELECT COALESCE(kind, 'none') AS k, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY k",
    "SELECT SUM(COALESCE(age, 100)) AS s, SUM(CASE WHEN age IS NULL THEN 1 ELSE 0 END) AS m FROM people",
    "SELECT SUM(age * code) AS s, CORR(age, code) AS c FROM people",
    "SELECT MEDIAN(age) AS m, QUANTILE_DISC(age, 0.9) AS q FROM people",
    "SELECT COUNT(*) FILTER (WHERE age IS NULL) AS n, COUNT_IF(age > 5) AS m FROM people",
    "SELECT COUNT(*) AS n FROM trips WHERE month BETWEEN '2024-02-01' AND '2024-05-31'",
    "SELECT COUNT(*) AS n FROM trips WHERE month > '2024-05-31' OR month IS NULL",
    "SELECT COUNT(*) AS n FROM trips WHERE quarter < '2025-01-01' AND year >= '2024-01-01'",
    "SELECT COUNT(*) AS n FROM weeks WHERE week <= '2024-03-10'",
    "SELECT date_trunc('quarter', month) AS q, COUNT(*) AS n FROM trips GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY q NULLS LAST",
    "SELECT YEAR(year) AS y, COUNT(*) AS n FROM trips GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY y",
    "SELECT EXTRACT(month FROM month) AS m, COUNT(*) AS n FROM trips GROUP BY 1 ORDER BY m NULLS LAST",
    "SELECT date_trunc('week', week) AS w, COUNT(*) AS n FROM weeks GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY w",
    "SELECT date_trunc('hour', hour) AS h, COUNT(*) AS n FROM hours GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY h",
    "SELECT COUNT(*) AS n FROM trips WHERE month >= DATE '2024-01-01' + INTERVAL 3 MONTH",
]  # fmt: skip


@pytest.fixture(scope="module", params=["mg", "amg"])
def pair(request):
    raw = {table.name: FRAME.select(["uid", *table.private]) for table in TABLES}
    return Pair(design=request.param, tables=TABLES, raw=raw)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_without_noise_are_those_of_plain_sql(pair, question):
    pair.check(question)


def test_rows_without_a_value_are_not_called_none():
    plain = dn.Collection(dn.Table("t", a=dn.Ordinal(0, 9), b=dn.Ordinal(0, 9, missing="own")), epsilon=2.0)
    database = dn.connect(plain.perturb(t={"uid": [1, 2], "a": [1, 2], "b": [1, None]}))
    with pytest.raises(QueryRefused, match=r"'a' is missing are not reported.*missing = \"own\""):
        database.sql("SELECT COUNT(*) FROM t WHERE a IS NULL AND b > 3")
    assert database.sql("SELECT COUNT(*) FROM t WHERE a IS NOT NULL").scalar().value == pytest.approx(2)
    assert database.sql("SELECT COUNT(*) FROM t WHERE b IS NULL OR b IS NOT NULL").scalar().value == pytest.approx(2)


def test_cells_of_missing_values_are_never_joined_with_others():
    table = dn.Table("t", a=dn.Ordinal(0, 99, missing="own"), b=dn.Ordinal(0, 9))
    grid = dn.Collection(table, epsilon=2.0, design="grid")
    for view in (*grid.grids["t"], *dn.fit(table, epsilon=2.0, users=10_000).collection.grids["t"]):
        if "a" in view.axes:
            assert view.axes["a"].places(101)[-1] == 100
    for cut in (8, dn.Points(5)):
        with pytest.raises(InvalidParameter, match="joins missing values"):
            dn.Collection(table, epsilon=2.0, design="grid", grids={"t": [dn.GridView({"a": cut})]})


@pytest.mark.parametrize(
    ("unit", "low", "size"),
    [
        ("day", date(2024, 2, 14), 322),
        ("week", date(2024, 2, 12), 47),
        ("month", date(2024, 2, 1), 11),
        ("quarter", date(2024, 1, 1), 4),
        ("hour", datetime(2024, 2, 14), 7728),
    ],
)
def test_dates_begin_where_their_unit_does(unit, low, size):
    domain = dn.Dates("2024-02-14", "2024-12-31", unit=unit, missing="own")
    assert (domain.low, domain.known_size, domain.size) == (low, size, size + 1)
    assert domain.decode(0) == low
    assert domain.decode(domain.encode(None)) is None
    collection = dn.Collection(dn.Table("t", d=domain), epsilon=1.0)
    assert dn.Collection.from_dict(collection.to_dict()) == collection
    entry = {"kind": "dates", "low": "2024-02-14", "high": "2024-12-31", "unit": unit, "missing": "own"}
    listed = {"epsilon": 1.0, "tables": {"t": {"attributes": {"d": entry}}}}
    assert dn.Collection.from_dict(listed).sha256 == collection.sha256


@pytest.mark.parametrize("bad", [{"unit": "decade"}, {"low": "soon"}, {"low": 3}, {"missing": "2030-01-01"}])
def test_dates_that_mean_nothing_are_refused(bad):
    with pytest.raises(InvalidParameter):
        dn.Dates(**({"low": "2024-01-01", "high": "2024-12-31"} | bad))


def test_months_begin_on_their_first_day():
    with pytest.raises(InvalidParameter, match="first day of a month"):
        dn.Ordinal(date(2024, 1, 2), date(2024, 12, 31), "month")
    with pytest.raises(InvalidParameter, match="dates, not of times"):
        dn.Ordinal(datetime(2024, 1, 1), datetime(2024, 12, 31), "month")


def test_what_takes_the_place_of_missing_values_has_quantiles_and_is_counted():
    table = dn.Table("t", a=dn.Ordinal(0, 9, missing=4), k=dn.Categorical("x", "y", missing="y"))
    frame = pa.table({"uid": range(6), "a": [1, 2, None, None, 8, 9], "k": ["x", None, None, "y", "x", "y"]})
    database = dn.connect(dn.Collection(table, epsilon=math.inf, design="mg").perturb(t=frame, simulation=True))
    (answer,) = database.sql("SELECT MEDIAN(a) AS m, MODE(k) AS k, COUNT(a) AS n FROM t")
    assert (answer["m"].value, answer["k"], answer["n"].value) == (4.0, "y", 6.0)
    assert database.sql("SELECT COUNT(*) FROM t WHERE k IS NOT NULL").scalar().value == pytest.approx(6)
    with pytest.raises(dn.errors.QueryRefused, match="were replaced before they were reported"):
        database.sql("SELECT COUNT(*) FROM t WHERE k IS NULL")
