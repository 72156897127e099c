"""What people are worth in the squares of their contributions: planned without bias, and subtracted."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable.queries.answers.estimation import Moments, covariance
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.plan import make_plan
from deniable.queries.planning.product_moments import MOST_MULTIPLIED, with_known_spread, with_products
from deniable.queries.question.question import NO_ROW

USERS = dn.Table("users", age=dn.Ordinal(0, 3), kind=dn.Categorical("a", "b"), city=dn.Public(), score=dn.Public())
JOBS = dn.Table("jobs", hours=dn.Ordinal(0, 2))
ORDERS = dn.Table("orders", many=3, amount=dn.Ordinal(0, 3))


def asked(text, design="hio"):
    collection = dn.Collection(USERS, JOBS, ORDERS, epsilon=6.0, design=design)
    return collection, parse(text, collection)


def planned(text, design="hio"):
    collection, question = asked(text, design)
    return with_known_spread(make_plan(question, collection))


def reports_of(plan, number, row):
    """Every report about a row of a table, with its exact probability, and what it contributes to each column."""
    table = plan.tables[number]
    (part,) = table.parts
    axes = plan.collection.design_of(table.table)
    rest = Fraction(1)
    for view in part.views:
        listed = view.by_cell()
        weights = [[Fraction(value) for value in line] for line in listed.weights.dense(part.constants.size).tolist()]
        cells = dict(zip(listed.cells.tolist(), weights, strict=True))
        oracle, chance = view.oracle, Fraction(view.probability).limit_denominator(10**6)
        rest -= chance
        for reported, law in enumerate(oracle.law(int(cell_of(axes, view.view, row)))):
            contributed = [Fraction(value) for value in part.constants.tolist()]
            for cell, mine in cells.items():
                support = (Fraction(reported == cell) - oracle.q) / (oracle.p - oracle.q)
                contributed = [total + weight * support for total, weight in zip(contributed, mine, strict=True)]
            yield chance * law, contributed
    if rest:
        yield rest, [Fraction(value) for value in part.constants.tolist()]


def cell_of(design, number, row):
    view = design.view(number)
    places = [
        axis.tree.cell(level, row[axis.attribute]) for axis, level in zip(view.group.axes, view.levels, strict=True)
    ]
    cell = 0
    for axis, level, place in zip(view.group.axes, view.levels, places, strict=True):
        cell = cell * axis.tree.cells(level) + place
    return cell


QUESTIONS = [
    ("SELECT SUM(age) FROM users", ()),
    ("SELECT AVG(age) FROM users WHERE age > 0", ()),
    ("SELECT AVG(age) FROM users WHERE age > 0 OR kind = 'b'", ()),
    ("SELECT SUM(age * (kind = 'a')) FROM users", ()),
    ("SELECT COUNT(*) FILTER (WHERE age > 1) / COUNT(*) FROM users WHERE kind = 'a'", ()),
    ("SELECT SUM(age) FROM users JOIN jobs USING (uid) WHERE hours > 0", (2,)),
]


@pytest.mark.parametrize(("text", "others"), QUESTIONS)
@pytest.mark.parametrize("design", ["hio", "mg"])
def test_squares_less_products_are_the_covariance_of_one_user(text, others, design):
    plan = planned(text, design)
    products = plan.question.products
    assert products
    hours = others[0] if others else 0
    for age in range(4):
        for kind in range(2):
            rows = [(age, kind) if name == "users" else (hours,) for name in plan.question.tables]
            first = {}
            second = {}
            outcomes = [(Fraction(1), ())]
            for number, row in enumerate(rows):
                outcomes = [
                    (chance * more, (*columns, mine))
                    for chance, columns in outcomes
                    for more, mine in reports_of(plan, number, row)
                ]
            assert sum(chance for chance, _ in outcomes) == 1
            for chance, columns in outcomes:
                values = [
                    sum(
                        Fraction(term.coefficient)
                        * np.prod([mine[at] for mine, at in zip(columns, term.columns, strict=True)], initial=1)
                        for term in plan.terms(0, moment)
                    )
                    for moment in range(len(plan.question.moments))
                ]
                for moment, value in enumerate(values):
                    first[moment] = first.get(moment, 0) + chance * value
                for pair in products:
                    second[pair] = second.get(pair, 0) + chance * values[pair[0]] * values[pair[1]]
            for (one, other), product in products.items():
                worth = 0 if product == NO_ROW else first[product]
                noise = second[one, other] - first[one] * first[other]  # the covariance, from the law itself
                scale = float(second[one, one] * second[other, other]) ** 0.5 + 1
                assert float(second[one, other] - worth) == pytest.approx(float(noise), abs=1e-9 * scale)


def test_what_is_known_already_is_not_asked_again():
    _, average = asked("SELECT AVG(age) FROM users WHERE kind = 'a'")
    with_squares = with_products(average)
    assert len(with_squares.moments) == len(average.moments) + 1  # 1·v = v and 1·1 = 1
    count = next(number for number, moment in enumerate(average.moments) if moment.indicator)
    assert with_squares.products[count, count] == count
    _, apart = asked("SELECT COUNT(*) FILTER (WHERE age = 0) - COUNT(*) FILTER (WHERE age = 1) FROM users")
    assert NO_ROW in with_products(apart).products.values()
    assert len(with_products(apart).moments) == len(apart.moments)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM users WHERE age > 1",
        "SELECT SUM(score) FROM users WHERE age > 1",
        "SELECT SUM(age) FROM users LEFT JOIN jobs USING (uid) WHERE hours > 1 OR hours IS NULL",
        "SELECT AVG(amount) FROM orders",
        "SELECT " + ", ".join(f"SUM(age * (age > {least})) AS x{least}" for least in range(MOST_MULTIPLIED + 1))
        + " FROM users",
    ],
)  # fmt: skip
def test_no_products_where_they_would_say_nothing_or_not_the_truth(text):
    if "x4" not in text:
        assert not planned(text).question.products
        return
    _, question = asked(text.replace("age > 4", "kind = 'a'"))
    assert with_products(question) is question


def test_the_spread_of_values_is_no_error():
    collection = dn.Collection(USERS, epsilon=6.0, design="mg")
    frame = {"uid": range(4_000), "age": [0, 3] * 2_000, "kind": ["a"] * 4_000, "city": ["x"] * 4_000}
    frame |= {"score": [1] * 4_000}
    database = dn.connect(collection.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
    question = parse("SELECT AVG(age) FROM users", collection)
    plain = make_plan(question, collection)
    sharp = with_known_spread(plain)
    used = set(range(len(question.moments)))
    crude, less = (
        covariance(plan.question, database.engine.moments(plan, {}), True, used)[0][: len(used), : len(used)]
        for plan in (plain, sharp)
    )
    spread = 4_000 * 1.5**2
    number = int(np.argmax(np.diag(crude)))
    assert less[number, number] == pytest.approx(crude[number, number] - spread, abs=0.1 * spread)
    assert np.linalg.eigvalsh(less)[0] >= -1e-6


def test_an_estimate_that_is_as_rough_as_what_it_says_is_not_subtracted():
    _, question = asked("SELECT SUM(age) FROM users")
    sharp = with_products(question)
    ((square,),) = ([sharp.products[0, 0]],)

    def moments(product, error):
        sums, crosses = np.array([[50.0, product]]), np.zeros((1, 2, 2))
        crosses[0, 0, 0], crosses[0, square, square] = 1_000.0, error**2 + product**2 / 100
        known = np.zeros((1, 2), dtype=bool)
        return Moments(((),), np.array([100.0]), sums, crosses, np.zeros_like(crosses), np.zeros(1, int), known)

    crude = 1_000 - 50**2 / 100
    for product, error, expected in [
        (225.0, 0.0, 775.0), (225.0, 50.0, 825.0), (225.0, 400.0, crude), (10.0, 1.0, crude), (2_000.0, 0.0, crude),
    ]:  # fmt: skip
        found = covariance(sharp, moments(product, error), True, {0})[0, 0, 0]
        assert found == pytest.approx(expected), (product, error)
    pooled = replace(moments(225.0, 0.0), pooled=True)
    assert covariance(sharp, pooled, True, {0})[0, 0, 0] == pytest.approx(crude)
