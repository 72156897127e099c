"""Trees without end: what they cost, and their variance in closed form against drawn noise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from deniable.randomness import SeededSource
from deniable.streams import Hierarchy, Perturber
from deniable_lab.experiments.streams._infinite_tree import InfiniteTree

HORIZON = 1 << 10
STARTS, STOPS = np.array([0, 0, 3, 511, 100, 640, 1023]), np.array([1, 1024, 5, 513, 900, 704, 1024])


def test_all_levels_together_cost_epsilon_and_as_printed_nine_times_as_much():
    tree = InfiniteTree(0.5, theta=3)
    total = sum(Fraction(tree.cost(level)) for level in range(400))
    assert Fraction(1, 2) * (1 - Fraction(1, 10**12)) < total <= Fraction(1, 2)
    assert sum(0.9 ** (level + 1) for level in range(400)) == pytest.approx(9)
    assert tree.node_noise(0).scale == pytest.approx(3 / 0.05)


@pytest.mark.parametrize("fanout", [2, 3, 16])
def test_the_variance_is_that_of_the_nodes_that_the_two_prefixes_do_not_share(fanout):
    tree = InfiniteTree(1.0, theta=2, fanout=fanout)

    def nodes(position):
        made, start = set(), 0
        for level in reversed(range(12)):
            while start + fanout**level <= position:
                made.add((level, start))
                start += fanout**level
        return made

    expected = [
        sum(tree.node_noise(level).variance() for level, _ in nodes(start) ^ nodes(stop))
        for start, stop in zip(STARTS.tolist(), STOPS.tolist(), strict=True)
    ]
    assert np.allclose(tree.variance(STARTS, STOPS), expected)


def agrees(prefixes, claimed):
    """Whether squared errors of drawn noise have the claimed mean; a right claim fails with probability ≤ 1e-6."""
    runs = len(prefixes)
    squares = (prefixes[:, STOPS] - prefixes[:, STARTS]).astype(float) ** 2 / claimed.variance(STARTS, STOPS)
    apart = (squares.mean(axis=0) - 1) / (squares.std(axis=0, ddof=1) / np.sqrt(runs))
    return bool(np.all(np.abs(apart) < norm.isf(1e-6 / (2 * STARTS.size))))


@pytest.mark.parametrize("fanout", [2, 16])
def test_drawn_noise_varies_as_the_closed_form_says_and_the_test_has_teeth(fanout):
    tree = InfiniteTree(1.0, theta=2, fanout=fanout)
    prefixes = np.stack([tree.prefix_noise(HORIZON, SeededSource(seed)) for seed in range(1_000)])
    assert agrees(prefixes, tree)
    assert not agrees(prefixes, replace(tree, epsilon=1.2))
    assert not agrees(prefixes, replace(tree, epsilon=0.8))
    assert not agrees(prefixes, replace(tree, decay=Fraction(8, 10)))


def test_a_chunk_has_less_variance_than_a_tree_without_end():
    # The paper's reason for chunks: high levels have tiny shares of ε.
    chunk = Perturber(1.0, 1, 1 << 20, fanout=2, consistent=False)
    finite = chunk.node_variance * Hierarchy(1 << 20, 2, consistent=False).mean_variance()
    assert InfiniteTree(1.0, 1).mean_variance(1 << 20) > 2 * finite
