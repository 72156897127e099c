"""Comparisons of groups: differences as plain SQL has them, and an error rate that holds for all of them at once."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.errors import QueryRefused
from deniable.queries.answers.group_comparison import adjusted, chance_of

CITIES = np.array(["Bern", "Oslo", "Rome", "Wien"])
USERS = dn.Table("users", age=dn.Ordinal(0, 9), city=dn.Public())


def people(count, seed):
    random = np.random.default_rng(seed)
    return {"uid": np.arange(count), "age": random.integers(0, 10, count), "city": CITIES[np.arange(count) % 4]}


def compared(rows, epsilon, text="SELECT AVG(age) FROM users", seed=1, by="city", **options):
    collection = dn.Collection(USERS, epsilon=epsilon, design="mg")
    reports = collection.perturb(users=rows, source=dn.SeededSource(seed), simulation=True)
    return dn.connect(reports).compare(text, by=by, **options)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SELECT AVG(age) AS mean FROM users", lambda ages: ages.mean()),
        ("SELECT COUNT(*) FROM users WHERE age < 4", lambda ages: (ages < 4).sum()),
        ("SELECT SUM(age) / COUNT(*) FROM users WHERE age > 2", lambda ages: ages[ages > 2].mean()),
    ],
)
def test_without_noise_differences_are_those_of_plain_sql(text, number):
    rows = people(400, 3)
    answer = compared(rows, math.inf, text)
    pairs = list(combinations(CITIES, 2))
    assert list(zip(answer.groups["first"], answer.groups["second"], strict=True)) == pairs
    means = {city: number(rows["age"][rows["city"] == city]) for city in CITIES}
    differences = [estimate.value for estimate in answer.answers["second_minus_first"]]
    assert differences == pytest.approx([means[second] - means[first] for first, second in pairs])


@pytest.mark.slow
def test_of_equal_groups_one_is_seldom_called_different_and_single_tests_would_do_it_more_often():
    runs, rows = 200, people(1_200, 5)
    rows["age"] = np.repeat(np.arange(300) % 10, 4)  # the same ages in every city
    wrong, alone = 0, 0
    for seed in range(runs):
        answer = compared(rows, 0.7, "SELECT COUNT(*) FROM users WHERE age < 5", seed=seed)
        wrong += "yes" in answer.groups["differ"]
        alone += any(chance_of(each) < 0.05 for each in answer.answers["second_minus_first"])
    assert wrong <= binom.isf(1e-4, runs, 0.05)
    assert alone > binom.isf(1e-2, runs, 0.05)


def test_groups_that_differ_are_found_and_intervals_hold_at_once():
    rows = people(20_000, 7)
    rows["age"] = np.where(rows["city"] == "Rome", np.minimum(rows["age"] + 3, 9), rows["age"])
    answer = compared(rows, 4.0)
    different = {
        (first, second)
        for first, second, differ in zip(*(answer.groups[name] for name in ("first", "second", "differ")), strict=True)
        if differ == "yes"
    }
    assert different == {("Bern", "Rome"), ("Oslo", "Rome"), ("Rome", "Wien")}
    single = dn.Estimate(0.0, 1.0).interval[1]
    for estimate in answer.answers["second_minus_first"]:
        assert estimate.interval[1] - estimate.value > 1.3 * single * estimate.error  # of six


def test_groups_may_be_expressions_and_rounds():
    rows = people(4_000, 9)
    answer = compared(rows, 8.0, "SELECT COUNT(*) FROM users", by="FLOOR(age / 5)")
    assert [answer.groups[name] for name in ("first", "second")] == [[0], [1]]


def test_rounds_are_compared_and_a_single_one_is_refused(tmp_path):
    rows, text = people(4_000, 9), "SELECT AVG(age) FROM users"
    weekly = dn.Collection(USERS, epsilon=4.0, name="weekly", coins="assigned", rounds=dn.Rounds(2, mode="fresh"))
    for number in (1, 2):
        made = {"out": tmp_path / "reports", "source": dn.SeededSource(number), "simulation": True}
        weekly.perturb(users=rows | {"age": np.minimum(rows["age"] + 5 * (number - 1), 9)}, round=number, **made)
        if number == 1:
            with pytest.raises(QueryRefused, match="fewer than 2 groups"):
                dn.connect(tmp_path / "reports").compare(text, by="round")
    (change,) = dn.connect(tmp_path / "reports").compare(text, by="round")
    assert (change["first"], change["second"], change["differ"]) == (1, 2, "yes")
    assert change["second_minus_first"].value > 2


@pytest.mark.parametrize(
    ("text", "by", "said"),
    [
        ("SELECT COUNT(*), AVG(age) FROM users", "city", "one number"),
        ("SELECT COUNT(*) FROM users GROUP BY city", "city", "one number"),
        ("SELECT COUNT(*) FROM users", "city, age", "one column"),
        ("SELECT COUNT(*) FROM users", "*", "one column"),
        ("SELECT COUNT(*) FROM users", "height", "height"),
        ("SELECT COUNT(*) FROM users", "city FROM users; SELECT 1", "one"),
        ("SELECT COUNT(*) FROM users", "uid", "uid"),
    ],
)
def test_what_cannot_be_compared_is_refused(text, by, said):
    with pytest.raises(QueryRefused, match=said):
        compared(people(100, 1), 2.0, text, by=by)


def test_an_interval_of_another_kind_that_holds_zero_is_no_difference():
    assert chance_of(dn.Estimate(300.0, 50.0)) < 1e-8
    assert chance_of(dn.Estimate(300.0, 50.0, bounds=(-10.0, 900.0))) == 1
    assert chance_of(dn.Estimate(300.0, 50.0, bounds=(100.0, 900.0))) < 1e-8


def test_chances_of_holm_grow_and_stay_below_those_of_bonferroni():
    random = np.random.default_rng(2)
    for count in (1, 2, 7):
        chances = random.random(count) ** 3
        made = np.array(adjusted(chances.tolist()))
        assert (made >= chances).all()
        assert (made <= np.minimum(count * chances, 1) + 1e-12).all()
        assert (np.diff(made[np.argsort(chances)]) >= 0).all()
