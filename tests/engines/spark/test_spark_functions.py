"""Functions of Spark SQL: reports from rows, answers from questions."""

import socket
import struct
import threading

import numpy as np
import pyarrow as pa
import pytest

pytest.register_assert_rewrite("spark_shop")

import deniable as dn  # noqa: E402
from deniable.errors import InvalidParameter, QueryRefused, SimulationOnly  # noqa: E402
from spark_shop import agree  # noqa: E402

USERS = dn.Table("buyers", age=dn.Ordinal(0, 24), kind=dn.Categorical("a", "b"))
ORDERS = dn.Table("sales", many=3, tau=3, amount=dn.Ordinal(0, 9))
SHOP = dn.Collection(USERS, ORDERS, epsilon=8.0)
COUNT = 500


@pytest.fixture(scope="module")
def shop(spark):
    random = np.random.default_rng(1)
    buyers = np.repeat(np.arange(COUNT), random.integers(0, 4, COUNT))
    kinds = np.array(["a", "b"])[random.integers(0, 2, COUNT)]
    raw = pa.table({"uid": np.arange(COUNT), "age": random.integers(0, 25, COUNT), "kind": kinds})
    spark.createDataFrame(raw).createOrReplaceTempView("buyers")
    sales = pa.table({"uid": buyers, "amount": random.integers(0, 10, buyers.size)})
    spark.createDataFrame(sales).createOrReplaceTempView("sales")
    dn.spark.register(spark, SHOP)
    spark.sql(
        "CREATE TABLE buyers_reports USING parquet AS "
        "SELECT uid, r.* FROM buyers LATERAL VIEW inline(deniable_buyers(uid, age, kind)) r AS slot, view, seed, y"
    )
    spark.sql(
        "CREATE TABLE sales_reports USING parquet AS WITH bought AS (SELECT b.uid, "
        "collect_list(CASE WHEN amount IS NOT NULL THEN struct(amount) END) AS bought "
        "FROM buyers b LEFT JOIN sales s ON s.uid = b.uid GROUP BY b.uid) "
        "SELECT uid, r.* FROM bought LATERAL VIEW inline(deniable_sales(uid, bought)) r AS slot, view, seed, y"
    )
    return spark


@pytest.mark.slow
def test_reports_from_sql_are_complete_and_answer_questions(shop):
    tables = {name: f"{name}_reports" for name in ("buyers", "sales")}
    database = dn.connect(tables, engine=shop, collection=SHOP)
    assert {name: store.rows for name, store in database.stores.items()} == {"buyers": COUNT, "sales": 3 * COUNT}
    assert not any(database.refused.values())
    result = database.sql("SELECT AVG(age) AS a FROM buyers").scalar()
    assert abs(result.value - 12) < 6 * result.stderr
    total = database.sql("SELECT SUM(amount) AS s FROM sales").scalar()
    truth = shop.table("sales").selectExpr("sum(amount)").first()[0]
    assert abs(total.value - truth) < 6 * total.stderr


def test_questions_are_a_table_function(shop):
    question = "SELECT kind, COUNT(*) AS n FROM buyers WHERE age < 12 GROUP BY kind"
    answer = shop.sql(f"SELECT * FROM deniable_sql('{question}')")
    assert answer.columns == ["kind", "n", "n_stderr", "n_low", "n_high"]
    database = dn.connect({"buyers": "buyers_reports"}, engine=shop, collection=SHOP)
    expected = database.sql(question)
    rows = answer.toArrow().to_pylist()
    assert [row["kind"] for row in rows] == expected.groups["kind"]
    assert [row["n"] for row in rows] == pytest.approx([estimate.value for estimate in expected.answers["n"]], rel=1e-9)
    (joined,) = shop.sql(
        "SELECT count(*) AS c FROM deniable_sql('SELECT kind, COUNT(*) AS n FROM buyers GROUP BY kind') d "
        "JOIN VALUES ('a'), ('b') AS k(kind) USING (kind)"
    ).collect()
    assert joined.c == 2
    agree(database.sql(question), expected)


def numbers(frame):
    return [tuple(row) for row in frame.collect()]


def test_plain_sql_is_answered_from_reports(shop):
    database = dn.connect({name: f"{name}_reports" for name in ("buyers", "sales")}, engine=shop, collection=SHOP)
    for question in (
        "SELECT kind, COUNT(*) AS n FROM buyers WHERE age < 12 GROUP BY kind ORDER BY kind",
        "SELECT AVG(amount) AS a, COUNT(*) AS n FROM sales JOIN buyers ON sales.uid = buyers.uid WHERE age < 12",
        "SELECT COUNT(*) AS n FROM Buyers WHERE kind = 'a' OR age > 20;",
    ):
        found = shop.sql(question).toArrow()
        expected = database.sql(question).to_arrow()
        assert found.column_names == expected.column_names
        for name in expected.column_names:
            values = expected[name].to_pylist()
            assert found[name].to_pylist() == (
                values if name == "kind" else pytest.approx(values, rel=1e-9, nan_ok=True)
            )


def test_plain_sql_is_read_as_spark_reads_it(shop):
    asked = 'SELECT COUNT(*) AS n FROM `buyers` WHERE kind = "a" AND age < 12 -- in Spark\'s quotes'
    expected = numbers(shop.sql("SELECT COUNT(*) AS n FROM buyers WHERE kind = 'a' AND age < 12"))
    assert numbers(shop.sql(asked)) == expected
    by_name = "SELECT COUNT(*) AS n FROM buyers WHERE kind = :kind AND age < :age"
    assert numbers(shop.sql(by_name, args={"kind": "a", "age": 12})) == expected
    in_order = "SELECT COUNT(*) AS n FROM buyers WHERE kind = ? AND age < ?"
    assert numbers(shop.sql(in_order, args=["a", 12])) == expected


def test_questions_are_parts_of_larger_statements(shop):
    (whole,) = numbers(shop.sql("SELECT COUNT(*) AS n FROM buyers WHERE age < 12"))
    (doubled,) = numbers(shop.sql("SELECT 2 * n AS n FROM (SELECT COUNT(*) AS n FROM buyers WHERE age < 12)"))
    assert doubled == (2 * whole[0],)
    joined = shop.sql(
        "WITH asked AS (SELECT kind, COUNT(*) AS n FROM buyers GROUP BY kind) "
        "SELECT label, n FROM asked JOIN VALUES ('a', 'it\\'s'), ('b', 'two\\n') AS k(kind, label) USING (kind)"
    )
    assert {row.label for row in joined.collect()} == {"it's", "two\n"}
    shop.sql("CREATE OR REPLACE TEMPORARY VIEW answers AS SELECT COUNT(*) AS n FROM buyers WHERE age < 12")
    assert numbers(shop.sql("SELECT * FROM answers")) == [whole]


def test_other_statements_reach_spark_as_they_are(shop):
    assert shop.sql("SELECT {a} + 1 AS b", a=1).first().b == 2
    assert shop.sql("SELECT :a + 1 AS b", args={"a": 1}).first().b == 2
    assert shop.sql("SELECT 'buyers' AS b").first().b == "buyers"
    assert shop.sql("DESCRIBE buyers").count() == 3
    assert shop.sql("SELECT count(*) AS c FROM buyers_reports").first().c == COUNT


def test_a_name_of_the_collection_never_shows_rows(shop):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="rows of single people cannot be shown, only aggregates"):
        shop.sql("SELECT * FROM buyers")
    with pytest.raises(QueryRefused, match="cannot be joined with 'k'"):
        shop.sql("SELECT count(*) FROM buyers JOIN VALUES ('a') AS k(kind) USING (kind)")
    with pytest.raises(QueryRefused, match="WITH names a query 'buyers'"):
        shop.sql("WITH buyers AS (SELECT 1) SELECT * FROM buyers")
    with pytest.raises(QueryRefused, match="could not be read"):
        shop.sql("TABLE buyers")
    with pytest.raises(InvalidParameter, match="Write :name in the statement"):
        shop.sql("SELECT COUNT(*) FROM buyers WHERE age < {age}", age=12)


def test_a_session_gets_its_own_sql_back(shop):
    dn.spark.unregister(shop)
    try:
        assert shop.sql("SELECT count(*) AS c FROM buyers").first().c == COUNT
        assert not shop.catalog.functionExists("deniable_sql")
        dn.spark.unregister(shop)
    finally:
        dn.spark.register(shop, SHOP)
    assert shop.sql("SELECT COUNT(*) AS n FROM buyers WHERE age < 12").columns == ["n", "n_stderr", "n_low", "n_high"]


def test_another_registration_leaves_nothing_of_the_last_one(shop):
    other = dn.Collection(dn.Table("people", age=dn.Ordinal(0, 24)), epsilon=2.0)
    try:
        dn.spark.register(shop, other)
        assert shop.catalog.functionExists("deniable_people")
        assert not shop.catalog.functionExists("deniable_buyers")
    finally:
        dn.spark.register(shop, SHOP)
    assert not shop.catalog.functionExists("deniable_people")
    threads = [thread for thread in threading.enumerate() if thread.name == "deniable questions" and thread.is_alive()]
    for thread in threads[:-1]:
        thread.join(timeout=10)
    assert [thread for thread in threads if thread.is_alive()] == threads[-1:]


def test_sessions_answer_apart_and_strangers_end_nothing(shop):
    second = shop.newSession()
    dn.spark.unregister(second)
    answering = shop.sql.stop.__self__
    with socket.socket() as stranger:
        stranger.connect(answering.address)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends with a reset
    assert shop.sql("SELECT COUNT(*) AS n FROM buyers WHERE age < 12").columns == ["n", "n_stderr", "n_low", "n_high"]


def test_simulations_need_the_word_and_their_answers_say_so(shop, tmp_path):
    exact = dn.Collection(dn.Table("people", age=dn.Ordinal(0, 24)), epsilon=float("inf"), design="mg")
    with pytest.raises(SimulationOnly):
        dn.spark.register(shop, exact)
    exact.perturb(people={"uid": [1, 2], "age": [7, 9]}, out=tmp_path / "reports", simulation=True)
    dn.spark.register(shop, exact, tmp_path / "reports", simulation=True)
    try:
        (row,) = shop.sql("SELECT SUM(age) AS s FROM people").collect()
        assert (row.s, row.simulation) == (16, True)
    finally:
        dn.spark.register(shop, SHOP)


def test_refusals_reach_whoever_asks(shop):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="there is no attribute 'shoe'"):
        shop.sql("SELECT * FROM deniable_sql('SELECT AVG(shoe) FROM buyers')")
    with pytest.raises(AnalysisException, match="there is no attribute 'shoe'"):
        shop.sql("SELECT AVG(shoe) FROM buyers")


def test_wrong_rows_release_nothing(shop):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="a user id is missing"):
        shop.sql("SELECT deniable_buyers(CAST(NULL AS BIGINT), age, kind) FROM buyers").collect()
    with pytest.raises(PySparkException, match="takes the user id and age, kind"):
        shop.sql("SELECT deniable_buyers(uid, age) FROM buyers").collect()


def test_every_call_draws_anew(shop):
    once, again = (shop.sql("SELECT deniable_buyers(1, age, 'a') AS r FROM buyers").collect() for _ in range(2))
    assert once != again
    # People with the same id and the same data, in batches of their own, do not get the same bits either.
    shop.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    try:
        alike = shop.sql("SELECT deniable_buyers(1, 5, 'a') AS r FROM buyers LIMIT 60").collect()
    finally:
        shop.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    seeds = [report.seed for row in alike for report in row.r if report.seed]
    assert len(set(seeds)) == len(seeds) > 5
