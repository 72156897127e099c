"""Texts that nobody would write: each is refused by name, or answered as plain SQL answers it."""
# ruff: noqa: E501 - a query reads best on one line

import math
import re
from collections import Counter

import duckdb
import pytest

pytest.register_assert_rewrite("plain_sql")

import deniable as dn  # noqa: E402
from deniable.errors import QueryRefused  # noqa: E402
from fuzzing.harness import SECRET, cases, fuzz  # noqa: E402
from fuzzing.mutations import mutated_bytes  # noqa: E402
from plain_sql import Pair  # noqa: E402

QUERIES = [
    "SELECT COUNT(*) AS n, SUM(age) AS s FROM people WHERE age BETWEEN -2 AND 7 OR city = 'Rome'",
    "SELECT kind AS k, flag, AVG(weight - 2 * age) AS a, COUNT(*) AS n FROM people WHERE NOT (score > 1.5 AND kind IN ('a', 'b')) GROUP BY kind, flag HAVING COUNT(*) > 3 ORDER BY n DESC, k LIMIT 5 OFFSET 1",
    "SELECT FLOOR(age / 10) * 2 AS bin, VAR_POP(score) AS v, COUNT(*) AS n FROM people p WHERE p.member IS NOT NULL GROUP BY bin ORDER BY bin",
    "SELECT label, SUM(factor * age) AS s, COUNT(*) n FROM people JOIN kinds USING (kind) WHERE label = 'x' OR born = DATE '1990-01-02' GROUP BY label",
    "SELECT country, STDDEV(hours) AS s FROM people JOIN jobs ON people.uid = jobs.uid JOIN cities c ON c.name = people.city GROUP BY c.country",
    "SELECT COUNT(*) AS n FROM visits WHERE seen >= TIMESTAMP '2020-01-01 03:00:00' AND joined IN ('2020-01-02', '2020-01-05') AND grade <> 20",
    "SELECT SUM(amount) / COUNT(*) - 1.5e1 AS m FROM gifts JOIN people USING (uid) JOIN jobs USING (uid) WHERE wrap = 'box' AND region IS NULL",
]
PLAIN_QUERIES = [
    "SELECT COUNT(*) AS n, AVG(age) AS a FROM users WHERE city = 'Rome' OR level + 1 > 5 AND age BETWEEN 3 AND 50",
    "SELECT kind, COUNT(*) AS n FROM users WHERE CAST(city AS INTEGER) > 3 OR NOT level / 0 = 1 GROUP BY kind ORDER BY n",
    "SELECT SUM(age * level) FROM users WHERE city LIKE 'x%' AND level IN (1, 2) AND city < 5",
]
WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "IS",
    "NULL",
    "TRUE",
    "AS",
    "JOIN",
    "USING",
    "ON",
    "LEFT",
    "DISTINCT",
    "ALL",
    "SYMMETRIC",
    "FIRST",
    "NULLS",
    "DESC",
    "UNION",
    "WITH",
    "OVER",
    "FILTER",
    "CASE",
    "CAST",
    "DATE",
    "COUNT",
    "SUM",
    "MIN",
    "FLOOR",
    "ABS",
    "EXISTS",
    "LIKE",
    "COLLATE",
    "TABLESAMPLE",
    "PERCENT",
    "QUALIFY",
    "ROLLUP",
    "VALUES",
    "(",
    ")",
    ",",
    ".",
    ";",
    "*",
    "+",
    "-",
    "/",
    "//",
    "%",
    "||",
    "::",
    "=",
    "<>",
    "<",
    ">=",
    "!",
    "@",
    "#",
    "$",
    "?",
    "[",
    "]",
    "'a'",
    "''",
    "'it''s'",
    '"age"',
    '"x""y"',
    "0",
    "1",
    "-1",
    ".5",
    "1e3",
    "1e400",
    "1e999999999",
    "99999999999999999999999",
    "0x1F",
    "²",
    "age",
    "kind",
    "flag",
    "city",
    "score",
    "points",
    "member",
    "uid",
    "people",
    "jobs",
    "p",
    "k",
    "n",
    "label",
    "factor",
    "--",
    "/*",
    "*/",
    "$$",
    "\\",
    "\x00",
    "é",
    "users.age",
    "people.*",
    "COUNT(*)",
    "(SELECT",
    "1)",
]
TOKENS = re.compile(r"\s+|\w+|'[^']*'|[<>=!]+|.")


def mutated(chance):
    tokens = TOKENS.findall(chance.choice(QUERIES))
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        position = chance.randrange(len(tokens))
        other = chance.randrange(len(tokens))
        match chance.randrange(6):
            case 0:
                tokens[position] = " "
            case 1:
                tokens.insert(position, f" {chance.choice(WORDS)} ")
            case 2:
                tokens[position] = f" {chance.choice(WORDS)} "
            case 3:
                tokens[position], tokens[other] = tokens[other], tokens[position]
            case 4:
                tokens[position:position] = tokens[position : position + chance.randrange(6)]
            case _:
                tokens[position] = f"({tokens[position]})"
    return "".join(tokens)


@cases(200)
def test_mutated_queries_are_refused_with_a_place_or_answered_rightly(count):
    pair, outcomes = Pair(), Counter()

    def attempt(chance):
        text = mutated(chance)
        try:
            pair.database.plan(text)
        except QueryRefused as refused:
            # What DuckDB finds in a condition on public columns has no place in the text.
            placed = refused.start is not None or "as the wrong type" in str(refused)
            outcomes["refused" if placed else "without a place"] += 1
            raise
        pair.database.sql(text)
        try:
            names = [name for name, *_ in pair.plain.sql(text).description]
            pair.plain.sql(text).fetchall()
            question = pair.database.plan(text).question
            if len(set(names)) == len(names) and len(question.groups) == len(question.shown_groups):
                pair.check(text, clear_from=10**9)
        except duckdb.Error:
            return
        outcomes["same"] += 1

    fuzz(attempt, "queries", count)
    assert outcomes["without a place"] == 0
    assert outcomes["refused"] > 0.6 * count
    assert outcomes["same"] > 0.02 * count


@cases(150)
def test_bytes_of_queries(count):
    """Public columns hold a secret, which no refusal shows; texts are cut, doubled and full of odd characters."""
    users = dn.Table("users", age=dn.Ordinal(1, 95), kind=dn.Categorical("a", "b"), city=dn.Public(), level=dn.Public())
    rows = {"uid": range(50), "age": [30] * 50, "kind": ["a"] * 50, "city": [f"x{SECRET}"] * 50, "level": [SECRET] * 50}
    database = dn.connect(dn.Collection(users, epsilon=math.inf).perturb(users=rows, simulation=True))

    def attempt(chance):
        text = mutated_bytes(chance, chance.choice(PLAIN_QUERIES).encode())
        how = chance.choice(("surrogateescape", "replace", "surrogateescape", "latin-1"))
        text = text.decode("latin-1") if how == "latin-1" else text.decode(errors=how)
        database.plan(text)
        database.sql(text)
        database.explain(text)

    outcomes = fuzz(attempt, "bytes of queries", count)
    assert set(outcomes) <= {"works", "QueryRefused"}
