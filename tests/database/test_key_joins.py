"""Joins through a private attribute with the ids of another population: answers, errors, refusals, ways in."""
# ruff: noqa: E501 - a query reads best on one line

import math

import numpy as np
import pyarrow as pa
import pytest

pytest.register_assert_rewrite("plain_sql")

import deniable as dn  # noqa: E402
from database.product_shop import PRODUCTS, TRANSACTIONS, USERS, product_shop, raw_rows  # noqa: E402
from deniable.errors import QueryRefused  # noqa: E402
from plain_sql import Pair  # noqa: E402

JOINED = "transactions JOIN users USING (uid) JOIN products USING (pid)"
PLAIN = [
    f"SELECT SUM(amount) FROM {JOINED} WHERE country = 'CN' AND age BETWEEN 2 AND 6",
    f"SELECT COUNT(*), SUM(price), AVG(price), AVG(amount) FROM {JOINED} WHERE country <> 'DE' OR amount < 4",
    f"SELECT COUNT(*) FROM {JOINED} WHERE NOT (country = 'CN' AND age > 3) AND price > 1",
    "SELECT country, COUNT(*), SUM(price * amount) FROM transactions JOIN products USING (pid) GROUP BY country",
    f"SELECT country, FLOOR(age / 5) AS half, SUM(price), COUNT(*) FROM {JOINED} GROUP BY country, half",
    "SELECT price, AVG(amount) FROM products p JOIN transactions t ON t.pid = p.pid GROUP BY price",
    "SELECT city, SUM(price) FROM products JOIN transactions USING (pid) JOIN users USING (uid) GROUP BY city",
    "SELECT p.pid, SUM(price) FROM transactions JOIN products p ON p.pid = transactions.pid GROUP BY p.pid",
    f"SELECT COUNT(*) FILTER (WHERE country = 'CN'), SUM(CASE WHEN country = 'CN' THEN amount ELSE price END) FROM {JOINED}",
    f"SELECT VAR_POP(price), SUM(price) / SUM(amount) FROM {JOINED} WHERE pid < 8",
    "SELECT COUNT(*), AVG(price) FROM products WHERE country = 'CN'",
    "SELECT continent, COUNT(*) FROM transactions JOIN products USING (pid) JOIN places ON country = places.code GROUP BY continent",
]
PLACES = {"places": pa.table({"code": ["CN", "DE"], "continent": ["Asia", "Europe"]})}


@pytest.fixture(scope="module")
def pair():
    tables = (USERS, TRANSACTIONS, PRODUCTS)
    return Pair(tables=tables, raw=raw_rows(), dimensions=PLACES, owners={"shop": math.inf})


@pytest.mark.parametrize("text", PLAIN)
def test_without_noise_answers_equal_plain_sql(pair, text):
    pair.check(text)


@pytest.fixture(scope="module")
def noisy():
    collection = product_shop(8.0, 3.0)
    return dn.connect(collection.perturb(**raw_rows(), source=dn.SeededSource(1), simulation=True))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT COUNT(*) FROM transactions JOIN products USING (uid)", "one private attribute of users"),
        ("SELECT COUNT(*) FROM users JOIN products USING (pid)", "one private attribute of users"),
        ("SELECT COUNT(*) FROM transactions JOIN products ON amount = price", "one private attribute of users"),
        (
            "SELECT COUNT(*) FROM transactions LEFT JOIN products USING (pid)",
            "not possible with a table of another population",
        ),
        ("SELECT MEDIAN(price) FROM transactions JOIN products USING (pid)", "another population"),
        ("SELECT COUNT(*) FROM transactions JOIN products USING (pid) JOIN users USING (pid)", "user id only"),
    ],
)
def test_what_cannot_be_joined_is_refused(noisy, text, why):
    with pytest.raises(QueryRefused, match=why):
        noisy.sql(text)


def test_two_other_populations_are_refused():
    stocks = dn.Table("stocks", owner="store", key="pid", left=dn.Ordinal(0, 9))
    more = dn.Table("prices", owner="shop", key="pid", euros=dn.Ordinal(0, 9))
    tables = (TRANSACTIONS, PRODUCTS, stocks, more)
    collection = dn.Collection(*tables, epsilon=1.0, owners={"shop": 1.0, "store": 1.0})
    for second in ("stocks", "prices"):
        with pytest.raises(QueryRefused, match="second table of another population"):
            collection.forecast(
                f"SELECT COUNT(*) FROM transactions JOIN products USING (pid) JOIN {second} USING (pid)", 100
            )
    assert (
        collection.forecast("SELECT SUM(euros) AS n FROM products JOIN prices USING (pid) WHERE country = 'CN'", 100)
        .scalar()
        .stderr
        > 0
    )


def test_public_attributes_of_others_and_missing_reports_are_refused(noisy):
    products = dn.Table("products", owner="shop", key="pid", price=dn.Ordinal(0, 4), brand=dn.Public())
    collection = dn.Collection(TRANSACTIONS, products, epsilon=1.0, owners={"shop": 1.0})
    with pytest.raises(QueryRefused, match="public attribute 'brand'"):
        collection.forecast("SELECT COUNT(*) FROM transactions JOIN products USING (pid) WHERE brand = 'x'", 100)
    rows = {name: frame for name, frame in raw_rows().items() if name != "products"}
    db = dn.connect(product_shop(8.0, 3.0).perturb(**rows, source=dn.SeededSource(1), simulation=True))
    with pytest.raises(QueryRefused, match="no reports of table 'products'"):
        db.sql("SELECT COUNT(*) FROM transactions JOIN products USING (pid)")


def test_a_grid_that_does_not_show_ids_is_refused():
    wide = dn.Table("transactions", amount=dn.Ordinal(0, 9), pid=dn.Ordinal(1, 60))
    collection = dn.Collection(wide, PRODUCTS, epsilon=8.0, owners={"shop": 3.0}, design="grid")
    rows = {name: frame for name, frame in raw_rows().items() if name != "users"}
    db = dn.connect(collection.perturb(**rows, source=dn.SeededSource(1), simulation=True))
    with pytest.raises(QueryRefused, match="do not show every id"):
        db.sql("SELECT COUNT(*) FROM transactions JOIN products USING (pid) WHERE country = 'CN'")


@pytest.mark.parametrize("design", ["mg", "sc", "ahio"])
def test_every_design_answers_with_an_error(design):
    collection = product_shop(8.0, 3.0, design=design)
    db = dn.connect(collection.perturb(**raw_rows(), source=dn.SeededSource(1), simulation=True))
    answer = db.sql("SELECT SUM(amount) AS x FROM transactions JOIN products USING (pid) WHERE country = 'CN'").scalar()
    assert math.isfinite(answer.value)
    assert answer.stderr > 0


def test_explain_and_forecast_name_the_share_of_the_other_population(noisy):
    text = f"SELECT SUM(amount) AS x FROM {JOINED} WHERE country = 'CN'"
    forecast = product_shop(8.0, 3.0).forecast(text, users=500)
    assert list(forecast.scalar().causes)[-1] == "other population"
    assert 0 < forecast.scalar().causes["other population"] < 1
    assert "(of shop: 3)" in str(forecast)
    explained = str(noisy.explain(text))
    assert "through transactions.pid: table products" in explained
    assert "1 per pid with ε = 3 each" in explained
    assert "other population" in explained


def test_more_noise_of_others_is_stated_as_a_larger_error():
    text = "SELECT COUNT(*) AS x FROM transactions JOIN products USING (pid) WHERE country = 'CN'"
    errors = []
    for of_shop in (8.0, 0.5):
        reports = product_shop(20.0, of_shop, design="mg").perturb(
            **raw_rows(), source=dn.SeededSource(5), simulation=True
        )
        errors.append(dn.connect(reports).sql(text).scalar().stderr)
        forecast = product_shop(20.0, of_shop, design="mg").forecast(text, users=500).scalar().stderr
        assert 0.3 < errors[-1] / forecast < 3
    assert errors[1] > 2 * errors[0]


def test_devices_of_both_populations_report_to_one_collection():
    collection = product_shop(60.0, 60.0, design="mg", coins="assigned")
    rows, lines = raw_rows(users=40), []
    for row in rows["transactions"].to_pylist():
        uid = row.pop("uid")
        lines += [
            r.to_json(uid=uid, table="transactions") for r in collection.client(user=uid).reports("transactions", [row])
        ]
    for row in rows["products"].to_pylist():
        pid = row.pop("pid")
        lines.append(collection.client(user=pid).report("products", row).to_json(uid=pid, table="products"))
    db = dn.connect(collection.gather(lines))
    assert {name: store.rows for name, store in db.stores.items()} == {"transactions": 20, "products": 11}
    assert not any(db.refused.values())
    answered = db.sql("SELECT COUNT(*) AS x FROM transactions JOIN products USING (pid)").scalar()
    assert answered.value == pytest.approx(sum(pid <= 10 for pid in rows["transactions"]["pid"].to_pylist()), abs=0.5)


def test_text_ids_in_files_are_matched_with_categories(tmp_path):
    ids = ["tea", "milk", "salt", "007"]
    bought = dn.Table("transactions", pid=dn.Categorical(*ids), amount=dn.Ordinal(0, 4))
    collection = dn.Collection(bought, PRODUCTS, epsilon=math.inf, owners={"shop": math.inf}, design="mg")
    rows = {"uid": list(range(8)), "pid": ids * 2, "amount": [0, 1, 2, 3, 4, 0, 1, 2]}
    (tmp_path / "products.csv").write_text("pid,country,price\ntea,CN,1\n007,CN,2\nsalt,DE,3\n")
    out = tmp_path / "reports"
    collection.perturb(transactions=rows, products=tmp_path / "products.csv", out=out, simulation=True)
    for memory_limit in (2**30, 0):
        db = dn.connect(out, memory_limit=memory_limit)
        assert db.sql(
            "SELECT SUM(amount) AS x FROM transactions JOIN products USING (pid) WHERE country = 'CN'"
        ).scalar().value == pytest.approx(9)
        assert db.sql(
            "SELECT SUM(price) AS x FROM transactions JOIN products USING (pid)"
        ).scalar().value == pytest.approx(12)


@pytest.mark.slow
@pytest.mark.parametrize("products", [20, 200])
def test_intervals_cover(products):
    random, runs = np.random.default_rng(products), 200
    count = 4_000
    rows = {
        "transactions": pa.table({"uid": np.arange(count), "amount": random.integers(0, 10, count), "pid": random.integers(1, products + 1, count)}),
        "products": pa.table({"pid": np.arange(1, products + 1), "country": ["CN", "DE"] * (products // 2), "price": random.integers(0, 5, products)}),
    }  # fmt: skip
    table = dn.Table("transactions", amount=dn.Ordinal(0, 9), pid=dn.Ordinal(1, products))
    collection = dn.Collection(table, PRODUCTS, epsilon=3.0, owners={"shop": 2.0})
    text = "SELECT SUM(amount) AS x FROM transactions JOIN products USING (pid) WHERE country = 'CN'"
    chosen = np.asarray(rows["transactions"]["pid"]) % 2 == 1
    truth = float(np.asarray(rows["transactions"]["amount"])[chosen].sum())
    covered, errors, stated = 0, [], []
    for run in range(runs):
        reports = collection.perturb(**rows, source=dn.SeededSource(run), simulation=True)
        answer = dn.connect(reports).sql(text).scalar()
        covered += answer.interval[0] <= truth <= answer.interval[1]
        errors.append(answer.value - truth)
        stated.append(answer.stderr)
    assert 0.90 <= covered / runs <= 0.99
    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(runs)
    assert 0.85 < np.sqrt(np.mean(np.square(stated))) / np.std(errors) < 1.2


def test_the_names_of_ids_do_not_matter_to_assigned_coins():
    collection = product_shop(1.0, 1.0, coins="assigned")
    first, again = (collection.client(user=user).report("products", {"country": "CN", "price": 1}) for user in (7, "7"))
    assert (first.view, first.seed) == (again.view, again.seed)
    assert np.isfinite(first.y)
