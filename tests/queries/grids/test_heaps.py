"""Heaps at round numbers: moved as stated, seen where there are some, and not seen where there are none."""

from datetime import date

import numpy as np
import pytest

import deniable as dn
from deniable.queries.grids.heaps import HEAP_SHARES, HEAP_STEPS, Heaps, possible_heaps
from deniable.queries.grids.smoothness import ground

SIZE, USERS = 80, 40_000
TABLE = dn.Table("t", x=dn.Ordinal(0, SIZE - 1))
VIEWS = [dn.GridView({"x": dn.Cells([0, 1, 8, 17, 26, 33, 42, 49, 58, 67, 74])})]


def test_a_share_of_the_rows_moves_to_the_nearest_round_number():
    heaps = Heaps(10, 0.5, first=3)
    moved = heaps.moved(np.full(30, 1 / 30))
    assert moved.sum() == pytest.approx(1.0)
    assert moved[4] == pytest.approx(0.5 / 30)
    assert moved[13] == pytest.approx(0.5 / 30 + 0.5 * 10 / 30, abs=0.02)
    plain = ground(dn.Ordinal(0, 29), [(0,)], np.ones((1, 30)))
    random = np.random.default_rng(1).dirichlet(np.ones(30))
    assert heaps.matrix(plain) @ random == pytest.approx(heaps.moved(random))


def test_round_numbers_are_those_of_values_not_of_positions():
    assert {heaps.first for heaps in possible_heaps(dn.Ordinal(1, 95)) if heaps.step == 10} == {9}
    assert {heaps.first for heaps in possible_heaps(dn.Ordinal(-25, 95)) if heaps.step == 10} == {5}
    assert len(possible_heaps(dn.Ordinal(0, 9_999))) == 2 * len(
        HEAP_SHARES
    )  # atoms of 20 values hide steps of 5 and 10
    assert len(possible_heaps(dn.Ordinal(0, 511))) == 3 * len(HEAP_SHARES) < len(HEAP_STEPS) * len(HEAP_SHARES)
    assert possible_heaps(dn.Ordinal(0, 1, step=0.01)) == ()
    assert possible_heaps(dn.Ordinal(date(2024, 1, 1), date(2024, 12, 31))) == ()


def opened(values, epsilon=2.0):
    collection = dn.Collection(TABLE, epsilon=epsilon, design="grid", grids={"t": VIEWS})
    frame = {"uid": np.arange(values.size), "x": values}
    return dn.connect(collection.perturb(t=frame, source=dn.SeededSource(3), simulation=True))


def density(database):
    database.sql("SELECT COUNT(*) FROM t WHERE x < 40")
    return database._learnt.by_table["t"][0].mass


def smooth(seed=5):
    return np.clip(np.random.default_rng(seed).normal(40, 18, USERS), 0, SIZE - 1).astype(int)


def test_heaps_that_nobody_asks_about_are_seen():
    values = smooth()
    heaped = np.where(np.random.default_rng(6).random(USERS) < 0.6, np.rint(values / 10).astype(int) * 10, values)
    heaped = np.minimum(heaped, SIZE - 1)
    database = opened(heaped)
    mass = density(database)
    assert mass[[30, 40, 50]].min() > 4 * mass[[29, 31, 39, 41, 51]].max()
    for high in (29, 30, 39):
        answer = database.sql(f"SELECT COUNT(*) FROM t WHERE x BETWEEN 20 AND {high}").scalar()
        truth = np.sum((heaped >= 20) & (heaped <= high))
        assert abs(answer.value - truth) < 0.05 * USERS  # the heap at 30 or 40 holds more


@pytest.mark.parametrize(
    "values", [smooth(), np.where(np.arange(USERS) % 3 == 0, 0, smooth())], ids=["smooth", "zeros"]
)
def test_smooth_values_have_no_heaps_even_with_many_zeros(values):
    mass = density(opened(values))
    assert mass[[30, 40, 50]].max() < 1.5 * mass[[29, 39, 49]].min()
