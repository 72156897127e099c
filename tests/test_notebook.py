"""What a notebook shows: tables for everything one looks at, and never somebody's data."""

from html.parser import HTMLParser

import numpy as np
import pytest

import deniable as dn
from deniable.client import ToPLClient
from deniable.queries.forecasts.compare import compare

SECRET = 73_313


class Cells(HTMLParser):
    """The cells of a page, and whether every tag was closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert not attributes
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def shown(value):
    return Cells(value._repr_html_())


@pytest.fixture(scope="module")
def shop():
    users = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("a<b", "single"), city=dn.Public())
    return dn.Collection(users, dn.Table("orders", many=10, amount=dn.Ordinal(0, 100_000)), epsilon=4.0)


@pytest.fixture(scope="module")
def reports(shop):
    frame = {"uid": range(400), "age": [30] * 400, "marital": ["a<b", "single"] * 200, "city": ["Rome", "Oslo"] * 200}
    orders = {"uid": range(400), "amount": [SECRET] * 400}
    return shop.perturb(users=frame, orders=orders, source=dn.SeededSource(1), simulation=True)


def test_a_result_shows_groups_answers_and_notes(reports):
    result = dn.connect(reports).sql("SELECT marital, COUNT(*) AS n FROM users GROUP BY marital", clip=True)
    page = shown(result)
    assert page.cells[:4] == ["marital", "n", "95 % interval", "a<b"]
    assert str(result.answers["n"][0]).partition(" ±")[0] in page.cells
    assert result.notes[0] in page.text
    assert str(result.answers["n"][0]) == shown(result.answers["n"][0]).text


def test_a_collection_and_its_tables_show_what_is_collected(shop):
    page = shown(shop)
    assert page.cells[6:12] == ["users", "1", "age, marital", "city", "1", "2"]
    assert "ε = 4 per user" in page.text
    assert shop.sha256[:16] in page.text
    assert shown(shop["users"]).cells[3:9] == [
        "age",
        "ordinal",
        "1 to 95, step 1",
        "marital",
        "categorical",
        "a<b, single",
    ]
    many = dn.Table("t", letter=dn.Categorical([f"v{number}" for number in range(30)]))
    assert "v0, v1, v2, v3, v4, … (30 values)" in shown(many).cells


def test_a_plan_a_forecast_and_an_explanation_show_tables(shop, reports):
    db, sql = dn.connect(reports), "SELECT AVG(amount) AS a FROM orders JOIN users USING (uid) WHERE age < 30"
    plan = shown(db.plan(sql))
    assert plan.cells[0::3] == ["table", "orders", "users"]
    assert "optimal weights, direct sums" in plan.text
    forecast = shown(shop.forecast(sql, users=10))
    assert forecast.cells[6:8] == ["a", "unclear"]
    assert "too few users" in forecast.text
    explained = shown(db.explain("SELECT COUNT(*) AS n FROM users WHERE age < 30"))
    assert "Assumed:" in explained.text
    assert "n" in explained.cells
    compared = compare(shop, ["SELECT COUNT(*) FROM users WHERE age < 30"], 10_000)
    assert shown(compared).cells[4] == compared.best.design
    assert "q1: SELECT COUNT(*)" in shown(compared).text


def test_streams_show_public_facts_and_windows():
    tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    assert "warming up" in shown(tops).text
    tops.push_many(np.tile([5, 6, 7, 8], 1000))
    assert "3,000 published" in shown(tops).text
    assert f"θ{tops.learnt.theta:g}" in shown(tops).text
    page = shown(tops.released)
    assert len(page.cells) == 3 + 3 * 5
    assert "epsilon = 1.0" in page.text
    empty = dn.streams.ToPS(1.0, 100, warmup=1, horizon=10, block=1, source=dn.SeededSource(1), simulation=True)
    empty.push(1)
    assert shown(empty.released).cells == ["window", "mean", "95 % interval"]


def test_nothing_that_is_looked_at_shows_data(shop, reports, tmp_path):
    secret = {str(SECRET), f"{SECRET:,}"}
    client = shop.client()
    sent = client.reports("orders", [{"amount": SECRET}])
    device = ToPLClient(epsilon=1.0, bound=100_000)
    answer = device.report(SECRET)
    publisher = dn.streams.ToPS(1.0, 100_000, warmup=4, horizon=64)
    publisher.push(SECRET)
    started = dn.streams.ToPS(1.0, 100_000, warmup=1, horizon=64)
    started.push_many([SECRET] * 3)
    written = shop.perturb(orders={"uid": [1], "amount": [SECRET]}, everyone={"uid": [1]}, out=tmp_path / "reports")
    looked_at = [client, sent, device, answer, publisher, started, reports, dn.connect(reports), shop, written]
    for value in looked_at:
        texts = [repr(value), str(value)]
        texts += [value._repr_html_()] if hasattr(value, "_repr_html_") else []
        for text in texts:
            assert not any(word in text for word in secret), type(value)


def test_what_was_written_can_be_opened_as_it_is(shop, tmp_path):
    written = shop.perturb(users={"uid": [1], "age": [3], "marital": ["single"], "city": ["Rome"]}, out=tmp_path / "r")
    assert repr(written).startswith("Collected(users: 1 report; in ")
    assert shown(written).cells == ["table", "reports", "users", "1"]
    assert repr(dn.connect(written)) == "Database(users: 1 report)"
    assert shown(dn.connect(written)).cells[5:8] == ["users", "1", "0"]


@pytest.mark.parametrize("frame", [{"uid": [1, 2], "age": [3]}, {"uid": [1], "age": [object()]}, {"uid": 1}])
def test_a_dictionary_that_is_no_table_is_refused(frame):
    shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=1.0)
    with pytest.raises(dn.errors.InvalidData, match=r"table 'users' cannot be read.*nothing was spent.*Pass a frame"):
        shop.perturb(users=frame)
