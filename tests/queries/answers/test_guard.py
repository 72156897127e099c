"""An answer that contradicts what cells show is not given."""

import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.queries.answers.estimation import Moments, answer
from deniable.queries.answers.guard import GUARDED, limits, ordered
from deniable.queries.grids.learnt_density import LearntDensity
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.bounding_plan import bounding_plans
from deniable.queries.weights.between_points import between_points

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


def test_a_pair_of_values_that_many_share_is_one_place():
    """Half of the rows of a cell have the same two values: a question about these leaves borders of both attributes."""
    table = dn.Table("t", x=dn.Ordinal(0, 199), y=dn.Ordinal(0, 199))
    views = [dn.GridView({"x": 2, "y": 2})]
    made = dn.Collection(table, epsilon=4.0, design="grid", grids={"t": views})
    random = np.random.default_rng(4)
    shared = np.arange(PEOPLE) < PEOPLE // 2
    x, y = (np.where(shared, atom, random.integers(0, 200, PEOPLE)) for atom in (31, 12))
    frame = {"uid": np.arange(PEOPLE), "x": x, "y": y}
    answer = dn.connect(made.perturb(t=frame, source=dn.SeededSource(0), simulation=True)).sql(
        "SELECT COUNT(*) FROM t WHERE x BETWEEN 30 AND 33 AND y = 12"
    )
    truth = ((x >= 30) & (x <= 33) & (y == 12)).sum()
    assert abs(answer.scalar().value - truth) < 5 * answer.scalar().error
    assert answer.scalar().interval[1] > truth


def test_answers_that_agree_with_cells_are_left_alone():
    x = np.clip(np.random.default_rng(2).normal(15, 6, PEOPLE), 0, SIZE - 1).astype(int)
    database = opened(x)
    for text in ("SELECT COUNT(*) FROM t WHERE x < 13", "SELECT AVG(x) FROM t WHERE x BETWEEN 5 AND 22"):
        assert GUARDED not in database.sql(text).notes


@pytest.mark.parametrize("condition", ["x < 13", "x BETWEEN 3 AND 22 AND s = 'f'", "x < 13 OR s = 'f'"])
def test_sums_of_public_measures_are_guarded_with_the_rows_that_they_count(condition):
    random = np.random.default_rng(3)
    x = np.clip(random.normal(15, 6, PEOPLE), 0, SIZE - 1).astype(int)
    frame = pa.table({"uid": np.arange(PEOPLE), "x": x, "s": random.choice(["f", "m"], PEOPLE), "open": 3 * x + 1})
    table = dn.Table("t", x=dn.Ordinal(0, SIZE - 1), s=dn.Categorical("f", "m"), open=dn.Public())
    made = dn.Collection(table, epsilon=4.0, design="grid", grids={"t": VIEWS})
    database = dn.connect(made.perturb(t=frame, source=dn.SeededSource(1), simulation=True))
    text = f"SELECT COUNT(*) AS n, SUM(open) AS sums, AVG(open) AS mean FROM t WHERE {condition}"
    (truth,) = duckdb.sql(text.replace("FROM t", "FROM frame")).fetchall()
    answers = database.sql(text).answers
    for name, true in zip(("n", "sums", "mean"), truth, strict=True):
        (told,) = answers[name]
        assert abs(told.value - true) < 5 * told.error, name


def test_bounds_hold_the_truth_of_any_data():
    x = np.random.default_rng(3).choice([9, 10, 25], PEOPLE)
    database = opened(x)
    plan = database.revised(database.plan("SELECT COUNT(*) FROM t WHERE x BETWEEN 5 AND 22"))
    low, high = (database._moments(bound).sums[0, 0] for bound in database_bounds(database, plan))
    assert low < ((x >= 5) & (x <= 22)).sum() < high
    assert low == pytest.approx((x // 10 == 1).sum(), rel=0.1)
    assert high == pytest.approx(PEOPLE, rel=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(x) AS n FROM t WHERE x BETWEEN 5 AND 22",
        "SELECT SUM(x - 20) AS n FROM t WHERE x BETWEEN 5 AND 22 AND s = 'f'",
        "SELECT SUM(x) AS n FROM t WHERE s = 'f'",
    ],
)
def test_bounds_of_sums_with_negative_values_hold_the_truth(text):
    x = np.random.default_rng(3).choice([9, 10, 25], PEOPLE)
    views = [*VIEWS, dn.GridView({"x": dn.Points([0, 12, 39])})]
    made = dn.Collection(TABLE, epsilon=math.inf, design="grid", grids={"t": views})
    sex = np.array(["f", "m"])[np.arange(x.size) % 2]
    frame = {"uid": np.arange(x.size), "x": x, "s": sex}
    database = dn.connect(made.perturb(t=frame, source=dn.SeededSource(1), simulation=True))
    plan = database.revised(database.plan(text))
    low, high = (database._moments(bound) for bound in database_bounds(database, plan))
    rows = (x >= 5) & (x <= 22) if "x BETWEEN" in text else np.full(x.size, True)
    rows &= (sex == "f") | ("s =" not in text)
    middle = {"AVG": 19.5, "x - 20": 20.0}.get("AVG" if "AVG" in text else "x - 20" if "x - 20" in text else "", 0.0)
    truth = float((x[rows] - middle).sum())
    slack = 0.05 * PEOPLE * 20  # who draws which view is a draw
    assert low.sums[0, -1] - slack < truth < high.sums[0, -1] + slack
    assert low.sums[0, -1] < high.sums[0, -1]


def test_points_bound_a_range_by_lines_between_them():
    values = np.zeros(11)
    values[3:7] = 1.0
    low, high = between_points(np.array([0, 2, 5, 10]), values, np.full(11, 1 / 11))
    assert np.all(low <= values)
    assert np.all(high >= values)
    assert low.min() == 0.0


def test_points_show_how_many_rows_are_far_from_one_of_them():
    values = (np.arange(24) >= 6) * 1.0
    mass = np.where(np.isin(np.arange(24), (7, 8)), 0.5, 0.0)
    low, high = between_points(np.array([0, 4, 5, 8, 9, 23]), values, mass)
    assert low[5:9].tolist() == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])  # nobody counts for more than she is from 5
    assert mass @ high == pytest.approx(1.0)


def test_lines_between_points_stay_below_and_above_any_function():
    random = np.random.default_rng(4)
    for _ in range(300):
        size = int(random.integers(3, 40))
        points = np.unique([0, size - 1, *random.integers(size, size=4)])
        steps = random.integers(0, 2, size).astype(float)
        for values in (steps, random.normal(size=size), steps * np.arange(size)):
            low, high = between_points(points, values, random.dirichlet(np.full(size, 0.3)))
            assert np.all(low <= values + 1e-9)
            assert np.all(high >= values - 1e-9)
            for bound in (low, high):
                assert bound == pytest.approx(np.interp(np.arange(size), points, bound[points]))
            assert low.min() >= 0 or values.min() < 0


def test_intervals_end_where_cells_exclude_the_rest():
    x = np.random.default_rng(2).integers(0, 10, PEOPLE)  # cells begin at 0, 10, …: all rows are in the first
    count = opened(x).sql("SELECT COUNT(*) FROM t WHERE x BETWEEN 5 AND 22").scalar()
    assert count.value - 1.9 * count.error < -1000 or count.value + 1.9 * count.error > PEOPLE + 1000
    assert -1000 < count.interval[0] <= (x >= 5).sum() <= count.interval[1] < PEOPLE + 1000


def test_model_errors_stay_within_what_cells_leave_open():
    model = np.diag([4.0, 400.0, 0.0])[None]
    model[0, 0, 1] = model[0, 1, 0] = 20.0
    furthest, ends = np.array([[50.0, 10.0, 7.0]]), np.array([[1.0, 1.0, 1.0]])

    def limited(ends):
        scale = limits(model, furthest, ends)
        return (model * scale[:, :, None] * scale[:, None, :])[0]

    within = limited(ends)
    assert np.sqrt(np.diag(within)).tolist() == pytest.approx([10.0, 5.0, 0.0])  # at least a fifth, at most a half
    assert within[0, 1] / np.sqrt(within[0, 0] * within[1, 1]) == pytest.approx(20 / 40)  # as dependent as before
    four = limited(np.array([[4.0, 1.0, 1.0]]))
    assert np.sqrt(four[0, 0]) == pytest.approx(5.0)  # four places are off independently


def bound(total, square):
    """A bound of one moment."""
    return Moments(
        keys=((),),
        users=np.array([1e9]),
        sums=np.array([[total]]),
        crosses=np.array([[[square]]]),
        between=np.zeros((1, 1, 1)),
        private=np.zeros(1, dtype=np.int64),
        known=np.zeros((1, 1), dtype=bool),
    )


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ((0.0, 0.0), (-800.0, 40_000.0), (0.0, 0.0)),  # nobody is in no cell, that is known
        ((30.0, 100.0), (10.0, 300.0), (25.0, 25.0)),
        ((10.0, 100.0), (30.0, 100.0), (10.0, 30.0)),
        ((5.0, 0.0), (3.0, 0.0), (4.0, 4.0)),
    ],
)
def test_bounds_do_not_cross(low, high, expected):
    met = ordered(bound(*low), bound(*high))
    assert tuple(float(each.sums[0, 0]) for each in met) == pytest.approx(expected, abs=1e-3)


def test_a_ratio_has_the_model_error_of_sums_that_are_off_together():
    question = parse("SELECT AVG(x) FROM t WHERE x < 5", dn.Collection(TABLE, epsilon=1.0))
    assert str(question.outputs[0].formula) == "(19.5 + (m1 / m0))"
    model = 100.0**2 * np.outer([1.0, 13 - 19.5], [1.0, 13 - 19.5])[None]  # 100 rows of 13 may be missing
    scale = np.array([[1.0, 0.8]])
    moments = Moments(
        keys=((),),
        users=np.array([2000.0]),
        sums=np.array([[1000.0, -9_500.0]]),
        crosses=np.array([[[1500.0, -15_000.0], [-15_000.0, 200_000.0]]]),
        between=np.zeros((1, 2, 2)),
        private=np.zeros(1, dtype=np.int64),
        known=np.zeros((1, 2), dtype=bool),
        unlimited=((model, scale),),
    )
    limited = model * scale[:, :, None] * scale[:, None, :]
    average = answer(question, moments, single_rows=True, model=limited).scalar()
    assert average.model == pytest.approx(100 * (13 - 10) / 1000)


def test_an_answer_is_never_many_errors_off_whatever_hides_in_cells():
    x = np.full(PEOPLE, 9)  # cells begin at 0, 10, …, and every row is in the last value of one
    database = opened(x)
    for text in ("x < 5", "x < 9", "x = 9", "x BETWEEN 4 AND 8"):
        answer = database.sql(f"SELECT COUNT(*) FROM t WHERE {text}").scalar()
        truth = PEOPLE if text == "x = 9" else 0
        assert abs(answer.value - truth) < 6 * answer.error


def test_an_average_is_clear_where_whole_cells_hold_rows_however_much_is_assumed():
    x = np.where(np.arange(PEOPLE) < 3_000, 10 + np.arange(PEOPLE) % 10, np.arange(PEOPLE) % 2 * 9)
    database = opened(x)
    reaching = "x BETWEEN 5 AND 19"  # into a cell with most rows, of which nobody knows where in it they are
    count = database.sql(f"SELECT COUNT(*) FROM t WHERE {reaching}").scalar()
    assert count.value < 3 * count.error
    average = database.sql(f"SELECT AVG(x) FROM t WHERE {reaching}").scalar()
    truth = float(x[(x >= 5) & (x <= 19)].mean())
    assert 5 <= average.value <= 19
    assert average.interval[0] <= truth <= average.interval[1]
    nothing = database.sql("SELECT AVG(x) FROM t WHERE x BETWEEN 25 AND 33").scalar()
    assert math.isnan(nothing.value)


def test_bounds_of_a_join_are_read_from_views_that_many_report():
    """Alone, few reports about fine cells bound an answer closely; in a join the other table multiplies their noise."""
    people = 100_000
    views = {name: [dn.GridView({"x": 5}, weight=5), dn.GridView({"x": 19}, weight=1)] for name in ("a", "b")}
    tables = [dn.Table(name, x=dn.Ordinal(0, 99)) for name in views]
    made = dn.Collection(*tables, epsilon=2.0, design="grid", grids=views)
    frames = {name: {"uid": np.arange(people), "x": np.arange(people) % 100} for name in views}
    database = dn.connect(made.perturb(**frames, source=dn.SeededSource(0), simulation=True))

    def cells_read(text):
        _, high = database_bounds(database, database.plan(text))
        return {view.cell_count for table in high.tables for part in table.parts for view in part.views}

    assert cells_read("SELECT COUNT(*) FROM a WHERE x BETWEEN 30 AND 52") == {19}
    assert cells_read("SELECT COUNT(*) FROM a JOIN b USING (uid) WHERE a.x BETWEEN 30 AND 52 AND b.x < 33") == {5}


def database_bounds(database, plan):
    bounds = bounding_plans(plan, database._learnt.by_table)
    return bounds.low, bounds.high
