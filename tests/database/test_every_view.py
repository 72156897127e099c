"""Without noise and with every view observed once for every row, answers are exact: nothing is left to chance."""
# ruff: noqa: E501 - a query reads best on one line

import math
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.collecting.collected_reports import Reports
from deniable.tables.bulk.cell_numbers import cell_numbers
from deniable.tables.reports.report_table import report_schema
from effort import some

PEOPLE = dn.Table(
    "people", age=dn.Ordinal(-2, 4), kind=dn.Categorical("a", "b", "c"), height=dn.Ordinal(1, "3.5", "0.5")
)
ORDERS = dn.Table("orders", many=2, amount=dn.Ordinal(0, 4), wrap=dn.Categorical("box", "bag"))
USERS = 24
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a, AVG(height) AS h FROM people WHERE age BETWEEN -1 AND 2",
    "SELECT COUNT(*) AS n, SUM(age * height) AS s, VAR_POP(age) AS v FROM people WHERE kind <> 'b' OR age > 1",
    "SELECT kind, COUNT(*) AS n, SUM(height) AS s, AVG(age) AS a FROM people WHERE height < 2 GROUP BY kind ORDER BY kind",
    "SELECT FLOOR(age / 2) AS bin, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY bin ORDER BY bin",
    "SELECT age, COUNT(*) AS n, SUM(height) AS s FROM people GROUP BY age ORDER BY age",
    "SELECT COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS a FROM orders WHERE amount > 0 AND wrap = 'box'",
    "SELECT wrap, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY wrap ORDER BY wrap",
]  # fmt: skip


def raw_rows():
    random = np.random.default_rng(8)
    owners = np.repeat(np.arange(USERS), np.arange(USERS) % 3)  # nobody has more than two orders
    return {
        "people": pa.table({
            "uid": np.arange(USERS),
            "age": random.integers(-2, 5, USERS),
            "kind": np.array(["a", "b", "c"])[np.arange(USERS) % 3],
            "height": random.integers(2, 8, USERS) * 0.5,
        }),
        "orders": pa.table({
            "uid": owners,
            "amount": random.integers(0, 5, owners.size),
            "wrap": np.array(["box", "bag"])[random.integers(0, 2, owners.size)],
        }),
    }  # fmt: skip


def exhaustive(collection, name, rows):
    """For every user, view and outcome of all coins one report, each with an id of its own; and how many of a user.

    A coin that is heads with probability v/m comes m times, v times heads. A user's row is drawn as often as any other
    of hers. All views of a table are equally likely here, so each comes once.
    """
    table, design = collection[name], collection.design_of(name)
    assert len({view.probability for view in design}) == 1
    steps = [domain.size - 1 if domain.aggregatable else 1 for domain in table.domains]
    picks = range(table.many or 1)
    values, coins, weights = [], [], []
    for user in range(USERS):
        mine = [row for row in rows if row["uid"] == user]
        for pick, heavy, *up in product(picks, picks, *(range(step) for step in steps)):
            row = mine[pick % len(mine)] if mine else None
            values.append([
                domain.encode(row[attribute]) if row else 0
                for attribute, domain in zip(table.private, table.domains, strict=True)
            ])  # fmt: skip
            coins.append([coin < value for coin, value in zip(up, values[-1], strict=True)])
            weights.append(heavy < len(mine))
    values, coins = np.array(values, dtype=np.int64).T, np.array(coins, dtype=np.int64).T
    weights = np.array(weights, dtype=np.int64)
    zeros = np.zeros_like(weights)
    views, cells = [], []
    for view in design:
        nodes = [
            axis.tree.cell(
                level,
                axis.coordinate(
                    values[axis.attribute] if axis.attribute >= 0 else zeros,
                    coins[axis.attribute] if axis.rounds_value else zeros,
                    weights if axis.rounds_weight else zeros,
                ),
            )
            for axis, level in zip(view.group.axes, view.levels, strict=True)
        ]
        views.append(np.full(weights.size, view.number))
        cells.append(cell_numbers(view.group, view.levels, nodes))
    count = weights.size * design.views
    made = as_reports(collection, name, np.concatenate(views), np.concatenate(cells))
    return made, count // USERS


def as_reports(collection, name, view, y):
    schema = report_schema(collection, name, pa.int64(), {}, simulation=True)
    blank = np.zeros(view.size, dtype=np.int64)
    made = pa.table({"uid": np.arange(view.size), "slot": blank, "view": view, "seed": blank, "y": y})
    return made.cast(schema.remove_metadata()).replace_schema_metadata(schema.metadata)


@pytest.fixture(scope="module", params=["hio", "ahio", "ehio", "sr-hio", "mg", "amg"])
def observed(request):
    collection = dn.Collection(PEOPLE, ORDERS, epsilon=math.inf, design=request.param, fanout=2)
    rows = raw_rows()
    made = {name: exhaustive(collection, name, frame.to_pylist()) for name, frame in rows.items()}
    reports = Reports(collection, {name: table for name, (table, _) in made.items()}, {})
    return rows, dn.connect(reports), {name: times for name, (_, times) in made.items()}


WAYS = [(weights, sums) for weights in ("optimal", "greedy", "rdc(3)") for sums in ("direct", "designed")]


@pytest.mark.parametrize(
    ("weights", "sums"), some(WAYS, 5)
)  # by default each way to sum, with the first and last weights
def test_answers_are_exact(observed, weights, sums):
    rows, database, times = observed
    assert not any(database.refused.values())
    for text in QUESTIONS:
        name = "orders" if "FROM orders" in text else "people"
        with duckdb.connect() as connection:
            connection.register(name, rows[name])
            plain = connection.sql(text).to_arrow_table().to_pydict()
        result = database.sql(text, weights=weights, sums=sums)
        for label, values in result.groups.items():
            assert plain[label] == list(values)
        for label, estimates in result.answers.items():
            # Averages are what they are; counts and sums come once for every report of a user.
            scale = times[name] if label in ("n", "s") else 1
            assert [estimate.value / scale for estimate in estimates] == pytest.approx(
                [float(value) for value in plain[label]], rel=1e-9, abs=1e-9
            )


@pytest.mark.parametrize("weights", ["optimal", "greedy", "rdc(3)"])
def test_a_join_is_exact_when_all_pairs_of_views_are_observed(weights):
    left = dn.Table("left_side", a=dn.Ordinal(0, 4))
    right = dn.Table("right_side", b=dn.Ordinal(0, 3))
    collection = dn.Collection(left, right, epsilon=math.inf, fanout=2)
    random = np.random.default_rng(4)
    a, b = random.integers(0, 5, 60), random.integers(0, 4, 60)
    views = [list(collection.design_of(table.name)) for table in (left, right)]
    columns = ([], [])
    for a_value, b_value in zip(a, b, strict=True):
        for first, second in product(*views):
            columns[0].append((first.number, first.group.number(first.levels, (int(a_value),))))
            columns[1].append((second.number, second.group.number(second.levels, (int(b_value),))))
    tables = {}
    for table, cells in zip((left, right), columns, strict=True):
        view, y = np.array(cells).T
        tables[table.name] = as_reports(collection, table.name, view, y)
    database = dn.connect(Reports(collection, tables, {}))
    text = (
        "SELECT COUNT(*) AS n, SUM(a * b) AS s, AVG(a + b) AS m "
        "FROM left_side JOIN right_side USING (uid) WHERE a < 3 OR b >= 2"
    )
    result = database.sql(text, weights=weights)
    inside, pairs = (a < 3) | (b >= 2), len(views[0]) * len(views[1])
    assert result.answers["n"][0].value == pytest.approx(pairs * inside.sum())
    assert result.answers["s"][0].value == pytest.approx(pairs * (a * b)[inside].sum())
    assert result.answers["m"][0].value == pytest.approx((a + b)[inside].mean())
