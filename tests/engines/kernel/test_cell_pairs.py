"""Answers from pairs of cells that were counted once are those of reading all reports."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.engines.kernel.cell_pairs import cell_pairs, has_few_pairs
from deniable.engines.kernel.grouped_moments import moments_from_pairs
from deniable.engines.kernel.pair_sums import needs_pairs_only
from deniable.engines.reports import report_stores as stores
from deniable.mechanisms import LocalHashing

TABLE = dn.Table("t", x=dn.Ordinal(0, 29), c=dn.Categorical("a", "b", "c"), town=dn.Public())
VIEWS = [
    dn.GridView({"x": dn.Cells(4)}),
    dn.GridView({"x": dn.Cells(10), "c": 3}),
    dn.GridView({"x": dn.Points(3)}),
]
QUESTIONS = [
    "SELECT COUNT(*) FROM t WHERE x < 7",
    "SELECT COUNT(*), SUM(x), AVG(x) FROM t WHERE c <> 'a' GROUP BY c",
    "SELECT VAR_POP(x) FROM t GROUP BY FLOOR(x / 5)",
    "SELECT COUNT(*) + 2 * SUM(x) FROM t WHERE x < 7 OR c = 'b'",
    "SELECT x, c, COUNT(*) FROM t GROUP BY x, c",
]


def frame(users):
    random = np.random.default_rng(2)
    x = np.minimum(random.lognormal(2, 0.7, users), 29).astype(int)
    return {
        "uid": np.arange(users),
        "x": x,
        "c": random.choice(list("abc"), users),
        "town": ["here", "there"] * (users // 2),
    }


def opened(design="grid", epsilon=1.0, users=2_000):
    grids = {"t": VIEWS} if design == "grid" else None
    shop = dn.Collection(TABLE, epsilon=epsilon, design=design, grids=grids)
    return dn.connect(shop.perturb(t=frame(users), source=dn.SeededSource(3), simulation=True))


def same(counted, read):
    for name in ("users", "sums", "crosses", "between"):
        left, right = getattr(counted, name), getattr(read, name)
        # `between` is a difference of two numbers as large as `crosses`, and rounded like these.
        size = read.crosses if name == "between" else right
        assert left == pytest.approx(right, rel=1e-9, abs=1e-9 * max(float(np.abs(size).max()), 1.0)), name
    assert counted.keys == read.keys


@pytest.mark.parametrize("epsilon", [0.5, 4.0, math.inf])
@pytest.mark.parametrize("design", ["grid", "hio", "mg"])
@pytest.mark.parametrize("users", [2_000, 20])  # so few that views are not counted
def test_moments_are_those_of_reading_all_reports(design, epsilon, users):
    database = opened(design, epsilon, users)
    pairs = cell_pairs(database.engine.stores["t"], database.collection.design_of("t"))
    for text in QUESTIONS:
        plan = database.plan(text)
        assert needs_pairs_only(plan)
        same(moments_from_pairs(plan, database.stores, pairs), database.engine.moments(plan, {}))


def test_pairs_are_those_of_each_report():
    database = opened(users=300)
    design, reports = database.collection.design_of("t"), database.engine.stores["t"].reports
    pairs = cell_pairs(database.engine.stores["t"], design)
    expected = {each.number: np.zeros((each.cells, each.cells), dtype=int) for each in design}
    hashed = 0
    for view, seed, y in zip(*(reports[name].to_pylist() for name in ("view", "seed", "y")), strict=True):
        drawn = design.view(view)
        supported = [y]
        if isinstance(drawn.oracle, LocalHashing):
            hashed += 1
            supported = [cell for cell in range(drawn.cells) if drawn.oracle.bucket(seed, cell) == y]
        expected[view][np.ix_(supported, supported)] += 1
    assert 0 < hashed < 300
    assert all(np.array_equal(pairs[number], matrix) for number, matrix in expected.items())


def test_after_a_question_about_many_groups_no_reports_are_read_again(monkeypatch):
    database, other = opened(), opened()
    few = "SELECT COUNT(*) FROM t WHERE x < 7"
    many = "SELECT x, c, COUNT(*) FROM t GROUP BY x, c"
    before = database.sql(few).scalar()
    assert not database._pairs.by_table  # one number is told faster by reading
    database.sql(many)
    assert set(database._pairs.by_table) == {"t"}

    def read(self, columns):
        raise AssertionError("reports were read")

    monkeypatch.setattr(stores.MemoryStore, "read", read)
    after = database.sql(few).scalar()
    assert (after.value, after.stderr) == pytest.approx((before.value, before.stderr), rel=1e-9)
    assert len(database.sql(many).groups["x"]) == 90
    with pytest.raises(AssertionError, match="reports were read"):
        other.sql(few)
    with pytest.raises(AssertionError, match="reports were read"):
        database.sql("SELECT COUNT(*) FROM t WHERE town = 'here'")


def test_what_depends_on_more_than_cells_is_read():
    orders = dn.Table("orders", price=dn.Ordinal(0, 9), many=4, tau=2)
    shop = dn.Collection(TABLE, orders, epsilon=2.0)
    frames = {"t": frame(200), "orders": {"uid": np.repeat(np.arange(200), 2), "price": np.arange(400) % 10}}
    database = dn.connect(shop.perturb(**frames, source=dn.SeededSource(3), simulation=True))
    for text in (
        "SELECT x, COUNT(*) FROM t WHERE town = 'here' GROUP BY x",
        "SELECT town, x, COUNT(*) FROM t GROUP BY town, x",
        "SELECT x, COUNT(*) FROM t JOIN orders USING (uid) GROUP BY x",
        "SELECT COUNT(*) FROM t",
    ):
        assert not needs_pairs_only(database.plan(text))
    assert not has_few_pairs(shop.design_of("orders"), database.stores["orders"].slots)
    large = dn.Collection(dn.Table("large", x=dn.Ordinal(0, 9_999)), epsilon=1.0)
    assert not has_few_pairs(large.design_of("large"), 1)
    database.sql("SELECT price, COUNT(*) FROM orders GROUP BY price")
    assert not database._pairs.by_table


def test_files_are_counted_as_memory_is(tmp_path):
    shop = dn.Collection(TABLE, epsilon=1.0, design="grid", grids={"t": VIEWS})
    shop.perturb(t=frame(2_000), source=dn.SeededSource(3), simulation=True, out=tmp_path / "reports")
    filed = dn.connect(tmp_path / "reports", memory_limit=1)
    assert isinstance(filed.stores["t"], stores.FileStore)
    text = "SELECT x, c, COUNT(*) AS n FROM t GROUP BY x, c"
    here, there = ([estimate.value for estimate in database.sql(text).answers["n"]] for database in (filed, opened()))
    assert here == pytest.approx(there, rel=1e-9, abs=1e-6)
    assert set(filed._pairs.by_table) == {"t"}
