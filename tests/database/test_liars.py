"""Liars: how far one moves an answer, under either kind of coins, and whether chosen coins are noticed."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.drawn_coins import chi_square
from deniable.queries.forecasts import influence
from effort import repetitions

USERS = dn.Table("users", age=dn.Ordinal(1, 60), sex=dn.Categorical("f", "m"))
ORDERS = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 20))
COUNT = "SELECT COUNT(*) AS n FROM users WHERE age < 25"
PEOPLE = 4_000


def database(reports, collection, **changed):
    """The same reports with some columns replaced."""
    table = reports["users"]
    for column, values in changed.items():
        index = table.schema.get_field_index(column)
        table = table.set_column(index, table.schema.field(column), pa.array(values, table.schema.field(column).type))
    tables = {name: reports[name] for name in reports.tables} | {"users": table}
    return dn.connect(type(reports)(collection, tables, reports.summaries))


def collected(collection, seed=1):
    random = np.random.default_rng(seed)
    users = {"uid": range(PEOPLE), "age": random.integers(1, 61, PEOPLE), "sex": ["f", "m"] * (PEOPLE // 2)}
    orders = {"uid": random.integers(0, PEOPLE, PEOPLE), "amount": random.integers(0, 21, PEOPLE)}
    frames = (
        {"users": users, "orders": orders}
        if "orders" in [table.name for table in collection.tables]
        else {"users": users}
    )
    return collection.perturb(source=dn.SeededSource(seed), simulation=True, **frames)


def columns(reports):
    return {name: reports["users"][name].to_numpy().copy() for name in ("view", "seed", "y")}


@pytest.mark.parametrize("design", ["mg", "hio"])
def test_no_report_moves_a_count_further_than_said(design):
    """Every report that a liar could send, tried one by one: with randomized response the bound is reached."""
    collection = dn.Collection(USERS, epsilon=3.0, design=design)
    reports = collected(collection)
    (liar,) = database(reports, collection).influence(COUNT)
    random = np.random.default_rng(3)
    answers = []
    for view in collection.design_of("users"):
        for y in range(view.outcomes):
            for seed in random.integers(0, view.oracle.seeds, repetitions(3, 5) if view.oracle.seeds > 1 else 1):
                forged = columns(reports)
                forged["view"][0], forged["seed"][0], forged["y"][0] = view.number, seed, y
                answers.append(database(reports, collection, **forged).sql(COUNT).scalar().value)
    moved = max(answers) - min(answers)
    # Views are weighted by how many reports they have, which one report changes a little.
    assert 0.499 * liar.reached < moved < 1.02 * liar.most  # mg: half of it, to the last bits
    assert liar.reached <= liar.most * (1 + 1e-9)


def test_a_liar_without_a_choice_of_coins_moves_less():
    settings = {"epsilon": 3.0, "design": "hio"}
    texts = (COUNT, "SELECT SUM(age) AS n FROM users", "SELECT AVG(age) AS n FROM users WHERE sex = 'f'")
    drawn, assigned = (
        database(collected(c), c)
        for c in (dn.Collection(USERS, ORDERS, **settings, coins=coins) for coins in ("drawn", "assigned"))
    )
    for text in (*texts, "SELECT COUNT(*) AS n FROM users JOIN orders USING (uid) WHERE age < 25 AND amount > 5"):
        (free,), (bound,) = drawn.influence(text), assigned.influence(text)
        assert 0 < bound.typical < bound.reached <= bound.most * (1 + 1e-9)
        assert bound.reached <= free.most
        assert (free.coins, bound.coins) == ("drawn", "assigned")
        assert bound.of_share(0.02) == pytest.approx(0.02 * PEOPLE * bound.typical)
        assert free.of_share(0.02) == pytest.approx(0.02 * PEOPLE * free.reached)
    assert "one liar moves n by" in str(drawn.explain(COUNT))


def test_with_randomized_response_alone_the_bound_is_exact():
    few = dn.Table("users", age=dn.Ordinal(1, 4), sex=dn.Categorical("f", "m"))
    collection = dn.Collection(few, epsilon=3.0, design="mg")
    reports = collection.perturb(users={"uid": range(100), "age": [1, 2] * 50, "sex": ["f"] * 100})
    (liar,) = dn.connect(reports).influence("SELECT COUNT(*) FROM users WHERE age < 3")
    p, q = (float(getattr(collection.design_of("users").view(0).oracle, name)) for name in "pq")
    assert liar.exact
    assert liar.most == pytest.approx(1 / (p - q))
    assert liar.typical == pytest.approx(liar.most)


def test_with_assigned_coins_everybody_who_reported_is_tried():
    """Each person sends every y at her view and seed: nobody moves the count further than said, and somebody does."""
    collection = dn.Collection(USERS, epsilon=3.0, design="hio", coins="assigned")
    db = database(collected(collection), collection)
    (liar,) = db.influence(COUNT)
    plan = db.plan(COUNT)
    (weights,) = plan.tables[0].parts
    table, apart = db.engine.stores["users"].reports, np.zeros(PEOPLE)
    view, seed = (table[column].to_numpy().astype(np.int64) for column in ("view", "seed"))
    for mine in weights.views:
        cells, _, rows = mine.by_cell()
        values = rows.values / (mine.p - mine.q)
        for user in np.flatnonzero(view == mine.view):
            outcomes = range(mine.oracle.outcomes)
            sums = [values[mine.oracle.supports(cells, seed[user], y)].sum() for y in outcomes]
            apart[user] = max(sums) - min(sums)
    assert liar.exact
    assert (liar.most, liar.reached, liar.typical) == pytest.approx((apart.max(), apart.max(), apart.mean()))


def test_a_liar_who_tries_all_seeds(monkeypatch):
    """With 2^14 seeds instead of 2^32 all can be tried by hand."""
    monkeypatch.setattr(influence, "ALL_SEEDS", 2**14)
    collection = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 40)), epsilon=1.0, design="hio")
    reports = collection.perturb(users={"uid": range(200), "age": [1, 2] * 100})
    db = dn.connect(reports)
    (liar,) = db.influence(COUNT, exact=True)
    (part,) = db.plan(COUNT).tables[0].parts
    lows, highs = [0.0] if part.share < 1 else [], [0.0] if part.share < 1 else []
    for mine in part.views:
        cells, _, rows = mine.by_cell()
        values = rows.values / (mine.p - mine.q)
        seeds = np.arange(2**14 if mine.oracle.seeds > 1 else 1)
        for y in range(mine.oracle.outcomes):
            sums = mine.oracle.supports(cells[None, :], seeds[:, None], y) @ values - mine.q * values.sum()
            lows.append(sums.min())
            highs.append(sums.max())
    assert liar.exact
    assert liar.reached == pytest.approx(max(highs) - min(lows))
    assert liar.reached <= db.influence(COUNT)[0].most * (1 + 1e-9)


def test_liars_in_several_groups_and_in_rounds(tmp_path):
    groups = [dn.Collection(USERS, epsilon=epsilon, design="hio", coins="assigned") for epsilon in (1.0, 3.0)]
    ids, frames = range(PEOPLE), {"age": [20, 30] * (PEOPLE // 2), "sex": ["f", "m"] * (PEOPLE // 2)}
    reports = [
        group.perturb(users={"uid": [PEOPLE * number + user for user in ids], **frames})
        for number, group in enumerate(groups)
    ]
    (both,), alone = dn.connect(reports).influence(COUNT), [dn.connect(each).influence(COUNT)[0] for each in reports]
    assert both.users == 2 * PEOPLE
    assert both.reached == max(each.reached for each in alone)
    assert both.typical == pytest.approx(np.mean([each.typical for each in alone]))
    # Where rounds rotate, whoever answers stands for all whose turn it is not.
    rounds = dn.Collection(
        USERS, epsilon=3.0, design="hio", coins="assigned", name="shop", rounds=dn.Rounds(4, answers=2)
    )
    weekly = dn.connect(rounds.perturb(users={"uid": ids, **frames}, round=1))
    once = dn.Collection(USERS, epsilon=1.5, design="hio", coins="assigned")
    (liar,), (other,) = weekly.influence(COUNT), dn.connect(once.perturb(users={"uid": ids, **frames})).influence(COUNT)
    assert liar.typical == pytest.approx(2 * other.typical, rel=0.05)
    assert liar.users < PEOPLE


def test_chosen_views_and_seeds_are_noticed_and_drawn_ones_are_not():
    collection = dn.Collection(USERS, epsilon=2.0)
    reports = collected(collection)
    assert not [note for note in database(reports, collection).sql(COUNT).notes if note.startswith("coins")]
    chosen = columns(reports)
    hashed = [view.number for view in collection.design_of("users") if view.oracle.seeds > 1]
    chosen["view"][:300], chosen["y"][:300] = hashed[0], 0
    (note,) = [n for n in database(reports, collection, **chosen).sql(COUNT).notes if n.startswith("coins")]
    assert note.startswith("coins: views")
    assert "of table 'users' are not spread as drawn ones are" in note
    chosen = columns(reports)
    chosen["seed"] = np.where(np.isin(chosen["view"], hashed) & (np.arange(PEOPLE) % 10 == 0), 77, chosen["seed"])
    (note,) = [n for n in database(reports, collection, **chosen).sql(COUNT).notes if n.startswith("coins")]
    assert "seeds of table 'users'" in note


def test_the_test_of_coins_has_its_false_alarm_rate():
    """At a level of 1 %: between 0.3 and 2.5 of 100 alarms over 2,000 tables, wrong with a chance below 10^-4."""
    from scipy.stats import chi2

    random, shares = np.random.default_rng(8), np.array([0.4, 0.3, 0.2, 0.05, 0.03, 0.015, 0.005])
    alarms = 0
    for _ in range(2_000):
        squares, freedom = chi_square(random.multinomial(1_000, shares).astype(float), 1_000 * shares)
        alarms += chi2.sf(squares, freedom) < 0.01
    assert 6 <= alarms <= 50
    assert chi_square(np.array([3.0]), np.array([3.0])) == (0.0, 0)
