"""What cells answer without an assumption is answered without one, on any data."""

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.grid_weights import solve_grid
from deniable.queries.grids.view_agreement import least_noise
from deniable.queries.weights.table_plan import Product

PEOPLE = 60_000


def paid(seed=0):
    """Nine in ten are 0, and the rest have a heavy tail: nothing that a smooth prior expects."""
    random = np.random.default_rng(seed)
    tail = np.clip(np.exp(random.normal(6, 2, PEOPLE)), 1, 99_999).astype(np.int64)
    return np.where(random.random(PEOPLE) < 0.9, 0, tail)


def opened(div, views, seed=0, epsilon=4.0):
    table = dn.Table("p", div=dn.Ordinal(0, 99_999))
    made = dn.Collection(table, epsilon=epsilon, design="grid", grids={"p": views})
    frame = pa.table({"uid": np.arange(div.size), "div": div})
    return dn.connect(made.perturb(p=frame, source=dn.SeededSource(seed), simulation=True))


@pytest.mark.parametrize("low", [1, 100, 1_000])
def test_ranges_along_borders_are_answered_as_unbiased_ones_on_a_wide_skewed_domain(low):
    div = paid()
    db = opened(div, [dn.GridView({"div": dn.Cells([0, 1, 100, 1_000, 10_000])})])
    text = f"SELECT COUNT(*) FROM p WHERE div >= {low}"
    plain, exact = db.sql(text).scalar(), db.sql(text, unbiased=True).scalar()
    assert plain == exact
    assert plain.model == 0.0
    assert abs(plain.value - (div >= low).sum()) < 5 * plain.stderr


def test_only_columns_that_cells_do_not_reproduce_have_a_model_error():
    db = opened(paid(), [dn.GridView({"div": dn.Cells([0, 1, 100, 1_000, 10_000])})])
    answers = db.sql("SELECT COUNT(*) AS some, SUM(div) AS total FROM p WHERE div > 0").answers
    assert answers["some"][0].model == 0.0 < answers["total"][0].model


def test_in_a_join_both_sides_have_to_be_reproduced():
    left, right = dn.Table("p", div=dn.Ordinal(0, 999)), dn.Table("q", age=dn.Ordinal(0, 99))
    grids = {"p": [dn.GridView({"div": dn.Cells([0, 1, 10])})], "q": [dn.GridView({"age": dn.Cells([0, 18, 65])})]}
    made = dn.Collection(left, right, epsilon=8.0, design="grid", grids=grids)
    random = np.random.default_rng(3)
    frames = {
        "p": pa.table({"uid": np.arange(20_000), "div": np.minimum(paid()[:20_000], 999)}),
        "q": pa.table({"uid": np.arange(20_000), "age": random.integers(0, 100, 20_000)}),
    }
    db = dn.connect(made.perturb(**frames, source=dn.SeededSource(1), simulation=True))
    text = "SELECT COUNT(*) FROM p JOIN q USING (uid) WHERE div > 0 AND age < {}"
    assert db.sql(text.format(18)).scalar() == db.sql(text.format(18), unbiased=True).scalar()
    assert db.sql(text.format(20)).scalar().model > 0


def test_views_that_agree_take_noise_away_and_leave_the_mean():
    table = dn.Table("t", x=dn.Ordinal(0, 31), s=dn.Categorical("f", "m"))
    views = [dn.GridView({"x": 8}), dn.GridView({"x": dn.Cells([0, 8, 20])}), dn.GridView({"x": 4, "s": 2})]
    design = dn.Collection(table, epsilon=1.0, design="grid", grids={"t": views}).design_of("t")
    low = (np.arange(32) < 8).astype(float)
    asked = Asked.of(table, design, [(Product(1.0, {"x": low}, {}),)])
    seen = [CellView.of(table, view, asked) for view in design]
    alone = [np.zeros((view.means.size, 1)) for view in seen]
    alone[0][:2] = 1.0
    best = least_noise(seen, alone)

    def variance(weights):
        spent = [w[:, 0] @ v.noise @ w[:, 0] / float(v.view.probability) for w, v in zip(weights, seen, strict=True)]
        return sum(spent)

    total = np.zeros((32, 2))
    for weights, view in zip(best, seen, strict=True):
        if len(view.functions) == 1:
            total += (weights[:, 0] @ view.functions[0])[:, None]
        else:
            total += view.functions[0].T @ weights[:, 0].reshape(4, 2) @ view.functions[1]
    assert np.ptp(total - low[:, None]) < 1e-9  # the same but for what every row adds
    assert variance(best) < 0.7 * variance(alone)
    random = np.random.default_rng(0)
    for _ in range(20):  # no other difference helps
        step = 1e-3 * random.standard_normal()
        other = [best[0] + step * np.repeat([1.0, 0.0], [2, 6])[:, None], best[1] - step * np.eye(3)[:, :1], best[2]]
        assert variance(other) > variance(best)


def test_cells_of_many_categories_that_only_overlap_are_not_taken_to_agree():
    table = dn.Table("t", c=dn.Categorical(*(f"c{number}" for number in range(100))))
    views = [dn.GridView({"c": dn.Cells([0, 20, 21, 60])}), dn.GridView({"c": dn.Cells([0, 20, 21, 75])})]
    design = dn.Collection(table, epsilon=1.0, design="grid", grids={"t": views}).design_of("t")
    asked = (np.arange(100) == 20).astype(float)
    part = solve_grid(table, design, [(Product(1.0, {"c": asked}, {}),)], 10_000, unbiased=True).plan.parts[0]
    mean = np.full(100, part.constants[0])
    for weights in part.views:
        cell = np.searchsorted(design.view(weights.view).group.axes[0].places, np.arange(100), side="right") - 1
        dense = np.zeros(design.view(weights.view).cells)
        for row, (start, stop) in enumerate(pairwise(weights.row_starts.tolist())):
            own = slice(*weights.column_starts[row : row + 2].tolist())
            scale = weights.coefficients[own].sum() * weights.probability
            dense[weights.cells[start:stop]] += weights.weights[start:stop] * scale
        mean += dense[cell]
    assert np.abs(mean - asked).max() < 1e-9


@pytest.mark.parametrize("size", [60, 70, 200])
def test_sets_of_many_categories_are_counted_as_they_are(size):
    """Cells of categories that a question does not name are left out of its plan, and nothing else with them."""
    names = [f"c{number}" for number in range(size)]
    table = dn.Table("t", kind=dn.Categorical(*names))
    views = [dn.GridView({"kind": size})]
    made = dn.Collection(table, epsilon=math.inf, design="grid", grids={"t": views})
    kind = np.where(np.arange(4_000) % 3 == 0, 0, np.arange(4_000) % size)
    frame = pa.table({"uid": np.arange(4_000), "kind": pa.array(names).take(pa.array(kind))})
    database = dn.connect(made.perturb(t=frame, source=dn.SeededSource(3), simulation=True))
    listed = (0, 2, 9, 17, 33)
    asked = database.sql(f"SELECT COUNT(*) FROM t WHERE kind IN ({', '.join(repr(names[n]) for n in listed)})").scalar()
    truth = np.isin(kind, listed).sum()
    assert asked.value == pytest.approx(truth)
    assert asked.model == 0
