"""Texts that nobody would write: each is refused by name, or answered as plain SQL answers it."""
# ruff: noqa: E501 - a query reads best on one line

import random
import re

import duckdb
import pytest

pytest.register_assert_rewrite("plain_sql")

from deniable.errors import BadInput, QueryRefused  # noqa: E402
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
        place = chance.randrange(len(tokens))
        other = chance.randrange(len(tokens))
        match chance.randrange(6):
            case 0:
                tokens[place] = " "
            case 1:
                tokens.insert(place, f" {chance.choice(WORDS)} ")
            case 2:
                tokens[place] = f" {chance.choice(WORDS)} "
            case 3:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 4:
                tokens[place:place] = tokens[place : place + chance.randrange(6)]
            case _:
                tokens[place] = f"({tokens[place]})"
    return "".join(tokens)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_queries_are_refused_with_a_place_or_answered_rightly(seed):
    chance, pair, outcomes = random.Random(seed), Pair(), {"refused": 0, "without a place": 0, "same": 0}  # noqa: S311 - no secret
    for _ in range(400):
        text = mutated(chance)
        try:
            pair.database.plan(text)
        except QueryRefused as refused:
            # What DuckDB finds in a condition on public columns has no place in the text.
            outcomes["refused"] += refused.start is not None or "as another type" in str(refused)
            outcomes["without a place"] += not (refused.start is not None or "as another type" in str(refused))
            continue
        try:
            pair.database.sql(text)
            pair.plain.sql(text).fetchall()
        except (BadInput, duckdb.Error):
            continue
        try:
            names = [name for name, *_ in pair.plain.sql(text).description]
            question = pair.database.plan(text).question
            if len(set(names)) == len(names) and len(question.groups) == len(question.shown_groups):
                pair.check(text, clear_from=10**9)
        except duckdb.Error:
            continue
        outcomes["same"] += 1
    assert outcomes["without a place"] == 0
    assert outcomes["refused"] > 250
    assert outcomes["same"] > 10
