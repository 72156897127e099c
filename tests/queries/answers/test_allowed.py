"""Intervals of what lies between two bounds."""

import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.queries.answers.allowed import Allowed, cut, left_open

TAIL = 0.025


def opened(value, error, least=0.0, most=1.0):
    sides = left_open(*(np.array([each]) for each in (value, error, least, most)), TAIL)
    return tuple(float(side[0]) for side in sides)


def test_a_small_error_far_from_the_bounds_is_normal():
    below, above = opened(0.5, 0.01)
    assert below == pytest.approx(1.96 * 0.01, rel=0.01)
    assert above == pytest.approx(below, rel=1e-6)


@pytest.mark.parametrize("mean", [0.05, 0.2, 0.5, 0.9])
def test_what_is_at_either_bound_reaches_both(mean):
    below, above = opened(mean, math.sqrt(mean * (1 - mean)))
    assert (mean - below, mean + above) == pytest.approx((0, 1), abs=1e-6)


def test_an_error_larger_than_bounds_allow_reaches_both():
    assert opened(0.2, 7.0) == pytest.approx((0.2, 0.8))


@pytest.mark.parametrize(("error", "reached"), [(0.5, True), (0.16, True), (0.15, False)])
def test_an_answer_at_a_bound_reaches_the_other_where_its_error_may_come_from_there(error, reached):
    assert opened(0.0, error) == (0.0, 1.0 if reached else 0.0)


@pytest.mark.parametrize(("value", "error", "most"), [(0.5, 0.0, 1.0), (0.5, 1.0, math.inf), (0.0, 1.0, 0.0)])
def test_nothing_is_added_where_nothing_is_known_to_be_open(value, error, most):
    assert opened(value, error, most=most) == (0.0, 0.0)


def test_intervals_are_no_shorter_than_normal_ones_inside_of_the_bounds():
    allowed = Allowed(np.zeros((1, 1)), np.full((1, 1), 100.0), (np.zeros((1, 1)), np.ones((1, 1))))
    near = np.array([3.0]), np.array([4.0])
    low, high = allowed.interval(0, np.array([50.0]), near, 2.0, TAIL, 3.0)
    assert low[0] <= 40
    assert high[0] >= 60
    low, high = allowed.interval(0, np.array([98.0]), near, 2.0, TAIL, 3.0)
    assert low[0] <= 88
    assert high[0] == 103


def test_the_noise_of_a_bound_is_added_where_the_answer_may_be_there():
    allowed = Allowed(np.zeros((1, 1)), np.full((1, 1), 100.0), (np.zeros((1, 1)), np.full((1, 1), 5.0)))
    near = np.array([1.0]), np.array([40.0])
    _, high = allowed.interval(0, np.array([20.0]), near, 2.0, TAIL, 3.0)
    assert high[0] == pytest.approx(110, abs=0.1)


def test_bounds_that_noise_lets_meet_leave_open_what_their_noise_does():
    allowed = Allowed(np.zeros((1, 1)), np.zeros((1, 1)), (np.zeros((1, 1)), np.full((1, 1), 2000.0)))
    near = np.array([0.5]), np.array([800.0])  # a fifth of what is open
    low, high = allowed.interval(0, np.array([1.0]), near, 2.0, TAIL, 3.0)
    assert (low[0], high[0]) == (0.0, pytest.approx(4000))


def test_an_interval_is_cut_where_something_is_assumed_and_holds_its_value():
    bounds = np.array([-5.0, -5.0, -5.0]), np.array([120.0, 120.0, 120.0])
    possible = np.zeros(3), np.full(3, 100.0)
    low, high = cut(bounds, np.array([50.0, 110.0, 50.0]), possible, np.array([True, True, False]))
    assert low.tolist() == [0.0, 0.0, -5.0]
    assert high.tolist() == [100.0, 110.0, 120.0]


@pytest.mark.parametrize("asked", ["x = 17", "x BETWEEN 10 AND 16", "x BETWEEN 10 AND 17", "x < 5"])
def test_rows_that_all_share_a_value_are_covered(asked):
    users = 3_000
    views = [dn.GridView({"x": dn.Cells([0, 20])}), dn.GridView({"x": dn.Cells([0, 20, 40, 60, 80])})]
    made = dn.Collection(dn.Table("t", x=dn.Ordinal(0, 99)), epsilon=2.0, design="grid", grids={"t": views})
    frame = pa.table({"uid": np.arange(users), "x": np.full(users, 17)})
    database = dn.connect(made.perturb(t=frame, source=dn.SeededSource(5), simulation=True))
    low, high = database.sql(f"SELECT COUNT(*) FROM t WHERE {asked}").scalar().interval
    truth = users if asked in {"x = 17", "x BETWEEN 10 AND 17"} else 0
    assert 0 <= low <= truth <= high <= users
