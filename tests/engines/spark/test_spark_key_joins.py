"""Joins with another population on Spark: collected there, and answered as on one machine."""

import pytest

import deniable as dn
from database.product_shop import product_shop, raw_rows

QUESTIONS = (
    "SELECT SUM(amount) FROM transactions JOIN users USING (uid) JOIN products USING (pid) WHERE country = 'CN'",
    "SELECT country, COUNT(*), SUM(price) FROM transactions JOIN products USING (pid) GROUP BY country",
    "SELECT COUNT(*) FROM products WHERE price > 2",
)


@pytest.mark.slow
def test_another_population_is_joined_as_on_one_machine(spark, tmp_path):
    collection = product_shop(8.0, 3.0)
    frames = {name: spark.createDataFrame(frame.to_pandas()) for name, frame in raw_rows(users=200).items()}
    collection.perturb(**frames, out=tmp_path / "reports", engine=spark)
    near, far = dn.connect(tmp_path / "reports"), dn.connect(str(tmp_path / "reports"), engine=spark)
    for text in QUESTIONS:
        here, there = near.sql(text), far.sql(text)
        assert there.groups == here.groups
        for name, answers in here.answers.items():
            for local, cluster in zip(answers, there.answers[name], strict=True):
                assert cluster.value == pytest.approx(local.value, rel=1e-9)
                assert cluster.stderr == pytest.approx(local.stderr, rel=1e-9)
    far.close()
