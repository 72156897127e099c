"""SQL text → checked question: what is let through, and how the rest is refused."""

from datetime import date

import numpy as np
import pytest
from sqlglot import exp

import deniable as dn
from deniable.errors import QueryRefused
from deniable.queries.parsing.sql import parse

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
        ("users.age + 1 > 9", "age", [9, 10]),
        ("FLOOR(users.age / 4) = 1", "age", [4, 5, 6, 7]),
        ("10 - users.age BETWEEN 0 AND 1", "age", [9, 10]),
        ("USERS.AGE > 9", "age", [10]),
        ("flag", "flag", [True]),
        ("NOT flag", "flag", [False]),
    ],
)
def test_conditions_become_sets_of_values(condition, attribute, values):
    question = parse(" ".join(["SELECT COUNT(*) FROM users JOIN orders USING (uid) WHERE", condition]), SHOP)
    domain = USERS.attributes[attribute]
    (term,) = question.moments[0].terms or [None]
    mask = term.conditions["users", attribute]
    assert [domain.decode(code) for code in np.flatnonzero(mask)] == values


def test_a_condition_that_nothing_satisfies_counts_nothing():
    assert parse("SELECT COUNT(*) FROM users WHERE share = 0.3", SHOP).moments[0].terms == ()


def test_conditions_on_public_attributes_are_kept_as_checked_trees():
    question = parse(
        "SELECT city, COUNT(*) FROM users u "
        "WHERE u.city IN ('Rome', 'Oslo') AND age < 5 AND NOT city = 'Bern' GROUP BY city",
        SHOP,
    )
    (filters,) = question.filters.values()
    assert list(question.filters) == ["users"]
    assert [(str(test), wanted) for test, wanted in filters] == [
        ("\"city\" IN ('Rome', 'Oslo')", True),
        ("NOT (\"city\" = 'Bern')", True),
    ]
    assert all(isinstance(test.tree, exp.Expression) for test, _ in filters)
    (term,) = question.moments[0].terms
    assert list(term.conditions) == [("users", "age")]
    (group,) = question.groups
    assert (group.label, group.table, group.column) == ("city", "users", "city")


def test_disjunctions_become_disjoint_conjunctions():
    text = "SELECT COUNT(*) FROM users WHERE age = 3 OR kind = 'a' OR NOT (city = 'Rome' AND flag)"
    terms = parse(text, SHOP).moments[0].terms
    random = np.random.default_rng(1)
    for _ in range(200):
        row = {"age": random.integers(0, 10), "kind": random.integers(0, 3), "flag": random.integers(0, 2)}
        rome = bool(random.integers(0, 2))
        inside = 0.0
        for term in terms:
            value = term.coefficient
            for (_, attribute), mask in term.conditions.items():
                value *= mask[row[attribute]]
            for factor in term.public.values():
                value *= all(
                    ({"\"city\" = 'Rome'": rome, "NOT (\"city\" = 'Rome')": not rome}[str(t)]) == w
                    for t, w in factor.tests
                )
            inside += value
        assert inside == float(row["age"] == 2 or row["kind"] == 0 or not (rome and row["flag"] == 0))


def test_too_many_terms_are_refused():
    table = dn.Table("t", **{f"a{number}": dn.Categorical(True, False) for number in range(16)})
    many = dn.Collection(table, epsilon=1.0, design="mg")
    pairs = " AND ".join(f"(a{2 * number} OR a{2 * number + 1})" for number in range(8))
    with pytest.raises(QueryRefused, match="more than 64 disjoint conjunctions"):
        parse(" ".join(["SELECT COUNT(*) FROM t WHERE", pairs]), many)
    assert len(parse("SELECT COUNT(*) FROM t WHERE a0 OR a1 OR a2", many).moments[0].terms) == 3


def test_aggregates_names_groups_and_joins():
    question = parse(
        "SELECT kind, COUNT(*), SUM(amount) AS s, AVG(u.age), VAR_POP(amount), STDDEV(amount), "
        "SUM(amount) / COUNT(*) AS mean FROM orders o JOIN users u ON o.uid = u.uid GROUP BY kind",
        SHOP,
    )
    assert question.tables == ("orders", "users")
    assert question.shown_groups == ("kind",)
    assert [output.name for output in question.outputs] == [
        "count_star()", "s", "avg(u.age)", "var_pop(amount)", "stddev(amount)", "mean",
    ]  # fmt: skip
    # Every sum is taken once.
    assert [moment.name for moment in question.moments] == [
        "count(*)", "sum(amount)", "sum(u.age - 5.5)", "sum(amount - 4.5)", "sum((amount - 4.5)^2)",
    ]  # fmt: skip
    assert str(question.outputs[2].formula) == "(5.5 + (m2 / m0))"


def test_groups_by_position_alias_and_bins():
    text = "SELECT FLOOR(u.age / 3) AS bin, COUNT(*) AS n FROM users u GROUP BY {} ORDER BY n DESC, 1 LIMIT 2 OFFSET 1"
    for by in ("1", "bin", "FLOOR(age / 3)", "ALL"):
        question = parse(text.format(by), SHOP)
        (group,) = question.groups
        assert (group.label, group.values) == ("bin", (0, 1, 2, 3))
        assert group.codes.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
        assert [(ordering.key, ordering.descending, ordering.group) for ordering in question.order] == [
            ("n", True, False), ("bin", False, True),
        ]  # fmt: skip
        assert (question.limit, question.offset) == (2, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC", "the text is not SQL"),
        ("SELECT COUNT(* FROM users", "the text is not SQL"),
        ("SELECT COUNT(*) FROM users; SELECT 1", "one SELECT is expected"),
        ("SELECT COUNT(*)", "FROM is missing"),
        ("DELETE FROM users", "one SELECT is expected"),
        ("WITH x AS (SELECT 1 UNION SELECT 2) SELECT COUNT(*) FROM users", "WITH takes SELECTs"),
        ("SELECT COUNT(*) FROM users WHERE uid IN (SELECT uid FROM orders)", "people may have many rows in 'orders'"),
        ("SELECT COUNT(*) FROM users LIMIT age", "LIMIT and OFFSET take a whole number"),
        ("SELECT DISTINCT COUNT(*) FROM users", "DISTINCT is not supported"),
        ("SELECT COUNT(*) FROM users HAVING age > 3", "neither an aggregate nor in GROUP BY"),
        ("SELECT COUNT(*) FROM users HAVING COUNT(*) IN (3)", "HAVING compares aggregates"),
        ("SELECT COUNT(*) FROM users ORDER BY age", "uses something that the query does not select"),
        ("SELECT COUNT(*) FROM users QUALIFY 1 = 1", "QUALIFY is not supported"),
        ("SELECT COUNT(*) FROM users GROUP BY 3", "no such select item"),
        ("SELECT COUNT(*) FROM users GROUP BY city || 'x'", "one private attribute is expected"),
        ("SELECT COUNT(*) FROM users GROUP BY age + share", "one private attribute is expected"),
        ("SELECT COUNT(*) FROM users GROUP BY MD5(kind)", "MD5 is not known here"),
        ("SELECT COUNT(*) FROM users GROUP BY age / 0", "divides by zero"),
        ("SELECT COUNT(*) FROM users GROUP BY share // 2", "whole numbers only"),
        ("SELECT SUM(age * age * share) FROM users", "more than two attributes"),
        ("SELECT SUM(1 / (age - 1)) FROM users", "has no value for some values"),
        ("SELECT SUM(age / 0) FROM users", "divides by zero"),
        ("SELECT SUM(DISTINCT age) FROM users", "DISTINCT is not possible"),
        ("SELECT ROUND(age) FROM users", "rows of single people"),
        ("SELECT * FROM users", "rows of single people"),
        ("", "there is no text"),
        ("SELECT COUNT(*) FROM users u JOIN orders u USING (uid)", "two tables have the same name"),
        ("SELECT COUNT(*) FROM visits", "there is no table 'visits'"),
        ("SELECT COUNT(*) FROM users, orders", "joined on the user id only"),
        ("SELECT COUNT(*) FROM users JOIN users USING (uid)", "joined with itself"),
        ("SELECT COUNT(*) FROM users JOIN orders ON users.age = orders.age", "joined on the user id only"),
        ("SELECT COUNT(*) FROM users LEFT JOIN orders USING (uid)", "reports hide how many rows somebody has"),
        ("SELECT COUNT(*) FROM (VALUES (1)) t", "a derived table is one SELECT|collection's own tables"),
        ("SELECT COUNT(*) FROM users WHERE income = 3", "there is no attribute 'income'"),
        ("SELECT COUNT(*) FROM users JOIN orders USING (uid) WHERE age = 3", "is in several tables"),
        ("SELECT COUNT(*) FROM users WHERE x.age = 3", "there is no table 'x' in FROM"),
        ("SELECT COUNT(*) FROM users WHERE city = age", "public attribute 'city'|two attributes"),
        ("SELECT COUNT(*) FROM users WHERE md5(city) = 'rome'", "MD5 is not known here"),
        ("SELECT COUNT(*) FROM users WHERE city IN (SELECT 1)", "subqueries are not supported"),
        ("SELECT COUNT(*) FROM users WHERE age < 'five'", "has another type than the attribute"),
        ("SELECT COUNT(*) FROM users WHERE age = TRUE", "has another type than the attribute"),
        ("SELECT COUNT(*) FROM users WHERE kind < 'b'", "categories have no order"),
        ("SELECT COUNT(*) FROM users WHERE joined = 'May'", "not a date or time"),
        ("SELECT COUNT(*) FROM users WHERE age = share", "two attributes of one person"),
        ("SELECT COUNT(*) FROM users WHERE age + share = 3", "one private attribute is expected"),
        ("SELECT COUNT(*) FROM users WHERE age IN (SELECT 3)", "subqueries are not supported"),
        ("SELECT age FROM users", "rows of single people"),
        ("SELECT kind FROM users GROUP BY kind", "nothing is aggregated"),
        ("SELECT COUNT(DISTINCT age) FROM users", "COUNT(DISTINCT …) is not possible"),
        ("SELECT COUNT(DISTINCT uid) FROM orders", "people with several rows cannot be counted once"),
        ("SELECT SUM(kind) FROM users", "'kind' is not a number"),
        ("SELECT MAX(age) FROM users", "MAX is one person's value"),
        ("SELECT COUNT(*) AS n, SUM(age) AS n FROM users", "two answers have the same name"),
        ("SELECT COUNT(*) OVER () FROM users", "windows are not supported"),
        ("SELECT kind, COUNT(*) FROM users GROUP BY ROLLUP (kind)", "only plain GROUP BY|a plain attribute"),
    ],
)
def test_everything_else_is_refused_with_advice(text, message):
    with pytest.raises(QueryRefused) as caught:
        parse(text, SHOP)
    assert any(part in str(caught.value) for part in message.split("|"))
    assert "Nothing was computed" in str(caught.value)
