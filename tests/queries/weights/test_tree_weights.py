"""Weights on trees: each rule reproduces the function; the optimal one is the dense least-squares solution."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.queries.weights.tree_weights import decompositions, greedy, optimal, rdc
from deniable.trees import Tree


def reproduced(tree, weights):
    """The function that a weighting stands for: at each value, the sum of the weights of its nodes."""
    values = np.arange(tree.size)
    total = np.zeros(tree.size)
    for number, level in enumerate(weights):
        total += level[values // tree.width(number)]
    return total


def cost(weights, costs):
    """Σ_l cost_l · ‖α_l‖²."""
    return float(sum(price * np.square(level).sum() for price, level in zip(costs, weights, strict=True)))


def indicator(size, low, high):
    values = np.arange(size)
    return ((low <= values) & (values <= high)).astype(float)


def dense_optimum(tree, function, costs):
    """The least-norm solution of the full system, as an independent oracle."""
    columns, prices = [], []
    for level, price in enumerate(costs):
        if np.isfinite(price):
            for node in range(tree.cells(level)):
                columns.append((np.arange(tree.size) // tree.width(level) == node).astype(float) / np.sqrt(price))
                prices.append((level, node, price))
    solution, *_ = np.linalg.lstsq(np.array(columns).T, function, rcond=None)
    weights = [np.zeros(tree.cells(level)) for level in range(tree.levels)]
    for (level, node, price), value in zip(prices, solution, strict=True):
        weights[level][node] = value / np.sqrt(price)
    return tuple(weights)


@given(st.integers(1, 60), st.integers(2, 6), st.data())
@settings(max_examples=150, deadline=None)
def test_the_optimum_is_the_dense_least_squares_solution(size, fanout, data):
    tree = Tree(size, fanout)
    function = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=size, max_size=size)))
    costs = data.draw(
        st.lists(st.sampled_from([0.5, 1.0, 3.0, 40.0, np.inf]), min_size=tree.levels, max_size=tree.levels)
    )
    costs[-1] = 2.0
    weights = optimal(tree, function, costs, depth=99)
    np.testing.assert_allclose(reproduced(tree, weights), function, atol=1e-9)
    for ours, dense in zip(weights, dense_optimum(tree, function, costs), strict=True):
        np.testing.assert_allclose(ours, dense, atol=1e-8)


@given(st.integers(2, 200), st.integers(2, 6), st.data())
@settings(deadline=None)
def test_paths_along_the_boundaries_are_nearly_as_good_as_the_whole_tree(size, fanout, data):
    tree = Tree(size, fanout)
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low, size - 1))
    function, costs = indicator(size, low, high), [1.0] * tree.levels
    paths, whole = optimal(tree, function, costs), optimal(tree, function, costs, depth=99)
    np.testing.assert_allclose(reproduced(tree, paths), function, atol=1e-9)
    assert sum(np.count_nonzero(level) for level in paths) <= 1 + 2 * fanout * (tree.levels - 1)
    assert cost(whole, costs) <= cost(paths, costs) + 1e-9
    assert cost(paths, costs) <= cost(greedy(tree, function), costs) + 1e-9


@given(st.integers(1, 80), st.integers(2, 6), st.data())
def test_greedy_takes_whole_nodes_and_reproduces_the_function(size, fanout, data):
    tree = Tree(size, fanout)
    function = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=size, max_size=size)))
    weights = greedy(tree, function)
    np.testing.assert_array_equal(reproduced(tree, weights), function)
    nodes = sum(np.count_nonzero(level) for level in weights)
    assert nodes <= np.count_nonzero(function)


def test_greedy_is_the_smallest_unsigned_cover_of_a_range():
    tree = Tree(12, 3)
    for low, high in itertools.combinations(range(12), 2):
        nodes = [(level, node) for level in range(tree.levels) for node in range(tree.cells(level))]
        spans = {
            (level, n): indicator(12, n * tree.width(level), (n + 1) * tree.width(level) - 1) for level, n in nodes
        }
        inside = [node for node in nodes if (spans[node] <= indicator(12, low, high)).all()]
        maximal = [
            n for n in inside if not any(n != m and (spans[n] <= spans[m]).all() and n[0] > m[0] for m in inside)
        ]
        taken = sum(np.count_nonzero(level) for level in greedy(tree, indicator(12, low, high)))
        assert taken <= len(maximal)


def every_signed_decomposition(tree, low, high, most):
    """All sets of signed nodes of at most `most` members that add up to the range, by brute force."""
    nodes = [
        (level, node, sign) for level in range(tree.levels) for node in range(tree.cells(level)) for sign in (1, -1)
    ]
    target = indicator(tree.size, low, high)
    spans = {
        (level, n): indicator(tree.size, n * tree.width(level), (n + 1) * tree.width(level) - 1)
        for level, n, _ in nodes
    }
    for count in range(1, most + 1):
        for chosen in itertools.combinations(nodes, count):
            if (sum(sign * spans[level, node] for level, node, sign in chosen) == target).all():
                yield count


@pytest.mark.parametrize(("size", "fanout", "low", "high"), [(8, 2, 1, 6), (9, 3, 1, 7), (5, 5, 1, 3), (6, 4, 0, 4)])
def test_the_smallest_decomposition_is_as_small_as_any(size, fanout, low, high):
    tree = Tree(size, fanout)
    best = decompositions(tree, low, high, 8)
    smallest = min(every_signed_decomposition(tree, low, high, 4))
    assert best[0].size == smallest
    assert [decomposition.size for decomposition in best] == sorted(decomposition.size for decomposition in best)
    assert len({frozenset(decomposition.nodes) for decomposition in best}) == len(best)
    for decomposition in best:
        np.testing.assert_array_equal(reproduced(tree, decomposition.weights(tree)), indicator(size, low, high))


def test_a_range_that_misses_one_leaf_is_the_parent_minus_that_leaf():
    best = decompositions(Tree(5, 5), 0, 3, 2)
    assert best[0].nodes == ((0, 0, 1), (1, 4, -1))
    assert best[1].size == 4


@given(st.integers(2, 125), st.sampled_from([2, 5]), st.integers(1, 8), st.data())
@settings(deadline=None)
def test_rdc_is_unbiased_and_never_beats_the_optimum(size, fanout, k, data):
    tree = Tree(size, fanout)
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low, size - 1))
    function, costs = indicator(size, low, high), [1.0] * tree.levels
    averaged = rdc(tree, low, high, k)
    np.testing.assert_allclose(reproduced(tree, averaged), function, atol=1e-9)
    best = cost(optimal(tree, function, costs, depth=99), costs)
    assert best <= cost(averaged, costs) + 1e-9
    assert best <= cost(greedy(tree, function), costs) + 1e-9
    assert best == pytest.approx(cost(dense_optimum(tree, function, costs), costs))


@pytest.mark.parametrize(("size", "saved"), [(99, 2.64), (125, 2.63), (1000, 3.07)])
def test_how_much_the_optimum_saves(size, saved):
    # Mean squared norm over random ranges, fan-out 5, all levels equally dear.
    tree, random = Tree(size, 5), np.random.default_rng(8)
    ranges = np.sort(random.integers(0, size, (300, 2)), axis=1)
    costs = [1.0] * tree.levels
    functions = [indicator(size, low, high) for low, high in ranges]
    plain = np.mean([cost(greedy(tree, function), costs) for function in functions])
    best = np.mean([cost(optimal(tree, function, costs, depth=99), costs) for function in functions])
    paths = np.mean([cost(optimal(tree, function, costs), costs) for function in functions])
    assert plain / best == pytest.approx(saved, rel=0.02)
    assert best < paths < 1.25 * best


def test_the_optimum_takes_time_in_the_number_of_nodes():
    tree = Tree(1_000_000, 5)
    function = np.zeros(1_000_000)
    function[123_456:654_321] = 1
    weights = optimal(tree, function, [1.0] * tree.levels)
    np.testing.assert_allclose(reproduced(tree, weights), function, atol=1e-9)


def test_without_the_finest_level_not_everything_can_be_reproduced():
    with pytest.raises(ValueError, match="finest level"):
        optimal(Tree(4, 2), np.ones(4), [1.0, 1.0, np.inf])
