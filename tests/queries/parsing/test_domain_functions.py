"""Expressions of an attribute: exact in bulk, and with no Python per value of a domain."""

import math
import operator
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.errors import QueryRefused
from deniable.queries.parsing.rationals import ROOM, Rationals
from deniable.queries.parsing.sql import parse

DOMAINS = (dn.Ordinal(-7, 12), dn.Ordinal("-1.5", "2.25", "0.25"), dn.Ordinal(2**50, 2**50 + 40))
EXPRESSIONS = {
    "x + 1": lambda x: x + 1,
    "3 - x * 0.5": lambda x: 3 - x / 2,
    "-x": lambda x: -x,
    "FLOOR(x / 5)": lambda x: math.floor(x / 5),
    "FLOOR(x / -0.7) * 3": lambda x: math.floor(x / Fraction(-7, 10)) * 3,
    "FLOOR((x + 0.25) / 4.5) / 3": lambda x: Fraction(math.floor((x + Fraction(1, 4)) / Fraction(9, 2)), 3),
    "x * x - 2 * x": lambda x: x * x - 2 * x,
    "x / (x * x + 1)": lambda x: x / (x * x + 1),
    "1e9 * x * 1e9 * x": lambda x: 10**18 * x * x,
    "FLOOR(x * 99999999999999999 / 7)": lambda x: math.floor(x * 99999999999999999 / 7),
}


def group_of(expression, domain):
    collection = dn.Collection(dn.Table("t", x=domain), epsilon=1.0)
    (group,) = parse(f"SELECT COUNT(*) FROM t GROUP BY {expression}", collection).groups
    return group


def mask_of(condition, domain):
    collection = dn.Collection(dn.Table("t", x=domain), epsilon=1.0)
    terms = parse(f"SELECT COUNT(*) FROM t WHERE {condition}", collection).moments[0].terms
    return terms[0].conditions.get(("t", "x"), np.ones(domain.size)) if terms else np.zeros(domain.size)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: f"{domain.low} to {domain.high}")
def test_groups_and_conditions_are_those_of_fractions_value_by_value(domain, expression):
    function = EXPRESSIONS[expression]
    expected = [Fraction(function(Fraction(domain.decode(code)))) for code in range(domain.size)]
    group = group_of(expression, domain)
    values = sorted(set(expected))
    assert group.values == tuple(int(value) if value.denominator == 1 else float(value) for value in values)
    assert [values[code] for code in group.codes.tolist()] == expected
    for sign, compared in (("<", operator.lt), (">=", operator.ge), ("=", operator.eq)):
        assert mask_of(f"{expression} {sign} 2 * x - 1", domain).tolist() == [
            compared(value, 2 * Fraction(domain.decode(code)) - 1) for code, value in enumerate(expected)
        ]


def test_whole_numbers_are_divided_towards_zero_as_duckdb_does():
    domain = dn.Ordinal(-7, 12)
    for divisor in (3, -3):
        group = group_of(f"x // {divisor}", domain)
        assert [group.values[code] for code in group.codes] == [math.trunc(Fraction(x, divisor)) for x in range(-7, 13)]
    with pytest.raises(QueryRefused, match="whole numbers only"):
        group_of("x // 2", dn.Ordinal(0, 1, "0.25"))
    with pytest.raises(QueryRefused, match="divides by zero"):
        group_of("1 / x", domain)


@given(
    st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=5),
    st.fractions(max_denominator=2**40),
    st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv]),
)
def test_arrays_are_exact_beyond_64_bits(values, other, operation):
    if operation is operator.truediv and not other:
        return
    kind = np.int64 if all(abs(value) < ROOM for value in values) else object
    result = operation(Rationals(np.array(values, dtype=kind), np.array([3])), Rationals.constant(other))
    numbers, which = result.distinct()
    assert [Fraction(*numbers[value]) for value in which] == [operation(Fraction(value, 3), other) for value in values]


def test_the_work_in_python_does_not_grow_with_the_domain():
    def calls(size):
        collection = dn.Collection(dn.Table("t", x=dn.Ordinal(0, size - 1)), epsilon=1.0)
        text = f"SELECT COUNT(*) FROM t WHERE x * 2 < {size} GROUP BY FLOOR(x / {size // 10})"
        count = 0

        def counting(*_):
            nonlocal count
            count += 1

        parse(text, collection)  # what is looked up once
        sys.setprofile(counting)
        try:
            parse(text, collection)
        finally:
            sys.setprofile(None)
        return count

    few, many = calls(1_000), calls(200_000)
    assert many < 1.05 * few


def test_too_many_groups_are_refused_before_they_are_listed():
    large = dn.Table("t", x=dn.Ordinal(0, 2**31 - 1), a=dn.Ordinal(0, 9_999), b=dn.Ordinal(0, 9_999))
    collection = dn.Collection(large, epsilon=1.0)
    with pytest.raises(QueryRefused, match=r"there are 2,147,483,648 groups, over 10,000 \(at character"):
        parse("SELECT x, COUNT(*) FROM t GROUP BY x", collection)
    with pytest.raises(QueryRefused, match="there are 100,000,000 groups"):
        collection.forecast("SELECT COUNT(*) FROM t GROUP BY a, b", users=1000)
    many = dn.Collection(dn.Table("t", x=dn.Ordinal(1, 20_000)), epsilon=1.0)
    with pytest.raises(QueryRefused, match="there are 20,000 groups"):
        parse("SELECT COUNT(*) FROM t GROUP BY 1 / x", many)
