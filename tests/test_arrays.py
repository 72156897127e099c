"""Digests of arrays: the same for the same, different for anything else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deniable.arrays import digest

short = st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=1, max_size=8)


@given(short, short)
def test_only_equal_arrays_share_a_digest(first, second):
    assert (digest(np.array(first)) == digest(np.array(second))) == (first == second)


def test_shapes_and_places_of_changes_matter():
    steps = [np.repeat([0.0, 1.0], [low, 1000 - low]) for low in range(1, 1000)]
    assert len({digest(each) for each in steps}) == len(steps)
    assert digest(np.zeros((2, 3))) != digest(np.zeros((3, 2)))
    assert digest(np.arange(6.0)) != digest(np.arange(6.0)[::-1])  # neighbours all differ
