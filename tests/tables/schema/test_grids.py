"""Grids: cuts of domains, what is refused, and how they are written down."""

from fractions import Fraction

import pytest

import deniable as dn
from deniable.errors import InvalidParameter

USERS = dn.Table("users", age=dn.Ordinal(0, 99), sex=dn.Categorical("f", "m", "x"), city=dn.Public())
ORDERS = dn.Table("orders", many=4, amount=dn.Ordinal(0, 500))
VIEWS = [
    dn.GridView({"sex": 3, "age": dn.Points([0, 20, 99])}, weight=3),
    dn.GridView({"age": dn.Cells([0, 18, 65])}),
]


def shop(**grids):
    return dn.Collection(USERS, ORDERS, epsilon=2.0, design="grid", grids=grids or None)


def test_without_a_list_every_attribute_and_every_pair_has_a_view():
    grids = shop().grids
    assert [dict(view.axes) for view in grids["users"]] == [
        {"age": dn.Cells(32)},
        {"sex": dn.Cells(3)},
        {"age": dn.Cells(8), "sex": dn.Cells(3)},
    ]
    assert [view.cells for view in shop().design_of("orders")] == [64]  # the weight doubles the cells


def test_views_have_their_probabilities_and_cells():
    design = shop(users=VIEWS).design_of("users")
    assert [(view.cells, view.probability) for view in design] == [(9, Fraction(3, 4)), (3, Fraction(1, 4))]


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_grid_survives_its_file(ending, tmp_path):
    made = shop(users=VIEWS)
    made.save(tmp_path / f"shop.{ending}")
    read = dn.Collection.load(tmp_path / f"shop.{ending}")
    assert read == made
    assert read.grids == made.grids
    assert read != shop()


def test_cuts_that_are_even_are_written_as_their_number():
    listed = shop(users=[dn.GridView({"age": dn.Cells(range(0, 100, 25)), "sex": 3})])
    assert listed == shop(users=[dn.GridView({"sex": 3, "age": 4})])
    assert listed.to_dict()["grids"]["users"] == [{"weight": 1, "axes": {"age": {"cells": 4}, "sex": {"cells": 3}}}]


def test_other_designs_keep_their_identity():
    assert "grids" not in dn.Collection(USERS, epsilon=1.0).to_dict()


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ([], "must be a list of views"),
        ("age", "must be a list of views"),
        ([dn.GridView({})], "a view without attributes"),
        ([dn.GridView({"city": 2})], "names 'city'"),
        ([dn.GridView({"age": 0})], "must have 1 to 100 cells"),
        ([dn.GridView({"age": 101})], "must have 1 to 100 cells"),
        ([dn.GridView({"age": dn.Points(1)})], "must have 2 to 100 points"),
        ([dn.GridView({"age": dn.Points([0, 50])})], "the last being 99"),
        ([dn.GridView({"age": dn.Cells([1, 50])})], "rising positions from 0 to below 100"),
        ([dn.GridView({"age": dn.Cells([0, 50, 50])})], "rising positions"),
        ([dn.GridView({"age": dn.Cells([0, 100])})], "rising positions"),
        ([dn.GridView({"age": dn.Cells([0, 1.5])})], "must list positions"),
        ([dn.GridView({"age": "8"})], "neither cells nor points"),
        ([dn.GridView({"sex": dn.Points(2)})], "is categorical"),
        ([dn.GridView({"age": 4}, weight=0)], "weight must be an integer"),
        ([{"axes": {"age": {"cell": 4}}}], "neither cells nor points"),
        ([{"axes": {"age": 4}, "probability": 1}], "is not a field of a view"),
    ],
)
def test_what_is_wrong_is_named(views, message):
    with pytest.raises(InvalidParameter, match=message):
        shop(users=views)


def test_grids_belong_to_their_design_and_tables():
    with pytest.raises(InvalidParameter, match="are for the design grid"):
        dn.Collection(USERS, epsilon=1.0, grids={"users": VIEWS})
    with pytest.raises(InvalidParameter, match="are not of any table"):
        shop(people=VIEWS)


def test_a_point_is_right_on_average_and_a_cell_is_a_cell():
    design = shop(users=VIEWS).design_of("users")
    points, cells = design.view(0).group.axes[0], design.view(1).group.axes[0]
    for value in range(100):
        index, chance = points.located(value, 100)
        first, second = points.places[index : index + 2]
        assert first + chance * (second - first) == value
        index, chance = cells.located(value, 100)
        assert chance == 0
        assert index == (value >= 18) + (value >= 65)
