"""A new SQL function is one entry in one table, and nothing else has to know of it."""

import pytest
from sqlglot import exp

import deniable as dn
from deniable.errors import QueryRefused
from deniable.queries.parsing.functions import AGGREGATES, DOMAIN_FUNCTIONS, Aggregate, DomainFunction
from deniable.queries.parsing.sql import parse
from deniable.queries.question.formula import Binary

PEOPLE = dn.Collection(dn.Table("people", age=dn.Ordinal(0, 99)), epsilon=1.0)
ROUNDED_UP = "SELECT CEIL(age / 10) AS decade, COUNT(*) FROM people WHERE CEIL(age / 10) > 3 GROUP BY decade"
SPREAD = "SELECT VARIANCE(age), KURTOSIS(age) AS both FROM people"


def test_a_function_of_one_attribute(monkeypatch):
    with pytest.raises(QueryRefused, match="CEIL cannot be calculated here"):
        parse(ROUNDED_UP, PEOPLE)
    monkeypatch.setitem(DOMAIN_FUNCTIONS, exp.Ceil, DomainFunction(lambda values: -(-values).floor()))
    question = parse(ROUNDED_UP, PEOPLE)
    assert question.groups[0].values == tuple(range(11))
    (term,) = question.moments[0].terms
    assert term.conditions["people", "age"].tolist() == [0.0] * 31 + [1.0] * 69


def test_its_other_arguments_are_still_refused(monkeypatch):
    monkeypatch.setitem(DOMAIN_FUNCTIONS, exp.Round, DomainFunction(lambda values: values))
    assert parse("SELECT COUNT(*) FROM people WHERE ROUND(age) < 5", PEOPLE).moments
    with pytest.raises(QueryRefused, match="DECIMALS of ROUND is not supported"):
        parse("SELECT COUNT(*) FROM people WHERE ROUND(age, 1) < 5", PEOPLE)


def test_an_aggregate(monkeypatch):
    with pytest.raises(QueryRefused, match="neither an aggregate"):
        parse(SPREAD, PEOPLE)
    entry = Aggregate(
        "mean of squares", lambda sums: Binary("/", sums.squares, sums.count), lambda low, high: (0.0, high)
    )
    monkeypatch.setitem(AGGREGATES, exp.Kurtosis, entry)
    question = parse(SPREAD, PEOPLE)
    assert [output.name for output in question.outputs] == ["var_samp_age", "both"]
    assert str(question.outputs[1].formula) == "(m2 / m0)"
    assert question.outputs[1].possible == (0.0, 99.0)
