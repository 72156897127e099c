"""Assigned coins on Spark: the same views and seeds as on one machine, and forged ones are refused and counted."""

import numpy as np

import deniable as dn
from deniable.tables.reports.report_table import OTHER_COINS

SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95)),
    dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 50)),
    epsilon=2.0,
    design="mg",
    coins="assigned",
)


def test_spark_assigns_the_same_coins_and_refuses_others(spark, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    people = 60
    users = spark.createDataFrame([(number, 1 + number % 95) for number in range(people)], "uid long, age long")
    orders = spark.createDataFrame([(number % 7, number % 51) for number in range(people)], "uid long, amount long")
    out = f"file://{tmp_path}/reports"
    SHOP.perturb(users=users, orders=orders, out=out, engine=spark)
    there = dn.connect(out, engine=spark)
    here = dn.connect(tmp_path / "reports")
    assert not any(counts.total() for counts in (*there.refused.values(), *here.refused.values()))
    local = SHOP.perturb(users={"uid": range(people), "age": np.arange(people) % 95 + 1})
    frame = spark.read.parquet(f"{out}/users")
    written = frame.orderBy("uid").toArrow()
    for column in ("view", "seed"):
        assert written[column].to_pylist() == local["users"][column].to_pylist()
    forged = frame.withColumn("seed", F.when(F.col("uid") < 5, F.lit(99)).otherwise(F.col("seed")))
    for joined in ({"users": forged}, {"users": forged, "orders": spark.read.parquet(f"{out}/orders")}):
        database = dn.connect(joined, engine=spark, collection=SHOP)
        assert dict(database.refused["users"]) == {OTHER_COINS: 5}
        assert database.stores["users"].rows == people - 5
