"""A plan's contributions: exact without noise, right on average with it, for every design and rule."""

import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.kernel import contributions
from deniable.errors import InvalidParameter
from deniable.mechanisms import LocalHashing
from deniable.queries.table_plan import RULES, plan
from deniable.randomness import SeededSource
from deniable.tables.designs import DESIGNS

USERS = dn.Table("t", age=dn.Ordinal(0, 24), kind=dn.Categorical("a", "b", "c"))
ORDERS = dn.Table("t", many=4, tau=2, age=dn.Ordinal(0, 24), kind=dn.Categorical("a", "b", "c"))
AGES = np.arange(25)
QUESTIONS = {
    "everybody": {},
    "a range": {"age": ((AGES >= 3) & (AGES <= 17)).astype(float)},
    "a range of a kind": {"age": (AGES < 11).astype(float), "kind": np.array([0.0, 1.0, 0.0])},
    "a sum": {"age": AGES.astype(float)},
    "a sum of two kinds": {"age": AGES.astype(float), "kind": np.array([1.0, 0.0, 1.0])},
}


def truth(question, age, kind):
    value = np.ones(age.size)
    for name, column in (("age", age), ("kind", kind)):
        value = value * question.get(name, np.ones(25))[column]
    return value


def per_row(collection, rule, question, reports):
    """Contributions of rows: the product over the parts of a design, of one slot's reports."""
    design = collection.design_of("t")
    made = plan(collection["t"], design, question, rule)
    columns = [reports[name].to_numpy() for name in ("view", "seed", "y")]
    parts = len(design.parts)
    found = [
        contributions(views, design.views, *(column[place::parts] for column in columns))
        for place, views in enumerate(made.parts)
    ]
    return np.prod(found, axis=0)


def collected(collection, users, seed, rows=1):
    random = np.random.default_rng(seed)
    uid = np.arange(users) if rows == 1 else np.repeat(np.arange(users), random.integers(0, 7, users))
    age, kind = random.binomial(24, 0.4, uid.size), random.integers(0, 3, uid.size)
    frame = pa.table({"uid": uid, "age": age, "kind": np.array(["a", "b", "c"])[kind]})
    everyone = pa.table({"uid": np.arange(users)})
    reports = collection.perturb(t=frame, everyone=everyone, source=SeededSource(seed), simulation=True)["t"]
    return uid, age, kind, reports


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_row_is_reproduced_cell_by_cell(design, rule, question):
    # Without sampling: the weights of the cells a row falls in, over all views, add up to the question's value.
    collection = dn.Collection(USERS, epsilon=1.0, design=design, fanout=3)
    made = plan(USERS, collection.design_of("t"), QUESTIONS[question], rule)
    specification = collection.design_of("t")
    random = np.random.default_rng(1)
    for age, kind, up in zip(
        random.integers(0, 25, 30), random.integers(0, 3, 30), random.integers(0, 2, 30), strict=True
    ):
        product = 1.0
        for views in made.parts:
            total = 0.0
            for one in views:
                view = specification.view(one.view)
                row = (int(age), int(kind))
                place = tuple(
                    axis.coordinate(row[axis.attribute] if axis.attribute >= 0 else 0, int(up) * axis.rounds_value, 0)
                    for axis in view.group.axes
                )
                hit = one.cells == view.group.number(view.levels, place)
                total += float(one.weights[hit].sum()) * float(view.probability)
            product *= total
        assert product == pytest.approx(truth(QUESTIONS[question], np.array([age]), np.array([kind]))[0], abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("design", DESIGNS)
def test_contributions_are_right_on_average_and_the_spread_tells_the_error(design, rule):
    collection = dn.Collection(USERS, epsilon=3.0, design=design, fanout=3)
    users = 60_000
    for question in QUESTIONS.values():
        _, age, kind, reports = collected(collection, users, seed=7)
        found = per_row(collection, rule, question, reports)
        value = truth(question, age, kind)
        # Contributions are independent given the rows: five standard errors, from their own spread around the truth.
        error = found - value
        assert abs(error.sum()) < 5 * math.sqrt(np.square(error).sum())


@pytest.mark.parametrize("design", ["hio", "ahio", "ehio", "sr-hio", "mg"])
def test_tables_with_many_rows_count_rows_and_not_users(design):
    collection = dn.Collection(ORDERS, epsilon=4.0, design=design, fanout=3)
    uid, age, kind, reports = collected(collection, 40_000, seed=8, rows=6)
    value = truth(QUESTIONS["a range"], age, kind)
    rows = np.bincount(uid, minlength=40_000)
    # Of more than `many` rows a random `many` count, so a user's expected total is cut in that proportion.
    kept = np.where(rows > 4, 4 / np.maximum(rows, 1), 1.0)
    expected = np.bincount(uid, weights=value, minlength=40_000) * kept
    found = per_row(collection, "optimal", QUESTIONS["a range"], reports).reshape(-1, 2).sum(axis=1)
    error = found - expected
    assert abs(error.sum()) < 5 * math.sqrt(np.square(error).sum())
    assert found.sum() == pytest.approx(expected.sum(), rel=0.5)


@pytest.mark.parametrize("question", QUESTIONS)
def test_without_noise_and_with_one_view_the_answer_is_exact(question):
    collection = dn.Collection(USERS, epsilon=math.inf, design="mg")
    _, age, kind, reports = collected(collection, 5_000, seed=9)
    found = per_row(collection, "optimal", QUESTIONS[question], reports)
    np.testing.assert_allclose(found, truth(QUESTIONS[question], age, kind), atol=1e-12)


def test_the_kernel_is_the_formula():
    collection = dn.Collection(USERS, epsilon=1.0, design="hio", fanout=3)
    design = collection.design_of("t")
    made = plan(USERS, design, QUESTIONS["a range of a kind"])
    _, _, _, reports = collected(collection, 2_000, seed=10)
    view, seed, y = (reports[name].to_numpy() for name in ("view", "seed", "y"))
    found = contributions(made.parts[0], design.views, view, seed, y)
    by_view = {one.view: one for one in made.parts[0]}
    for report in range(300):
        expected = 0.0
        if int(view[report]) in by_view:
            one = by_view[int(view[report])]
            oracle = design.view(one.view).oracle
            for cell, weight in zip(one.cells.tolist(), one.weights.tolist(), strict=True):
                if oracle is None:
                    support, p, q = 1.0, 1.0, 0.0
                elif isinstance(oracle, LocalHashing):
                    support = float(oracle.bucket(int(seed[report]), cell) == y[report])
                    p, q = float(oracle.p), float(oracle.q)
                else:
                    support, p, q = float(cell == y[report]), float(oracle.p), float(oracle.q)
                expected += weight * (support - q) / (p - q)
        assert found[report] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_optimal_weights_have_less_variance_than_greedy_ones():
    collection = dn.Collection(dn.Table("t", age=dn.Ordinal(0, 124)), epsilon=1.0)
    design, values = collection.design_of("t"), np.arange(125)
    question = {"age": ((values >= 13) & (values <= 98)).astype(float)}
    frame = pa.table({"uid": np.arange(100_000), "age": np.arange(100_000) % 125})
    reports = collection.perturb(t=frame, source=SeededSource(11), simulation=True)["t"]
    columns = [reports[name].to_numpy() for name in ("view", "seed", "y")]
    spread = {
        rule: contributions(plan(collection["t"], design, question, rule).parts[0], design.views, *columns).var()
        for rule in RULES
    }
    assert spread["optimal"] < 0.6 * spread["greedy"]


def test_a_plan_prints_and_refuses_what_does_not_fit():
    design = dn.Collection(USERS, epsilon=1.0).design_of("t")
    assert str(plan(USERS, design, QUESTIONS["a range"], "greedy")).startswith("table t, greedy weights\npart 0: ")
    with pytest.raises(InvalidParameter, match="weights are unknown"):
        plan(USERS, design, {}, "best")
    with pytest.raises(InvalidParameter, match="function of 'age' does not fit"):
        plan(USERS, design, {"age": np.ones(3)})
