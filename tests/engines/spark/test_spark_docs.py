"""The page on Spark shows what happens; the command line asks it."""

import doctest
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import deniable as dn
from deniable.cli.main import cli

pytestmark = pytest.mark.xdist_group("spark")
PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


def test_the_page_shows_its_real_output(spark, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    names = {"spark": spark, "folder": str(tmp_path / "reports")}
    parsed = doctest.DocTestParser().get_doctest("\n".join(blocks), names, "spark.md", "spark.md", 0)
    assert len(parsed.examples) > 15
    assert doctest.DocTestRunner(verbose=False).run(parsed).failed == 0


def test_the_command_line_asks_spark(spark, tmp_path):
    collection = dn.Collection(dn.Table("people", age=dn.Ordinal(0, 24)), epsilon=2.0)
    rows = spark.range(900).selectExpr("id AS uid", "id % 25 AS age")
    collection.perturb(people=rows, out=tmp_path / "reports", engine=spark)
    asked = ["query", str(tmp_path / "reports"), "SELECT AVG(age) AS a FROM people", "--json"]
    answers = [CliRunner().invoke(cli, [*asked, *more]) for more in ([], ["--engine", "spark=local[2,4]"])]
    assert [one.exit_code for one in answers] == [0, 0]
    one, other = (json.loads(answer.stdout) for answer in answers)
    assert one == pytest.approx(other, rel=1e-9)
    wrong = CliRunner().invoke(cli, [*asked, "--engine", "flink"])
    assert "two engines" in str(wrong.exception)
