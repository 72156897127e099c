"""Fitting: deterministic, from public facts, no worse than what it is compared with."""

from datetime import date

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidParameter, QueryRefused
from deniable.queries.forecasts.compare import compare
from deniable.queries.forecasts.fit import Fit
from deniable.queries.forecasts.forecast import error_of, planned, users_needed
from deniable.queries.forecasts.proposal import propose

PEOPLE = dn.Table("people", age=dn.Ordinal(0, 63), income=dn.Ordinal(0, 63), sex=dn.Categorical("f", "m", "x"))
ORDERS = dn.Table("orders", many=5, amount=dn.Ordinal(0, 99))
WORKLOAD = [
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 40 AND income < 16",
    "SELECT AVG(income) FROM people WHERE age < 20",
]


def test_the_same_facts_give_the_same_fit_and_it_beats_the_default_grid():
    first = dn.fit(PEOPLE, epsilon=1.0, users=100_000, workload=WORKLOAD, compared=False)
    again = dn.fit([PEOPLE], epsilon=1.0, users=100_000, workload=WORKLOAD, compared=False)
    assert first.collection == again.collection
    plain = dn.Collection(PEOPLE, epsilon=1.0, design="grid")
    for text, error in zip(WORKLOAD, first.errors["grid"], strict=True):
        assert error < error_of(planned(plain, text, "optimal", "direct", 100_000), 100_000)


@pytest.mark.parametrize(("setting", "value"), [("design", "hio"), ("grids", {}), ("fan_out", 5)])
def test_settings_that_fit_does_not_take(setting, value):
    for tables, epsilon in ((PEOPLE, 1.0), (dn.Collection(PEOPLE, epsilon=1.0), None)):
        with pytest.raises(
            InvalidParameter, match=f"{setting} is not a setting of fit.*coins, fanout, name, oracle, shares"
        ):
            dn.fit(tables, epsilon=epsilon, users=1000, **{setting: value})


def test_borders_follow_the_questions():
    fitted = dn.fit(
        PEOPLE,
        epsilon=1.0,
        users=10**6,
        workload=["SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 40"],
        only_workload=True,
    )
    (view,) = fitted.collection.grids["people"]
    assert dict(view.axes) == {"age": dn.Cells((0, 20, 41))}
    assert fitted.errors["grid"][0] < min(fitted.errors[name][0] for name in ("hio", "ahio", "ehio"))
    shown = str(fitted)
    assert "age 3 uneven cells" in shown
    assert max(map(len, shown.splitlines())) < 160


def test_sums_are_collected_as_points_where_that_is_better():
    asked = ["SELECT SUM(income) FROM people"]
    fitted = dn.fit(PEOPLE, epsilon=1.0, users=10**6, workload=asked, compared=False, only_workload=True)
    (view,) = fitted.collection.grids["people"]
    assert isinstance(view.axes["income"], dn.Points)
    assert view.axes["income"].at <= 4  # AHIO rounds to 2
    hashed = dn.Collection(PEOPLE, epsilon=1.0, design="grid", grids={"people": [dn.GridView({"income": 16})]})
    assert fitted.errors["grid"][0] < error_of(
        planned(hashed, "SELECT SUM(income) FROM people", "optimal", "direct", 10**6), 10**6
    )


def test_averages_over_few_values_are_judged_by_how_far_these_are_apart():
    hours = dn.Table("t", x=dn.Ordinal(0, 23))
    asked = [
        *(f"SELECT COUNT(*) FROM t WHERE x BETWEEN {low} AND {high}" for low, high in ((0, 16), (2, 8), (0, 8))),
        "SELECT AVG(x) FROM t WHERE x BETWEEN 5 AND 8",
    ]
    fitted = dn.fit(hours, epsilon=2.0, users=10_000, workload=asked)
    assert any(
        isinstance(view.axes["x"], dn.Points) and {5, 8} <= set(view.axes["x"].places(24))
        for view in fitted.collection.grids["t"]
    )
    assert fitted.errors["grid"][-1] < fitted.errors["hio"][-1]


def test_a_workload_about_three_attributes_gets_a_view_of_them():
    text = "SELECT COUNT(*) FROM people WHERE age < 32 AND income < 32 AND sex = 'f'"
    fitted = dn.fit(PEOPLE, epsilon=2.0, users=10**6, workload=[text], compared=False)
    assert ("age", "income", "sex") in [tuple(view.axes) for view in fitted.collection.grids["people"]]


def test_joins_are_fitted_together_and_other_tables_keep_the_default():
    text = "SELECT COUNT(*) FROM orders JOIN people USING (uid) WHERE age < 20 AND amount < 30"
    fitted = dn.fit([PEOPLE, ORDERS], epsilon=2.0, users=10**6, workload=[text], compared=False, only_workload=True)
    assert {name: len(views) for name, views in fitted.collection.grids.items()} == {"people": 1, "orders": 1}
    alone = dn.fit([PEOPLE, ORDERS], epsilon=2.0, users=10**6, workload=WORKLOAD[:1], compared=False)
    assert alone.collection.grids["orders"] == dn.Collection(ORDERS, epsilon=1.0, design="grid").grids["orders"]


def test_without_a_workload_all_ranges_count():
    days = dn.Table("days", day=dn.Ordinal(date(2024, 1, 1), date(2024, 3, 31)), kind=dn.Categorical("it's", "b"))
    fitted = dn.fit(days, epsilon=1.0, users=10_000, compared=False)
    assert {tuple(view.axes) for view in fitted.collection.grids["days"]} >= {("day", "kind")}
    assert all(np.isfinite(fitted.errors["grid"]))


def test_a_collection_can_be_refitted_and_saved(tmp_path):
    start = dn.Collection(PEOPLE, epsilon=1.0, oracle="olh")
    fitted = dn.fit(start, users=10_000, workload=WORKLOAD, compared=False).collection
    assert (fitted.epsilon, fitted.oracle, fitted.design) == (1.0, "olh", "grid")
    fitted.save(tmp_path / "fitted.toml")
    assert dn.Collection.load(tmp_path / "fitted.toml") == fitted


def test_questions_without_conditions_and_names_that_are_keywords():
    fitted = dn.fit(
        PEOPLE, epsilon=1.0, users=1_000, workload=["SELECT COUNT(*) FROM people", *WORKLOAD[:1]], compared=False
    )
    assert fitted.errors["grid"][0] == 0.0
    dn.fit(PEOPLE, epsilon=1.0, users=1_000, workload=["SELECT COUNT(*) FROM people"], compared=False)
    nobody = "SELECT COUNT(*) FROM people WHERE age < 3 AND age > 5"
    dn.fit(PEOPLE, epsilon=1.0, users=1_000, workload=[nobody, *WORKLOAD[:1]], compared=False)
    join = "SELECT COUNT(*) FROM orders JOIN people USING (uid) WHERE sex = 'f'"
    dn.fit([PEOPLE, ORDERS], epsilon=1.0, users=1_000, workload=[join], compared=False)
    order = dn.Table("order", group=dn.Ordinal(0, 9), ok=dn.Categorical(True, False))
    assert all(np.isfinite(dn.fit(order, epsilon=1.0, users=10_000, compared=False).errors["grid"]))


@pytest.mark.slow  # fits a join of four attributes: a minute on a busy machine
def test_what_the_readme_says_a_fit_saves():
    users = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single", "widowed"))
    orders = dn.Table("orders", many=10, amount=dn.Ordinal(0, 500), category=dn.Categorical("sports", "books", "food"))
    asked = "SELECT AVG(amount) FROM orders JOIN users USING (uid) WHERE category = 'sports' AND age BETWEEN 20 AND 40"
    shop = dn.Collection(users, orders, epsilon=4.0)
    fitted = dn.fit(shop, users=200_000, workload=[asked], compared=False).collection
    assert 14e6 < users_needed(shop, asked, 25.0) < 16e6
    assert 58_500 < users_needed(fitted, asked, 25.0) < 59_500


def test_what_is_missing_or_wrong_is_named():
    with pytest.raises(InvalidParameter, match="epsilon is missing"):
        dn.fit(PEOPLE, users=10)
    with pytest.raises(InvalidParameter, match="workload"):
        dn.fit(PEOPLE, epsilon=1.0, users=10, workload=[])
    with pytest.raises(InvalidParameter, match="workload is one text"):
        dn.fit(PEOPLE, epsilon=1.0, users=10, workload=WORKLOAD[0])
    with pytest.raises(InvalidParameter, match="users"):
        dn.fit(PEOPLE, epsilon=1.0, users=0)
    with pytest.raises(QueryRefused):
        dn.fit(PEOPLE, epsilon=1.0, users=10, workload=["SELECT COUNT(*) FROM strangers"])


def test_compare_includes_a_fitted_grid():
    comparison = compare(dn.Collection(PEOPLE, epsilon=1.0), WORKLOAD, 100_000)
    assert comparison.best.design == "grid"
    assert {choice.design for choice in comparison.choices} >= {"grid", "hio", "ahio"}


def test_no_attribute_is_dropped_unless_that_is_asked_for():
    asked = ["SELECT COUNT(*) FROM people WHERE age < 20"]
    kept = dn.fit(PEOPLE, epsilon=1.0, users=10**5, workload=asked)
    shown = {name for view in kept.collection.grids["people"] for name in view.axes}
    assert shown == {"age", "income", "sex"}
    only = dn.fit(PEOPLE, epsilon=1.0, users=10**5, workload=asked, only_workload=True)
    assert {name for view in only.collection.grids["people"] for name in view.axes} == {"age"}
    # What the rest costs is limited, and what it is worth is printed.
    assert kept.errors["grid"][0] < 1.25 * only.errors["grid"][0]
    cheap = dn.fit(PEOPLE, epsilon=1.0, users=10**5, workload=asked, others=1.04, compared=False)
    assert cheap.errors["grid"][0] < 1.05 * only.errors["grid"][0]
    assert set(kept.outside) == {
        "people: age",
        "people: income",
        "people: sex",
        "people: age and income",
        "people: age and sex",
        "people: income and sex",
    }
    assert all(np.isfinite(error) for error in kept.outside.values())
    assert "a range that is not in the workload" in str(kept)
    assert np.isinf(only.outside["people: income"])  # no view collects it


def test_a_plan_proposes_a_specification_with_the_error_of_every_question(tmp_path):
    parts = []
    proposal = dn.plan(PEOPLE, WORKLOAD, epsilon=1.0, users=100_000, advance=parts.append)
    assert proposal.design == "grid"
    assert proposal.errors == proposal.fitted.errors["grid"]
    assert all(np.isfinite(proposal.errors))
    assert 'design = "grid"' in str(proposal)
    assert len(parts) > 10  # progress moves
    assert 0.9 < sum(parts) < 1.01
    proposal.collection.save(tmp_path / "planned.toml")
    assert dn.Collection.load(tmp_path / "planned.toml") == proposal.collection


def test_a_plan_says_which_questions_stay_unclear():
    proposal = dn.plan(PEOPLE, WORKLOAD, epsilon=0.01, users=50)
    assert "stay unclear" in proposal.advice


def test_another_design_is_proposed_where_it_is_clearly_better():
    fitted = Fit(dn.Collection(PEOPLE, epsilon=1.0, design="grid"), 10, ("q",), {"grid": (0.5,), "hio": (0.1,)})
    assert propose(fitted.collection, fitted).design == "hio"
    close = Fit(fitted.collection, 10, ("q",), {"grid": (0.5,), "hio": (0.49,), "sc": (float("nan"),)})
    assert propose(close.collection, close).design == "grid"


def test_units_survive_a_plan(tmp_path):
    weekly = 'epsilon = 1.0\ndesign = "hio"\n[tables.days]\nattributes.day = { kind = "ordinal", '
    weekly += 'low = 2024-01-01, high = 2024-12-30, step = "week" }\n'
    (tmp_path / "days.toml").write_text(weekly)
    start = dn.Collection.load(tmp_path / "days.toml")
    planned = dn.plan(start, ["SELECT COUNT(*) FROM days WHERE day < '2024-03-04'"], users=10_000).collection
    planned.save(tmp_path / "planned.toml")
    assert 'step = "week"' in (tmp_path / "planned.toml").read_text()
    assert dn.Collection.load(tmp_path / "planned.toml").sha256 == planned.sha256
