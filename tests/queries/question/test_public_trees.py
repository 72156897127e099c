"""Public conditions and measures are trees: each engine prints them in its own dialect, and nobody changes them."""

import pyarrow as pa
import pytest
from sqlglot import exp

from deniable.engines.duckdb.public_columns import evaluate
from deniable.queries.question.public_trees import (
    PublicFactor,
    PublicTree,
    column,
    factor_tree,
    is_known,
    passes,
    product_of,
)

RICH = PublicTree.of(exp.GT(this=column("score"), expression=exp.Literal.number(2)))
ODD = PublicTree.of(exp.EQ(this=column('a.b"; --'), expression=exp.Literal.string("it's")))
TESTS = ((RICH, True), (ODD, False), (is_known("score"), True))
ROWS = pa.table(
    {"score": [1.0, 3.0, 3.0, None, 4.0], 'a.b"; --': ["x", "x", "it's", "x", None], "size": [2, 2, 2, 2, 5]}
)


def test_a_test_that_is_unknown_is_not_passed():
    (passed,) = evaluate(ROWS, [passes(TESTS)])
    assert passed.tolist() == [False, True, False, False, True]
    (everything,) = evaluate(ROWS, [passes(())])
    assert everything.all()


def test_a_factor_is_the_measure_where_all_tests_pass():
    weighed, counted = evaluate(
        ROWS, [factor_tree(PublicFactor(TESTS, product_of(["score", "size"]))), factor_tree(PublicFactor(TESTS))]
    )
    assert weighed.tolist() == [0.0, 6.0, 0.0, 0.0, 20.0]
    assert counted.tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(("dialect", "quoted"), [("duckdb", '"score" > 2'), ("spark", "`score` > 2")])
def test_each_engine_prints_its_own_dialect(dialect, quoted):
    text = factor_tree(PublicFactor(TESTS)).sql(dialect=dialect)
    assert quoted in text
    assert text.count("COALESCE") == len(TESTS) + 1


def test_building_on_a_tree_leaves_it_as_it_was():
    before = [repr(test.tree) for test, _ in TESTS]
    for _ in range(2):
        passes(TESTS)
        factor_tree(PublicFactor(TESTS, product_of(["score"])))
    assert [repr(test.tree) for test, _ in TESTS] == before
    assert all(test.tree.parent is None for test, _ in TESTS)


def test_trees_are_equal_if_they_read_the_same():
    again = PublicTree.of(exp.GT(this=column("score"), expression=exp.Literal.number(2)))
    assert again == RICH
    assert len({again, RICH, ODD}) == 2
    assert PublicTree.of(exp.GT(this=column("score"), expression=exp.Literal.string("2"))) != RICH
    assert sorted([RICH, ODD]) == [ODD, RICH]
