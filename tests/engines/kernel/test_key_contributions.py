"""What an id's report contributes, and its variance: unbiased over the whole law of the report, in every case."""

import itertools

import numpy as np
import pytest

import deniable as dn
from deniable.engines.kernel.key_contributions import key_contributions
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.key_functions import functions_plan
from deniable.queries.weights.axis_weights import Rule

BOUGHT = dn.Table("bought", pid=dn.Ordinal(1, 3))
PRODUCTS = dn.Table("products", owner="shop", key="pid", kind=dn.Categorical("a", "b", "c"), price=dn.Ordinal(0, 4))
QUESTION = (
    "SELECT COUNT(*), SUM(price), COUNT(*) FILTER (WHERE kind = 'a'), SUM(price) FILTER (WHERE kind <> 'b') "
    "FROM bought JOIN products USING (pid)"
)


def values_of(row):
    kind, price = row
    return np.array([1.0, price, float(kind == "a"), price * (kind != "b")])


@pytest.mark.parametrize("design", ["hio", "mg"])
def test_contributions_and_their_variances_are_unbiased(design):
    # ε is large enough for randomized response in every view, whose reports can be listed.
    collection = dn.Collection(BOUGHT, PRODUCTS, epsilon=1.0, owners={"shop": 2.5}, design=design)
    made = collection.design_of("products")
    question = parse(QUESTION, collection, centred=False)
    asked = functions_plan(question, collection, Rule.of("optimal"))
    views = [made.view(number) for number in range(made.views)]
    listed = [(number, y) for number, view in enumerate(views) for y in range(view.oracle.outcomes)]
    view, y = (np.array(column) for column in zip(*listed, strict=True))
    contributed = key_contributions(asked, made, (view.astype(np.uint32), np.zeros(view.size, np.uint32), y))
    assert contributed.values.shape[0] == asked.functions == 4
    for row in itertools.product("abc", range(5)):
        cells = dict(zip(PRODUCTS.private, (PRODUCTS.domains[0].encode(row[0]), row[1]), strict=True))
        chances = []
        for number, outcome in listed:
            described = views[number]
            assert "hash" not in type(described.oracle).__name__.lower()
            cell = 0
            for axis, level in zip(described.group.axes, described.levels, strict=True):
                node = cells[PRODUCTS.private[axis.attribute]] // axis.tree.width(level)
                cell = cell * axis.tree.cells(level) + node
            chances.append(float(described.probability * described.oracle.law(cell)[outcome]))
        chance = np.array(chances)
        assert chance.sum() == pytest.approx(1)
        mean = contributed.values @ chance
        np.testing.assert_allclose(mean, values_of(row), atol=1e-9)
        second = np.einsum("ir,jr,r->ij", contributed.values, contributed.values, chance)
        np.testing.assert_allclose(contributed.spreads @ chance, second - np.outer(mean, mean), atol=1e-8)
