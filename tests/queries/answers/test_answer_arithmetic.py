"""Arithmetic of answers with unknown dependence: the interval holds whatever the answers are inside theirs."""

import math

import numpy as np
import pytest
import sqlglot

import deniable as dn
from deniable.queries.answers.answer_arithmetic import Interval, check_arithmetic, combined

ANSWERS = {"a": Interval(4.0, 3.0, 6.0), "b": Interval(-1.0, -2.0, 0.5), "c": Interval(10.0, 8.0, 11.0)}


def parsed(text):
    return sqlglot.parse_one(text, read="duckdb")


@pytest.mark.parametrize(
    "text", ["a - b", "a + 2 * b", "a / c", "-(a * b)", "(a - b) / c", "ABS(b) - a", "ROUND(a / c, 1)", "a * a - a"]
)
def test_the_interval_holds_every_value_that_answers_may_have(text):
    made = combined(parsed(text), ANSWERS, 0.95, 1)
    low, high = made.interval
    random = np.random.default_rng(1)
    for _ in range(200):
        drawn = {name: random.uniform(each.low, each.high) for name, each in ANSWERS.items()}
        inside = combined(parsed(text), {name: Interval(x, x, x) for name, x in drawn.items()}, 0.95, 1).value
        assert low - 1e-9 <= inside <= high + 1e-9
    assert low <= made.value <= high


def test_the_ends_are_reached_where_every_answer_is_named_once():
    assert combined(parsed("a - b"), ANSWERS, 0.95, 1).interval == (2.5, 8.0)
    assert combined(parsed("a / c"), ANSWERS, 0.95, 1).interval == pytest.approx((3 / 11, 6 / 8))


def test_what_is_named_twice_is_cut_into_parts():
    low, high = combined(parsed("(c - a) / c"), ANSWERS, 0.95, 1).interval
    assert low == pytest.approx(1 - 6 / 8, abs=0.05)
    assert high == pytest.approx(1 - 3 / 11, abs=0.05)


def test_division_by_what_may_be_zero_says_nothing():
    made = combined(parsed("a / b"), ANSWERS, 0.95, 1)
    assert made.value == -4.0
    assert made.interval == (-math.inf, math.inf)


def test_an_unclear_answer_makes_an_unclear_one():
    made = combined(parsed("a - b"), {**ANSWERS, "b": Interval(math.nan, -math.inf, math.inf)}, 0.95, 1)
    assert math.isnan(made.value)
    assert made.interval == (-math.inf, math.inf)


@pytest.mark.parametrize("text", ["SIN(a)", "a // b", "CAST(a AS INT)", "CASE WHEN a > 1 THEN b END", "a || b"])
def test_other_functions_are_refused(text):
    with pytest.raises(dn.errors.QueryRefused):
        check_arithmetic(parsed(text))
