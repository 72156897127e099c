"""How much attributes have to do with each other, as views of two attributes say."""

import numpy as np
import pytest

import deniable as dn
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.learnt_density import INTERACTIONS
from deniable.queries.grids.learnt_interactions import FACTORS, LearntInteractions
from deniable.queries.grids.smoothness_evidence import Evidence
from deniable.queries.weights.table_plan import Product

SIZE, USERS = 24, 30_000
TABLE = dn.Table("t", x=dn.Ordinal(0, SIZE - 1), z=dn.Ordinal(0, SIZE - 1), w=dn.Ordinal(0, SIZE - 1))
VIEWS = [dn.GridView({"x": dn.Cells(6), "z": dn.Cells(6)}), dn.GridView({"w": dn.Cells(6)})]


def opened(correlation, seed=1):
    random = np.random.default_rng(seed)
    x, other, w = random.normal(0, 1, (3, USERS))
    z = correlation * x + np.sqrt(1 - correlation**2) * other
    columns = {
        name: np.clip(12 + 4 * values, 0, SIZE - 1).astype(int) for name, values in zip("xzw", (x, z, w), strict=True)
    }
    collection = dn.Collection(TABLE, epsilon=2.0, design="grid", grids={"t": VIEWS})
    frame = {"uid": np.arange(USERS), **columns}
    return dn.connect(collection.perturb(t=frame, source=dn.SeededSource(seed), simulation=True)), columns


def learnt(database):
    evidence = Evidence.of(database.collection, "t")
    return evidence.learnt(database.engine.cell_counts("t", evidence.views), database.stores["t"].view_counts(2))


def test_independent_attributes_are_told_from_correlated_ones():
    alone, together = (learnt(opened(correlation)[0])[INTERACTIONS] for correlation in (0.0, 0.9))
    assert alone.factor < 0.1
    assert together.factor > 0.5
    assert alone.pairs == {frozenset({0, 1})}


def test_a_small_factor_holds_only_for_pairs_that_a_view_shows():
    known = LearntInteractions(0.1, frozenset({frozenset({0, 1})}))
    assert known.among({frozenset({0, 1}), frozenset({2}), frozenset()}) == 0.1
    assert known.among({frozenset({0, 2})}) == 1.0
    assert known.among({frozenset({0, 1, 2})}) == 1.0
    assert LearntInteractions(4.0, frozenset()).among({frozenset({0, 2})}) == 4.0


@pytest.mark.parametrize("factor", [FACTORS[0], 1.0, 4.0])
def test_what_one_attribute_does_counts_once_and_what_two_do_counts_as_often_as_the_factor(factor):
    columns = [
        (Product(1.0, {"x": np.arange(SIZE) < 7.0}, {}),),
        (Product(1.0, {"x": np.arange(SIZE) < 7.0, "z": np.arange(SIZE) > 9.0}, {}),),
    ]
    design = dn.Collection(TABLE, epsilon=2.0, design="grid", grids={"t": VIEWS}).design_of("t")
    plain = Asked.of(TABLE, design, columns)
    known = {INTERACTIONS: LearntInteractions(factor, frozenset({frozenset({0, 1})}))}
    scaled = Asked.of(TABLE, design, columns, known)
    first, second = (np.array(each) for each in ((0, 1), (0, 1)))
    spread, means = plain.second_moments(first, second), plain.column_means()
    kernels = [
        float((functions @ known.kernel * functions).sum(axis=1).max())
        for functions, known in zip(plain.functions[:2], plain.grounds[:2], strict=True)
    ]
    # x alone; x and z: both shapes once, and their interaction as often as the factor says.
    assert scaled.second_moments(first, second)[0] == pytest.approx(spread[0])
    together = (factor - 1) * kernels[0] * kernels[1]
    assert scaled.second_moments(first, second)[1] == pytest.approx(spread[1] + together)
    assert scaled.column_means() == pytest.approx(means)
    view = CellView.of(TABLE, design.view(0), plain)
    crossed = view.covariances(view, scaled)
    assert np.linalg.eigvalsh(crossed).min() > -1e-9 * np.trace(crossed)
    own = np.kron(np.eye(6), np.ones((1, 6)))  # cells of x alone
    assert own @ crossed @ own.T == pytest.approx(own @ view.covariances(view, plain) @ own.T)


def test_answers_of_independent_attributes_have_less_noise():
    database, columns = opened(0.0)
    question = "SELECT COUNT(*) FROM t WHERE x BETWEEN 6 AND 13 AND z BETWEEN 10 AND 17"
    with_factor = database.sql(question).scalar()
    learnt_now = database._learnt.by_table["t"]
    database._learnt.by_table["t"] = {number: known for number, known in learnt_now.items() if number >= 0}
    database._revised = type(database._revised)()
    without = database.sql(question).scalar()
    truth = np.sum((columns["x"] >= 6) & (columns["x"] < 14) & (columns["z"] >= 10) & (columns["z"] < 18))
    assert with_factor.stderr < without.stderr
    assert with_factor.interval[0] < truth < with_factor.interval[1]
