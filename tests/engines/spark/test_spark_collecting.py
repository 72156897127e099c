"""Collections on Spark: the same reports in law, the same ones again for a task that is tried again."""

import json
import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.register_assert_rewrite("spark_shop")

import deniable as dn  # noqa: E402
from deniable.engines.spark import spark_perturbing as collecting  # noqa: E402
from deniable.errors import BadInput, Failure, InvalidData, InvalidParameter, SimulationOnly  # noqa: E402
from deniable.randomness import SeededSource  # noqa: E402
from spark_shop import agree  # noqa: E402

USERS = dn.Table("users", age=dn.Ordinal(0, 24), city=dn.Public())
ORDERS = dn.Table("orders", many=2, tau=2, amount=dn.Ordinal(0, 9))
SHOP = dn.Collection(USERS, ORDERS, epsilon=float("inf"), design="mg")
NOISY = dn.Collection(USERS, ORDERS, epsilon=2.0)


def rows(spark, count=400):
    random = np.random.default_rng(3)
    buyers = np.repeat(np.arange(count), 2)[: 2 * (count - 50)]
    users = pa.table(
        {
            "id": pa.array([*range(count), None, 0]),
            "age": pa.array([*random.integers(0, 25, count - 1).tolist(), 99, 3, 3]),
            "city": ["Rome", "Oslo"] * (count // 2 + 1),
        }
    )
    orders = pa.table({"id": [*buyers, 10**6], "amount": random.integers(0, 10, buyers.size + 1)})
    return {"users": spark.createDataFrame(users), "orders": spark.createDataFrame(orders)}


def reports_in(folder, name):
    return pq.read_table(folder / name).sort_by([("uid", "ascending"), ("slot", "ascending")]).to_pylist()


def test_reports_are_written_and_read_by_both_engines(spark, tmp_path):
    given = rows(spark)
    done = SHOP.perturb(**given, key="id", out=tmp_path / "reports", engine=spark, simulation=True)
    frames = {name: pa.table(frame.toArrow()) for name, frame in given.items()}
    expected = SHOP.perturb(**frames, key="id", out=tmp_path / "other", simulation=True)
    assert done.summaries == expected.summaries
    assert sorted(done.summaries["users"].rejected.values()) == [1, 1, 1]
    names = {path.name for path in (tmp_path / "reports").iterdir()}
    assert names - {".collection.json.crc"} == {"collection.json", "orders", "users"}
    assert not list(tmp_path.glob(".*partial*"))
    # Without noise and with as many slots as rows, both paths say the same of every user with full rows.
    question = "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM users WHERE age < 20 GROUP BY city"
    databases = [
        dn.connect(tmp_path / folder, engine=engine)
        for folder, engine in (("reports", None), ("reports", spark), ("other", None))
    ]
    answers = [database.sql(question) for database in databases]
    agree(answers[0], answers[1])
    assert answers[2].answers["n"][0].value == pytest.approx(answers[0].answers["n"][0].value, abs=2)  # two dummies
    assert not any(any(database.refused.values()) for database in databases[:2])
    limited = dn.connect(tmp_path / "reports", memory_limit=0)  # read from files, which are not sorted
    agree(limited.sql(question), answers[0])
    with pytest.raises(BadInput, match="would spend ε again"):
        SHOP.perturb(users=given["users"], key="id", out=tmp_path / "reports", engine=spark, simulation=True)
    with pytest.raises(BadInput, match="holds something else"):
        NOISY.perturb(users=given["users"], key="id", out=tmp_path / "reports", engine=spark)


def test_runs_differ_simulations_repeat_and_are_kept_apart_from_releases(spark, tmp_path):
    given = {"users": rows(spark)["users"]}
    with pytest.raises(SimulationOnly, match="lets the data out"):
        SHOP.perturb(**given, key="id", out=tmp_path / "exact", engine=spark)
    with pytest.raises(SimulationOnly):
        NOISY.perturb(**given, key="id", out=tmp_path / "exact", engine=spark, source=SeededSource(1))
    simulated = {"source": SeededSource(1), "simulation": True}
    for name, options in (("release", {}), ("another", {}), ("simulation", simulated), ("repeated", simulated)):
        done = NOISY.perturb(**given, key="id", out=tmp_path / name, engine=spark, **options)
        assert done.simulation == bool(options)
    reports = {name: reports_in(tmp_path / name, "users") for name in ("release", "another", "simulation", "repeated")}
    assert reports["release"] != reports["another"]
    assert reports["simulation"] == reports["repeated"]
    question = "SELECT COUNT(*) AS n FROM users"
    frames = {name: spark.read.parquet(str(tmp_path / name / "users")) for name in ("simulation", "release")}
    for database, simulation in (
        (dn.connect(tmp_path / "simulation", engine=spark), True),
        (dn.connect({"users": frames["release"]}, engine=spark), False),  # a frame names its specification
        (dn.connect(tmp_path / "simulation"), True),  # without Spark the mark is found as well
        (dn.connect(tmp_path / "release"), False),
    ):
        assert (database.collection, database.stores["users"].rows) == (NOISY, 400)
        assert database.simulation == simulation
        assert ("simulation: no privacy" in str(database.sql(question))) == simulation
    other = dn.connect({"users": frames["release"]}, engine=spark, collection=SHOP)
    assert other.refused["users"] == {"made under another specification": 400}
    everyone = given["users"].select("id")
    orders = {"orders": rows(spark)["orders"], "everyone": everyone, "key": "id", "engine": spark}
    for name, options in (("simulation", {}), ("release", simulated)):
        with pytest.raises(BadInput, match="cannot be mixed"):
            NOISY.perturb(**orders, out=tmp_path / name, **options)
    # What was moved between folders is noticed too.
    (tmp_path / "simulation" / "users").rename(tmp_path / "users")
    (tmp_path / "release" / "users").rename(tmp_path / "simulation" / "users")
    for engine in (None, spark):
        with pytest.raises(BadInput, match="cannot be mixed"):
            dn.connect(tmp_path / "simulation", engine=engine)


@pytest.mark.parametrize("other_data", [False, True])
def test_a_task_that_is_tried_again_repeats_its_reports_only_for_the_same_rows(
    spark, tmp_path, monkeypatch, other_data
):
    honest, log = collecting._randomising, tmp_path / "log"

    def dying(collection, name, secret, counted):
        randomise = honest(collection, name, secret, counted)

        def first_dies(batches):
            from pyspark import TaskContext

            task = TaskContext.get()
            if task.attemptNumber() or task.partitionId():
                yield from randomise(batches)
                return
            changed = []
            for batch in batches:
                if other_data:  # one row of one user differs
                    ages = batch.column("age").to_pylist()
                    ages[0] = (ages[0] + 1) % 25
                    index = batch.schema.get_field_index("age")
                    batch = batch.set_column(index, batch.schema.field("age"), pa.array(ages, pa.int64()))
                changed.append(batch)
            sent = [row for batch in randomise(iter(changed)) for row in batch.to_pylist()]
            log.write_text(json.dumps(sent))
            os.kill(os.getpid(), signal.SIGKILL)

        return first_dies

    monkeypatch.setattr(collecting, "_randomising", dying)
    done = NOISY.perturb(users=rows(spark)["users"], key="id", out=tmp_path / "reports", engine=spark)
    first = {row["uid"]: row for row in json.loads(log.read_text())}
    final = {row["uid"]: row for row in reports_in(tmp_path / "reports", "users")}
    assert len(final) == done.summaries["users"].reports == 400  # nothing is counted or written twice
    assert 100 < len(first) < 300
    same = sum(final[uid] == row for uid, row in first.items())
    if other_data:
        assert same < 0.2 * len(first)  # as many as agree by chance
    else:
        assert same == len(first)


def test_a_task_that_runs_twice_sends_the_same_reports(spark):
    """As a speculative copy of a task does: another attempt, at another time, in another worker."""
    given = collecting._Rows(spark, NOISY, rows(spark), "id", None)
    secrets = [b"\1" * 32, b"\1" * 32, b"\2" * 32]
    runs = [
        collecting.randomised(given, "users", secret, collecting.Tally(), simulation=False).toArrow()
        for secret in secrets
    ]
    assert runs[0].num_rows == 400
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("where", ["task", "place"])
def test_a_run_that_fails_leaves_nothing(spark, tmp_path, monkeypatch, where):
    honest = collecting._randomising

    def failing(collection, name, secret, counted):
        def stop(batches):
            yield next(honest(collection, name, secret, counted)(batches))
            raise ValueError("after some reports")

        return stop if name == "orders" else honest(collection, name, secret, counted)

    if where == "task":
        monkeypatch.setattr(collecting, "_randomising", failing)
        expected = pytest.raises(Failure, match=r"could not finish randomising .* Nothing was written")
    else:
        monkeypatch.setattr(collecting.Folder, "move", lambda self, to: pytest.fail("no room"))
        expected = pytest.raises(pytest.fail.Exception)
    with expected:
        NOISY.perturb(**rows(spark), key="id", out=tmp_path / "reports", engine=spark)
    assert list(tmp_path.iterdir()) == []  # neither users, which were written, nor a part of orders


def test_keys_differ_in_everything_that_a_batch_is():
    table = pa.table({"uid": [1, 2], "age": [3, None]})
    secret = bytes(32)
    key = collecting.batch_key(secret, "users", 0, 0, table)
    copies = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert collecting.batch_key(secret, "users", 0, 0, copies) == key  # however it lies in memory
    others = [
        (b"\1" * 32, "users", 0, 0, table),
        (secret, "orders", 0, 0, table),
        (secret, "users", 1, 0, table),
        (secret, "users", 0, 1, table),
        (secret, "users", 0, 0, table.slice(0, 1)),
        (secret, "users", 0, 0, pa.table({"uid": [1, 2], "age": [3, 0]})),
        (secret, "users", 0, 0, pa.table({"uid": [1, 3], "age": [3, None]})),
    ]
    assert len({key, *(collecting.batch_key(*other) for other in others)}) == len(others) + 1


def test_impossible_requests(spark, tmp_path):
    given = rows(spark)
    with pytest.raises(InvalidParameter, match="on Spark, reports are written to a folder"):
        SHOP.perturb(**given, key="id", engine=spark, simulation=True)
    with pytest.raises(InvalidParameter, match="everyone is missing"):
        SHOP.perturb(orders=given["orders"], key="id", out=tmp_path / "a", engine=spark, simulation=True)
    with pytest.raises(InvalidData, match="no column 'uid'"):
        SHOP.perturb(**given, out=tmp_path / "a", engine=spark, simulation=True)
    odd = given["users"].withColumn("age", given["users"]["age"].cast("string"))
    with pytest.raises(InvalidData, match="cannot hold its domain"):
        SHOP.perturb(users=odd, key="id", out=tmp_path / "a", engine=spark, simulation=True)
    odd = given["orders"].withColumn("id", given["orders"]["id"].cast("string"))
    with pytest.raises(InvalidData, match="integers in one table and texts"):
        SHOP.perturb(users=given["users"], orders=odd, key="id", out=tmp_path / "a", engine=spark, simulation=True)
    city = dn.Collection(dn.Table("orders", many=2, amount=dn.Ordinal(0, 9), city=dn.Public()), epsilon=1.0)
    varying = given["users"].union(given["users"].withColumn("city", given["users"]["id"].cast("string")))
    with pytest.raises(InvalidData, match="varies between rows"):
        city.perturb(
            orders=given["orders"], everyone=varying, key="id", out=tmp_path / "a", engine=spark, simulation=True
        )
    with pytest.raises(InvalidData, match="taken from its rows"):
        city.perturb(orders=given["orders"], key="id", out=tmp_path / "a", engine=spark, simulation=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_attributes_may_be_called_as_columns_of_reports_are(spark, tmp_path):
    table = dn.Table("t", y=dn.Ordinal(0, 9), view=dn.Public(), SLOT=dn.Public())
    many = dn.Table("m", many=2, tau=2, seed=dn.Ordinal(0, 9), y=dn.Public())
    collection = dn.Collection(table, many, epsilon=float("inf"), design="mg")
    users = pa.table({"uid": range(6), "y": range(6), "view": [1, 1, 2, 2, 3, 3], "SLOT": list("pqpqpq")})
    everyone = pa.table({"uid": range(6), "y": [5.0, 5.0, 7.0, 7.0, 9.0, 9.0]})
    rows = spark.createDataFrame(pa.table({"uid": [0, 1, 2], "seed": [1, 2, 3]}))
    given = {"t": spark.createDataFrame(users), "m": rows, "everyone": spark.createDataFrame(everyone)}
    collection.perturb(**given, out=tmp_path / "reports", engine=spark, simulation=True)
    for engine in (None, spark):
        database = dn.connect(tmp_path / "reports", engine=engine)
        for question, expected in (
            ("SELECT COUNT(*) AS n FROM t WHERE view = 2 AND slot = 'q'", 1),
            ("SELECT SUM(y * view) AS n FROM t", 38),
        ):
            assert database.sql(question).scalar().value == pytest.approx(expected, abs=1e-6)
        assert database.sql("SELECT slot, COUNT(*) AS n FROM t GROUP BY slot").groups == {"slot": ["p", "q"]}
        joined = "SELECT m.y, COUNT(*) AS n FROM m JOIN t USING (uid) WHERE m.y > 5 GROUP BY m.y"
        assert database.sql(joined).groups == {"y": [7.0, 9.0]}
