"""The covariance of tents is that of least squares over hat sums, and V is below that of every tree."""

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.streams.structure.hierarchy import Hierarchy
from deniable.streams.structure.tents import LARGEST_TENT_LEAVES, Tents, arrangement_of

SHAPES = [(108, 3), (27, 3), (100, 4), (500, 4), (100, 10), (4, 2), (3, 2), (30, 5), (700, 9), (17, 16)]


def hat_sums(tents, level):
    """The weights of all nodes of a level, divided by W_l."""
    centres = (np.arange(tents.padded) + 0.5) / tents.fanout**level
    return np.maximum(0, 1 - np.abs(centres - np.arange(tents.nodes(level))[:, None]))


@pytest.mark.parametrize(("leaves", "fanout"), SHAPES)
def test_weights_are_integers_that_add_up_to_a_constant_at_every_leaf(leaves, fanout):
    tents = Tents(leaves, fanout)
    for level in range(1, tents.height):
        weights = hat_sums(tents, level) * tents.weight(level)
        assert np.allclose(weights, np.rint(weights))
        assert (weights.sum(0) == tents.weight(level)).all()


@pytest.mark.parametrize(("leaves", "fanout"), SHAPES)
def test_covariance_is_that_of_generalised_least_squares(leaves, fanout):
    tents = Tents(leaves, fanout)
    hats = [hat_sums(tents, level) for level in range(1, tents.height)]
    information = np.eye(tents.padded) + sum(weights.T @ weights for weights in hats)
    running = np.tril(np.ones((tents.padded + 1, tents.padded)), -1)
    expected = (running @ np.linalg.inv(information) @ running.T)[: leaves + 1, : leaves + 1]
    i, j = np.meshgrid(np.arange(leaves + 1), np.arange(leaves + 1), indexing="ij")
    assert np.allclose(tents.covariance(i, j), expected, atol=1e-11)
    assert np.allclose(tents.covariance(i, i), expected.diagonal()[i], atol=1e-11)
    assert np.allclose(tents.variance(i, j), expected.diagonal()[i] + expected.diagonal()[j] - 2 * expected, atol=1e-11)


def test_the_design_s_variances_at_a_million_leaves():
    tree, whole = Hierarchy(2**20, 16), np.array([2**20])
    per_epsilon = 2 * tree.height**2  # node variance times ε², at θ = 1
    for fanout, random_range, prefix in ((16, 925.8, 732), (17, 916.2, 675), (20, 948.3, 600)):
        tents = Tents(2**20, fanout)
        assert tents.height == 5
        assert tents.mean_variance() * per_epsilon == pytest.approx(random_range, rel=0.001)
        positions = np.random.default_rng(1).integers(0, 2**20, 50_000)
        assert tents.covariance(positions, positions).mean() * per_epsilon == pytest.approx(prefix, rel=0.01)
    assert tree.mean_variance() * per_epsilon > 1.28 * 925.8
    assert tree.covariance(whole, whole) < Tents(2**20, 16).covariance(whole, whole)  # a tree is better there


@pytest.mark.parametrize(
    ("leaves", "fanout"), [(1, 2), (16, 16), (9, 2), (10, 1), (LARGEST_TENT_LEAVES + 1, 16), (10**6, 300)]
)
def test_impossible_tents_are_refused(leaves, fanout):
    with pytest.raises(InvalidParameter):
        Tents(leaves, fanout)


def test_one_level_is_flat_whatever_it_is_called():
    assert arrangement_of("tent", 16, 16) == Hierarchy(16, 16)
    with pytest.raises(InvalidParameter, match="hierarchy is unknown"):
        arrangement_of("forest", 100, 10)
    with pytest.raises(InvalidParameter, match="consistent"):
        arrangement_of("tent", 100, 10, consistent=False)


def test_sums_of_noise_fit_64_bits_or_are_refused():
    tents = Tents(2**20, 16)
    assert tents.fits(0.1, 60_000)
    assert not tents.fits(0.01, 2**20)
