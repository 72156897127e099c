"""Two groups of users under designs of their own, asked together with Spark: as on one machine."""

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidParameter

USERS, JOBS = dn.Table("users", age=dn.Ordinal(0, 24)), dn.Table("jobs", hours=dn.Ordinal(0, 9))
QUESTIONS = (
    "SELECT COUNT(*) FROM users WHERE age < 10",
    "SELECT AVG(hours) FROM users JOIN jobs USING (uid) WHERE age < 12",
)


def written(folder, collection, ids, seed=1):
    random = np.random.default_rng(seed)
    frames = {
        "users": {"uid": ids, "age": random.integers(0, 25, ids.size)},
        "jobs": {"uid": ids, "hours": random.integers(0, 10, ids.size)},
    }
    collection.perturb(**frames, out=folder, source=dn.SeededSource(seed), simulation=True)
    return folder


@pytest.mark.slow
def test_groups_are_answered_together_and_share_nobody(spark, tmp_path):
    first, second = (dn.Collection(USERS, JOBS, epsilon=20.0, design=design) for design in ("hio", "grid"))
    folders = [
        written(tmp_path / "first", first, np.arange(500)),
        written(tmp_path / "second", second, np.arange(500, 2_000), 2),
    ]
    here, there = dn.connect(folders), dn.connect(folders, engine=spark)
    for text in QUESTIONS:
        near, far = here.sql(text).scalar(), there.sql(text).scalar()
        assert far.value == pytest.approx(near.value, rel=1e-9)
        assert far.error == pytest.approx(near.error, rel=1e-9)
    there.close()
    again = written(tmp_path / "again", second, np.arange(490, 600), 3)
    with pytest.raises(InvalidParameter, match="10 users in more than one group"):
        dn.connect([folders[0], again], engine=spark)
    # The rest can be planned after a first look with Spark, too.
    looked = dn.connect(folders[0], engine=spark)
    proposal = dn.plan([USERS, JOBS], list(QUESTIONS), epsilon=20.0, users=1_500, after=looked)
    assert proposal.looks.users == 2_000
    looked.close()
