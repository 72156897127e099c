"""Attributes that no view shows together: nothing says how they depend on each other, and intervals say so."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

SIZE, PEOPLE = 60, 30_000
TABLE = dn.Table("t", x=dn.Ordinal(0, SIZE - 1), y=dn.Ordinal(0, SIZE - 1))
APART = [dn.GridView({"x": 20}), dn.GridView({"y": 20})]


def dependent(correlation):
    """Two attributes of normal shape that depend on each other."""
    random = np.random.default_rng(6)
    first, other = random.standard_normal((2, PEOPLE))
    second = correlation * first + np.sqrt(1 - correlation**2) * other
    return (np.clip(30 + 11 * each, 0, SIZE - 1).astype(int) for each in (first, second))


def opened(x, y, views):
    made = dn.Collection(TABLE, epsilon=4.0, design="grid", grids={"t": views})
    frame = pa.table({"uid": np.arange(PEOPLE), "x": x, "y": y})
    return dn.connect(made.perturb(t=frame, source=dn.SeededSource(8), simulation=True))


@pytest.mark.parametrize("correlation", [-1.0, -0.7, 0.0, 0.7, 1.0])
def test_intervals_hold_the_truth_however_attributes_depend_on_each_other(correlation):
    x, y = dependent(correlation)
    database = opened(x, y, APART)
    for low, high, other_low, other_high in ((24, 36, 24, 36), (10, 20, 10, 20), (0, 23, 37, 59)):
        inside = (x >= low) & (x <= high) & (y >= other_low) & (y <= other_high)
        answer = database.sql(
            f"SELECT COUNT(*) FROM t WHERE x BETWEEN {low} AND {high} AND y BETWEEN {other_low} AND {other_high}"
        ).scalar()
        assert answer.interval[0] <= inside.sum() <= answer.interval[1]
        most = min(((x >= low - 2) & (x <= high + 2)).sum(), ((y >= other_low - 2) & (y <= other_high + 2)).sum())
        assert answer.interval[1] < 1.1 * most + 2_000  # what each attribute alone allows, and noise


def test_a_view_of_both_leaves_less_open():
    x, y = dependent(0.0)
    text = "SELECT COUNT(*) FROM t WHERE x BETWEEN 24 AND 36 AND y BETWEEN 24 AND 36"
    apart = opened(x, y, APART).sql(text).scalar()
    together = opened(x, y, [*APART, dn.GridView({"x": 5, "y": 5}, weight=1)]).sql(text).scalar()
    assert together.model < 0.8 * apart.model
    assert (
        opened(x, y, APART).sql("SELECT COUNT(*) FROM t WHERE x BETWEEN 24 AND 36").scalar().model < 0.1 * apart.model
    )
