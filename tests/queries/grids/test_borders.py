"""Constants of questions are borders of views, so that they are answered without assumptions, or a note says why."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.errors import QueryRefused
from deniable.mechanisms.local_hashing import LocalHashing
from deniable.queries.grids.candidate_cuts import finer_cells, finer_cut, follows, with_ends
from deniable.queries.grids.workload import changes

PEOPLE = dn.Table("p", weeks=dn.Ordinal(0, 52), age=dn.Ordinal(0, 99))
DIVIDENDS = dn.Table("p", div=dn.Ordinal(0, 99_999))
ORDERS = dn.Table("orders", many=4, amount=dn.Ordinal(0, 9_999))


def fitted(table, *workload, epsilon=2.0, users=300_000):
    return dn.fit(table, epsilon=epsilon, users=users, workload=list(workload), compared=False)


def answers_without_assumptions(fit, text):
    """Whether the grid answers a question with `unbiased`, which refuses anything that needs an assumption."""
    names = [table.name for table in fit.collection.tables]
    rows = {
        name: {"uid": np.arange(50), **{field: np.zeros(50, int) for field in fit.collection[name].private}}
        for name in names
    }
    db = dn.connect(fit.collection.perturb(**rows, source=dn.SeededSource(1), simulation=True))
    try:
        db.sql(text, unbiased=True)
    except QueryRefused as refused:
        if "without assuming anything" in str(refused):
            return False
        raise
    return True


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_single_value_of_a_wide_domain_has_a_cell_of_its_own(epsilon):
    text = "SELECT COUNT(*) FROM p WHERE div > 0"
    fit = fitted(DIVIDENDS, text, epsilon=epsilon)
    assert any(1 in view.axes["div"].places(100_000)[:2] for view in fit.collection.grids["p"])
    assert answers_without_assumptions(fit, text)
    assert fit.notes == ()
    assert not answers_without_assumptions(fit, "SELECT COUNT(*) FROM p WHERE div > 7")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_a_sum_does_not_take_borders_away(epsilon):
    zero = "SELECT COUNT(*) FROM p WHERE weeks = 0"
    for sums in ("SELECT AVG(weeks) FROM p", "SELECT AVG(weeks) FROM p WHERE age >= 50"):
        alone, both = fitted(PEOPLE, zero, epsilon=epsilon), fitted(PEOPLE, zero, sums, epsilon=epsilon)
        assert answers_without_assumptions(both, zero)
        assert answers_without_assumptions(both, sums)
        assert both.errors["grid"][0] < 2 * alone.errors["grid"][0]


def test_an_attribute_that_is_compared_and_summed_at_once_is_rounded_on_both_sides_of_borders():
    text = "SELECT SUM(weeks) FROM p WHERE weeks > 0 AND age >= 50"
    fit = fitted(PEOPLE, text)
    pointed = [
        view.axes["weeks"] for view in fit.collection.grids["p"] if isinstance(view.axes.get("weeks"), dn.Points)
    ]
    assert pointed
    assert all({0, 1, 52} <= set(points.places(53)) for points in pointed)
    assert answers_without_assumptions(fit, text)


def test_sums_are_rounded_to_points_where_that_costs_little_more_than_cells():
    # Cells along the constants are predicted to be a tenth better on smooth data, and would assume something of sums.
    questions = [
        "SELECT AVG(a) FROM p WHERE a BETWEEN 9 AND 24",
        "SELECT SUM(a) FROM p WHERE a BETWEEN 10 AND 20",
        "SELECT COUNT(*) FROM p WHERE a BETWEEN 1 AND 8",
        "SELECT COUNT(*) FROM p WHERE a = 0",
    ]
    fitted = dn.fit(dn.Table("p", a=dn.Ordinal(0, 24)), epsilon=0.5, users=30_000, workload=questions, compared=False)
    assert all(fitted.collection.forecast(text, users=30_000).scalar().model == 0 for text in questions)


def test_pairs_and_joins_follow_constants_too():
    pair = "SELECT COUNT(*) FROM p WHERE weeks >= 50 AND age BETWEEN 25 AND 44"
    assert answers_without_assumptions(fitted(PEOPLE, pair), pair)
    join = "SELECT COUNT(*) FROM p JOIN orders USING (uid) WHERE weeks = 0 AND amount >= 9990"
    assert answers_without_assumptions(fitted([PEOPLE, ORDERS], join, epsilon=4.0), join)


def test_what_is_not_worth_its_price_is_said_in_words():
    many = [f"SELECT COUNT(*) FROM p WHERE weeks < {w} AND age < {2 * w}" for w in range(1, 40)]
    fit = fitted(PEOPLE, *many, epsilon=0.5)
    (note,) = fit.notes
    assert "39 constants of weeks, 39 constants of age" in note
    assert "more than 400" in note
    assert note in str(fit)
    fine = fitted(
        dn.Table("p", age=dn.Ordinal(0, 999)), "SELECT age, COUNT(*) FROM p GROUP BY age", epsilon=0.2, users=5_000
    )
    assert "errors would be" in fine.notes[0] or "more than 400" in fine.notes[0]


def test_ends_of_a_domain_have_cells_of_their_own_where_that_costs_little():
    fit = dn.fit(dn.Table("p", age=dn.Ordinal(0, 99)), epsilon=2.0, users=300_000, compared=False)
    (view,) = fit.collection.grids["p"]
    starts = view.axes["age"].places(100)
    assert (starts[1], starts[-1]) == (1, 99)


def test_cells_and_points_that_follow_borders():
    assert changes([np.array([1.0, 0, 0]), np.array([0.0, 0, 1])]) == (1, 2)
    assert follows(dn.Cells((0, 1, 9)), (1,), 20)
    assert not follows(dn.Cells((0, 2, 9)), (1,), 20)
    assert follows(dn.Points((0, 4, 5, 19)), (5,), 20)
    assert not follows(dn.Points((0, 5, 19)), (5,), 20)  # 4 would be rounded to 5 at times
    assert with_ends(dn.Cells(2), 10) == dn.Cells((0, 1, 5, 9))
    assert with_ends(dn.Points(2), 10) == dn.Points(2)


@pytest.mark.parametrize(
    ("domain", "near_zero"),
    [
        (dn.Ordinal(0, 99_999), [0, 1, 10, 100, 1000, 8333]),
        (dn.Ordinal(0, 999_999), [0, 1, 10, 100, 1000, 10_000, 83_333]),
        (dn.Ordinal(0, 99), [0, 1, 8]),  # even cells are that fine
        (dn.Ordinal(0, 199), [0, 1, 16]),
        (dn.Ordinal(-1000, 1000), [833, 991, 1000, 1001, 1010, 1167]),
    ],
)
def test_a_view_for_other_questions_has_borders_at_powers_of_ten(domain, near_zero):
    places = list(finer_cut(domain, (), None).places(domain.size))
    first = places.index(near_zero[0])
    assert places[first : first + len(near_zero)] == near_zero


def test_where_rows_were_seen_their_parts_are_borders():
    seen = np.full(10_000, 1e-4)
    assert 10 not in finer_cut(dn.Ordinal(0, 9_999), (), seen).places(10_000)


def test_as_many_cells_as_reports_show_are_kept_for_other_questions():
    """Where an even cell holds twice the standard error of its count, by the law of local hashing."""
    epsilon, reports = 2.0, 1_500
    cells = finer_cells(epsilon, reports)
    oracle = LocalHashing(epsilon, cells)
    p, q = float(oracle.p), float(oracle.q)
    assert 1 / cells == pytest.approx(2 * math.sqrt(q * (1 - q) / (p - q) ** 2 / reports), rel=0.1)
    assert finer_cells(0.1, reports) == 12
    assert finer_cells(math.inf, reports) == finer_cells(8.0, reports) == 32


def household_joins(epsilon):
    """A fit to joins of which one table pays for borders at its constants."""
    homes, units = dn.Table("homes", people=dn.Ordinal(0, 15)), dn.Table("units", many=10, tau=1, age=dn.Ordinal(0, 99))
    asked = [
        f"SELECT COUNT(*) FROM units JOIN homes USING (uid) WHERE people <= {few} AND age BETWEEN {low} AND {low + 19}"
        for few in (1, 2, 3, 4)
        for low in (20, 35, 50, 65)
    ]
    return asked, fitted([homes, units], *asked, epsilon=epsilon, users=60_000)


def test_borders_that_are_too_dear_for_a_join_are_left_out_with_the_reason():
    asked, fit = household_joins(1.0)
    (note,) = fit.notes
    assert "8 constants of age" in note
    assert "errors of joins would be" in note
    common, *rare = sorted(fit.collection.grids["units"], key=lambda view: -view.weight)
    dearest = dn.GridView({"age": dn.Cells((0, 20, 35, 40, 50, 55, 65, 70, 85))}, weight=common.weight)
    following = fit.collection.with_settings(grids={**fit.collection.grids, "units": [dearest, *rare]})
    errors = [collection.forecast(asked[5], users=60_000).scalar().error for collection in (following, fit.collection)]
    assert errors[0] > 1.25 * errors[1]


def test_borders_that_a_join_can_afford_are_kept():
    asked, fit = household_joins(5.0)
    assert fit.notes == ()
    assert all(answers_without_assumptions(fit, text) for text in asked[::5])
