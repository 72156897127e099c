"""Which parts of a statement are questions about registered tables, without Spark."""

import datetime

import pytest

from deniable.engines.spark.question_rewriting import KnownTables, rewritten
from deniable.errors import InvalidParameter, QueryRefused

SHOP = KnownTables.of(["buyers", "Sales"], ["kinds"])


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "SELECT count(*) FROM cities",
        "SELECT * FROM cities WHERE name = 'buyers'",
        "SELECT * FROM warehouse.buyers",
        "SELECT * FROM deniable_sql('SELECT COUNT(*) FROM buyers')",
        "SELECT uid, r.* FROM buyers LATERAL VIEW inline(deniable_buyers(uid, age)) r AS slot, view, seed, y",
        "WITH t AS (SELECT uid FROM buyers) SELECT deniable_sales(uid, age) FROM t",
        "DESCRIBE buyers",
        "EXPLAIN SELECT count(*) FROM buyers",
        "DROP TABLE buyers",
        "DROP VIEW IF EXISTS buyers",
        "CREATE TABLE buyers (uid INT)",
        "CREATE TABLE copied LIKE buyers",
        "CACHE LAZY TABLE buyers",
        "INSERT INTO buyers SELECT 1",
        "INSERT INTO TABLE buyers (uid) SELECT 1",
        "MERGE INTO buyers USING cities ON buyers.uid = cities.uid WHEN MATCHED THEN DELETE",
        "DELETE FROM buyers WHERE uid = 1",
        "SELECT :x FROM cities",
        "SELECT 'unfinished",
    ],
)
def test_statements_that_ask_nothing_pass_untouched(statement):
    assert rewritten(statement, SHOP) is None


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT COUNT(*) FROM buyers", "SELECT * FROM deniable_sql('SELECT COUNT(*) FROM buyers')"),
        (
            "SELECT 1 AS deniable_buyers FROM buyers",
            "SELECT * FROM deniable_sql('SELECT 1 AS deniable_buyers FROM buyers')",
        ),
        ("FROM buyers SELECT COUNT(*)", "SELECT * FROM deniable_sql('FROM buyers SELECT COUNT(*)')"),
        (
            'SELECT AVG(`age`) FROM SALES, kinds WHERE kind = "it\'s"',
            "SELECT * FROM deniable_sql('SELECT AVG(\"age\") FROM SALES, kinds WHERE kind = \\'it\\'\\'s\\'')",
        ),
        (
            "INSERT INTO t SELECT COUNT(*) AS n FROM buyers WHERE age > (SELECT AVG(age) FROM buyers)",
            "INSERT INTO t SELECT * FROM "
            "deniable_sql('SELECT COUNT(*) AS n FROM buyers WHERE age > (SELECT AVG(age) FROM buyers)')",
        ),
        (
            "SELECT n FROM (SELECT COUNT(*) AS n FROM buyers) q CROSS JOIN cities "
            "UNION ALL SELECT SUM(x) AS n FROM sales",
            "SELECT n FROM (SELECT * FROM deniable_sql('SELECT COUNT(*) AS n FROM buyers')) AS q CROSS JOIN cities "
            "UNION ALL SELECT * FROM deniable_sql('SELECT SUM(x) AS n FROM sales')",
        ),
    ],
)
def test_questions_are_replaced_wherever_they_stand(statement, expected):
    assert rewritten(statement, SHOP) == expected


def test_parameters_become_literals():
    text = "SELECT COUNT(*) FROM buyers WHERE kind = :kind AND day < :day"
    values = {"kind": "o'", "day": datetime.date(2020, 1, 2)}
    made = rewritten(text, SHOP, values)
    assert r"kind = \'o\'\'\'" in made
    assert "2020-01-02" in made
    with pytest.raises(InvalidParameter, match="lack a parameter"):
        rewritten(text, SHOP, {"kind": 1})
    with pytest.raises(InvalidParameter, match="lack a parameter"):
        rewritten("SELECT COUNT(*) FROM buyers WHERE a = ? AND b = ?", SHOP, [1])
    in_order = rewritten("SELECT COUNT(*) FROM buyers WHERE a = ? AND b = '?' GROUP BY c HAVING d > ?", SHOP, [1, 2])
    assert r"a = 1 AND b = \'?\' GROUP BY c HAVING d > 2" in in_order
    with pytest.raises(InvalidParameter, match="not a literal"):
        rewritten(text, SHOP, {"kind": object(), "day": 1})


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELECT COUNT(*) FROM buyers JOIN cities USING (city)", "cannot be joined with 'cities'"),
        ("SELECT COUNT(*) FROM buyers, (SELECT 1 AS x) q", "cannot be joined with 'q'"),
        ("SELECT COUNT(*) FROM (buyers JOIN cities USING (city))", "cannot be joined with 'cities'"),
        ("CREATE VIEW v AS SELECT * FROM buyers b JOIN warehouse.buyers c USING (uid)", "cannot be joined with 'c'"),
        ("WITH sales AS (SELECT 1) SELECT * FROM sales", "WITH names a query 'sales'"),
        ("TABLE buyers", "could not be read"),
        ("SELECT FROM buyers WHERE (", "could not be read"),
        ("SELECT * FROM ((buyers))", "other than by a SELECT"),
        ("SELECT * FROM (TABLE buyers)", "other than by a SELECT"),
        ("SELECT * FROM IDENTIFIER('buyers')", "other than by a SELECT"),
        ("SELECT * FROM shown(TABLE(buyers))", "other than by a SELECT"),
        ("WITH t AS (TABLE buyers) SELECT * FROM t", "other than by a SELECT"),
        ("INSERT INTO t TABLE buyers", "other than by a SELECT"),
        ("CREATE OR REPLACE TEMPORARY VIEW t AS TABLE Buyers", "other than by a SELECT"),
        ("MERGE INTO t USING buyers ON t.uid = buyers.uid WHEN MATCHED THEN DELETE", "other than by a SELECT"),
    ],
)
def test_mixtures_and_what_is_not_understood_are_refused(statement, problem):
    with pytest.raises(QueryRefused, match=problem):
        rewritten(statement, SHOP)
