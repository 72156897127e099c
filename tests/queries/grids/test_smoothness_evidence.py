"""What reports tell of how smooth the data is, and what errors make of it."""

import math
from itertools import pairwise

import numpy as np
import pytest

import deniable as dn
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.learnt_density import LearntDensity
from deniable.queries.grids.smoothness import ground
from deniable.queries.grids.smoothness_evidence import Evidence
from deniable.queries.planning.cell_frequencies import counting_plan, counting_table
from deniable.queries.weights.table_plan import Product
from many_collections import simulated
from recording_engine import RecordingEngine

SIZE = 60
TABLE = dn.Table("t", x=dn.Ordinal(0, SIZE - 1), z=dn.Ordinal(0, SIZE - 1), c=dn.Categorical("a", "b", "c"))
VIEWS = [
    dn.GridView({"x": dn.Cells(12)}),
    dn.GridView({"x": dn.Cells(4), "z": dn.Points(4)}),
    dn.GridView({"z": dn.Cells(10), "c": 3}),
]


def grid(epsilon):
    return dn.Collection(TABLE, epsilon=epsilon, design="grid", grids={"t": VIEWS})


def rows(x, seed=1):
    random = np.random.default_rng(seed)
    others = {"z": random.integers(0, SIZE, len(x)), "c": random.choice(list("abc"), len(x))}
    return {"uid": range(len(x)), "x": x, **others}


def opened(x, epsilon=4.0, seed=1):
    return dn.connect(grid(epsilon).perturb(t=rows(x, seed), source=dn.SeededSource(seed), simulation=True))


def smooth(users=40_000):
    return np.clip(np.random.default_rng(5).normal(25, 14, users), 0, SIZE - 1).astype(int)


def skewed(users=40_000, seed=6):
    return np.minimum(np.random.default_rng(seed).lognormal(math.log(3), 0.8, users), SIZE - 1).astype(int)


def spikes(users=40_000):
    return np.random.default_rng(7).choice([0, 1, 23, 24, 40], users, p=[0.3, 0.1, 0.05, 0.05, 0.5])


def asked(database, evidence):
    """What the reports say: counts of cells, and reports of each view."""
    counts = database.engine.cell_counts("t", evidence.views)
    return counts, database.stores["t"].view_counts(len(VIEWS))


def learnt(database):
    evidence = Evidence.of(database.collection, "t")
    return evidence.learnt(*asked(database, evidence))


def test_frequencies_along_attributes_are_those_of_the_rows_where_nothing_is_randomised():
    x = smooth()
    database = opened(x, epsilon=math.inf)
    evidence = Evidence.of(database.collection, "t")
    assert set(evidence.along) == {0, 1}
    frequencies = evidence.frequencies(0, *asked(database, evidence))
    cells = np.bincount(x // 5, minlength=12) / x.size
    coarse = np.bincount(x // 15, minlength=4) / x.size
    # Each third of the users reports one of the views.
    assert np.allclose(frequencies, np.concatenate((cells, coarse)), atol=4 * math.sqrt(3 / x.size / 4))
    assert frequencies[:12].sum() == pytest.approx(1.0)


def test_noise_of_frequencies_is_as_stated():
    x = np.random.default_rng(3).integers(0, SIZE, 4_000)
    evidence = Evidence.of(grid(1.0), "t")
    along = evidence.along[0]
    collections = simulated(grid(1.0), {"t": rows(x)}, users=4_000, runs=150)
    repeated = np.array([evidence.frequencies(0, *asked(database, evidence)) for database in collections])
    # A mean square is stated: it has the square of the mean in it, which a count of reports per view takes out again.
    measured, stated = repeated.var(axis=0), np.diag(along.noise) / x.size
    assert np.all(measured < 1.4 * stated)
    assert np.all(measured > 0.6 * stated)


def test_pieces_hold_what_their_rows_are():
    for data in (smooth(), skewed(), spikes()):
        density = learnt(opened(data))[0]
        assert density.starts.tolist() == list(range(0, SIZE, 5))
        held = np.add.reduceat(density.mass, density.starts)
        assert density.mass.sum() == pytest.approx(1.0)
        assert density.mass.min() > 0  # nothing is ruled out
        assert np.allclose(held, np.bincount(data // 5, minlength=12) / data.size, atol=0.02)


def test_smooth_data_is_tighter_than_spikes():
    tight = learnt(opened(smooth()))[0].looseness
    loose = learnt(opened(spikes()))[0].looseness
    assert tight[:8].max() < 0.2
    assert loose[[0, 4, 8]].min() > 0.4


def test_skewed_rows_are_expected_on_a_logarithmic_scale():
    mass = learnt(opened(skewed()))[0].mass
    assert mass[0] > 1.5 * mass[4]  # of the first piece, whose rows are mostly at its low end


def test_narrow_pieces_may_hold_most_rows_of_a_wide_domain():
    table = dn.Table("t", x=dn.Ordinal(0, 99_999))
    views = [dn.GridView({"x": dn.Cells([0, 1, 100, 1_000, 10_000])})]
    made = dn.Collection(table, epsilon=4.0, design="grid", grids={"t": views})
    random = np.random.default_rng(1)
    x = np.where(random.random(40_000) < 0.9, 0, np.clip(np.exp(random.normal(6, 2, 40_000)), 1, 99_999)).astype(int)
    frame = {"uid": range(x.size), "x": x}
    database = dn.connect(made.perturb(t=frame, source=dn.SeededSource(1), simulation=True))
    above = database.sql("SELECT COUNT(*) FROM t WHERE x > 50").scalar()
    assert above.interval[0] < (x > 50).sum() < above.interval[1]
    assert above.model < 0.1 * x.size
    held = np.add.reduceat(database._learnt.by_table["t"][0].mass, [0, 1, 100, 1_000, 10_000])
    assert np.allclose(held, np.histogram(x, [0, 1, 100, 1_000, 10_000, 10**6])[0] / x.size, atol=0.01)


def test_what_pieces_leave_open_is_nothing_for_whole_pieces_and_most_for_halves():
    density = LearntDensity(np.full(20, 0.05), np.array([0, 10]), np.array([0.5, 0.1]))
    functions = np.zeros((3, 20))
    functions[0, :10] = functions[1, :5] = functions[2, 10:15] = 1.0
    plain = ground(dn.Ordinal(0, 19), [(0, 10)], functions)
    kernel = density._open(plain, density._inside(plain), functions)
    whole, half, tight = (float(function @ kernel @ function) for function in functions)
    assert whole == pytest.approx(0.0, abs=1e-12)
    assert half == pytest.approx(0.25**2)  # a half of the rows, all of which may share a value
    assert tight == pytest.approx(0.05**2)


def test_points_say_where_in_their_pieces_rows_are():
    table = dn.Table("t", x=dn.Ordinal(0, 23))
    cells, points = dn.GridView({"x": dn.Cells((0, 2, 5, 9, 17))}), dn.GridView({"x": dn.Points((0, 4, 5, 8, 9, 23))})
    frame = {"uid": range(20_000), "x": np.where(np.arange(20_000) % 2, 8, 0)}
    means = []
    for views in ([cells], [cells, points]):
        collection = dn.Collection(table, epsilon=4.0, design="grid", grids={"t": views})
        database = dn.connect(collection.perturb(t=frame, source=dn.SeededSource(1), simulation=True))
        evidence = Evidence.of(collection, "t")
        counts = database.engine.cell_counts("t", evidence.views)
        mass = evidence.learnt(counts, database.stores["t"].view_counts(len(views)))[0].mass
        means.append(mass[5:9] @ np.arange(5, 9) / mass[5:9].sum())
    assert means[0] + 0.4 < means[1]  # heaps at multiples of five would explain these cells


def test_nothing_is_learnt_without_reports():
    evidence = Evidence.of(grid(1.0), "t")
    assert evidence.learnt(np.zeros(12 + 16 + 30), np.array([5, 0, 9])) == {}


def test_views_of_very_many_cells_are_not_asked():
    table = dn.Table("t", x=dn.Ordinal(0, SIZE - 1), shop=dn.Categorical(*(f"p{number}" for number in range(500))))
    views = [dn.GridView({"x": dn.Cells(12)}), dn.GridView({"x": dn.Cells(12), "shop": 500})]
    evidence = Evidence.of(dn.Collection(table, epsilon=1.0, design="grid", grids={"t": views}), "t")
    assert [view.cells for view in evidence.views] == [12]


def test_counts_of_cells_are_those_of_plans_that_measure_them():
    database = opened(skewed(5_000), 1.0)
    evidence = Evidence.of(database.collection, "t")
    table, design = database.collection["t"], database.collection.design_of("t")
    whole = Asked.of(table, design, [(Product(1.0, {}, {}),)])
    views = [CellView.of(table, view, whole) for view in evidence.views]
    starts = np.cumsum([0, *(view.means.size for view in views)])
    blocks = [np.eye(starts[-1])[first:last] for first, last in pairwise(starts)]
    plan, _ = counting_plan(database.plan("SELECT COUNT(*) FROM t"), [counting_table("t", views, blocks)])
    measured = database._moments(plan).sums[:, 0]
    counts, reports = asked(database, evidence)
    scale = np.repeat(reports.sum() / reports, [view.cells for view in evidence.views])
    assert np.allclose(counts * scale, measured)


def test_weights_follow_the_reports_which_are_asked_once():
    x = skewed()
    engine = RecordingEngine(opened(x).engine)
    database = dn.connect(engine=engine)
    text = "SELECT COUNT(*) FROM t WHERE x < 3"
    estimate = database.sql(text).scalar()
    again = database.sql(text).scalar()
    assert engine.asked.count("cell counts of t") == 1
    assert estimate == again
    assert estimate.interval[0] < (x < 3).sum() < estimate.interval[1]
    plan = database.plan(text)
    assert database.revised(plan) is database.revised(plan) is not plan
    exact = database.plan("SELECT COUNT(*) FROM t WHERE x < 30")
    assert database.revised(exact) is exact


def test_what_needs_no_assumption_has_no_model_error_whatever_is_believed():
    database = opened(skewed())
    result = database.sql("SELECT COUNT(*) FROM t WHERE x < 3", postprocess=None)
    exact = database.sql("SELECT COUNT(*) FROM t WHERE x < 30", unbiased=True).scalar()
    assert result.scalar().model > 0
    assert not exact.model


def test_intervals_cover_on_skewed_data():
    covered = []
    for seed in range(6):
        x = skewed(20_000, seed)
        database = opened(x, 2.0, seed)
        for low, high in ((0, 0), (0, 1), (0, 2), (1, 3), (2, 6), (3, 9), (7, 59)):
            truth = int(((x >= low) & (x <= high)).sum())
            bottom, top = database.sql(f"SELECT COUNT(*) FROM t WHERE x BETWEEN {low} AND {high}").scalar().interval
            covered.append(bottom <= truth <= top)
    assert np.mean(covered) > 0.85
