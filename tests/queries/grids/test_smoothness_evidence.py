"""What reports tell of how smooth the data is, and what errors make of it."""

import math
from itertools import pairwise

import numpy as np
import pytest

import deniable as dn
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.smoothness import ASSUMED_SMOOTHNESS
from deniable.queries.grids.smoothness_evidence import AMPLITUDES, KERNEL_LENGTHS, ROUGHNESSES, Evidence
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


def asked(database, evidence):
    """What the reports say: counts of cells, and reports of each view."""
    counts = database.engine.cell_counts("t", evidence.views)
    return counts, database.stores["t"].view_counts(len(VIEWS))


def beliefs(database):
    evidence = Evidence.of(database.collection, "t")
    return evidence.beliefs(*asked(database, evidence))


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


def test_smooth_data_is_believed_to_be_as_assumed():
    believed = beliefs(opened(smooth()))[0].smoothness
    assert dict(believed.variances)[KERNEL_LENGTHS[0]] == pytest.approx(AMPLITUDES[0] ** 2, rel=0.3)
    assert sum(variance for _, variance in believed.variances) < 1.5 * ASSUMED_SMOOTHNESS.variances[0][1]
    assert believed.rough < ROUGHNESSES[1] ** 2


def test_spikes_and_skews_are_believed_to_be_rougher():
    spikes = np.random.default_rng(7).choice([0, 1, 23, 24, 40], 40_000, p=[0.3, 0.1, 0.05, 0.05, 0.5])
    for data in (spikes, skewed()):
        believed = beliefs(opened(data))[0].smoothness
        wider = sum(variance * (KERNEL_LENGTHS[0] / length) for length, variance in believed.variances)
        assert wider > 2.5 * ASSUMED_SMOOTHNESS.variances[0][1] or believed.rough > 1.0


def test_where_most_rows_share_a_few_cells_the_density_may_be_steep():
    steep = beliefs(opened(skewed()))[0].steep
    assert steep.shape == (SIZE,)
    assert steep[:5].min() > 3
    assert not steep[15:].any()
    assert not beliefs(opened(smooth()))[0].steep.any()


def test_nobody_is_believed_without_reports():
    evidence = Evidence.of(grid(1.0), "t")
    assert evidence.beliefs(np.zeros(12 + 16 + 30), np.array([5, 0, 9])) == {}


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


def test_only_model_errors_change_and_reports_are_asked_once():
    engine = RecordingEngine(opened(skewed()).engine)
    database = dn.connect(engine=engine)
    text = "SELECT COUNT(*) FROM t WHERE x < 3"
    estimate = database.sql(text).scalar()
    assert engine.asked.count("cell counts of t") == 1
    database._beliefs.by_table["t"] = {}
    taken_for_granted = database.sql(text).scalar()
    assert engine.asked.count("cell counts of t") == 1
    assert (estimate.value, estimate.stderr) == (taken_for_granted.value, taken_for_granted.stderr)
    assert estimate.model > 1.5 * taken_for_granted.model


def test_what_needs_no_assumption_has_no_model_error_whatever_is_believed():
    database = opened(skewed())
    result = database.sql("SELECT COUNT(*) FROM t WHERE x < 3", postprocess=None)
    exact = database.sql("SELECT COUNT(*) FROM t WHERE x < 30", unbiased=True).scalar()
    assert result.scalar().model > 0
    assert not exact.model


def test_intervals_cover_on_skewed_data():
    covered, before = [], []
    for seed in range(6):
        x = skewed(20_000, seed)
        database = opened(x, 2.0, seed)
        for low, high in ((0, 0), (0, 1), (0, 2), (1, 3), (2, 6), (3, 9), (7, 59)):
            truth = int(((x >= low) & (x <= high)).sum())
            text = f"SELECT COUNT(*) FROM t WHERE x BETWEEN {low} AND {high}"
            for kept, list_ in ((False, covered), (True, before)):
                if kept:
                    learnt, database._beliefs.by_table["t"] = database._beliefs.by_table["t"], {}
                bottom, top = database.sql(text).scalar().interval
                list_.append(bottom <= truth <= top)
                if kept:
                    database._beliefs.by_table["t"] = learnt
    assert np.mean(covered) > 0.85
    assert np.mean(before) < np.mean(covered) - 0.2  # what was taken for granted alone would not do
