"""Definition 3 and Lemma 6 of [XDW20], by enumeration: all reports of a user, their number and order included.

And the attack of Figure 2: counting a user's reports tells everything about the straw man and nothing here.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable.client import Client
from deniable.exact import exp_between
from deniable.tables.bulk import bulk_client as bulk
from deniable.tables.device import randomising as device
from effort import some
from tables.enumeration import EnumeratedDevice, EnumeratedSource, law_of

USERS = dn.Table("users", flag=dn.Categorical("a", "b"))
ORDERS = dn.Table("orders", many=2, amount=dn.Ordinal(0, 2))
SMALL_ORDERS = dn.Table("orders", many=2, tau=2, amount=dn.Ordinal(0, 1))

MODULES = ("tables.device.randomising", "mechanisms.randomized_response", "mechanisms.subset_selection")
USER_ROWS = [[(0,)], [(1,)]]


def order_rows(size, most=3):
    """Every multiset of up to `most` rows: none at all, and more than `many`, included."""
    return [
        [(value,) for value in values]
        for count in range(most + 1)
        for values in itertools.combinations_with_replacement(range(size), count)
    ]


@pytest.fixture
def on_device(monkeypatch):
    """The law of a device's reports for one table.

    Which draws were asked for, and in which order, must be told by the views alone: neither by the rows nor by answers.
    """
    draws = {}

    def law(collection, name, rows):
        table, design = collection[name], collection.design_of(name)
        dice = EnumeratedDevice()
        dice.stand_in(monkeypatch, *MODULES)

        def run(choose):
            dice.begin(choose)
            reports = device.randomise(table, design, rows, dice.randbelow)
            views = tuple(view for view, _, _ in reports)
            assert draws.setdefault((collection, name, views), dice.asked) == dice.asked
            return tuple(tuple(map(int, report)) for report in reports)

        return law_of(run)

    return law


def in_bulk(collection, name, rows):
    """The law of the bulk client's reports for one table."""
    table, design = collection[name], collection.design_of(name)
    columns = [np.array([row[attribute] for row in rows], dtype=np.int64) for attribute in range(len(table.domains))]

    def run(choose):
        source = EnumeratedSource(choose)
        codes, weights = columns, np.ones(len(rows), dtype=np.int64)
        if table.many:
            counts = np.array([len(rows)])
            codes, weights = bulk.truncate(table, np.array([0]), counts, columns, source)
        reports = bulk.randomise(table, design, codes, weights, source)
        return tuple(zip(reports.view.tolist(), reports.seed.tolist(), reports.y.tolist(), strict=True))

    return law_of(run)


def worst_ratio(laws):
    """The largest ratio of the probabilities of an outcome under two laws; every outcome must be possible under all."""
    outcomes = set().union(*laws)
    assert all(set(law) == outcomes for law in laws)
    return max(max(law[o] for law in laws) / min(law[o] for law in laws) for o in outcomes)


DESIGNS = ["hio", "ahio", "ehio", "sr-hio", "sc", "mg", "amg", "grid"]


@pytest.mark.parametrize(
    ("design", "oracle"), [*((design, "auto") for design in DESIGNS), ("hio", "olh"), ("ahio", "olh")]
)
def test_definition_3_holds_for_every_pair_of_users(design, oracle, on_device):
    # The tables are randomised independently, so the worst ratio of all reports is the product of the tables' worst.
    collection = dn.Collection(USERS, ORDERS, epsilon=1.5, design=design, fanout=2, oracle=oracle)
    rows = order_rows(3, most=2)
    if design in ("hio", "mg"):
        rows += [[(0,), (1,), (2,)], [(2,), (2,), (2,)]]  # more than `many`
    users = [on_device(collection, "users", held) for held in USER_ROWS]
    orders = [on_device(collection, "orders", held) for held in rows]
    total = worst_ratio(users) * worst_ratio(orders)
    assert 1 < total <= exp_between(Fraction(1.5))[0]
    for law in orders:
        assert {len(outcome) for outcome in law} == {collection.reports_per_user("orders")}
    # The bulk client has the same law, exactly.
    assert [in_bulk(collection, "users", held) for held in USER_ROWS] == users
    for user in {0, 2, len(rows) - 1}:
        assert in_bulk(collection, "orders", rows[user]) == orders[user]


def test_definition_3_holds_where_reports_name_several_cells(on_device):
    """Views of 6 cells and more take subset selection; draws must not depend on rows or answers there either."""
    collection = dn.Collection(USERS, ORDERS, epsilon=1.5, design="mg", fanout=3, oracle="subset")
    labels = {view.oracle.label for view in collection.design_of("orders")}
    assert "subset" in labels
    rows = [*order_rows(3, most=1), [(0,), (2,)], [(1,), (1,), (1,)]]
    orders = [on_device(collection, "orders", held) for held in rows]
    users = [on_device(collection, "users", held) for held in USER_ROWS]
    ratio = worst_ratio(users) * worst_ratio(orders)
    assert exp_between(Fraction(1.4))[0] < ratio <= exp_between(Fraction(1.5))[0]
    assert in_bulk(collection, "orders", rows[1]) == orders[1]


def test_definition_3_holds_on_a_grid_of_uneven_views(on_device):
    """Cells and points, borders anywhere, views of different probabilities; the bulk client has the same law."""
    views = [
        dn.GridView({"amount": dn.Cells([0, 2])}, weight=2),
        dn.GridView({"amount": dn.Points([0, 1, 3])}, weight=3),
        dn.GridView({"amount": dn.Points(2)}),
    ]
    orders = dn.Table("orders", many=2, amount=dn.Ordinal(0, 3))
    collection = dn.Collection(USERS, orders, epsilon=1.5, design="grid", grids={"orders": views})
    rows = [*order_rows(4, most=1), [(0,), (3,)], [(2,), (2,)]]
    laws = [on_device(collection, "orders", held) for held in rows]
    users = [on_device(collection, "users", held) for held in USER_ROWS]
    assert 1 < worst_ratio(users) * worst_ratio(laws) <= exp_between(Fraction(1.5))[0]
    for law in laws:  # views are drawn without looking, in the ratio of their weights
        drawn = [sum(chance for ((view, _, _),), chance in law.items() if view == number) for number in range(3)]
        assert drawn == [Fraction(2, 6), Fraction(3, 6), Fraction(1, 6)]
    for user in (1, 3, 6):
        assert in_bulk(collection, "orders", rows[user]) == laws[user]


def test_definition_3_with_several_reports_per_user(on_device):
    collection = dn.Collection(USERS, SMALL_ORDERS, epsilon=1.5, design="hio", fanout=2)
    rows = order_rows(2)
    orders = [on_device(collection, "orders", held) for held in rows]
    users = [on_device(collection, "users", held) for held in USER_ROWS]
    assert collection.reports_per_user("orders") == 2
    assert worst_ratio(users) * worst_ratio(orders) <= exp_between(Fraction(1.5))[0]
    for user in some(range(1, 4), 3):  # users of every number of rows are compared above, with a report each
        assert in_bulk(collection, "orders", rows[user]) == orders[user]


def test_the_whole_client_at_once(monkeypatch):
    """Both tables through the public client, in one enumeration: nothing but the reports leaves it."""
    collection = dn.Collection(
        USERS, dn.Table("orders", many=2, kind=dn.Categorical("x", "y")), epsilon=1.0, design="hio", fanout=2
    )
    kinds = ["x", "y"]
    everybody = [
        ({"flag": flag}, [{"kind": kinds[value]} for (value,) in rows]) for flag in ("a", "b") for rows in order_rows(2)
    ]

    dice = EnumeratedDevice()
    dice.stand_in(monkeypatch, *MODULES)

    def law(user, orders):
        def run(choose):
            dice.begin(choose)
            client = Client(collection, randbelow=dice.randbelow)
            sent = [*client.reports("users", [user]), *client.reports("orders", orders)]
            assert client.reports("orders", orders) == sent[1:]  # asked again, it draws nothing
            return b"".join(report.to_bytes() for report in sent)

        return law_of(run)

    laws = [law(*user) for user in everybody]
    assert len(laws) == 20
    assert {len(sent) for outcomes in laws for sent in outcomes} == {64}
    assert worst_ratio(laws) <= exp_between(Fraction(1))[0]


def test_an_epsilon_that_is_not_shared_out_would_be_noticed(on_device):
    # Two reports with the whole ε each break the promise, and this test sees it.
    alone = dn.Collection(USERS, epsilon=1.5, design="mg")
    users = [on_device(alone, "users", held) for held in USER_ROWS]
    assert worst_ratio(users) ** 2 > exp_between(Fraction(1.5))[1]


def advantage(reports_of, counts):
    """How much better than guessing two users can be told apart by the number of their reports."""
    first, second = (len(reports_of(count)) for count in counts)
    return 1.0 if first != second else 0.0


def test_the_frequency_attack_succeeds_against_the_straw_man_and_fails_here():
    collection = dn.Collection(USERS, ORDERS, epsilon=2.0)
    row = {"amount": 1}

    def straw_man(count):
        """One report per row, ε shared among them: each is ε-LDP, and their number tells everything."""
        return [dn.mechanisms.RandomizedResponse(2.0 / (1 + count), 3).perturb_one(1) for _ in range(count)]

    def ours(count):
        return collection.client().reports("orders", [row] * count)

    for counts in itertools.combinations(range(6), 2):
        assert advantage(straw_man, counts) == 1.0
        assert advantage(ours, counts) == 0.0
        assert len({len(report.to_bytes()) for count in counts for report in ours(count)}) == 1
