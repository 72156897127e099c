"""The closed-form covariance is that of least squares, and V is what the design says."""

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.streams.structure import hierarchy
from deniable.streams.structure.hierarchy import Hierarchy


def every_pair(tree):
    i, j = np.meshgrid(np.arange(tree.leaves + 1), np.arange(tree.leaves + 1), indexing="ij")
    return tree.covariance(i.ravel(), j.ravel()).reshape(i.shape)


def least_squares(tree):
    """Covariance of prefix sums from the inverse of the information matrix, all nodes having variance 1."""
    count = tree.padded
    sizes = [tree.fanout**level for level in range(tree.height)]
    information = sum(np.kron(np.eye(count // size), np.ones((size, size))) for size in sizes)
    running = np.tril(np.ones((count, count)))
    prefix = running @ np.linalg.inv(information) @ running.T
    return np.pad(prefix, ((1, 0), (1, 0)))[: tree.leaves + 1, : tree.leaves + 1]


@pytest.mark.parametrize(
    ("leaves", "fanout"), [(16, 2), (27, 3), (20, 3), (64, 4), (50, 16), (5, 7), (1, 2), (100, 10)]
)
def test_covariance_is_that_of_generalised_least_squares(leaves, fanout):
    tree = Hierarchy(leaves, fanout)
    assert np.allclose(every_pair(tree), least_squares(tree))


@pytest.mark.parametrize(("leaves", "fanout"), [(16, 2), (27, 3), (23, 3), (64, 8)])
def test_without_consistency_two_prefixes_share_the_nodes_of_their_expansions(leaves, fanout):
    tree = Hierarchy(leaves, fanout, consistent=False)

    def nodes(position):
        made, start = set(), 0
        for level in reversed(range(tree.height)):
            size = fanout**level
            while start + size <= position:
                made.add((level, start))
                start += size
        return made

    expected = [[len(nodes(i) & nodes(j)) for j in range(leaves + 1)] for i in range(leaves + 1)]
    assert np.array_equal(every_pair(tree), expected)


def test_the_design_s_variances_at_a_million_leaves():
    tree = Hierarchy(2**20, 16)
    assert tree.height == 5
    per_epsilon = 2 * tree.height**2  # node variance times ε², at θ = 1
    assert tree.mean_variance() * per_epsilon == pytest.approx(1196.4, rel=0.001)
    places = np.random.default_rng(1).integers(0, 2**20, 100_000)
    prefixes = tree.variance(np.zeros_like(places), places).mean()
    assert prefixes * per_epsilon == pytest.approx(852, rel=0.01)


def test_heights_are_exact_for_any_number_of_leaves():
    assert [Hierarchy(n, 10).height for n in (1, 10, 11, 1000, 1001, 10**6, 10**6 + 1)] == [1, 1, 2, 3, 4, 6, 7]
    assert Hierarchy(10**6, 16).padded == 2**20
    assert Hierarchy(1000, 16).padded == 1024


def test_huge_trees_are_consistent_inside_groups(monkeypatch):
    assert Hierarchy(2**30, 16).group == 2**20
    monkeypatch.setattr(hierarchy, "CONSISTENT_LEAVES", 8)
    monkeypatch.setattr(hierarchy, "GROUP_LEAVES", 9)
    tree = Hierarchy(60, 3)
    assert (tree.group, tree.height) == (9, 4)
    inside = every_pair(Hierarchy(9, 3, consistent=True))[:9, :9]
    assert np.allclose(every_pair(tree)[:9, :9], inside)
    # Two prefixes in different groups share only nodes above the groups: [0, 27), and [27, 36) twice.
    assert tree.covariance(np.array([37]), np.array([48]))[0] == 2
    assert tree.covariance(np.array([30]), np.array([48]))[0] == 1


@pytest.mark.parametrize(("leaves", "fanout"), [(0, 2), (10, 1), (2.0, 2), (10**7, 10**6)])
def test_impossible_trees_are_refused(leaves, fanout):
    with pytest.raises(InvalidParameter):
        Hierarchy(leaves, fanout)
