"""An answer that contradicts what cells show is not given."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.queries.answers.guard import GUARDED
from deniable.queries.grids.learnt_density import LearntDensity

SIZE, PEOPLE = 40, 20_000
TABLE = dn.Table("t", x=dn.Ordinal(0, SIZE - 1), s=dn.Categorical("f", "m"))
VIEWS = [dn.GridView({"x": 4}), dn.GridView({"x": 4, "s": 2})]


def opened(x, seed=0):
    made = dn.Collection(TABLE, epsilon=4.0, design="grid", grids={"t": VIEWS})
    frame = pa.table({"uid": np.arange(x.size), "x": x, "s": np.array(["f", "m"])[np.arange(x.size) % 2]})
    return dn.connect(made.perturb(t=frame, source=dn.SeededSource(seed), simulation=True))


def misled(database):
    """A database that is sure that nobody is where everybody is."""
    mass = np.full(SIZE, 1e-9)
    mass[30:] = 0.1
    density = LearntDensity(mass / mass.sum(), np.arange(0, SIZE, 10), np.full(4, 0.05))
    database._learnt.by_table["t"] = {0: density}
    return database


@pytest.mark.parametrize("condition", ["x < 13", "x < 13 AND s = 'f'"])
def test_a_model_that_is_far_off_is_overruled_with_a_note(condition):
    x = np.random.default_rng(1).integers(0, 10, PEOPLE)
    result = misled(opened(x)).sql(f"SELECT COUNT(*) FROM t WHERE {condition}")
    truth = PEOPLE if "s" not in condition else PEOPLE / 2
    assert GUARDED in result.notes
    assert abs(result.scalar().value - truth) < 5 * result.scalar().error
    assert result.scalar().interval[0] < truth < result.scalar().interval[1]


def test_groups_are_guarded_each():
    x = np.random.default_rng(1).integers(0, 10, PEOPLE)
    result = misled(opened(x)).sql("SELECT s, COUNT(*) AS n FROM t WHERE x < 13 GROUP BY s")
    assert GUARDED in result.notes
    assert all(abs(each.value - PEOPLE / 2) < 5 * each.error for each in result.answers["n"])


def test_answers_that_agree_with_cells_are_left_alone():
    x = np.clip(np.random.default_rng(2).normal(15, 6, PEOPLE), 0, SIZE - 1).astype(int)
    database = opened(x)
    for text in ("SELECT COUNT(*) FROM t WHERE x < 13", "SELECT AVG(x) FROM t WHERE x BETWEEN 5 AND 22"):
        assert GUARDED not in database.sql(text).notes


def test_bounds_hold_the_truth_of_any_data():
    x = np.random.default_rng(3).choice([9, 10, 25], PEOPLE)
    database = opened(x)
    plan = database.revised(database.plan("SELECT COUNT(*) FROM t WHERE x BETWEEN 5 AND 22"))
    low, high = (database._moments(bound).sums[0, 0] for bound in database_bounds(database, plan))
    assert low < ((x >= 5) & (x <= 22)).sum() < high
    assert low == pytest.approx((x // 10 == 1).sum(), rel=0.1)
    assert high == pytest.approx(PEOPLE, rel=0.1)


def database_bounds(database, plan):
    from deniable.queries.planning.bounding_plan import bounding_plans

    bounds = bounding_plans(plan, database._learnt.by_table)
    return bounds.low, bounds.high
