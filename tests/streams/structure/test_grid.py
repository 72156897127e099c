"""Values as whole steps of a grid."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InvalidData, InvalidParameter
from deniable.streams.structure.value_grid import Grid


@settings(deadline=None)
@given(st.lists(st.floats(-3, 12) | st.integers(-3, 12), min_size=1, max_size=20), st.sampled_from([1, 2, 0.25, 0.1]))
def test_one_value_and_many_are_put_on_the_grid_alike(values, resolution):
    grid = Grid(10, low=-3, resolution=resolution)
    # A list of both kinds becomes floats; alone, an integer may stay one. Both round halves up.
    assert grid.units(values).tolist() == [grid.unit(value) for value in values]
    assert max(grid.units(values)) <= grid.top


@pytest.mark.parametrize("value", [8, 100, 100.5, 10**9, 1e300])
def test_a_value_above_a_bound_off_the_grid_counts_as_the_bound_alone_and_among_many(value):
    grid = Grid(7, resolution=3)
    assert (grid.unit(value), grid.units([value]).tolist()) == (grid.unit(7), [grid.unit(7)])


def test_numbers_beyond_all_floats_are_above_the_bound():
    for number in (10**400, Fraction(10**400, 3)):
        assert Grid(7.5, resolution=0.5).unit(number) == 15
        with pytest.raises(InvalidData, match="below the public lower bound"):
            Grid(7.5, resolution=0.5).unit(-number)
    with pytest.raises(InvalidParameter, match="the number of steps"):
        Grid(10**400)


def test_the_top_of_a_grid_is_not_lost_to_rounding():
    assert Grid(0.3, resolution=0.1).top == 3
    assert Grid(1.0, low=-1.0, resolution=0.01).top == 200
    assert Grid(10, resolution=3).top == 4
    assert Grid(250).units(np.array([7, 255], dtype=np.uint8)).tolist() == [7, 250]
    assert Grid(1000).units(np.array([7, 255], dtype=np.uint8)).tolist() == [7, 255]


@pytest.mark.parametrize("values", [[1, math.nan], [math.inf], ["a"], [True], [-1], [None], [[1, 2]], 5])
def test_what_is_not_a_number_of_the_domain_is_refused(values):
    with pytest.raises(InvalidData):
        Grid(10).units(values)


@pytest.mark.parametrize("facts", [(0,), (math.inf,), (10, 10), (10, 0, 0), (10, 0, -1), ("a",), (1e30,)])
def test_impossible_grids_are_refused(facts):
    with pytest.raises(InvalidParameter):
        Grid(*facts)
