"""Groups of several attributes and of public columns, DISTINCT, HISTOGRAM: without noise, as plain SQL has them."""
# ruff: noqa: E501 - a query reads best on one line

import pytest

pytest.register_assert_rewrite("plain_sql")

from deniable.errors import QueryRefused  # noqa: E402
from plain_sql import Pair  # noqa: E402


@pytest.fixture(scope="module")
def pair():
    return Pair()


@pytest.mark.parametrize(
    "question",
    [
        "SELECT CASE WHEN age < 3 AND flag THEN 'x' WHEN flag THEN 'y' ELSE 'z' END AS g, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY g",
        "SELECT CASE WHEN age < 3 AND city = 'Rome' THEN 1 WHEN kind = 'a' THEN 2 END AS g, flag, COUNT(*) AS n FROM people GROUP BY 1, 2",
        "SELECT CASE WHEN city IN ('Rome', 'Oslo') THEN 'known' ELSE 'other' END AS g, SUM(age) AS s FROM people WHERE age > 0 GROUP BY g",
        "SELECT upper(city) AS g, COUNT(*) AS n FROM people GROUP BY g",
        "SELECT points % 2 AS g, COUNT(*) AS n, SUM(weight) AS w FROM people GROUP BY g",
        "SELECT points * 2 + 1 AS g, kind, COUNT(*) AS n FROM people GROUP BY g, kind",
        "SELECT length(city) + points AS g, COUNT(*) AS n FROM people WHERE flag GROUP BY 1",
        "SELECT EXTRACT(day FROM born) AS g, COUNT(*) AS n FROM people GROUP BY g",
        "SELECT COUNT(*) AS n FROM people WHERE age > '3' AND flag = 1",
        "SELECT COUNT(*) AS n FROM people WHERE flag = 'true' OR age = '-2'",
        "SELECT COUNT(*) AS n FROM visits WHERE grade = '20'",
        "SELECT DATE_PART('day', joined) AS d, COUNT(*) AS n FROM visits GROUP BY d",
        "SELECT AVG(DATE_DIFF('day', joined, DATE '2020-02-01')) AS d FROM visits",
    ],
)
def test_answers_without_noise_are_those_of_plain_sql(pair, question):
    pair.check(question)


def test_order_and_limit_are_about_all_values(pair):
    text = "SELECT CASE WHEN age < 3 AND flag THEN 'x' WHEN flag THEN 'y' ELSE 'z' END AS g, COUNT(*) AS n FROM people GROUP BY g ORDER BY n DESC LIMIT 2"
    pair.check(text, ordered=True)


def test_values_alone_are_listed(pair):
    for text in ("SELECT DISTINCT city FROM people ORDER BY city", "SELECT city FROM people GROUP BY city"):
        listed = pair.database.sql(text)
        assert set(listed.groups["city"]) == {
            row[0] for row in pair.plain.sql("SELECT DISTINCT city FROM people").fetchall()
        }
        assert not listed.answers
    assert pair.database.sql("SELECT DISTINCT kind FROM people").groups["kind"] == ["a", "b", "c", "d"]
    assert pair.database.sql("SELECT 1 + 1 AS two").groups == {"two": [2]}


def test_a_histogram_counts_up_to_each_bound(pair):
    ((truth,),) = pair.plain.sql("SELECT histogram(age, [0, 5, 10]) FROM people").fetchall()
    ours = pair.database.sql("SELECT HISTOGRAM(age, [0, 5, 10]) FROM people")
    counts = dict(zip(ours.groups["bin"], (estimate.value for estimate in ours.answers["count"]), strict=True))
    assert [round(counts[bound]) for bound in (0, 5, 10)] == [truth[bound] for bound in (0, 5, 10)]
    assert round(sum(counts.values())) == 600
    with pytest.raises(QueryRefused, match="do not rise"):
        pair.database.sql("SELECT HISTOGRAM(age, [5, 0]) FROM people")


@pytest.mark.parametrize(
    ("text", "problem", "at"),
    [
        ("SELECT * FROM people", "rows of single people cannot be shown", "*"),
        ("SELECT age, weight FROM people WHERE flag", "rows of single people cannot be shown", "age"),
        ("SELECT PRODUCT(age) FROM people", "PRODUCT is not a function that can be answered", "PRODUCT"),
        ("SELECT SIGN(SUM(age)) AS l FROM people", "SIGN of an answer is not calculated", "SIGN"),
        (
            "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people WHERE nothing > 3",
            "no attribute 'nothing'",
            "nothing",
        ),
        (
            "SELECT kind, SUM(SUM(wrong)) OVER (ORDER BY kind) FROM people GROUP BY kind",
            "no attribute 'wrong'",
            "wrong",
        ),
        ("SELECT city || kind AS g, COUNT(*) FROM people GROUP BY g", "an expression of several attributes", "city"),
    ],
)
def test_refusals_point_into_the_text_that_was_written(pair, text, problem, at):
    with pytest.raises(QueryRefused, match=problem) as refused:
        pair.database.sql(text)
    assert f"(at character {text.index(at) + 1}: …{at}" in str(refused.value)
