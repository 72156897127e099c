"""A new SQL function is one entry in one table, and nothing else has to know of it."""

import pytest
from sqlglot import exp

import deniable as dn
from deniable.errors import QueryRefused
from deniable.queries.parsing.functions import AGGREGATES, Aggregate
from deniable.queries.parsing.scalar_functions import ON_DOMAINS
from deniable.queries.parsing.sql import parse
from deniable.queries.question.formula import Binary

PEOPLE = dn.Collection(dn.Table("people", age=dn.Ordinal(0, 99)), epsilon=1.0)
WAVES = "SELECT COS(age) > 0 AS up, COUNT(*) FROM people WHERE COS(age) < 0.5 GROUP BY up"
SPREAD = "SELECT VARIANCE(age), KURTOSIS(age) AS both FROM people"


def test_a_function_of_one_attribute(monkeypatch):
    with pytest.raises(QueryRefused, match="COS is not known here"):
        parse(WAVES, PEOPLE)
    monkeypatch.setitem(ON_DOMAINS, exp.Cos, frozenset({"this"}))
    question = parse(WAVES, PEOPLE)
    assert question.groups[0].values == (False, True)
    (term,) = question.moments[0].terms
    assert term.conditions["people", "age"].tolist()[:4] == [0.0, 0.0, 1.0, 1.0]


def test_other_arguments_of_a_function_are_refused():
    with pytest.raises(QueryRefused, match="FLAG of REGEXP LIKE is not supported"):
        parse("SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(CAST(age AS TEXT), '1', 'i')", PEOPLE)


def test_an_aggregate(monkeypatch):
    with pytest.raises(QueryRefused, match="KURTOSIS is not a function"):
        parse(SPREAD, PEOPLE)
    entry = Aggregate(lambda sums: Binary("/", sums.squares, sums.count), lambda low, high: (0.0, high))
    monkeypatch.setitem(AGGREGATES, exp.Kurtosis, entry)
    question = parse(SPREAD, PEOPLE)
    assert [output.name for output in question.outputs] == ["variance(age)", "both"]
    assert str(question.outputs[1].formula) == "(m2 / m0)"
    assert question.outputs[1].possible == (0.0, 99.0)
