"""Spark reads the folder that it is given, and refuses what one machine refuses."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.errors import DeniableError

SHOP = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public()), epsilon=2.0)


def written(folder, people=40, city="Rome"):
    rows = {"uid": np.arange(people), "age": np.full(people, 31), "city": [city] * people}
    SHOP.perturb(users=rows, out=folder, source=dn.SeededSource(1), simulation=True)
    return folder


def test_a_folder_is_itself(spark, tmp_path):
    # What another folder would have to be called if one of the letters meant what it means in a pattern.
    for name, *others in (
        ("r[1]m*{a,b}?", "r1m*{a,b}?", "r[1]mother{a,b}?", "r[1]m*a?", "r[1]m*{a,b}c"),
        ("b\\c", "bc"),
    ):
        folder = written(tmp_path / name)
        for other in others:
            written(tmp_path / other, 7, "Lima")
        path = folder / "users" / "part-0.parquet"
        path.rename(folder / "users" / f"{name}.parquet")
        (folder / "users" / "_ignored.parquet").touch()
        (folder / "users" / ".ignored.parquet").touch()
        (folder / "users" / "ignored.txt").write_text("nothing")
        database = dn.connect(folder, engine=spark)
        assert database.stores["users"].rows == 40
        assert database.stores["users"].distinct("city").to_pylist() == ["Rome"]
        database.close()


DAMAGES = {
    "doubled": lambda table: table.append_column("UID", table["uid"]),
    "lacking": lambda table: table.drop_columns(["y"]),
    "another case": lambda table: table.rename_columns(["uid", "slot", "View", "seed", "y", "city"]),
    "another type": lambda table: table.set_column(2, "view", table["view"].cast(pa.float64())),
    "bytes": lambda table: table.set_column(5, "city", table["city"].cast(pa.binary())),
    "ids": lambda table: table.set_column(0, "uid", table["uid"].cast(pa.uint64())),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_columns_are_judged_as_on_one_machine(spark, tmp_path, damage):
    folder = written(tmp_path / "reports")
    table = pq.read_table(folder / "users" / "part-0.parquet")
    changed = DAMAGES[damage](table).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, folder / "users" / "part-0.parquet")
    refused_alike(spark, folder)


def test_files_are_judged_as_on_one_machine(spark, tmp_path):
    folder = written(tmp_path / "reports")
    table = pq.read_table(folder / "users" / "part-0.parquet")
    second = folder / "users" / "part-1.parquet"
    pq.write_table(table.set_column(2, "view", table["view"].cast(pa.int64())), second)
    refused_alike(spark, folder)
    pq.write_table(table.drop_columns(["view"]), second)
    refused_alike(spark, folder)
    second.unlink()
    os.mkfifo(second)
    refused_alike(spark, folder)
    second.unlink()
    second.symlink_to("nowhere")
    refused_alike(spark, folder)
    second.unlink()
    (folder / "users" / "city=Lima").mkdir()
    refused_alike(spark, folder)
    (folder / "users" / "city=Lima").rmdir()
    (folder / "collection.json").write_text("{")
    for engine in (None, spark):
        with pytest.raises(DeniableError):
            dn.connect(folder, engine=engine)


def refused_alike(spark, folder):
    messages = []
    for engine in (None, spark):
        with pytest.raises(DeniableError) as caught:
            dn.connect(folder, engine=engine)
        messages.append((type(caught.value), str(caught.value)))
    assert messages[0] == messages[1]


def test_columns_may_stand_in_any_order_beside_others(spark, tmp_path):
    folder = written(tmp_path / "reports")
    table = pq.read_table(folder / "users" / "part-0.parquet")
    changed = table.select(table.column_names[::-1]).append_column("more", table["y"])
    pq.write_table(changed, folder / "users" / "part-0.parquet")
    question = "SELECT AVG(age) AS age FROM users"
    expected = dn.connect(written(tmp_path / "plain")).sql(question).scalar().value
    for engine in (None, spark):
        assert dn.connect(folder, engine=engine).sql(question).scalar().value == pytest.approx(expected)
