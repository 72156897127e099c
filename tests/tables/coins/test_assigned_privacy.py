"""Definition 3 of [XDW20] with assigned coins, by enumeration: views and seeds are fixed, and y keeps its promise."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.exact import exp_between
from deniable.tables.bulk import bulk_client as bulk
from deniable.tables.coins.assigned_coins import coins_of_slots
from deniable.tables.coins.coin_columns import coin_columns
from deniable.tables.device import randomising as device
from tables.enumeration import EnumeratedDevice, EnumeratedSource, law_of
from tables.test_user_level_privacy import MODULES, USER_ROWS, USERS, worst_ratio

ORDERS = dn.Table("orders", many=2, tau=2, amount=dn.Ordinal(0, 2))


def device_law(monkeypatch, collection, name, user, rows):
    table, design = collection[name], collection.design_of(name)
    coins, dice = coins_of_slots(collection, name, user), EnumeratedDevice()
    dice.stand_in(monkeypatch, *MODULES)

    def run(choose):
        dice.begin(choose)
        reports = device.randomise(table, design, rows, dice.randbelow, coins)
        assert 2**32 not in dice.asked  # no seed is drawn
        return tuple(tuple(map(int, report)) for report in reports)

    return law_of(run)


def bulk_law(collection, name, user, rows):
    table, design, slots = collection[name], collection.design_of(name), collection.reports_per_user(name)
    columns = [np.array([row[attribute] for row in rows], dtype=np.int64) for attribute in range(len(table.domains))]
    coins = coin_columns(collection, name, pa.array([user] * slots), np.arange(slots))

    def run(choose):
        source = EnumeratedSource(choose)
        codes, weights = columns, np.ones(len(rows), dtype=np.int64)
        if table.many:
            codes, weights = bulk.truncate(table, np.array([0]), np.array([len(rows)]), columns, source)
        reports = bulk.randomise(table, design, codes, weights, source, coins)
        return tuple(zip(reports.view.tolist(), reports.seed.tolist(), reports.y.tolist(), strict=True))

    return law_of(run)


@pytest.mark.parametrize(("design", "oracle"), [("hio", "auto"), ("ahio", "olh"), ("mg", "olh"), ("grid", "auto")])
def test_given_its_public_coins_a_user_has_the_whole_promise(design, oracle, monkeypatch):
    collection = dn.Collection(USERS, ORDERS, epsilon=1.5, design=design, fanout=2, oracle=oracle, coins="assigned")
    rows = [[], [(0,)], [(2,)], [(0,), (2,)]]
    for user in ("ada", 7) if design == "mg" else ("ada",):
        users = [device_law(monkeypatch, collection, "users", user, held) for held in USER_ROWS]
        orders = [device_law(monkeypatch, collection, "orders", user, held) for held in rows]
        assert worst_ratio(users) * worst_ratio(orders) <= exp_between(Fraction(1.5))[0]
        for law in (*users, *orders):  # all that leaves besides y was known before
            assert len({tuple((view, seed) for view, seed, _ in outcome) for outcome in law}) == 1
        assert bulk_law(collection, "users", user, USER_ROWS[0]) == users[0]
        assert bulk_law(collection, "orders", user, rows[-1]) == orders[-1]
