"""What breaks: a worker that is killed, a damaged file, no Java, no pyspark."""

import os
import signal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.register_assert_rewrite("spark_shop")

import deniable as dn  # noqa: E402
from deniable.engines.spark import spark_session  # noqa: E402
from deniable.engines.spark.spark_session import as_frame  # noqa: E402
from deniable.errors import Failure, InvalidData, MissingExtra  # noqa: E402
from deniable.randomness import SeededSource  # noqa: E402
from deniable.tables.specification.runs import run_text  # noqa: E402
from spark_shop import agree  # noqa: E402

TABLE = dn.Table("people", age=dn.Ordinal(0, 24))
COLLECTION = dn.Collection(TABLE, epsilon=2.0)
QUESTION = "SELECT AVG(age) FROM people WHERE age > 3"
RESTORE = r".* nothing was spent\. Restore it from a copy: collecting again would spend ε again\."


@pytest.fixture(scope="module")
def reports():
    rows = pa.table({"uid": np.arange(20_000), "age": np.arange(20_000) % 25})
    return COLLECTION.perturb(people=rows, source=SeededSource(1), simulation=True)


def test_a_killed_worker_changes_nothing(spark, reports, tmp_path):
    armed, killed = tmp_path / "armed", tmp_path / "killed"

    def dying(batches):
        for number, batch in enumerate(batches):
            if number == 0 and armed.exists() and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    frame = as_frame(spark, reports["people"]).repartition(2)
    frame = frame.mapInArrow(dying, frame.schema)
    database = dn.connect({"people": frame}, engine=spark, collection=COLLECTION)
    armed.touch()
    answer = database.sql(QUESTION)
    assert killed.exists()
    agree(answer, dn.connect(reports).sql(QUESTION))


def write(folder, reports):
    for number in range(2):
        (folder / "people").mkdir(parents=True, exist_ok=True)
        pq.write_table(reports["people"].slice(number * 10_000, 10_000), folder / "people" / f"part-{number}.parquet")
    (folder / "collection.json").write_text(run_text(COLLECTION, simulation=True))
    return folder / "people" / "part-1.parquet"


def test_a_damaged_file_is_named(spark, reports, tmp_path):
    path = write(tmp_path / "footer", reports)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidData, match=r"'part-1\.parquet' of 'people' is damaged" + RESTORE):
        dn.connect(tmp_path / "footer", engine=spark)
    path = write(tmp_path / "pages", reports)
    data = bytearray(path.read_bytes())
    data[4:3000] = bytes(2996)
    path.write_bytes(data)
    with pytest.raises(InvalidData, match=r"'part-1\.parquet' is damaged" + RESTORE):
        dn.connect(tmp_path / "pages", engine=spark)


def test_a_table_without_files_is_named(spark, reports, tmp_path):
    for path in write(tmp_path / "bare", reports).parent.glob("*.parquet"):
        path.unlink()
    with pytest.raises(InvalidData, match="table 'people' has no files" + RESTORE):
        dn.connect(tmp_path / "bare", engine=spark)


def test_a_file_that_went_missing_is_named(spark, reports, tmp_path):
    path = write(tmp_path / "gone", reports)
    database = dn.connect(tmp_path / "gone", engine=spark)
    path.unlink()
    with pytest.raises(InvalidData, match=r"'part-1\.parquet' is damaged or missing" + RESTORE):
        database.sql(QUESTION)


def test_rows_in_a_damaged_file_are_not_collected(spark, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"uid": np.arange(9_000), "age": np.arange(9_000) % 25}), path, compression="none")
    data = bytearray(path.read_bytes())
    data[4:3000] = bytes(2996)
    path.write_bytes(data)
    frame = spark.read.parquet(str(path))
    with pytest.raises(
        InvalidData, match=r"'rows\.parquet' is damaged .*Nothing was written\. Restore it from a copy, t"
    ):
        COLLECTION.perturb(people=frame, out=tmp_path / "reports", engine=spark)
    assert not (tmp_path / "reports").exists()


def fake_java(folder, version):
    folder.mkdir()
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(("version", "said"), [("11.0.2", "Java 11 is too old"), ("1.8.0_400", "Java 8 is too old")])
def test_old_java_is_named_with_what_to_install(monkeypatch, tmp_path, version, said):
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "java", version))
    with pytest.raises(Failure, match=said) as caught:
        spark_session.open_session("local[1]")
    assert "apt-get install openjdk-17-jre-headless" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_java_and_missing_pyspark(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Failure, match="Java was not found"):
        spark_session.open_session("local[1]")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtra, match=r"pyspark.*\[spark\]"):
        spark_session.open_session("local[1]")


def test_java_is_recognised(monkeypatch, tmp_path):
    for version, number in (("17.0.2", 17), ("21", 21), ("23-ea", 23)):
        monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / version, version))
        assert spark_session.java_version() == number


def test_java_off_the_path_is_found(monkeypatch, tmp_path):
    fake_java(tmp_path / "java-11", "11.0.2")
    fake_java(tmp_path / "java-21", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(spark_session, "_JAVA_HOMES", (f"{tmp_path.relative_to('/')}/*",))
    spark_session.require_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "java-21")
