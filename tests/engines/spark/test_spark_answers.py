"""Spark and DuckDB give the same answers, and refuse the same reports."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.register_assert_rewrite("spark_shop")

import deniable as dn  # noqa: E402
from deniable.engines.spark.spark_session import as_frame, large_batches  # noqa: E402
from deniable.errors import BadInput, InvalidData, InvalidParameter, QueryRefused  # noqa: E402
from deniable.randomness import SeededSource  # noqa: E402
from effort import repetitions, some  # noqa: E402
from spark_shop import DIMENSIONS, GOLDEN, JOBS, ORDERS, PEOPLE, agree, collect, frames  # noqa: E402


@pytest.fixture(scope="module")
def pair(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hio") / "reports"
    collect(folder)
    return tuple(dn.connect(folder, dimensions=DIMENSIONS, engine=engine) for engine in (None, spark))


@pytest.mark.parametrize("text", some(GOLDEN, 2))
def test_golden_queries_agree(pair, text):
    duckdb, on_spark = pair
    agree(on_spark.sql(text), duckdb.sql(text))


TESTS = ["age > 3", "age BETWEEN 4 AND 11", "kind IN ('b', 'c')", "city = 'Rome'", "city > 'P'", "city IS NULL",
         "score >= 0", "points < score", "member", "hours >= 6", "region <> 'south'", "jobs.pay > 10"]  # fmt: skip
NUMBERS = ["age", "score", "points", "hours", "jobs.pay"]
GROUPS = ["kind", "FLOOR(age / 6)", "city", "member", "region"]


@st.composite
def queries(draw):
    condition = st.recursive(
        st.sampled_from(TESTS),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
            inner.map(lambda condition: f"NOT ({condition})"),
        ),
        max_leaves=5,
    )
    number = st.sampled_from(NUMBERS)
    asked = draw(
        st.tuples(st.sampled_from(["SUM", "AVG", "VAR_POP"]), number).map(lambda call: f"{call[0]}({call[1]})")
    )
    groups = draw(st.lists(st.sampled_from(GROUPS), max_size=2, unique=True))
    named = "".join(f"{group} AS g{index}, " for index, group in enumerate(groups))
    text = f"SELECT {named}COUNT(*) AS n, {asked} AS x FROM people JOIN jobs USING (uid) WHERE {draw(condition)}"
    return text + (f" GROUP BY {', '.join(groups)}" if groups else "")


@pytest.mark.parametrize("number", [repetitions(3, 40)])
def test_random_queries_agree(pair, number):
    duckdb, on_spark = pair

    @settings(max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(queries())
    def ask(text):
        agree(on_spark.sql(text), duckdb.sql(text))

    ask()


def test_grids_agree_on_answers_and_on_where_rows_are(spark):
    random = np.random.default_rng(8)
    people = dn.Table("people", age=dn.Ordinal(0, 59), pay=dn.Ordinal(0, 59))
    visits = dn.Table("visits", hour=dn.Ordinal(0, 23), many=3)
    views = [dn.GridView({"age": dn.Cells(4)}), dn.GridView({"age": dn.Cells(12), "pay": dn.Points(6)})]
    shop = dn.Collection(people, visits, epsilon=3.0, design="grid", grids={"people": views})
    users, ids = 8_000, np.repeat(np.arange(8_000), 2)
    skewed = np.minimum(random.lognormal(1.0, 0.8, users), 59).astype(int)
    reports = shop.perturb(
        people={"uid": np.arange(users), "age": skewed, "pay": random.integers(0, 60, users)},
        visits={"uid": ids, "hour": random.integers(9, 12, ids.size)},
        source=SeededSource(4),
        simulation=True,
    )
    here, there = dn.connect(reports), dn.connect(reports, engine=spark)
    taken_for_granted = dn.connect(reports)
    taken_for_granted._learnt.by_table.update(people={}, visits={})
    for text in (
        "SELECT COUNT(*) FROM people WHERE age < 3",
        "SELECT COUNT(*) FROM visits WHERE hour BETWEEN 9 AND 10",
        "SELECT COUNT(*) FROM people JOIN visits USING (uid) WHERE age < 3 AND hour > 9",
    ):
        mine = there.sql(text)
        agree(mine, here.sql(text))
        granted = taken_for_granted.sql(text).scalar()
        same = mine.scalar().value == pytest.approx(granted.value, rel=1e-9)
        assert same == (granted.model == 0)  # what cells answer needs nothing learnt
    assert not there._pairs.by_table
    by_age = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
    agree(there.sql(by_age), here.sql(by_age))
    assert set(there._pairs.by_table) == {"people"}
    assert all(
        np.array_equal(matrix, here._pairs.by_table["people"][view])
        for view, matrix in there._pairs.by_table["people"].items()
    )


def test_refusals_are_those_of_duckdb(pair):
    for text in ("SELECT COUNT(*) FROM people WHERE city = 3", "SELECT COUNT(*) FROM people WHERE born > 5"):
        messages = []
        for database in pair:
            with pytest.raises(QueryRefused, match="used as the wrong type") as caught:
                database.sql(text)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_a_question_takes_one_or_two_jobs(pair, spark):
    _, on_spark = pair
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("counted", "one question")
    on_spark.sql("SELECT AVG(age) FROM people WHERE city = 'Rome'")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert 1 <= len(tracker.getJobIdsForGroup("counted")) <= 2  # with adaptive execution a shuffle is a job of its own


def test_a_question_that_pairs_of_cells_answer_takes_no_job(pair, spark):
    _, on_spark = pair
    text = "SELECT age, kind, COUNT(*) FROM people GROUP BY age, kind"
    on_spark.sql(text)
    assert "people" in on_spark._pairs.by_table
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("none", "no question")
    on_spark.sql(text)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert not tracker.getJobIdsForGroup("none")


def test_settings_are_put_back(pair, spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "777")
    try:
        with large_batches(spark):
            with large_batches(spark):
                assert spark.conf.get(name) == "65536"
            assert spark.conf.get(name) == "65536"  # another question still runs
        assert spark.conf.get(name) == "777"
        with pytest.raises(QueryRefused):
            pair[1].sql("SELECT COUNT(*) FROM people WHERE city = 3")
        assert spark.conf.get(name) == "777"
    finally:
        spark.conf.unset(name)


def broken(reports):
    """Reports with every fault that there is."""
    columns = {name: reports[name].to_pylist() for name in reports.column_names}
    columns["view"][3] = 10**6
    columns["y"][8] = 10**6
    columns["slot"][12] = 9
    columns["slot"][21] = columns["slot"][20]
    columns["uid"][31] = None
    table = pa.table(columns, schema=reports.schema)
    return pa.concat_tables([table.slice(0, 40), table.slice(41), table.slice(50, 1)])


def test_faulty_reports_are_refused_and_counted_as_elsewhere(spark, tmp_path):
    collection, rows = dn.Collection(ORDERS, epsilon=8.0), frames(400)
    given = {"orders": rows["orders"], "everyone": rows["people"].select(["uid"])}
    collection.perturb(**given, out=tmp_path / "reports", source=SeededSource(1), simulation=True)
    path = tmp_path / "reports" / "orders" / "part-0.parquet"
    pq.write_table(broken(pq.read_table(path)), path)
    duckdb, on_spark = (dn.connect(tmp_path / "reports", engine=engine) for engine in (None, spark))
    assert on_spark.refused == duckdb.refused
    assert len(on_spark.refused["orders"]) == 6
    assert repr(on_spark) == repr(duckdb)
    agree(on_spark.sql(GOLDEN[18]), duckdb.sql(GOLDEN[18]))
    other = dn.Collection(PEOPLE, JOBS, epsilon=1.0)
    reports = pq.read_table(path)
    marked = reports.replace_schema_metadata({**reports.schema.metadata, b"deniable.collection": other.sha256.encode()})
    pq.write_table(marked, path)
    duckdb, on_spark = (dn.connect(tmp_path / "reports", engine=engine) for engine in (None, spark))
    assert (
        on_spark.refused["orders"] == duckdb.refused["orders"] == {"made under another specification": reports.num_rows}
    )
    assert on_spark.stores["orders"].rows == 0
    assert collection == on_spark.collection


def test_reports_as_dataframes_and_catalog_tables(spark, tmp_path):
    table = dn.Table("people", age=dn.Ordinal(0, 24))
    collection = dn.Collection(table, epsilon=2.0)
    rows = frames()["people"].select(["uid", "age"])
    reports = collection.perturb(people=rows, source=SeededSource(2), simulation=True)
    expected = dn.connect(reports).sql("SELECT AVG(age) FROM people")
    agree(dn.connect(reports, engine=spark).sql("SELECT AVG(age) FROM people"), expected)
    frame = as_frame(spark, reports["people"])
    agree(
        dn.connect({"people": frame}, engine=spark, collection=collection).sql("SELECT AVG(age) FROM people"), expected
    )
    frame.createOrReplaceTempView("seen_reports")
    database = dn.connect({"people": "seen_reports"}, engine=spark, collection=collection)
    agree(database.sql("SELECT AVG(age) FROM people"), expected)
    with pytest.raises(InvalidParameter, match="does not say under which specification"):
        dn.connect({"people": frame}, engine=spark)
    with pytest.raises(InvalidData, match="lack the column 'y'"):
        dn.connect({"people": frame.drop("y")}, engine=spark, collection=collection)
    wrong = frame.withColumn("view", frame["view"].cast("double"))
    with pytest.raises(InvalidData, match="must be uint32"):
        dn.connect({"people": wrong}, engine=spark, collection=collection)


def test_users_named_by_texts(spark, tmp_path):
    collection = dn.Collection(
        dn.Table("people", age=dn.Ordinal(0, 24)), dn.Table("jobs", hours=dn.Ordinal(0, 9)), epsilon=8.0
    )
    rows = {
        name: table.select(["uid", column]).set_column(
            0, "uid", pa.array([f"user {uid}" for uid in table["uid"].to_pylist()])
        )
        for (name, table), column in zip(list(frames().items())[:2], ("age", "hours"), strict=True)
    }
    reports = collection.perturb(**rows, source=SeededSource(3), simulation=True)
    text = "SELECT COUNT(*), SUM(age * hours) FROM people JOIN jobs USING (uid) WHERE age > 4"
    agree(dn.connect(reports, engine=spark).sql(text), dn.connect(reports).sql(text))


def test_impossible_requests(spark, tmp_path):
    with pytest.raises(BadInput, match=r"holds no collection\.json"):
        dn.connect(tmp_path, engine=spark)
    with pytest.raises(InvalidParameter, match="engine must be a SparkSession"):
        dn.connect(tmp_path, engine="spark")
    with pytest.raises(InvalidParameter, match="by table are for Spark"):
        dn.connect({"people": pa.table({"uid": np.arange(3)})})
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(InvalidParameter, match="ansi"):
            dn.connect(tmp_path, engine=spark)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_reports_that_name_several_cells_agree(spark, tmp_path):
    """Subset selection: of few cells a report fits into one long, of 63 y alone takes one. Bits are counted."""
    random = np.random.default_rng(6)
    users = dn.Table("users", grade=dn.Ordinal(0, 24))
    jobs = dn.Table("jobs", week=dn.Ordinal(0, 62), many=2)
    collection = dn.Collection(users, jobs, epsilon=2.0, design="mg", oracle="subset")
    uid = np.arange(1_500)
    rows = {
        "users": {"uid": uid, "grade": random.integers(0, 25, uid.size)},
        "jobs": {"uid": uid[100:], "week": random.integers(0, 63, uid.size - 100)},
    }
    collection.perturb(**rows, out=tmp_path / "r", source=SeededSource(2), simulation=True)
    (file,) = (tmp_path / "r" / "users").glob("*.parquet")
    reports = pq.read_table(file)
    y = np.asarray(reports["y"]).copy()
    y[5] = np.bitwise_or(y[5], (1 << 25) - 1)  # possible as a number, and yet no set of the right size
    pq.write_table(
        reports.set_column(reports.schema.get_field_index("y"), reports.schema.field("y"), pa.array(y)), file
    )
    duckdb, on_spark = (dn.connect(tmp_path / "r", engine=engine) for engine in (None, spark))
    assert duckdb.refused == on_spark.refused
    assert duckdb.refused["users"].total() == 1
    for text in (
        "SELECT COUNT(*) AS n, AVG(grade) AS g FROM users WHERE grade < 9",
        "SELECT COUNT(*) AS n FROM users JOIN jobs USING (uid) WHERE grade >= 9 AND week < 40",
    ):
        agree(on_spark.sql(text), duckdb.sql(text))
