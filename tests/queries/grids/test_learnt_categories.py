"""How many rows categories hold, and how many reports stand for rows, as reports say."""

import numpy as np
import pytest

import deniable as dn
from deniable.queries.grids.learnt_categories import _possible
from deniable.queries.grids.learnt_density import LearntDensity
from deniable.queries.grids.smoothness import ground
from deniable.queries.grids.smoothness_evidence import Evidence

NAMES = [f"c{number}" for number in range(100)]
PEOPLE = 20_000


def learnt(database, name="t"):
    evidence = Evidence.of(database.collection, name)
    counts = database.engine.cell_counts(name, evidence.views)
    return evidence.learnt(counts, database.stores[name].view_counts(database.collection.design_of(name).views))


def opened(codes, epsilon=4.0):
    table = dn.Table("t", c=dn.Categorical(*NAMES), d=dn.Categorical(*NAMES))
    views = [dn.GridView({"c": 100}), dn.GridView({"d": 10})]
    made = dn.Collection(table, epsilon=epsilon, design="grid", grids={"t": views})
    labels = np.array(NAMES)[codes]
    frame = {"uid": np.arange(codes.size), "c": labels, "d": labels}
    return dn.connect(made.perturb(t=frame, source=dn.SeededSource(1), simulation=True))


def skewed():
    random = np.random.default_rng(1)
    return np.where(random.random(PEOPLE) < 0.6, 42, random.integers(0, 100, PEOPLE))


def test_categories_hold_what_their_rows_are():
    codes = skewed()
    known = learnt(opened(codes))[0]
    assert known.mass.sum() == pytest.approx(1.0)
    assert known.mass.min() > 0
    assert known.mass[42] == pytest.approx(np.mean(codes == 42), abs=0.05)
    assert not known.ordered


def test_where_noise_explains_all_differences_rows_are_spread_evenly():
    mass = learnt(opened(np.random.default_rng(2).integers(0, 100, 2_000), epsilon=0.5))[0].mass
    assert mass.max() < 4 / 100


def test_two_categories_without_a_common_view_are_multiplied_as_they_are_frequent():
    codes = skewed()
    random = np.random.default_rng(5)
    other = np.where(random.random(PEOPLE) < 0.5, 7, random.integers(0, 100, PEOPLE))
    table = dn.Table("t", c=dn.Categorical(*NAMES), d=dn.Categorical(*NAMES))
    made = dn.Collection(
        table, epsilon=4.0, design="grid", grids={"t": [dn.GridView({"c": 100}), dn.GridView({"d": 100})]}
    )
    frame = {"uid": np.arange(PEOPLE), "c": np.array(NAMES)[codes], "d": np.array(NAMES)[other]}
    database = dn.connect(made.perturb(t=frame, source=dn.SeededSource(3), simulation=True))
    answer = database.sql("SELECT COUNT(*) FROM t WHERE c = 'c42' AND d = 'c7'").scalar()
    truth = np.sum((codes == 42) & (other == 7))
    assert answer.value == pytest.approx(truth, rel=0.15)
    assert answer.interval[0] < truth < answer.interval[1]


def test_rows_of_a_cell_with_several_categories_may_all_be_in_one():
    density = LearntDensity(np.full(4, 0.25), np.array([0, 2]), np.array([0.5, 0.0]), ordered=False)
    functions = np.eye(4)
    known = density.ground(ground(dn.Categorical("a", "b", "c", "d"), [(0, 2)], functions), functions)
    open_cell, single = known.kernel[0, 0] - known.kernel[2, 2], known.kernel[2, 3]
    assert open_cell == pytest.approx(0.25**2)
    assert single < 0  # what one category has more, others have less


def test_the_nearest_possible_frequencies():
    assert _possible(np.array([0.7, 0.5, -0.2])).tolist() == pytest.approx([0.6, 0.4, 0.0])
    assert _possible(np.array([0.2, 0.3, 0.5])).tolist() == pytest.approx([0.2, 0.3, 0.5])


def test_only_reports_that_stand_for_rows_say_where_rows_are():
    table = dn.Table("t", many=4, x=dn.Ordinal(0, 19))
    made = dn.Collection(table, epsilon=4.0, design="grid", grids={"t": [dn.GridView({"x": 5})]})
    users = np.repeat(np.arange(PEOPLE // 4), 2)  # one user in four has two rows, all of them at 13
    reports = made.perturb(
        t={"uid": users, "x": np.full(users.size, 13)},
        everyone={"uid": np.arange(PEOPLE)},
        source=dn.SeededSource(2),
        simulation=True,
    )
    known = learnt(dn.connect(reports))
    assert known[1].share == pytest.approx(1 / 8, abs=0.02)
    held = np.add.reduceat(known[0].mass, known[0].starts)
    assert held[3] > 0.9
