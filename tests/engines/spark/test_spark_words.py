"""Words that nobody listed, found on Spark: the same as on one machine."""

import numpy as np
import pytest

import deniable as dn

QUESTIONS = (
    "SELECT word, COUNT(*) AS n FROM words GROUP BY word ORDER BY n DESC",
    "SELECT COUNT(*) AS n FROM words WHERE word LIKE 'ba%'",
)


@pytest.mark.slow
def test_words_are_found_as_on_one_machine(spark, tmp_path):
    collection = dn.Collection(dn.Table("words", word=dn.Text(5, alphabet="abcn")), epsilon=6.0)
    held = np.random.default_rng(1).choice(["ban", "cab", "canna", "b"], 3_000, p=[0.5, 0.3, 0.15, 0.05]).tolist()
    rows = {"uid": np.arange(len(held)), "word": held}
    collection.perturb(words=rows, out=tmp_path / "reports", source=dn.SeededSource(2), simulation=True)
    near, far = dn.connect(tmp_path / "reports"), dn.connect(str(tmp_path / "reports"), engine=spark)
    for text in QUESTIONS:
        here, there = near.sql(text), far.sql(text)
        assert there.groups == here.groups
        assert there.notes == here.notes
        for local, cluster in zip(here.answers["n"], there.answers["n"], strict=True):
            assert cluster.value == pytest.approx(local.value, rel=1e-9)
            assert cluster.stderr == pytest.approx(local.stderr, rel=1e-9)
    assert near.sql(QUESTIONS[0]).groups["word"][:2] == ["ban", "cab"]
    far.close()
