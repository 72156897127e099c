"""Several groups of users under different designs, answered together."""

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidParameter, QueryRefused

USERS = dn.Table("users", age=dn.Ordinal(0, 99), kind=dn.Categorical("a", "b", "c"), city=dn.Public())
ORDERS = dn.Table("orders", many=3, amount=dn.Ordinal(0, 49))
QUESTIONS = [
    "SELECT COUNT(*) FROM users WHERE age < 30",
    "SELECT AVG(age) FROM users WHERE kind = 'a'",
    "SELECT kind, COUNT(*) FROM users GROUP BY kind",
    "SELECT city, SUM(age) FROM users GROUP BY city",
    "SELECT COUNT(*), SUM(amount) FROM users JOIN orders USING (uid) WHERE age < 30",
]


def people(first, count, seed=1, cities=("x", "y")):
    random = np.random.default_rng(seed)
    uid = np.arange(first, first + count)
    users = {"uid": uid, "age": random.integers(0, 100, count) ** 2 // 100, "kind": random.choice(["a", "b"], count)}
    users["city"] = random.choice(cities, count)
    orders = {"uid": np.repeat(uid, 2), "amount": random.integers(0, 50, 2 * count)}
    return {"users": users, "orders": orders}


def reports(rows, seed=1, **settings):
    collection = dn.Collection(USERS, ORDERS, **{"epsilon": 4.0, **settings})
    return collection.perturb(**rows, source=dn.SeededSource(seed), simulation=True)


def flat(result):
    return [estimate for each in result.answers.values() for estimate in each]


def test_without_noise_two_groups_are_the_sum_of_both_and_equal_one():
    infinite = {"epsilon": float("inf"), "design": "mg"}
    first, second = people(0, 300), people(300, 700, seed=2, cities=("y", "z"))
    together = {
        name: {column: np.concatenate((first[name][column], second[name][column])) for column in first[name]}
        for name in first
    }
    both = dn.connect([reports(first, **infinite), reports(second, **infinite)])
    whole = dn.connect(reports(together, **infinite))
    for text in QUESTIONS[:4]:
        mine, plain = both.sql(text), whole.sql(text)
        groups = {tuple(key): number for number, key in enumerate(zip(*mine.groups.values(), strict=True))}
        for number, key in enumerate(zip(*plain.groups.values(), strict=True)):
            for name, answers in plain.answers.items():
                row = groups[tuple(key)] if groups else number
                assert mine.answers[name][row].value == pytest.approx(answers[number].value)


@pytest.mark.parametrize("design", ["hio", "grid"])
def test_values_add_and_errors_add_too(design):
    groups = [reports(people(0, 2_000)), reports(people(2_000, 6_000, seed=2), seed=2, design=design)]
    both = dn.connect(groups)
    apart = [dn.connect(group) for group in groups]
    for text in (QUESTIONS[0], QUESTIONS[4]):
        total = flat(both.sql(text))
        parts = [flat(db.sql(text)) for db in apart]
        for estimate, first, second in zip(total, *parts, strict=True):
            assert estimate.value == pytest.approx(first.value + second.value)
            assert estimate.stderr >= 0.999 * np.hypot(first.stderr, second.stderr)
            assert estimate.stderr <= 1.1 * np.hypot(first.stderr, second.stderr)
            assert estimate.model >= 0.999 * max(first.model, second.model)
            assert estimate.model <= 1.001 * (first.model + second.model)


def test_an_explanation_is_about_each_group_and_about_all_users():
    groups = [reports(people(0, 2_000)), reports(people(2_000, 6_000, seed=2), seed=2, design="grid")]
    both = dn.connect(groups)
    explained = both.explain(QUESTIONS[4], rows=2)
    apart = [dn.connect(group).explain(QUESTIONS[4], rows=2) for group in groups]
    assert explained.forecast.users == 8_000
    assert explained.reports == {"users": 8_000, "orders": 8_000}
    for total, first, second in zip(
        explained.forecast.predictions, *(a.forecast.predictions for a in apart), strict=True
    ):
        assert total.stderr == pytest.approx(np.hypot(first.stderr, second.stderr), rel=0.05)
        assert max(first.model, second.model) * 0.999 <= total.model <= (first.model + second.model) * 1.001
    text = str(explained)
    assert all(str(group) in text for group in apart)
    assert "predicted over all 8,000 users:" in text
    assert str(both.explain(QUESTIONS[4], rows=(0.5, 1))) != text


def test_averages_come_from_the_sums_of_both():
    groups = [reports(people(0, 4_000)), reports(people(4_000, 4_000, seed=2), seed=2, design="grid")]
    answer = dn.connect(groups).sql(QUESTIONS[1]).scalar()
    ages = np.concatenate([people(0, 4_000)["users"]["age"], people(4_000, 4_000, seed=2)["users"]["age"]])
    assert abs(answer.value - ages.mean()) < 5 * np.hypot(answer.stderr, answer.model)


def spiked_groups(sizes, places):
    """Groups of users nearly all of whom are 45, each under a grid whose wide cells do not show it."""
    table, groups, first = dn.Table("p", a=dn.Ordinal(0, 99)), [], 0
    for number, size in enumerate(sizes):
        views = [dn.GridView({"a": dn.Cells(places[number])})]
        collection = dn.Collection(table, epsilon=4.0, design="grid", grids={"p": views})
        values = np.where(np.arange(size) % 50, 45, np.arange(size) % 100)
        rows = {"uid": np.arange(first, first + size), "a": values}
        groups.append(collection.perturb(p=rows, source=dn.SeededSource(number), simulation=True))
        first += size
    return groups


def test_what_cells_of_each_group_allow_adds_up():
    groups = spiked_groups([10_000, 20_000], [(0, 20, 60), (0, 40, 70)])
    apart, both = [dn.connect(group) for group in groups], dn.connect(groups)
    text = "SELECT COUNT(*) FROM p WHERE a BETWEEN 44 AND 46"
    low, high = both.sql(text).scalar().interval
    assert low <= 0.98 * 30_000 <= high
    ends = [db.sql(text).scalar().interval for db in apart]
    assert high - low <= 1.001 * sum(end[1] - end[0] for end in ends)


def test_an_average_over_both_is_hardly_off_by_more_than_the_average_of_either():
    groups = spiked_groups([10_000, 20_000], [(0, 20, 60), (0, 40, 70)])
    apart, both = [dn.connect(group) for group in groups], dn.connect(groups)
    text = "SELECT AVG(a) FROM p WHERE a >= 50"
    assert both.sql(text).scalar().model <= 1.1 * max(db.sql(text).scalar().model for db in apart)


def test_a_group_that_assumes_nothing_limits_the_interval_of_both():
    groups = spiked_groups([20_000, 1_000], [(0, 44, 47), (0, 20, 60)])
    answer = dn.connect(groups).sql("SELECT COUNT(*) FROM p WHERE a BETWEEN 44 AND 46").scalar()
    assert answer.model > 0
    assert answer.interval[1] - answer.interval[0] < 1_000 + 8 * answer.stderr


def test_a_user_in_two_groups_is_refused_whatever_the_table_and_the_type_of_her_id():
    first, second = people(0, 100), people(99, 100, seed=2)
    with pytest.raises(InvalidParameter, match="1 user in more than one group: they would count twice"):
        dn.connect([reports(first), reports(second)])
    second["users"]["uid"] = second["users"]["uid"].astype(str)
    second["orders"]["uid"] = second["orders"]["uid"].astype(str)
    with pytest.raises(InvalidParameter, match="1 user in more than one group"):
        dn.connect([reports(first), reports(second)])
    elsewhere = {"orders": second["orders"], "everyone": {"uid": second["users"]["uid"]}}
    with pytest.raises(InvalidParameter, match="1 user in more than one group"):
        dn.connect([reports(first), reports(elsewhere)])


def test_what_does_not_fit_together_is_refused(tmp_path):
    rows = people(0, 50)
    other = dn.Collection(dn.Table("users", age=dn.Ordinal(0, 9)), epsilon=4.0)
    strange = other.perturb(users={"uid": [900], "age": [3]}, source=dn.SeededSource(1), simulation=True)
    with pytest.raises(InvalidParameter, match="different tables"):
        dn.connect([reports(rows), strange])
    release = dn.Collection(USERS, ORDERS, epsilon=4.0).perturb(**people(50, 50))
    with pytest.raises(InvalidParameter, match="simulation"):
        dn.connect([reports(rows), release])
    with pytest.raises(InvalidParameter, match="empty list"):
        dn.connect([])
    with pytest.raises(InvalidParameter, match="DuckDB or Spark"):
        dn.connect([reports(rows)], collection=object())
    both = dn.connect([reports(rows), reports(people(50, 50), seed=2)])
    with pytest.raises(QueryRefused, match="one group"):
        both.sql(QUESTIONS[0], postprocess="consistent")
    assert repr(both).startswith("JointDatabase(Database(users: 50 reports")
    assert both.simulation
    both.close()
    # Folders work as reports in memory do.
    collection = dn.Collection(USERS, ORDERS, epsilon=4.0)
    for number in range(2):
        rows = people(100 * number, 100)
        collection.perturb(**rows, out=tmp_path / str(number), source=dn.SeededSource(1), simulation=True)
    folders = dn.connect([tmp_path / "0", tmp_path / "1"])
    assert folders.sql("SELECT COUNT(*) FROM users").scalar().value == 200
