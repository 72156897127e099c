"""Settings that look right and are not: booleans, NaN, infinities, numbers beyond any float."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable.checks import check_flag, check_integer, check_number, is_integer, is_number
from deniable.errors import InvalidParameter

HUGE = 10**400


@pytest.mark.parametrize("value", [True, 2.0, "2", None, np.int64(2), Fraction(2), 1, 6, HUGE])
def test_what_is_not_an_integer_from_2_to_5(value):
    with pytest.raises(InvalidParameter, match="fanout must be a Python integer from 2 to 5"):
        check_integer("fanout", value, 2, 5)


@pytest.mark.parametrize("value", [True, "0.5", None, math.nan, 0, 0.0, 1.5, math.inf, -math.inf, HUGE, Fraction(1, 2)])
def test_what_is_not_a_number_above_0_and_at_most_1(value):
    with pytest.raises(InvalidParameter, match=r"share must be above 0. Nothing was drawn or spent. Use 1."):
        check_number("share", value, "must be above 0", "Use 1.", above=0, largest=1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_without_limits_is_finite(value):
    with pytest.raises(InvalidParameter, match="bound must be finite"):
        check_number("bound", value, "must be finite", "Use 1.")


def test_what_is_accepted():
    check_integer("fanout", 2, 2, 5)
    check_integer("fanout", 5, 2, 5)
    for value in (1e-300, 0.5, 1, np.float64(0.5)):
        check_number("share", value, "must be above 0", "Use 1.", above=0, largest=1)
    check_number("bound", HUGE, "must be finite", "Use 1.")
    check_flag("cap", False, "Leave it out.")
    assert is_integer(HUGE)
    assert is_number(math.nan)


@pytest.mark.parametrize("value", [0, 1, None, "True", np.True_])
def test_what_is_not_a_flag(value):
    with pytest.raises(InvalidParameter, match="cap must be True or False"):
        check_flag("cap", value, "Leave it out.")
