"""Rounds on Spark: what it collects is read alike here and there, and both engines give the same answers."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.errors import BadInput, InvalidParameter

USERS = dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public())
ORDERS = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 9))
PEOPLE = 400
MODES = {
    "rotating": dn.Rounds(3, answers=2),
    "fresh": dn.Rounds(3, mode="fresh"),
    "memoised": dn.Rounds(3, mode="memoised", permanent=4.0, changes_are_public=True),
}
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM users WHERE age < 30 AND round = 2",
    "SELECT AVG(age) AS n FROM users WHERE round BETWEEN 1 AND 2 AND city = 'Rome'",
    "SELECT round, SUM(age) AS n, COUNT(*) AS m FROM users GROUP BY round ORDER BY round",
    "SELECT COUNT(*) FILTER (WHERE age < 30 AND round = 3) - COUNT(*) FILTER (WHERE age < 30 AND round = 2) AS n"
    " FROM users",
    "SELECT SUM(amount) AS n FROM orders WHERE round > 1",
    "SELECT COUNT(*) AS n FROM users JOIN orders USING (uid) WHERE age < 50 AND amount > 3",
)


def shop(mode, **settings):
    tables = (USERS, ORDERS)
    return dn.Collection(*tables, name="shop", rounds=MODES[mode], **{"epsilon": 3.0, "design": "mg", **settings})


def frames(number):
    rng = np.random.default_rng(number)
    users = {
        "uid": np.arange(PEOPLE),
        "age": rng.integers(1, 96, PEOPLE),
        "city": np.array(["Rome", "Oslo"])[np.arange(PEOPLE) % 2],
    }
    return {
        "users": pa.table(users),
        "orders": pa.table({"uid": rng.integers(0, PEOPLE, 600), "amount": rng.integers(0, 10, 600)}),
    }


def same(there, here):
    assert there.groups == here.groups
    for name, estimates in here.answers.items():
        for spark_estimate, estimate in zip(there.answers[name], estimates, strict=True):
            assert spark_estimate.value == pytest.approx(estimate.value, rel=1e-9)
            assert spark_estimate.stderr == pytest.approx(estimate.stderr, rel=1e-9)


def test_rounds_that_spark_collects_are_answered_alike(spark, tmp_path):
    collection = shop("rotating")
    out, memory = f"file://{tmp_path}/reports", tmp_path / "memory"
    for number in (1, 2, 3):
        given = {name: spark.createDataFrame(table.to_pandas()) for name, table in frames(number).items()}
        collection.perturb(**given, round=number, memory=memory, out=out, engine=spark)
    again = spark.createDataFrame(frames(2)["users"].to_pandas())
    with pytest.raises(BadInput, match="already"):
        collection.perturb(users=again, round=2, memory=memory, out=out, engine=spark)
    with pytest.raises(BadInput, match="that another engine collected"):
        collection.perturb(**frames(2), round=2, memory=memory, out=tmp_path / "reports")
    there, here = dn.connect(out, engine=spark), dn.connect(tmp_path / "reports")
    assert not any(counts.total() for counts in (*there.refused.values(), *here.refused.values()))
    assert there.stores["users"].rows == 2 * PEOPLE  # everybody in two of three rounds, on whichever machine
    for sql in QUESTIONS:
        same(there.sql(sql), here.sql(sql))
    same(*(db.trend("SELECT AVG(age) AS age FROM users", moves=1.0) for db in (there, here)))
    assert str(there.explain(QUESTIONS[0])) == str(here.explain(QUESTIONS[0]))


@pytest.mark.parametrize("mode", ["fresh", "memoised"])
def test_spark_reads_what_one_machine_collects(spark, tmp_path, mode):
    collection = shop(mode, coins="assigned")
    memory = tmp_path / "memory" if mode == "memoised" else None
    tables = [USERS.name] if mode == "memoised" else [USERS.name, ORDERS.name]
    for number in (1, 2, 3):
        given = {name: frames(number)[name] for name in tables}
        collection.perturb(**given, round=number, memory=memory, out=tmp_path / "reports")
    there, here = dn.connect(str(tmp_path / "reports"), engine=spark), dn.connect(tmp_path / "reports")
    for sql in (QUESTIONS[1], QUESTIONS[3]) if mode == "memoised" else (QUESTIONS[2], QUESTIONS[5]):
        same(there.sql(sql), here.sql(sql))


def test_forged_rounds_are_refused_and_counted_as_on_one_machine(spark):
    collection = dn.Collection(USERS, epsilon=2.0, name="shop", coins="assigned", rounds=dn.Rounds(3, answers=2))
    tables = [collection.perturb(users=frames(number)["users"], round=number)["users"] for number in (1, 2, 3)]
    whole = pa.concat_tables(tables)
    rounds = whole["round"].to_numpy().copy()
    rounds[:20] = 9  # of a round that there is not
    rounds[20:60] = rounds[20:60] % 3 + 1  # of a round that may not be hers, or with the coins of another
    forged = whole.set_column(whole.schema.get_field_index("round"), "round", pa.array(rounds))
    forged = pa.concat_tables([forged, forged.slice(300, 2)])  # and two twice
    reports = dn.Reports(collection, {"users": forged}, {})
    there, here = dn.connect(reports, engine=spark), dn.connect(reports)
    assert there.refused["users"] == here.refused["users"]
    assert len(there.refused["users"]) >= 3
    same(there.sql(QUESTIONS[0]), here.sql(QUESTIONS[0]))


def test_a_spark_run_is_charged_by_round_and_needs_its_memory(spark, tmp_path):
    collection = dn.Collection(USERS, epsilon=2.0, name="shop", rounds=dn.Rounds(3))
    users = spark.createDataFrame(frames(1)["users"].slice(0, 4).to_pandas())
    with pytest.raises(InvalidParameter, match="memory is missing"):
        collection.perturb(users=users, round=1, out=f"file://{tmp_path}/out", engine=spark)
    with pytest.raises(InvalidParameter, match="round must be an integer from 1 to 3"):
        collection.perturb(users=users, round=4, out=f"file://{tmp_path}/out", engine=spark)
    assert not (tmp_path / "out").exists()


def test_seeds_that_were_chosen_are_noticed_on_spark(spark):
    collection = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=1.0)
    reports = collection.perturb(users={"uid": np.arange(6_000), "age": np.arange(6_000) % 95 + 1})
    table = reports["users"]
    seeds = table["seed"].to_numpy() // 2
    chosen = dn.Reports(
        collection, {"users": table.set_column(table.schema.get_field_index("seed"), "seed", pa.array(seeds))}, {}
    )
    sql = "SELECT COUNT(*) AS n FROM users WHERE age < 30"
    for given, noted in ((reports, False), (chosen, True)):
        notes = [dn.connect(given, engine=engine).sql(sql).notes for engine in (spark, None)]
        assert [any("coins: seeds" in note for note in each) for each in notes] == [noted, noted]
