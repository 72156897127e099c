"""`deniable plan --after` and `deniable query FIRST SECOND`, and `--rows`, as a person uses them."""

import json

import numpy as np
import pytest

import deniable as dn
from command_line import run

SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(0, 99)), dn.Table("orders", many=4, amount=dn.Ordinal(0, 9)), epsilon=6.0
)
JOINED = "SELECT AVG(amount) AS mean FROM users JOIN orders USING (uid) WHERE age < 30"
YOUNG = "SELECT COUNT(*) AS n FROM users WHERE age < 30"


def printed(*arguments, text=""):
    done = run(*arguments, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*arguments):
    done = run(*arguments)
    assert done.returncode == 2
    return done.stderr


def collected(collection, people, folder, seed):
    random = np.random.default_rng(seed)
    ages = np.minimum(random.geometric(0.1, people.size), 99)
    collection.perturb(
        users={"uid": people, "age": ages},
        orders={"uid": people, "amount": random.integers(0, 10, people.size)},
        out=folder,
        source=dn.SeededSource(seed),
        simulation=True,
    )
    return int((ages < 30).sum())


def test_a_first_group_chooses_the_design_of_the_rest_and_both_are_asked(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    (tmp_path / "q.sql").write_text(YOUNG)
    first, second = tmp_path / "first", tmp_path / "second"
    early, late = np.arange(1_000), np.arange(1_000, 6_000)
    young = collected(SHOP, early, first, 1)
    asked = (tmp_path / "shop.toml", tmp_path / "q.sql", "--users", "5000")
    text = printed("plan", *asked, "--after", first, "-o", tmp_path / "rest.toml")
    assert "one look" in text
    assert "all 6,000 users together: errors are" in text
    young += collected(dn.Collection.load(tmp_path / "rest.toml"), late, second, 2)
    (row,) = map(json.loads, printed("query", first, second, YOUNG, "--json").splitlines())
    assert abs(row["n"] - young) < 5 * row["n_stderr"]
    (alike,) = map(json.loads, printed("query", first, second, YOUNG, "--json", "--alike").splitlines())
    assert abs(alike["n"] - young) < 5 * alike["n_stderr"]
    assert alike["n_stderr"] < row["n_stderr"]
    assert "several groups of users" in refusal("query", first, YOUNG, "--alike")
    assert "errors are" in printed("plan", *asked, "--after", first, "--alike", "-o", tmp_path / "alike.toml")
    assert "there is one" in refusal("plan", *asked, "--alike", "-o", tmp_path / "alone.toml")
    assert printed("query", first, second, "-f", tmp_path / "q.sql") == printed("query", first, second, YOUNG)
    collected(dn.Collection.load(tmp_path / "rest.toml"), np.arange(10), tmp_path / "again", 3)
    assert "10 users in more than one group" in refusal("query", first, tmp_path / "again", YOUNG)
    assert "the SQL is missing or given twice" in refusal("query", first, YOUNG, "-f", tmp_path / "q.sql")
    assert "the SQL is missing or given twice" in refusal("query", first)


def test_expected_rows_reach_every_forecast(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    (tmp_path / "q.sql").write_text(JOINED)
    shop, queries = tmp_path / "shop.toml", tmp_path / "q.sql"
    asked = ("forecast", shop, JOINED, "--users", "1e6", "--json")
    (unknown,), (told,) = (
        [json.loads(line) for line in printed(*asked, *more).splitlines()]
        for more in ((), ("--rows", "orders=0.7", "--matching", "0.3"))
    )
    assert unknown["low"] < unknown["stderr"] < unknown["high"]
    assert len(unknown["range"]) == 2
    assert "low" not in told
    assert told["stderr"] > 1.5 * unknown["stderr"]
    assert "0.5 to 1.5 rows per user in orders" in printed(*asked[:-1], "--rows", "0.5..1.5").replace("\n", " ")
    text = printed("plan", shop, queries, "--users", "1e6", "-o", tmp_path / "planned.toml", "--rows", "orders=0.7")
    assert "grid, range" in text
    assert "range:" in text
    assert "ranges of the grid: q1" in printed("compare", shop, queries, "--users", "1e6")
    known = ("--users", "1e6", "--rows", "orders=0.7", "--matching", "0.3")
    assert "range" not in printed("compare", shop, queries, *known)
    assert "range:" not in printed("fit", shop, queries, *known)
    assert "2 entries for 1 question" in refusal("fit", shop, queries, *known, "--matching", "0.4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "orders=many"), "--rows 'many' is not a number or range"),
        (("--rows", "orders=1..2..3"), "not a number or range"),
        (("--rows", "orders=1", "--rows", "orders=2"), "'orders' are given twice"),
        (("--rows", "1", "--rows", "orders=2"), "need their names"),
        (("--rows", "orders=9"), "must be above 0 and at most 4"),
        (("--rows", "baskets=1"), "no table"),
        (("--matching", "2"), "at most 1"),
    ],
)
def test_rows_that_cannot_be_are_refused(tmp_path, options, message):
    SHOP.save(tmp_path / "shop.toml")
    assert message in refusal("forecast", tmp_path / "shop.toml", JOINED, "--users", "1000", *options)
