"""Views of all values that reports hardly show: evidence next to coarser cells, the answer where they stand alone."""

import numpy as np
import pytest

import deniable as dn
from deniable.queries.grids.unshown_values import unshown_values
from deniable.queries.grids.view_agreement import _same, _unions
from deniable.tables.schema.grid_views import Cells, GridView, Points

SIZE = 400
TABLE = dn.Table("t", a=dn.Ordinal(0, SIZE - 1))
HEAVY = 213


def collected(values, views, seed=0, epsilon=2.0):
    """A database of people with these values."""
    collection = dn.Collection(TABLE, epsilon=epsilon, design="grid", grids={"t": views})
    rows = {"uid": np.arange(values.size), "a": values}
    return dn.connect(collection.perturb(t=rows, source=dn.SeededSource(seed), simulation=True))


def unshown(views, users, epsilon=2.0):
    """Which views are evidence only."""
    collection = dn.Collection(TABLE, epsilon=epsilon, design="grid", grids={"t": views})
    return set(unshown_values(TABLE, collection.design_of("t"), users))


def test_all_values_are_evidence_next_to_cells_unless_reports_show_them():
    every, cells = GridView({"a": SIZE}), GridView({"a": 24})
    assert unshown([cells, every], 1e4) == {1}
    assert unshown([cells, every], 1e8) == set()
    assert unshown([cells, every], 1e4, epsilon=12.0) == set()
    assert unshown([every], 1e4) == set()  # nothing else would answer
    assert unshown([GridView({"a": 4}), every], 1e4) == set()
    assert unshown([GridView({"a": Points(12)}), every], 1e4) == set()
    assert unshown([cells, GridView({"a": Cells(SIZE // 2)})], 1e4) == set()


@pytest.mark.parametrize("low", [HEAVY, HEAVY - 3])
def test_a_heavy_value_inside_a_cell_is_found(low):
    random = np.random.default_rng(3)
    spread = random.integers(0, SIZE, 20_000)
    values = np.where(random.random(spread.size) < 0.3, HEAVY, spread)
    question = f"SELECT COUNT(*) FROM t WHERE a BETWEEN {low} AND {HEAVY}"
    truth = int(((values >= low) & (values <= HEAVY)).sum())
    cells, every = GridView({"a": 20}), GridView({"a": SIZE})
    for seed in range(4):
        without = collected(values, [cells], seed).sql(question).scalar()
        both = collected(values, [cells, every], seed).sql(question).scalar()
        assert abs(without.value - truth) > 2_000
        assert abs(both.value - truth) < 1_000
        assert both.error < without.error
        assert abs(both.value - truth) < 3 * both.error


def test_a_smooth_density_is_answered_with_less_noise_than_by_its_values_and_unbiased_still_is():
    values = np.clip(np.random.default_rng(4).normal(200, 60, 20_000), 0, SIZE - 1).astype(int)
    question, truth = "SELECT COUNT(*) FROM t WHERE a BETWEEN 93 AND 251", int(((values >= 93) & (values <= 251)).sum())
    views = [GridView({"a": 20}), GridView({"a": SIZE})]
    for seed in range(4):
        db = collected(values, views, seed)
        answer, unbiased = db.sql(question).scalar(), db.sql(question, unbiased=True).scalar()
        assert answer.model > 0
        assert unbiased.model == 0
        assert answer.stderr < 0.7 * unbiased.stderr
        assert answer.error < unbiased.error
        assert abs(answer.value - truth) < 3 * answer.error
        assert abs(unbiased.value - truth) < 3 * unbiased.error


def test_what_partitions_agree_on_is_found_without_looking_for_directions():
    def cells(starts):
        return np.eye(len(starts))[np.searchsorted(starts, np.arange(12), side="right") - 1].T

    left, right = cells([0, 3, 5, 9]), cells([0, 5, 6, 9, 10])
    ours, theirs = _unions(left, right)
    np.testing.assert_allclose(ours.T @ left, theirs.T @ right, atol=1e-12)
    shown = {tuple(np.flatnonzero(row)) for row in ours.T @ left}
    assert shown == {tuple(range(5)), tuple(range(5, 9)), tuple(range(9, 12))}
    points = np.maximum(1 - np.abs(np.arange(12) - np.array([[0.0], [5.5], [11.0]])) / 5.5, 0)
    for first, second in ((points, np.eye(12)), (np.eye(12), points)):
        ours, theirs = _same(first, second)
        assert ours.shape[1] == 3
        np.testing.assert_allclose(ours.T @ first, theirs.T @ second, atol=1e-12)
