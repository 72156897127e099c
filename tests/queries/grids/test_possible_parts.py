"""Parts of a whole that noisy sums speak of."""

import numpy as np
import pytest

from deniable.queries.grids.possible_parts import SEEN, possible_parts


@pytest.mark.parametrize(("parts", "precision"), [(3, 1.0), (15, 500.0), (60, 1e4)])
def test_they_are_positive_and_nothing_near_them_is_likelier(parts, precision):
    random = np.random.default_rng(parts)
    known = np.concatenate([(random.random((parts, parts)) < 0.2) * precision, np.eye(parts)])
    wanted = known @ random.dirichlet(np.full(parts, 0.1)) + random.normal(size=2 * parts)
    found = possible_parts(known, wanted, np.full(parts, 1 / parts))
    slope = known.T @ (known @ found - wanted) - SEEN**2 / found
    assert found.min() > 0
    assert np.abs(slope * found).max() < 1e-3


def test_a_part_that_looks_like_zero_holds_half_an_error():
    error = 0.02
    (found,) = possible_parts(np.array([[1 / error]]), np.zeros(1), np.ones(1))
    assert found == pytest.approx(SEEN * error, rel=1e-4)


def test_many_parts_do_not_hold_more_than_all_of_them_are_known_to():
    many, together, alone = 20, 0.001, 0.1
    known = np.concatenate([np.full((1, many), 1 / together), np.eye(many) / alone])
    found = possible_parts(known, np.zeros(many + 1), np.full(many, 1 / many))
    assert found.sum() < 3 * together  # a floor under each part would make it 1,000 times that


def test_the_search_does_not_depend_on_where_it_begins():
    known, wanted = np.diag([1000.0, 10.0, 10.0]), np.array([970.0, 0.0, 0.5])
    first, second = (possible_parts(known, wanted, near) for near in (np.full(3, 1 / 3), np.array([0.9, 0.01, 0.5])))
    assert first == pytest.approx(second, rel=1e-4)
