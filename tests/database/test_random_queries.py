"""Random queries: without noise, each answer equals that of plain SQL on the raw tables."""
# ruff: noqa: E501 - a query reads best on one line

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.register_assert_rewrite("plain_sql")

from deniable.errors import QueryRefused  # noqa: E402
from effort import repetitions  # noqa: E402
from plain_sql import Pair  # noqa: E402

# For every table what can be summed, what can be tested, and what can be grouped by.
NUMBERS = {
    "people": ["age", "weight", "score", "points", "CASE WHEN flag THEN age ELSE weight END", "ABS(age)"],
    "jobs": ["hours", "jobs.pay"],
    "gifts": ["amount"],
    "kinds": ["factor"],
    "cities": ["population"],
}
TESTS = {
    "people": [
        "age > 3", "age BETWEEN -1 AND 6", "age <> 4", "FLOOR(age / 4) = 1", "weight < 1", "weight IN (0.5, 1, 2.25)",
        "kind = 'a'", "kind IN ('b', 'c')", "flag", "city = 'Rome'", "city > 'P'", "city IS NULL", "score >= 0",
        "score NOT BETWEEN 0 AND 2", "points IN (0, 7)", "points < score", "member", "age IN (3, 99, NULL)", "kind LIKE 'a%'",
        "lower(city) LIKE 'r%'", "CASE WHEN flag THEN kind = 'a' ELSE age > 3 END", "age % 3 = 1", "COALESCE(score, 1) > 0",
    ],
    "jobs": ["hours >= 12", "hours IN (1, 3, 5, 7)", "sector = 'it'", "region = 'north'", "region <> 'south'", "jobs.pay > 10"],
    "gifts": ["amount < 4", "wrap = 'box'"],
    "kinds": ["label = 'x'", "factor > 0", "label IS NULL"],
    "cities": ["country = 'it'", "population > 10"],
}  # fmt: skip
GROUPS = {
    "people": [
        "kind",
        "flag",
        "FLOOR(age / 6)",
        "city",
        "member",
        "score",
        "CASE WHEN age < 3 THEN 'low' END",
        "UPPER(kind)",
    ],
    "jobs": ["sector", "FLOOR(hours / 10)", "region"],
    "gifts": ["wrap", "amount"],
    "kinds": ["label"],
    "cities": ["country"],
}
JOINS = {
    "jobs": "JOIN jobs USING (uid)",
    "gifts": "JOIN gifts USING (uid)",
    "kinds": "JOIN kinds USING (kind)",
    "cities": "JOIN cities ON cities.name = city",
}


@st.composite
def queries(draw):
    tables = ["people", *draw(st.lists(st.sampled_from(sorted(JOINS)), max_size=3, unique=True))]

    def among(lists):
        return st.sampled_from([choice for table in tables for choice in lists[table]])

    condition = st.recursive(
        among(TESTS),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
            inner.map(lambda condition: f"NOT ({condition})"),
        ),
        max_leaves=5,
    )
    number = among(NUMBERS)
    constant = st.sampled_from(["2", "0.5", "-3"])
    expression = st.one_of(
        number,
        st.tuples(number, st.sampled_from("+-*"), number).map(" ".join),
        st.tuples(constant, number, st.sampled_from("+-"), number).map(lambda p: f"{p[0]} * {p[1]} {p[2]} {p[3]}"),
    )
    aggregate = st.one_of(
        st.tuples(st.sampled_from(["SUM", "AVG"]), expression).map(lambda call: f"{call[0]}({call[1]})"),
        st.tuples(st.sampled_from(["VAR_POP", "VAR_SAMP"]), number).map(lambda call: f"{call[0]}({call[1]})"),
        expression.map(lambda argument: f"SUM({argument}) / COUNT(*)"),
    )
    groups = draw(st.lists(among(GROUPS), max_size=2, unique=True))
    asked = ["COUNT(*) AS n", *draw(st.lists(aggregate, max_size=2, unique=True))]
    items = [*(f"{group} AS g{index}" for index, group in enumerate(groups))]
    items += [aggregate if " AS " in aggregate else f"{aggregate} AS x{index}" for index, aggregate in enumerate(asked)]
    text = f"SELECT {', '.join(items)} FROM {' '.join(['people', *(JOINS[joined] for joined in tables[1:])])}"
    if draw(st.booleans()):
        text += f" WHERE {draw(condition)}"
    return text + (f" GROUP BY {', '.join(groups)}" if groups else "")


@pytest.fixture(scope="module")
def pair():
    return Pair()


@settings(max_examples=repetitions(100, 400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(queries())
def test_random_queries_equal_plain_sql(pair, text):
    try:
        pair.check(text, clear_from=30)
    except QueryRefused as refused:
        if "64" not in str(refused):  # disjoint conjunctions at most
            raise
