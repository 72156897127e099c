"""How many users carry an answer's variance: as simulated, and as few where intervals fail to cover."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.kernel.contributions import Program
from deniable.queries.answers.effective_users import effective_shares, effective_users
from deniable.queries.answers.estimation import answer
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.plan import make_plan
from deniable.randomness import SeededSource
from many_collections import simulated

USERS = dn.Table("users", age=dn.Ordinal(0, 24), kind=dn.Categorical("a", "b", "c"))
JOBS = dn.Table("jobs", hours=dn.Ordinal(0, 24), pay=dn.Ordinal(0, 24))
JOINED = "SELECT SUM(pay) AS x FROM users JOIN jobs USING (uid) WHERE kind = 'a'"


def frames(count, seed=1):
    """Rows as the prediction takes them to be: evenly spread."""
    random = np.random.default_rng(seed)
    uid, pay = np.arange(count), random.integers(0, 25, count)
    kind = np.array([*"abc"])[random.integers(0, 3, count)]
    return {
        "users": pa.table({"uid": uid, "age": random.integers(0, 25, count), "kind": kind}),
        "jobs": pa.table({"uid": uid, "hours": random.integers(0, 25, count), "pay": pay}),
    }, pay[kind == "a"].sum()


@pytest.mark.parametrize(
    ("design", "weights", "sums", "text"),
    [
        ("hio", "greedy", "direct", "SELECT COUNT(*) FROM users WHERE age BETWEEN 3 AND 17"),
        ("hio", "optimal", "direct", "SELECT COUNT(*) FROM users WHERE age < 9 OR kind = 'b'"),
        ("hio", "optimal", "direct", "SELECT COUNT(*) FROM users JOIN jobs USING (uid) WHERE age < 9 AND hours > 9"),
        ("ahio", "greedy", "designed", JOINED),
        ("amg", "optimal", "designed", JOINED),
    ],
)
def test_the_share_of_users_who_carry_the_variance(design, weights, sums, text):
    count = 150_000
    collection = dn.Collection(USERS, JOBS, epsilon=4.0, design=design)
    plan = make_plan(parse(text, collection, centred=sums == "direct"), collection, weights, sums)
    rows, _ = frames(count)
    reports = collection.perturb(**rows, source=SeededSource(1), simulation=True)
    contributions, views = np.ones(count), np.zeros(count, dtype=np.int64)
    for table in plan.tables:
        design_of = collection.design_of(table.table)
        columns = [reports[table.table][name].to_numpy() for name in ("view", "seed", "y")]
        contributions *= Program.of(table.parts[0], design_of.views).contributions(*columns)[:, 0]
        views = views * design_of.views + columns[0]
    _, which, counts = np.unique(views, return_inverse=True, return_counts=True)
    spread = np.bincount(which, np.square(contributions - contributions.mean())) / counts
    simulated = np.average(spread, weights=counts) ** 2 / np.average(spread**2, weights=counts)
    (share,) = effective_shares(plan, 1.0).ravel()
    assert share == pytest.approx(simulated, rel=0.1)
    assert effective_shares(plan, 10**9) is None  # enough of every view, whatever the weights


@pytest.mark.parametrize(
    ("tau", "text"),
    [
        (2, "SELECT COUNT(*) FROM orders WHERE amount < 4"),
        (3, "SELECT SUM(amount) FROM orders"),
        (2, "SELECT COUNT(*) FROM orders JOIN users USING (uid) WHERE amount < 4 AND age < 9"),
    ],
)
def test_several_reports_of_a_user_share_the_variance(tau, text):
    count = 200_000
    orders = dn.Table("orders", many=4, tau=tau, amount=dn.Ordinal(0, 9))
    collection = dn.Collection(USERS, orders, epsilon=3.0)
    plan = make_plan(parse(text, collection), collection, "greedy")
    bought = {"uid": np.repeat(np.arange(count), 2), "amount": np.random.default_rng(2).integers(0, 10, 2 * count)}
    everybody = {"users": frames(count)[0]["users"], "orders": pa.table(bought)}
    reports = collection.perturb(**everybody, source=SeededSource(1), simulation=True)
    contributions, views = np.ones(count), np.zeros(count, dtype=np.int64)
    for table in plan.tables:
        design = collection.design_of(table.table)
        columns = [reports[table.table][name].to_numpy() for name in ("view", "seed", "y")]
        of_reports = Program.of(table.parts[0], design.views).contributions(*columns)[:, 0]
        contributions *= of_reports.reshape(count, -1).sum(axis=1)
        for slot in np.sort(columns[0].reshape(count, -1), axis=1).T:
            views = views * design.views + slot
    off = np.square(contributions - contributions.mean())
    # The square of a mean that is itself noisy is too large; the product of two independent ones is not.
    half, which = np.arange(count) % 2 == 0, np.unique(views, return_inverse=True)[1]
    sizes, sums = (
        [np.bincount(which[mine], values[mine], minlength=which.max() + 1) for mine in (half, ~half)]
        for values in (np.ones(count), off)
    )
    both = np.minimum(*sizes) > 0
    square = np.average(np.prod(sums, axis=0)[both] / np.prod(sizes, axis=0)[both], weights=sum(sizes)[both])
    (share,) = effective_shares(plan, 1.0).ravel()
    assert share == pytest.approx(off.mean() ** 2 / square, rel=0.1)


def test_what_is_known_without_any_report_is_carried_by_nobody():
    collection = dn.Collection(USERS, JOBS, epsilon=4.0)
    plan = make_plan(parse("SELECT COUNT(*), SUM(age) FROM users JOIN jobs USING (uid)", collection), collection)
    certain, uncertain = effective_shares(plan, 1.0)[0]
    assert certain == np.inf
    assert 0 < uncertain < 1.0
    large = "SELECT COUNT(*), SUM(age * 1e9 * 1e9 * 1e9), SUM(age) FROM users JOIN jobs USING (uid) WHERE age > 30"
    nobody = make_plan(parse(large.replace("30", "20 AND age < 20"), collection), collection)
    assert (effective_shares(nobody, 1.0) == np.inf).all()
    _, scaled, plain = effective_shares(make_plan(parse(large.replace("30", "3"), collection), collection), 1.0)[0]
    assert scaled == pytest.approx(plain)


def test_a_note_says_where_intervals_fail_to_cover_and_only_there():
    rows, truth = frames(2_000)
    covered, noted = {}, {}
    for design, weights, sums in (("ahio", "greedy", "designed"), ("hio", "optimal", "direct")):
        collection = dn.Collection(USERS, JOBS, epsilon=4.0, design=design)
        plan = make_plan(parse(JOINED, collection, centred=sums == "direct"), collection, weights, sums)
        results = []
        for database in simulated(collection, rows, 2_000, runs=60):
            moments = database.engine.moments(plan, {})
            effective = effective_users(plan, moments, single_rows=True)
            results.append(answer(plan.question, moments, single_rows=True, effective=effective))
        within = [result.scalar().interval[0] < truth < result.scalar().interval[1] for result in results]
        covered[design], noted[design] = np.mean(within), {result.notes for result in results}
    assert covered["ahio"] < 0.8
    assert covered["hio"] > 0.88
    assert noted["hio"] == {()}
    few = "few: about 5 users carry the variance here: errors may be far larger than shown"
    assert noted["ahio"] == {(few,)}


def test_a_group_of_few_people_is_noted():
    table = dn.Table("users", age=dn.Ordinal(0, 24), city=dn.Public())
    rows = {"uid": range(1_000), "age": [7] * 1_000, "city": ["Rome"] * 990 + ["Oslo"] * 10}
    database = dn.connect(
        dn.Collection(table, epsilon=4.0).perturb(users=rows, source=SeededSource(1), simulation=True)
    )
    for city, few in (("Rome", False), ("Oslo", True)):
        result = database.sql(f"SELECT COUNT(*) FROM users WHERE city = '{city}' AND age < 9")
        assert any(note.startswith("few: ") for note in result.notes) == few
        assert database.sql(f"SELECT COUNT(*) FROM users WHERE city = '{city}'").notes == ()  # exact


def test_a_group_that_nearly_nobody_is_in_is_noted_where_noise_is_small():
    table = dn.Table("users", age=dn.Ordinal(0, 24))
    rows = {"uid": range(2_000), "age": [7, 8] * 999 + [20] * 2}
    for epsilon, few in ((20.0, True), (1.0, False)):
        collection = dn.Collection(table, epsilon=epsilon)
        database = dn.connect(collection.perturb(users=rows, source=SeededSource(1), simulation=True))
        for condition in ("age = 20", "age = 24"):  # two people, who may have drawn a view that tells; nobody
            result = database.sql(f"SELECT COUNT(*) FROM users WHERE {condition}")
            assert any(note.startswith("few: ") for note in result.notes) == few
        assert database.sql("SELECT COUNT(*), SUM(age) FROM users WHERE age < 8").notes == ()
        assert database.sql("SELECT COUNT(*) FROM users").notes == ()
        assert database.sql("SELECT COUNT(*) FROM users WHERE age > 9 AND age < 8").notes == ()


@pytest.mark.parametrize("text", ["SELECT COUNT(*) FROM users WHERE kind = 'a'", "SELECT AVG(age) FROM users"])
def test_reports_that_happen_to_be_alike_are_not_called_exact(text):
    collection = dn.Collection(USERS, epsilon=4.0)
    rows = {"uid": [1], "age": [7], "kind": ["b"]}
    for seed in range(12):  # whichever view is drawn
        result = dn.connect(collection.perturb(users=rows, source=SeededSource(seed), simulation=True)).sql(text)
        assert "few: about 1 user carries the variance" in "".join(result.notes)
        assert result.scalar().stderr == 0 or "unclear" in str(result)


def test_what_is_known_without_noise_is_not_called_uncertain():
    rows = {"uid": range(5), "age": [7, 7, 9, 8, 7], "kind": [*"abaca"]}
    database = dn.connect(dn.Collection(USERS, epsilon=np.inf, design="mg").perturb(users=rows, simulation=True))
    result = database.sql("SELECT kind, COUNT(*) AS n, SUM(age) AS s FROM users GROUP BY kind")
    assert [estimate.value for estimate in result.answers["n"]] == [3, 1, 1]
    assert result.notes == ()
