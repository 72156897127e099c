"""Intervals of ratios hold the truth however close the divisor is to zero."""

import math

import numpy as np
import pytest

from deniable.queries.answers.ratio_intervals import Ratio, ratio_interval, ratio_of
from deniable.queries.question.formula import Binary, Moment, Number, Root

A, B = Moment(0), Moment(1)
ROWS = 20_000
REACH = 1.959964


@pytest.mark.parametrize("errors", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("correlation", [-0.7, 0.0, 0.9])
def test_coverage_where_the_divisor_is_few_errors_from_zero(errors, correlation):
    covariance = np.array([[4.0, 2 * correlation], [2 * correlation, 1.0]])
    truth = np.array([3.0, errors])
    random = np.random.default_rng(7)
    sums = truth + random.multivariate_normal(np.zeros(2), covariance, ROWS)
    spread = np.broadcast_to(covariance, (ROWS, 2, 2))
    low, high, _ = ratio_interval(Ratio(A, B), sums, spread, REACH)
    covered = float(np.mean((low <= truth[0] / errors) & (truth[0] / errors <= high)))
    # Exact for normal sums, and more where the set is everything: 5 standard errors of 20,000 draws are 0.8 %.
    assert covered > 0.942
    if errors == 4.0:
        assert covered < 0.97
    # An interval of a third less reach would be noticed.
    narrow, wide, _ = ratio_interval(Ratio(A, B), sums, spread, REACH * 2 / 3)
    if errors > 1:
        assert np.mean((narrow <= truth[0] / errors) & (truth[0] / errors <= wide)) < 0.93


def test_which_formulas_are_ratios():
    mean = Binary("+", Number(48.0), Binary("/", A, B))
    assert ratio_of(mean) == Ratio(A, B, 48.0, 1.0)
    assert ratio_of(Binary("-", Number(1.0), Binary("/", A, B))) == Ratio(A, B, 1.0, -1.0)
    percent = Binary("/", Binary("*", Number(100.0), A), B)
    assert ratio_of(percent) == Ratio(Binary("*", Number(100.0), A), B)
    assert ratio_of(Binary("*", Binary("/", A, B), Number(3.0))) == Ratio(A, B, 0.0, 3.0)
    assert ratio_of(Binary("/", Binary("*", A, A), B)) is None
    assert ratio_of(Binary("/", A, Root(B))) is None
    assert ratio_of(A) is None


def test_where_nothing_is_known_the_interval_is_everything():
    low, high, away = ratio_interval(Ratio(A, B), np.array([[3.0, 0.5]]), np.eye(2)[None], REACH)
    assert (low[0], high[0]) == (-math.inf, math.inf)
    assert away[0] == 0.5
