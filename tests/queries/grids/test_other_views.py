"""How many reports questions that nobody announced get, and how finely they are cut."""

import math

import pytest

import deniable as dn
from deniable.queries.grids.other_views import LEAST_FOR_OTHERS, OtherViews, checked_others, most_for_others
from deniable.tables.schema.grid_views import GridView

QUARTER = 1 - 1 / 1.25**2


def added(table, *, users=1e5, epsilon=2.0, most=QUARTER, fitted=None, followed=()):
    """The views for other questions next to fitted ones, with their parts of the reports."""
    first = table.private[0]
    given = fitted or [GridView({first: 2}, weight=1000)]
    others = OtherViews(table, 5, epsilon, users, most, {})
    views = others.added_to(given, dict.fromkeys(table.private, followed))
    assert list(views[: len(given)]) == list(given)
    total = sum(view.weight for view in views)
    return [(view, view.weight / total) for view in views[len(given) :]]


def test_other_questions_get_what_hio_would_spend_unless_the_workload_loses_too_much():
    categories = dn.Table("p", kind=dn.Categorical(*map(str, range(40))))
    assert dn.Collection(categories, epsilon=2.0).views("p") == 2  # hio: everything, and each category
    ((view, share),) = added(categories)
    assert view.axes == {"kind": dn.Cells(40)}
    assert share == pytest.approx(QUARTER, abs=0.001)
    assert sum(share for _, share in added(categories, most=0.9)) == pytest.approx(1 / 2, abs=0.001)


def test_with_many_attributes_hio_is_no_rival_and_other_questions_get_little():
    table = dn.Table("p", **{f"a{number}": dn.Ordinal(0, 999) for number in range(4)})
    shares = added(table)
    assert [list(view.axes) for view, _ in shares] == [["a0"], ["a1"], ["a2"], ["a3"]]
    assert sum(share for _, share in shares) == pytest.approx(LEAST_FOR_OTHERS, abs=0.002)


@pytest.mark.parametrize(("others", "tables"), [(1.0, 1), (1.25, 1), (1.25, 2), (2.0, 3), (None, 1), (None, 2)])
def test_errors_of_joins_rise_by_the_factor_all_tables_together(others, tables):
    part = most_for_others(others, tables)
    factor = others if others is not None else (1.25 if tables == 1 else 1.08)
    assert (1 / math.sqrt(1 - part)) ** tables == pytest.approx(factor)


def test_an_attribute_is_cut_into_all_values_if_reports_show_them():
    def cuts(size, **options):
        views = added(dn.Table("p", a=dn.Ordinal(0, size - 1)), **options)
        return [view.axes["a"].places(size) for view, _ in views]

    assert cuts(10) == [tuple(range(10))]
    values, runs = cuts(100, users=2e5, followed=(33,))
    assert values == tuple(range(100))
    assert runs == (0, 10, 20, 30, 33, 40, 50, 60, 70, 80, 90)
    few, evidence = cuts(100, users=2_000, epsilon=0.5)
    assert evidence == tuple(range(100))
    assert 12 <= len(few) <= 15  # even ones and the ends of the domain
    (wide,) = cuts(100_000)
    assert {1, 10, 100, 1000} <= set(wide)


def test_values_that_the_workload_asks_for_have_no_coarser_cells_next_to_them():
    table = dn.Table("p", a=dn.Ordinal(0, 99))
    every = GridView({"a": 100}, weight=1000)
    assert added(table, users=2_000, epsilon=0.5, fitted=[every]) == []


def test_missing_values_keep_their_own_cell():
    table = dn.Table("p", a=dn.Ordinal(0, 49, missing="own"))
    for view, _ in added(table):
        assert view.axes["a"].places(51)[-1] == 50


def test_pairs_get_a_view_where_attributes_are_few_or_hio_is_a_rival():
    small = dn.Table("p", a=dn.Ordinal(0, 49), b=dn.Ordinal(0, 29))
    pairs = [view for view, _ in added(small) if len(view.axes) == 2]
    assert len(pairs) == 1
    assert pairs[0].axes["a"] == pairs[0].axes["b"]
    for attributes, paired in ((2, 1), (3, 3), (4, 0)):
        wide = dn.Table("p", **{f"a{number}": dn.Ordinal(0, 9_999) for number in range(attributes)})
        assert sum(len(view.axes) == 2 for view, _ in added(wide)) == paired
    unordered = dn.Table("p", a=dn.Ordinal(0, 49), b=dn.Categorical(*map(str, range(40))))
    assert all(len(view.axes) == 1 for view, _ in added(unordered))  # there is no room for 40 categories


def test_a_fitted_view_that_is_as_fine_needs_only_what_it_lacks():
    table = dn.Table("p", a=dn.Ordinal(0, 9))
    finest = GridView({"a": 10}, weight=900)
    assert added(table, fitted=[finest]) == []
    half = added(table, fitted=[GridView({"a": 10}, weight=200), GridView({"a": 2}, weight=800)], most=0.3)
    assert sum(share for _, share in half) == pytest.approx(1 / 3 - 0.2 * 0.7, abs=0.01)  # hio has three views


def test_factors_that_mean_nothing_are_refused():
    assert checked_others(None, only_workload=False) is None
    assert checked_others(3, only_workload=False) == 3.0
    assert checked_others(None, only_workload=True) == 1.0
    for wrong in (0.9, math.nan, math.inf, True, "2"):
        with pytest.raises(dn.DeniableError, match="others must be a number from 1 to 10"):
            checked_others(wrong, only_workload=False)


@pytest.mark.parametrize("others", [1.02, 1.05, 1.25])
def test_errors_of_the_workload_rise_by_no_more_than_that(others):
    table = dn.Table("people", age=dn.Ordinal(0, 99), sex=dn.Categorical("f", "m"))
    asked = ["SELECT COUNT(*) FROM people WHERE age < 20", "SELECT COUNT(*) FROM people WHERE sex = 'f' AND age > 64"]
    options = {"epsilon": 1.0, "users": 10**5, "workload": asked}
    only = dn.fit(table, **options, only_workload=True)
    kept = dn.fit(table, **options, others=others)
    for before, after in zip(only.errors["grid"], kept.errors["grid"], strict=True):
        assert 0.99 * before < after < 1.01 * others * before  # a per cent for the draw of views
    assert all(math.isfinite(error) for error in kept.outside.values())
