"""The page on Spark shows what happens; the command line asks it."""

import doctest
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import deniable as dn
from deniable.cli.main import cli

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


@pytest.mark.slow
def test_the_page_shows_its_real_output(spark, tmp_path):
    blocks = re.findall(r"```python\n(>>>.*?)```", PAGE.read_text(), flags=re.S)
    names = {"spark": spark, "folder": str(tmp_path / "reports")}
    parsed = doctest.DocTestParser().get_doctest("\n".join(blocks), names, "spark.md", "spark.md", 0)
    assert len(parsed.examples) > 15
    assert doctest.DocTestRunner(verbose=False).run(parsed).failed == 0


@pytest.mark.slow
def test_the_program_for_a_cluster_runs(spark, tmp_path, monkeypatch, capsys):
    (program,) = re.findall(r"```python\n(import .*?)```", PAGE.read_text(), flags=re.S)
    spark.sql("CREATE DATABASE IF NOT EXISTS warehouse")
    people = "CAST(1 + id % 95 AS INT) AS age, IF(id % 2 = 0, 'married', 'single') AS marital"
    spark.sql(f"CREATE TABLE warehouse.users USING parquet AS SELECT id AS uid, {people} FROM range(300)")
    spark.sql("CREATE TABLE warehouse.orders USING parquet AS SELECT id AS uid, id % 501 AS amount FROM range(200)")
    users = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"))
    shop = dn.Collection(users, dn.Table("orders", many=10, amount=dn.Ordinal(0, 500)), epsilon=4.0)
    shop.save(tmp_path / "shop.toml")
    monkeypatch.chdir(tmp_path)
    here = program.replace("hdfs:///data", str(tmp_path))
    exec(compile(here, "questions.py", "exec"), {})  # noqa: S102 - the page's own program
    assert "married" in capsys.readouterr().out


def test_the_command_line_asks_spark(spark, tmp_path):
    collection = dn.Collection(dn.Table("people", age=dn.Ordinal(0, 24)), epsilon=2.0)
    rows = spark.range(900).selectExpr("id AS uid", "id % 25 AS age")
    collection.perturb(people=rows, out=tmp_path / "reports", engine=spark)
    asked = ["query", str(tmp_path / "reports"), "SELECT AVG(age) AS a FROM people", "--json"]
    answers = [CliRunner().invoke(cli, [*asked, *more]) for more in ([], ["--engine", "spark=local[2,4]"])]
    assert [answer.exit_code for answer in answers] == [0, 0]
    local, on_spark = (json.loads(answer.stdout) for answer in answers)
    assert local == pytest.approx(on_spark, rel=1e-9)
    wrong = CliRunner().invoke(cli, [*asked, "--engine", "flink"])
    assert "the engine is unknown" in str(wrong.exception)
