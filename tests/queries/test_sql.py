"""SQL text → checked question: what is let through, and how the rest is refused."""

from datetime import date

import numpy as np
import pytest

import deniable as dn
from deniable.errors import QueryRefused
from deniable.queries.sql import parse

USERS = dn.Table(
    "users",
    age=dn.Ordinal(1, 10),
    kind=dn.Categorical("a", "b", "c"),
    flag=dn.Categorical(True, False),
    joined=dn.Ordinal(date(2020, 1, 1), date(2020, 1, 31)),
    share=dn.Ordinal(0, 1, "0.25"),
    city=dn.Public(),
)
ORDERS = dn.Table("orders", many=3, amount=dn.Ordinal(0, 9), age=dn.Ordinal(0, 3))
SHOP = dn.Collection(USERS, ORDERS, epsilon=1.0)


@pytest.mark.parametrize(
    ("condition", "attribute", "values"),
    [
        ("kind = 'a'", "kind", ["a"]),
        ("'a' <> kind", "kind", ["b", "c"]),
        ("kind IN ('a', 'c')", "kind", ["a", "c"]),
        ("kind NOT IN ('a', 'c')", "kind", ["b"]),
        ("flag IS TRUE", "flag", [True]),
        ("flag = false", "flag", [False]),
        ("users.age < 3", "age", [1, 2]),
        ("3 > users.age", "age", [1, 2]),
        ("users.age <= 3", "age", [1, 2, 3]),
        ("users.age >= 9", "age", [9, 10]),
        ("users.age > 2.5 AND users.age < 4.5", "age", [3, 4]),
        ("users.age BETWEEN 4 AND 5", "age", [4, 5]),
        ("NOT users.age BETWEEN 2 AND 9", "age", [1, 10]),
        ("(users.age = 1 OR users.age = 7)", "age", [1, 7]),
        ("users.age = 1 OR (users.age > 7 AND NOT users.age = 9)", "age", [1, 8, 10]),
        ("joined < DATE '2020-01-03'", "joined", [date(2020, 1, 1), date(2020, 1, 2)]),
        ("joined = '2020-01-31'", "joined", [date(2020, 1, 31)]),
        ("share > 0.3", "share", [0.5, 0.75, 1]),
        ("share = 0.3", "share", []),
    ],
)
def test_conditions_become_sets_of_values(condition, attribute, values):
    question = parse(" ".join(["SELECT COUNT(*) FROM users JOIN orders USING (uid) WHERE", condition]), SHOP)
    domain = USERS.attributes[attribute]
    mask = question.where["users", attribute]
    assert [domain.decode(code) for code in np.flatnonzero(mask)] == values


def test_conditions_on_public_attributes_are_kept_as_checked_sql():
    question = parse(
        "SELECT city, COUNT(*) FROM users u "
        "WHERE u.city IN ('Rome', 'Oslo') AND age < 5 AND NOT city = 'Bern' GROUP BY city",
        SHOP,
    )
    assert question.public == {"users": ("\"city\" IN ('Rome', 'Oslo')", "NOT \"city\" = 'Bern'")}
    assert list(question.where) == [("users", "age")]
    assert question.groups == (("users", "city"),)


def test_aggregates_names_groups_and_joins():
    question = parse(
        "SELECT kind, COUNT(*), SUM(amount) AS s, AVG(u.age) FROM orders o JOIN users u ON o.uid = u.uid GROUP BY kind",
        SHOP,
    )
    assert question.tables == ("orders", "users")
    assert question.groups == (("users", "kind"),)
    assert [(one.kind, one.name, one.attribute) for one in question.aggregates] == [
        ("count", "count", None),
        ("sum", "s", ("orders", "amount")),
        ("avg", "avg_age", ("users", "age")),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC", "one SELECT is expected"),
        ("SELECT COUNT(* FROM users", "the text is no SQL"),
        ("SELECT COUNT(*) FROM users; SELECT 1", "one SELECT is expected"),
        ("SELECT COUNT(*)", "FROM is missing"),
        ("DELETE FROM users", "one SELECT is expected"),
        ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM users", "clause WITH is not supported"),
        ("SELECT COUNT(*) FROM users LIMIT 3", "clause LIMIT is not supported"),
        ("SELECT DISTINCT COUNT(*) FROM users", "clause DISTINCT is not supported"),
        ("SELECT COUNT(*) FROM users HAVING COUNT(*) > 3", "clause HAVING is not supported"),
        ("SELECT COUNT(*) FROM visits", "there is no table 'visits'"),
        ("SELECT COUNT(*) FROM users, orders", "joined on the user id only"),
        ("SELECT COUNT(*) FROM users JOIN users USING (uid)", "joined with itself"),
        ("SELECT COUNT(*) FROM users JOIN orders ON users.age = orders.age", "joined on the user id only"),
        ("SELECT COUNT(*) FROM users LEFT JOIN orders USING (uid)", "only inner joins"),
        ("SELECT COUNT(*) FROM (SELECT * FROM users)", "collection's own tables"),
        ("SELECT COUNT(*) FROM users WHERE income = 3", "there is no attribute 'income'"),
        ("SELECT COUNT(*) FROM users JOIN orders USING (uid) WHERE age = 3", "is in several tables"),
        ("SELECT COUNT(*) FROM users WHERE x.age = 3", "there is no table 'x' in FROM"),
        ("SELECT SUM(city) FROM users", "public attribute 'city' cannot stand here"),
        ("SELECT COUNT(*) FROM users WHERE city = 'Rome' OR age = 3", "public attribute 'city' cannot stand here"),
        ("SELECT COUNT(*) FROM users WHERE lower(city) = 'rome'", "this condition is not supported"),
        ("SELECT COUNT(*) FROM users WHERE city IN (SELECT 1)", "this condition is not supported|own tables"),
        ("SELECT COUNT(*) FROM users WHERE age = 11", "outside the attribute's domain (at character 40: …11…)"),
        ("SELECT COUNT(*) FROM users WHERE age < '5'", "of another type"),
        ("SELECT COUNT(*) FROM users WHERE age = TRUE", "of another type"),
        ("SELECT COUNT(*) FROM users WHERE kind = 'z'", "not in the attribute's public list"),
        ("SELECT COUNT(*) FROM users WHERE kind < 'b'", "categories have no order"),
        ("SELECT COUNT(*) FROM users WHERE joined = 'May'", "no date or time"),
        ("SELECT COUNT(*) FROM users WHERE age = share", "a constant is expected"),
        ("SELECT COUNT(*) FROM users WHERE age + 1 = 3", "a plain attribute is expected"),
        ("SELECT COUNT(*) FROM users WHERE kind LIKE 'a%'", "this condition is not supported"),
        ("SELECT COUNT(*) FROM users WHERE age IN (SELECT 3)", "this condition is not supported"),
        ("SELECT COUNT(*) FROM users WHERE age = 3 OR kind = 'a'", "OR between different attributes"),
        ("SELECT age FROM users", "only COUNT(*), SUM(attribute) and AVG(attribute)"),
        ("SELECT kind FROM users GROUP BY kind", "nothing is aggregated"),
        ("SELECT COUNT(DISTINCT age) FROM users", "only COUNT(*), SUM(attribute) and AVG(attribute)"),
        ("SELECT SUM(age * 2) FROM users", "a plain attribute is expected"),
        ("SELECT SUM(kind) FROM users", "'kind' is not a number"),
        ("SELECT MAX(age) FROM users", "only COUNT(*), SUM(attribute) and AVG(attribute)"),
        ("SELECT COUNT(*), COUNT(*) FROM users", "two answers have one name"),
        ("SELECT COUNT(*) OVER () FROM users", "only COUNT(*), SUM(attribute) and AVG(attribute)"),
        ("SELECT kind, COUNT(*) FROM users GROUP BY ROLLUP (kind)", "only plain GROUP BY|a plain attribute"),
    ],
)
def test_everything_else_is_refused_with_advice(text, message):
    with pytest.raises(QueryRefused) as caught:
        parse(text, SHOP)
    assert any(part in str(caught.value) for part in message.split("|"))
    assert "Nothing was computed" in str(caught.value)
