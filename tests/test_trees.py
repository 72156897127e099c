import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.trees import Tree


@given(st.integers(1, 3000), st.integers(2, 20))
def test_every_level_cuts_the_domain_into_cells_of_its_width(size, fanout):
    tree = Tree(size, fanout)
    assert tree.cells(0) == 1
    assert tree.cells(tree.levels - 1) == size
    for level in range(tree.levels):
        cells = {tree.cell(level, value) for value in range(size)}
        assert cells == set(range(tree.cells(level)))
        if level:
            assert tree.width(level - 1) == fanout * tree.width(level)


@given(st.integers(2, 500), st.integers(2, 9), st.data())
def test_a_child_lies_in_its_parent(size, fanout, data):
    tree, value = Tree(size, fanout), data.draw(st.integers(0, size - 1))
    for level in range(1, tree.levels):
        assert tree.cell(level, value) // fanout == tree.cell(level - 1, value)


@pytest.mark.parametrize(("size", "levels"), [(1, 1), (2, 2), (5, 2), (6, 3), (25, 3), (26, 4), (125, 4), (10**6, 10)])
def test_levels_are_counted_by_integers(size, levels):
    assert Tree(size, 5).levels == levels
