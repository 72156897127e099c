"""RDC over a whole predicate: the k smallest products of decompositions, next to brute force and printed figures."""

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.queries.weights.axis_weights import Rule
from deniable.queries.weights.predicate_decompositions import axis_options, predicate_terms, smallest_products
from deniable.queries.weights.product_weights import plan_table
from deniable.queries.weights.table_plan import Product
from deniable.trees import Tree

SMALL_TREES = [Tree(8, 2), Tree(9, 3), Tree(7, 3), Tree(5, 5)]


def interval(size, low, high):
    values = np.arange(size)
    return ((low <= values) & (values <= high)).astype(float)


def options_of(trees, functions, k):
    return [
        axis_options(tree, function, [1.0] * tree.levels, k) for tree, function in zip(trees, functions, strict=True)
    ]


def node_weights(terms):
    """The weight of every product of nodes, as one array over the nodes of each axis, level after level."""
    return sum(_outer([np.concatenate(weights) for weights in term]) for term in terms)


def _outer(vectors):
    whole = np.ones(())
    for vector in vectors:
        whole = np.multiply.outer(whole, vector)
    return whole


def reproduced(trees, weights):
    """The function of all axes that products of nodes stand for."""
    for axis, tree in enumerate(trees):
        values = np.arange(tree.size)
        inside = [
            values // tree.width(level) == node for level in range(tree.levels) for node in range(tree.cells(level))
        ]
        weights = np.moveaxis(np.tensordot(weights, np.array(inside, dtype=float), axes=(axis, 0)), -1, axis)
    return weights


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5).map(sorted), min_size=1, max_size=4), st.data())
def test_the_smallest_products_are_those_of_brute_force(sizes, data):
    k = data.draw(st.integers(1, 30))
    every = itertools.product(*(range(len(axis)) for axis in sizes))
    by_size = sorted(
        (prod(axis[p] for axis, p in zip(sizes, positions, strict=True)), positions) for positions in every
    )
    assert smallest_products(sizes, k) == [positions for _, positions in by_size[:k]]


def test_a_thousand_of_a_thousand_to_the_twelfth_power_are_found():
    chosen = smallest_products([range(1, 1001)] * 12, 1000)
    assert len(set(chosen)) == 1000
    assert prod(position + 1 for position in chosen[-1]) < 30


@given(st.lists(st.sampled_from(SMALL_TREES), min_size=1, max_size=3), st.integers(1, 20), st.data())
@settings(max_examples=60, deadline=None)
def test_the_average_reproduces_the_predicate_and_is_that_of_brute_force(trees, k, data):
    functions = [
        np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=tree.size, max_size=tree.size)))
        for tree in trees
    ]
    options = options_of(trees, functions, k)
    weights = node_weights(predicate_terms(options, k))
    np.testing.assert_allclose(reproduced(trees, weights), _outer(functions), atol=1e-9)
    every = sorted(
        (prod(option.size for option in chosen), positions, chosen)
        for positions, chosen in (
            (positions, [axis[p] for axis, p in zip(options, positions, strict=True)])
            for positions in itertools.product(*(range(len(axis)) for axis in options))
        )
    )[:k]
    shares = np.array([1 / size for size, _, _ in every])
    expected = sum(
        share * _outer([np.concatenate(option.weights) for option in chosen])
        for share, (_, _, chosen) in zip(shares / shares.sum(), every, strict=True)
    )
    np.testing.assert_allclose(weights, expected, atol=1e-12)


def test_figure_5_has_four_decompositions_of_nine_nodes():
    """Age and income in [11, 25] of [1, 25], fan-out 5: nine nodes, in four ways  [XDW20, Fig. 5]."""
    trees, functions = [Tree(25, 5)] * 2, [interval(25, 10, 24)] * 2
    options = options_of(trees, functions, 10)
    sizes = [[option.size for option in axis] for axis in options]
    totals = [sizes[0][a] * sizes[1][b] for a, b in smallest_products(sizes, 5)]
    assert totals[:4] == [9, 9, 9, 9] < totals[4:]
    # Eq. (11): the four share no node, so the average of k of them has 9/k of squared weight.
    for k in (1, 2, 4):
        assert np.square(node_weights(predicate_terms(options, k))).sum() == pytest.approx(9 / k)


@pytest.mark.parametrize("attributes", [1, 2, 3])
def test_lemma_9_two_to_the_d_decompositions_gain_two_to_the_d(attributes):
    """One layer of B = 5 leaves and l = (B + 1)/2 of them asked for  [XDW20, Lemma 9]."""
    options = options_of([Tree(5, 5)] * attributes, [interval(5, 1, 3)] * attributes, 2**attributes)
    single, averaged = (np.square(node_weights(predicate_terms(options, k))).sum() for k in (1, 2**attributes))
    assert single == pytest.approx(3**attributes)
    assert single / averaged == pytest.approx(2**attributes)


def squared_weight(rule, conditions):
    """The sum of squared weights over all cells, as many times as a view is rare."""
    table = dn.Table("t", **{name: dn.Ordinal(0, function.size - 1) for name, function in conditions.items()})
    design = dn.Collection(table, epsilon=1.0, oracle="olh").design_of("t")
    plan = plan_table(table, design, [(Product(1.0, conditions, {}),)], Rule.of(rule))
    total = 0.0
    for view in plan.parts[0].views:
        cells = view.by_cell()[2]
        total += float(np.square(cells.values).sum()) / design.views**2
    return total


def test_the_papers_k_counts_the_whole_predicate_and_ours_each_attribute():
    conditions = {"a": interval(25, 10, 24), "b": interval(25, 10, 24)}
    norms = {rule: squared_weight(rule, conditions) for rule in ("greedy", "rdc(2)", "rdc(4)", "rdc_each(2)")}
    assert norms == pytest.approx({"greedy": 9, "rdc(2)": 9 / 2, "rdc(4)": 9 / 4, "rdc_each(2)": 9 / 4})


def test_with_one_attribute_both_ways_of_counting_are_the_same_bits():
    conditions = {"a": interval(125, 13, 98), "b": np.ones(30)}
    assert squared_weight("rdc(7)", conditions) == squared_weight("rdc_each(7)", conditions)
    assert [str(Rule.of(name)) for name in ("rdc_each", "rdc_each(3)")] == ["rdc_each(8)", "rdc_each(3)"]
