"""Designs are sets of views: their numbers, chances, cells and oracles."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable.mechanisms import LocalHashing, RandomizedResponse
from deniable.mechanisms.single_cell import SingleCell
from deniable.tables.bulk.bulk_client import _cells
from deniable.tables.designs import DESIGNS
from deniable.tables.designs.views import EMBEDDED, NUMBERED_CELLS, Axis, Design, Group, all_levels
from deniable.trees import Tree

ONE = dn.Table("t", age=dn.Ordinal(1, 7), kind=dn.Categorical("a", "b", "c"), size=dn.Ordinal(0, 4))
MANY = dn.Table("t", many=4, tau=2, age=dn.Ordinal(1, 7), kind=dn.Categorical("a", "b", "c"), size=dn.Ordinal(0, 4))
PLAIN = dn.Table("t", kind=dn.Categorical("a", "b", "c"), flag=dn.Categorical(True, False))


def design_of(table, name, **settings):
    return dn.Collection(table, epsilon=1.0, design=name, fanout=2, **settings).design_of("t")


# Levels: age 4 (7 values, fan-out 2), kind 2, size 4 (5 values), every rounded value or weight 2.
@pytest.mark.parametrize(
    ("name", "single", "many"),
    [
        ("hio", 4 * 2 * 4, 4 * 2 * 4 * 2),
        ("sr-hio", 4 * 2 * 4 * 2 * 2, 4 * 2 * 4 * 2 * 2 * 2),
        ("ahio", 2 * (4 * 2 * 4 * 2), 2 * (4 * 2 * 4 * 2)),
        ("ehio", 5 * 2 * 4 + 4 * 2 * 5, (5 * 2 * 4 + 4 * 2 * 5) * 2),
        ("sc", 4 + 2 + 4, 4 + 2 + 4 + 2),
        ("mg", 1, 1),
        ("amg", 2, 2),
    ],
)
def test_how_many_views_there_are(name, single, many):
    assert design_of(ONE, name).views == single
    assert design_of(MANY, name).views == many


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("table", [ONE, MANY, PLAIN])
def test_chances_sum_to_one_in_every_part_and_numbers_are_consecutive(name, table):
    design = design_of(table, name)
    views = list(design)
    assert [view.number for view in views] == list(range(design.views))
    for part in range(len(design.parts)):
        assert sum(view.probability for view in views if view.part == part) == 1
    with pytest.raises(IndexError):
        design.view(design.views)


@pytest.mark.parametrize("name", DESIGNS)
def test_without_anything_to_sum_groups_fall_back_to_the_plain_design(name):
    plain = {"ahio": "hio", "ehio": "hio", "amg": "mg", "sr-hio": "hio"}.get(name, name)
    assert design_of(PLAIN, name).parts == design_of(PLAIN, plain).parts


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("table", [ONE, MANY])
def test_cells_of_a_view_are_numbered_without_gaps_or_collisions(name, table):
    design = design_of(table, name)
    for view in list(design)[:: max(1, design.views // 12)]:
        sizes = [axis.tree.size for axis in view.group.axes]
        numbers = {view.group.number(view.levels, coordinates) for coordinates in itertools.product(*map(range, sizes))}
        assert numbers == set(range(view.cells))


def test_the_embedded_axis_mirrors_values_that_were_rounded_down():
    # On [1, 7] a value t rounded down becomes 2·1 − t − 1, counted from 2·1 − 7 − 1 on; others stay above.
    axis = Axis(EMBEDDED, Tree(14, 2), 0)
    for t in range(1, 8):
        assert axis.coordinate(t - 1, False, False) == (2 * 1 - t - 1) - (2 * 1 - 7 - 1)
        assert axis.coordinate(t - 1, True, False) == t - (2 * 1 - 7 - 1)


def test_the_oracle_is_the_better_of_the_two():
    design = design_of(ONE, "hio")
    for view in design:
        if view.cells == 1:
            assert view.oracle == SingleCell(design.epsilon, 1)
            assert view.outcomes == 1
            continue
        response, hashing = RandomizedResponse(design.epsilon, view.cells), LocalHashing(design.epsilon, view.cells)
        better = min((response, hashing), key=lambda oracle: oracle.variance(1))
        assert view.oracle == better or math.isclose(response.variance(1), hashing.variance(1), rel_tol=0.02)
        assert view.outcomes == (view.cells if isinstance(view.oracle, RandomizedResponse) else hashing.g)
    for view in design_of(ONE, "hio", oracle="olh"):
        assert isinstance(view.oracle, SingleCell if view.cells == 1 else LocalHashing)


def test_a_design_prints():
    shown = str(design_of(ONE, "hio"))
    assert shown.splitlines()[:2] == ["32 views, ε = 1 per report", "view 0: 1 cell, probability 1/32, no oracle"]
    assert "view 31: 105 cells, probability 1/32, LocalHashing" in shown
    assert str(design_of(ONE, "sr-hio")).endswith("… and 78 more")


def test_fold_and_radix_agree_between_one_row_and_many():
    big = all_levels(*(Axis("value", Tree(1000, 10), attribute) for attribute in range(5)))
    small = Group(big.axes[:2], big.levels[:2])
    random = np.random.default_rng(3)
    for group in (big, small):
        local = random.integers(0, group.views, 500)
        coordinates = [random.integers(0, 1000, 500) for _ in group.axes]
        numbers, cells = _cells(group, local, coordinates)
        for row in range(500):
            levels = group.choice(int(local[row]))
            single = tuple(int(column[row]) for column in coordinates)
            assert numbers[row] == group.number(levels, single)
            assert cells[row] == group.cells(levels)
        assert (cells > NUMBERED_CELLS).any() == (group is big)
        assert numbers.max() < 2**32


def test_very_many_cells_are_still_told_apart():
    huge = Group(tuple(Axis("value", Tree(10**6, 10), attribute) for attribute in range(8)), ((6,),) * 8)
    random = np.random.default_rng(4)
    coordinates = [random.integers(0, 10**6, 100_000) for _ in range(8)]
    numbers, cells = _cells(huge, np.zeros(100_000, dtype=np.int64), coordinates)
    assert (cells == 2**62).all()
    assert np.unique(numbers).size > 100_000 - 10  # 1.2 of 100,000 random numbers of 32 bits collide on average
    assert Design(((huge,),), 1.0).view(0).probability == Fraction(1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0, math.inf])
@pytest.mark.parametrize("oracle", ["auto", "olh"])
def test_no_view_has_more_outcomes_than_the_design_says(epsilon, oracle):
    table = dn.Table("t", a=dn.Ordinal(0, 30), b=dn.Categorical("x", "y", "z"))
    for name in DESIGNS:
        design = dn.Collection(table, epsilon=epsilon, design=name, oracle=oracle).design_of("t")
        assert max(view.outcomes for view in design) <= design.most_outcomes
