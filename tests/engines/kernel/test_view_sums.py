"""Reports in the order of their views add up to what they add up to in the order of users."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.engines.kernel import plain_loops
from deniable.engines.local import block_moments as by_blocks
from deniable.engines.reports.view_order import ViewOrder

TABLES = (
    dn.Table("t", x=dn.Ordinal(0, 29), c=dn.Categorical("a", "b", "c"), town=dn.Public()),
    dn.Table("u", z=dn.Ordinal(0, 19), many=3),
)
ALONE = [
    "SELECT COUNT(*) FROM t WHERE x < 7",
    "SELECT COUNT(*), SUM(x), AVG(x) FROM t WHERE c <> 'a' GROUP BY c",
    "SELECT VAR_POP(x) FROM t GROUP BY FLOOR(x / 5)",
    "SELECT COUNT(*) + 2 * SUM(x) FROM t WHERE x < 7 OR c = 'b'",
    "SELECT x, c, COUNT(*) FROM t GROUP BY x, c",
]
PLACED = [
    "SELECT town, COUNT(*), AVG(x) FROM t WHERE x < 7 GROUP BY town",
    "SELECT COUNT(*) FROM t WHERE x < 7 AND town = 'here'",
    "SELECT SUM(z) FROM t JOIN u USING (uid) WHERE x < 7 AND z > 3",
    "SELECT c, AVG(z) FROM t JOIN u USING (uid) GROUP BY c",
    "SELECT AVG(z) FROM u WHERE z > 3",
]


def opened(design, epsilon, users=3_000):
    random = np.random.default_rng(2)
    x = np.minimum(random.lognormal(2, 0.7, users), 29).astype(int)
    towns = ["here", "there", None] * (users // 3)
    t = {"uid": np.arange(users), "x": x, "c": random.choice(list("abc"), users), "town": towns}
    u = {"uid": random.integers(0, users, users), "z": random.integers(0, 20, users)}
    shop = dn.Collection(*TABLES, epsilon=epsilon, design=design)
    return dn.connect(shop.perturb(t=t, u=u, source=dn.SeededSource(3), simulation=True))


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(plain_loops, "PLAIN_HASHES", -1)


def same(left, right):
    assert left.keys == right.keys
    for name in ("users", "sums", "crosses", "between"):
        mine, expected = getattr(left, name), getattr(right, name)
        size = max(float(np.abs(right.crosses if name == "between" else expected).max()), 1.0)
        assert mine == pytest.approx(expected, rel=1e-9, abs=1e-9 * size), name


@pytest.mark.parametrize(
    ("design", "epsilon", "users"),
    [
        ("hio", 0.5, 3_000),
        ("hio", 8.0, 21),  # so few that views are not counted
        ("ahio", 4.0, 3_000),
        ("mg", math.inf, 3_000),
    ],
)
def test_order_of_views_gives_the_same_moments(compiled, monkeypatch, design, epsilon, users):
    database, taken = opened(design, epsilon, users), []
    for text in ALONE + PLACED:
        plan = database.plan(text)
        moments = database.engine.moments(plan, {})
        with monkeypatch.context() as patched:
            patched.setattr(by_blocks, "follows_views", lambda table: False)
            same(moments, database.engine.moments(plan, {}))
        taken.append(any(by_blocks.follows_views(table) for table in database.engine._prepared.get(plan, None).tables))
    assert sum(taken) >= len(taken) - 2  # all but questions that no view has to answer


def test_work_is_cut_where_it_is_long(compiled, monkeypatch):
    database = opened("hio", 2.0)
    plan = database.plan(ALONE[1])
    whole = database.engine.moments(plan, {})
    monkeypatch.setattr("deniable.engines.kernel.view_sums.MOST_STEPS", 10_000)
    monkeypatch.setattr("deniable.engines.kernel.contributions.SMALLEST_SHARE", 10)
    same(database.engine.moments(plan, {}), whole)


def test_order_of_views_keeps_every_report():
    random = np.random.default_rng(1)
    view, seed, y = random.integers(0, 5, 100), random.integers(0, 2**32, 100), random.integers(0, 9, 100)
    order = ViewOrder.of(view, seed, y, views=7)
    assert order.starts.size == 8
    for number in range(7):
        mine = slice(order.starts[number], order.starts[number + 1])
        assert (view[order.positions[mine]] == number).all()
    assert (order.seed == seed[order.positions]).all()
    assert (order.y == y[order.positions]).all()
