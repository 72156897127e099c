"""A plan's contributions: exact without noise, right on average with it, for every design and rule."""

import math
from functools import lru_cache
from itertools import combinations, islice

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.kernel.contributions import Program
from deniable.errors import InvalidParameter
from deniable.mechanisms import LocalHashing
from deniable.queries.weights import axis_weights
from deniable.queries.weights.axis_weights import Rule
from deniable.queries.weights.product_weights import plan_table
from deniable.queries.weights.table_plan import DESIGNED, DIRECT, Product
from deniable.randomness import SeededSource
from deniable.tables.designs import DESIGNS
from effort import repetitions

USERS = dn.Table("t", age=dn.Ordinal(0, 24), kind=dn.Categorical("a", "b", "c"))
ORDERS = dn.Table("t", many=4, tau=2, age=dn.Ordinal(0, 24), kind=dn.Categorical("a", "b", "c"))
AGES = np.arange(25)
FIRST_KINDS = np.array([1.0, 0.0, 1.0])
RULES = ["greedy", "rdc(4)", "optimal"]
QUESTIONS = {
    "everybody": ({}, {}),
    "a range": ({"age": ((AGES >= 3) & (AGES <= 17)).astype(float)}, {}),
    "a range of a kind": ({"age": (AGES < 11).astype(float), "kind": np.array([0.0, 1.0, 0.0])}, {}),
    "a sum": ({}, {"age": AGES.astype(float)}),
    "a sum of two kinds": ({"kind": FIRST_KINDS}, {"age": AGES.astype(float)}),
    "a sum over a range": ({"age": (AGES > 6).astype(float)}, {"age": AGES - 12.0}),
    "a sum of squares": ({}, {"age": np.square(AGES - 12.0)}),
}


def products(name):
    return (Product(1.0, *QUESTIONS[name]),)


def truth(name, age, kind):
    conditions, measures = QUESTIONS[name]
    value = np.ones(age.size)
    for functions in (conditions, measures):
        for attribute, column in (("age", age), ("kind", kind)):
            value = value * functions.get(attribute, np.ones(25))[column]
    return value


def made(collection, rule, names, sums=DIRECT):
    return plan_table(
        collection["t"], collection.design_of("t"), [products(name) for name in names], Rule.of(rule), sums
    )


def per_row(collection, plan, reports):
    """Contributions of rows: the product over the parts of a design, of one slot's reports."""
    views, parts = collection.design_of("t").views, len(plan.parts)
    columns = [reports[name].to_numpy() for name in ("view", "seed", "y")]
    return np.prod(
        [
            Program.of(part, views).contributions(*(column[number::parts] for column in columns))
            for number, part in enumerate(plan.parts)
        ],
        axis=0,
    )


def collected(collection, users, seed, rows=1):
    random = np.random.default_rng(seed)
    uid = np.arange(users) if rows == 1 else np.repeat(np.arange(users), random.integers(0, 7, users))
    age, kind = random.binomial(24, 0.4, uid.size), random.integers(0, 3, uid.size)
    frame = pa.table({"uid": uid, "age": age, "kind": np.array(["a", "b", "c"])[kind]})
    everyone = pa.table({"uid": np.arange(users)})
    reports = collection.perturb(t=frame, everyone=everyone, source=SeededSource(seed), simulation=True)["t"]
    return uid, age, kind, reports


@lru_cache(maxsize=1000)
def by_cell(planned):
    """What the cells of a view weigh; many rows ask for it."""
    return planned.by_cell()


def cell_weights(plan, design, row, ups):
    """For every column, what the cells that a row falls in weigh, over all views: the estimate without any noise."""
    product = np.ones(plan.columns)
    for part in plan.parts:
        total = part.constants.copy()
        for planned in part.views:
            view = design.view(planned.view)
            assert view.levels == planned.levels
            node = tuple(
                axis.coordinate(
                    row[axis.attribute] if axis.attribute >= 0 else 0, ups[axis.attribute] * axis.rounds_value, 0
                )
                for axis in view.group.axes
            )
            cells, _, weights = by_cell(planned)
            hit = np.flatnonzero(cells == view.group.number(view.levels, node))
            for index in hit:
                entries = slice(weights.starts[index], weights.starts[index + 1])
                total[weights.columns[entries]] += weights.values[entries] * float(view.probability)
        product *= total
    return product


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("design", DESIGNS)
def test_every_row_is_reproduced_cell_by_cell(design, rule):
    # Without sampling: the weights of the cells a row falls in, over all views, add up to the question's value.
    collection = dn.Collection(USERS, epsilon=1.0, design=design, fanout=3)
    plan, random = made(collection, rule, QUESTIONS), np.random.default_rng(1)
    for age, kind, up in random.integers(0, (25, 3, 2), (30, 3)).tolist():
        weights = cell_weights(plan, collection.design_of("t"), (age, kind), (up, 0))
        expected = [truth(name, np.array([age]), np.array([kind]))[0] for name in QUESTIONS]
        np.testing.assert_allclose(weights, expected, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("design", ["ahio", "ehio", "sr-hio", "amg"])
def test_rounded_sums_are_right_on_average_over_the_coin(design, rule):
    collection = dn.Collection(USERS, epsilon=1.0, design=design, fanout=3)
    plan = made(collection, rule, QUESTIONS, DESIGNED)
    for age in range(25):
        ends = [cell_weights(plan, collection.design_of("t"), (age, 2), (up, 0)) for up in (0, 1)]
        weights = ends[0] * (1 - age / 24) + ends[1] * age / 24
        expected = [truth(name, np.array([age]), np.array([2]))[0] for name in QUESTIONS]
        np.testing.assert_allclose(weights, expected, atol=1e-9)
    # A sum is read off the coin, so the two ends differ; what is no straight line is summed directly.
    differs = dict(zip(QUESTIONS, np.abs(ends[1] - ends[0]) > 1e-9, strict=True))
    assert differs["a sum"]
    assert differs["a sum over a range"]
    assert not differs["a range"]
    assert not differs["a sum of squares"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("design", DESIGNS)
def test_contributions_are_right_on_average(design, rule):
    collection = dn.Collection(USERS, epsilon=3.0, design=design, fanout=3)
    _, age, kind, reports = collected(collection, repetitions(20_000, 60_000), seed=7)
    for sums in (DIRECT, DESIGNED):
        contributions = per_row(collection, made(collection, rule, QUESTIONS, sums), reports)
        for column, name in enumerate(QUESTIONS):
            # Contributions are independent given the rows: five standard errors, from their own spread.
            error = contributions[:, column] - truth(name, age, kind)
            assert abs(error.sum()) <= 5 * math.sqrt(np.square(error).sum()) + 1e-6


@pytest.mark.parametrize("design", ["hio", "ahio", "ehio", "sr-hio", "mg"])
def test_tables_with_many_rows_count_rows_and_not_users(design):
    collection = dn.Collection(ORDERS, epsilon=4.0, design=design, fanout=3)
    uid, age, kind, reports = collected(collection, 40_000, seed=8, rows=6)
    rows = np.bincount(uid, minlength=40_000)
    # Of more than `many` rows a random `many` count, so a user's expected total is cut in that proportion.
    kept = np.where(rows > 4, 4 / np.maximum(rows, 1), 1.0)
    for sums in (DIRECT, DESIGNED):
        names = ["a range", "a sum of two kinds"]
        contributions = (
            per_row(collection, made(collection, "optimal", names, sums), reports).reshape(-1, 2, 2).sum(axis=1)
        )
        for column, name in enumerate(names):
            expected = np.bincount(uid, weights=truth(name, age, kind), minlength=40_000) * kept
            error = contributions[:, column] - expected
            assert abs(error.sum()) < 5 * math.sqrt(np.square(error).sum())
            assert contributions[:, column].sum() == pytest.approx(expected.sum(), rel=0.5)


def test_without_noise_and_with_one_view_the_answer_is_exact():
    collection = dn.Collection(USERS, epsilon=math.inf, design="mg")
    _, age, kind, reports = collected(collection, 5_000, seed=9)
    contributions = per_row(collection, made(collection, "optimal", QUESTIONS), reports)
    for column, name in enumerate(QUESTIONS):
        np.testing.assert_allclose(contributions[:, column], truth(name, age, kind), atol=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 13.0])
def test_the_kernel_is_the_formula(epsilon):
    # The second ε has too many buckets for a list of them.
    collection = dn.Collection(USERS, epsilon=epsilon, design="hio", fanout=3, oracle="olh")
    design = collection.design_of("t")
    names = ["a range of a kind", "a sum", "everybody"]
    plan = made(collection, "optimal", names)
    _, _, _, reports = collected(collection, 400, seed=10)
    view, seed, y = (reports[name].to_numpy() for name in ("view", "seed", "y"))
    contributions = Program.of(plan.parts[0], design.views).contributions(view, seed, y)
    by_view = {planned.view: planned for planned in plan.parts[0].views}
    for report in range(400):
        expected = plan.parts[0].constants.copy()
        if int(view[report]) in by_view:
            planned = by_view[int(view[report])]
            oracle = design.view(planned.view).oracle
            cells, _, weights = by_cell(planned)
            for index, cell in enumerate(cells.tolist()):
                if isinstance(oracle, LocalHashing):
                    support = float(oracle.bucket(int(seed[report]), cell) == y[report])
                else:
                    support = float(cell == y[report])
                entries = slice(weights.starts[index], weights.starts[index + 1])
                value = weights.values[entries] * (support - float(oracle.q)) / (float(oracle.p) - float(oracle.q))
                np.add.at(expected, weights.columns[entries], value)
        np.testing.assert_allclose(contributions[report], expected, rtol=1e-9, atol=1e-9)


def test_groups_share_their_work_and_agree_with_being_asked_one_by_one(monkeypatch):
    monkeypatch.setattr(axis_weights, "EFFORT", 0.0)  # one question alone could afford more cells
    table = dn.Table("t", age=dn.Ordinal(0, 24), kind=dn.Categorical([*"abcdefghij"]))
    collection = dn.Collection(table, epsilon=1.5, fanout=3)
    design, views = collection.design_of("t"), collection.design_of("t").views
    random = np.random.default_rng(3)
    frame = pa.table(
        {
            "uid": np.arange(3_000),
            "age": random.integers(0, 25, 3_000),
            "kind": np.array([*"abcdefghij"])[random.integers(0, 10, 3_000)],
        }
    )
    reports = collection.perturb(t=frame, source=SeededSource(1), simulation=True)["t"]
    columns = [reports[name].to_numpy() for name in ("view", "seed", "y")]
    groups = [
        (Product(1.0, {"kind": np.eye(10)[kind], "age": (bin_ == AGES // 5).astype(float)}, {}),)
        for kind in range(10)
        for bin_ in range(5)
    ]
    rule = Rule.of("optimal")
    together = Program.of(plan_table(table, design, groups, rule).parts[0], views).contributions(*columns)
    for group in (0, 17, 49):
        alone = Program.of(plan_table(table, design, [groups[group]], rule).parts[0], views).contributions(*columns)
        # The weights are chosen for the average group, so the two may differ a little, and only in the noise.
        assert np.square(together[:, group]).sum() == pytest.approx(np.square(alone).sum(), rel=0.1)
    greedy = Rule.of("greedy")
    together = Program.of(plan_table(table, design, groups, greedy).parts[0], views).contributions(*columns)
    for group in (0, 17, 49):
        alone = Program.of(plan_table(table, design, [groups[group]], greedy).parts[0], views).contributions(*columns)
        np.testing.assert_allclose(together[:, group], alone[:, 0], atol=1e-9)


@pytest.mark.parametrize(("epsilon", "least"), [(0.5, 2.3), (1.0, 2.3), (3.0, 2.0)])
def test_optimal_weights_have_less_variance_than_greedy_ones(epsilon, least):
    table = dn.Table("t", age=dn.Ordinal(0, 124), kind=dn.Categorical("a", "b", "c"))
    collection, values = dn.Collection(table, epsilon=epsilon), np.arange(125)
    question = (Product(1.0, {"age": ((values >= 13) & (values <= 98)).astype(float)}, {}),)
    random = np.random.default_rng(2)
    frame = pa.table({"uid": np.arange(100_000), "age": random.integers(0, 125, 100_000), "kind": ["a"] * 100_000})
    reports = collection.perturb(t=frame, source=SeededSource(11), simulation=True)["t"]
    columns = [reports[name].to_numpy() for name in ("view", "seed", "y")]
    design = collection.design_of("t")
    spread = {
        rule: Program.of(plan_table(table, design, [question], Rule.of(rule)).parts[0], design.views)
        .contributions(*columns)
        .var()
        for rule in RULES
    }
    assert spread["greedy"] > least * spread["optimal"]
    assert spread["rdc(4)"] > 1.2 * spread["optimal"]


def test_what_is_known_without_any_report_has_no_noise():
    collection = dn.Collection(USERS, epsilon=1.0)
    _, _, _, reports = collected(collection, 1_000, seed=12)
    np.testing.assert_allclose(per_row(collection, made(collection, "optimal", ["everybody"]), reports), 1.0)


def test_a_plan_prints_and_refuses_what_does_not_fit():
    collection = dn.Collection(USERS, epsilon=1.0)
    assert str(made(collection, "greedy", ["a range"])).splitlines() == [
        "table t: 2 views, 33.3% of the reports, 1.2 cells per report",
        "  age 0+2+5, kind 1+0",
    ]
    for wrong in ("best", "rdc(0)", "greedy(3)", "", None):
        with pytest.raises(InvalidParameter, match="weights are unknown"):
            Rule.of(wrong)
    assert [str(Rule.of(name)) for name in ("rdc", "rdc(3)", "optimal")] == ["rdc(8)", "rdc(3)", "optimal"]


def test_tables_with_very_many_views_are_asked_without_listing_them():
    attributes = {f"a{number}": dn.Ordinal(0, 124) for number in range(12)}
    table = dn.Table("t", **attributes)
    collection = dn.Collection(table, epsilon=4.0)
    design = collection.design_of("t")
    assert design.views == 4**12 > 2**22
    inside = (np.arange(125) < 50).astype(float)
    plan = plan_table(table, design, [(Product(1.0, {"a0": inside}, {}),)], Rule.of("optimal"))
    frame = pa.table({"uid": np.arange(300), **{name: np.arange(300) % 125 for name in attributes}})
    reports = collection.perturb(t=frame, source=SeededSource(1), simulation=True)["t"]
    view, seed, y = (reports[name].to_numpy() for name in ("view", "seed", "y"))
    program = Program.of(plan.parts[0], design.views)
    contributions = program.contributions(view, seed, y)[:, 0]
    used = {planned.view for planned in plan.parts[0].views}
    # Reports of other views say nothing; one of a view that is used is made up, and does.
    np.testing.assert_allclose(contributions[[int(number) not in used for number in view]], plan.parts[0].constants[0])
    assert (
        program.contributions(np.array([max(used)], dtype=np.uint32), seed[:1], y[:1])[0, 0]
        != plan.parts[0].constants[0]
    )


def borders(size):
    """Ranges that end at borders of large nodes, and others."""
    return (0, size // 3), (0, 25), (0, 125), (size // 5, size // 2), (size - 7, size), (25, size - 1)


@pytest.mark.parametrize(
    ("epsilon", "size", "ranges"),
    [
        *(
            (epsilon, size, borders)
            for epsilon in (0.5, 2.0)
            for size in (95, 126, 130, 365, 630, 1000, 3_000, 100_000)
        ),
        *((epsilon, 26, lambda size: combinations(range(size + 1), 2)) for epsilon in (0.25, 0.5, 2.0, 4.0)),
        *((epsilon, 100, lambda size: islice(combinations(range(size + 1), 2), 0, None, 29)) for epsilon in (1.0, 2.0)),
    ],
)
def test_leaving_out_cells_costs_at_most_two_percent_of_the_variance_of_a_range(epsilon, size, ranges):
    """Against all nodes of the tree."""
    collection = dn.Collection(dn.Table("t", a=dn.Ordinal(0, size - 1)), epsilon=epsilon)
    design = collection.design_of("t")
    ((group,),) = design.parts
    tree, rule = group.axes[0].tree, Rule.of("optimal")
    prices = axis_weights._prices(design, group)
    costs = np.maximum(prices, prices.max() * 1e-9).tolist()
    for low, high in ranges(size):
        function = np.zeros((1, size))
        function[0, low:high] = 1.0
        if function.all():
            continue
        (kept,) = axis_weights._weigh_family(design, group, [function], rule)
        every = axis_weights.optimal(tree, function, costs, tree.levels)
        spent, least = (
            sum(float(price * np.square(level).sum()) for price, level in zip(prices, weights, strict=True))
            for weights in (kept, every)
        )
        assert spent <= 1.02 * least, (low, high)
        cells = sum(np.count_nonzero(level) for level in kept) / tree.levels
        assert cells <= axis_weights.MOST_EFFORT


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize(
    ("sizes", "most"),
    [((30, 20), 1.02), ((60, 20), 1.02), ((8, 8, 8), 1.021), ((99, 100), 1.15), ((1000, 50), 1.15), ((630, 630), 1.21)],
)
def test_leaving_out_cells_of_two_and_more_attributes_costs_little_variance(sizes, most, epsilon):
    """Against weights on all nodes of all trees: two percent where reports can be compared with so many cells."""
    names = [f"x{number}" for number in range(len(sizes))]
    domains = {name: dn.Ordinal(0, size - 1) for name, size in zip(names, sizes, strict=True)}
    design = dn.Collection(dn.Table("t", **domains), epsilon=epsilon).design_of("t")
    ((group,),), random = design.parts, np.random.default_rng(len(sizes))
    prices, trees = axis_weights._prices(design, group), [axis.tree for axis in group.axes]
    for number in range(4):
        functions = []
        for axis, size in enumerate(sizes):
            low, high = sorted(random.integers(0, size, 2))
            free = axis == len(sizes) - 1 and number % 2
            functions.append((np.arange(size) >= low * (not free)) & ((np.arange(size) <= high) | free))
        batches = [function[None, :].astype(np.float64) for function in functions]
        kept = axis_weights._weigh_family(design, group, batches, Rule.of("optimal"))
        every = [
            axis_weights.optimal(tree, batch, [1.0] * tree.levels, tree.levels)
            for tree, batch in zip(trees, batches, strict=True)
        ]
        for _ in range(5):
            for axis, tree in enumerate(trees):
                costs = axis_weights._floored(_contracted(prices, every, skipped=axis))
                every[axis] = axis_weights.optimal(tree, batches[axis], costs, tree.levels)
        assert _contracted(prices, kept) <= most * _contracted(prices, every)
        nodes = [sum(int(np.count_nonzero(level)) for level in weights) for weights in kept]
        least = [
            axis_weights._carriers(axis_weights.optimal(tree, batch, [1.0] * tree.levels))
            for tree, batch in zip(trees, batches, strict=True)
        ]
        assert np.prod(nodes) <= max(axis_weights.EFFORT * group.views, np.prod(least))


def _contracted(prices, weights, skipped=None):
    """The variance of products of weights; without one axis, what each of its levels costs."""
    for axis in range(len(weights) - 1, -1, -1):
        if axis != skipped:
            norms = np.array([float(np.square(level).sum()) for level in weights[axis]])
            prices = np.tensordot(prices, norms, axes=(axis, 0))
    return prices
