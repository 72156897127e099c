"""Collections with another population: what they say, what they spend, and what is refused."""

import math
from fractions import Fraction

import pytest

import deniable as dn
from deniable.errors import BudgetExceeded, InvalidParameter
from deniable.promise import facts, in_words

USERS = dn.Table("users", age=dn.Ordinal(0, 9))
ORDERS = dn.Table("orders", many=3, tau=2, pid=dn.Ordinal(1, 9))
PRODUCTS = dn.Table("products", owner="shop", key="pid", price=dn.Ordinal(0, 4))
STOCKS = dn.Table("stocks", owner="shop", key="pid", left=dn.Ordinal(0, 4))


def made(*tables, **settings):
    return dn.Collection(
        *(tables or (USERS, ORDERS, PRODUCTS, STOCKS)), **{"epsilon": 3.0, "owners": {"shop": 1.0}, **settings}
    )


def test_each_population_has_its_own_epsilon():
    collection = made()
    assert collection.spends.epsilon == 3
    assert collection.spends_of("shop").epsilon == 1
    assert [collection.epsilon_per_report(table.name) for table in collection.tables] == [1.0, 1.0, 0.5, 0.5]
    uneven = made(shares={"users": 1, "orders": 2, "products": 3, "stocks": 1})
    assert [uneven.epsilon_per_report(table.name) for table in uneven.tables] == [1.0, 1.0, 0.75, 0.25]


@pytest.mark.parametrize("view", range(2))
def test_the_law_of_a_report_keeps_within_the_epsilon_of_its_population(view):
    oracle = made(USERS, PRODUCTS, owners={"shop": 0.5}).design_of("products").view(view).oracle
    if oracle.k == 1:
        assert oracle.law(0) == (Fraction(1),)
        return
    laws = [oracle.law(cell, 0) for cell in range(oracle.k)]
    assert all(sum(law) == 1 for law in laws)
    ratios = [first / second for law in laws for other in laws for first, second in zip(law, other, strict=True)]
    assert math.exp(0.5) * (1 - 1e-9) < max(ratios) <= Fraction(math.exp(0.5))


def test_specifications_with_owners_survive_files_and_have_another_hash(tmp_path):
    collection = made()
    for name in ("shop.toml", "shop.json"):
        collection.save(tmp_path / name)
        assert dn.Collection.load(tmp_path / name) == collection
    assert made(owners={"shop": 1.5}).sha256 != collection.sha256
    plain = dn.Table("products", price=dn.Ordinal(0, 4))
    assert made(USERS, plain, owners=None).sha256 != made(USERS, PRODUCTS).sha256
    assert "owner" not in made(USERS, owners=None).to_json()
    assert collection.with_settings(epsilon=1.0).owners == {"shop": 1.0}


def test_attributes_may_still_be_called_owner_and_key():
    table = dn.Table("pets", owner=dn.Categorical("a", "b"), key=dn.Ordinal(0, 3))
    assert table.private == ("owner", "key")
    assert table.owner is table.key is None
    collection = dn.Collection(table, epsilon=1.0)
    assert dn.Collection.from_dict(collection.to_dict()) == collection


@pytest.mark.parametrize(
    ("tables", "settings", "why"),
    [
        ((USERS, PRODUCTS), {"owners": None}, "every owner of a table"),
        ((USERS, PRODUCTS), {"owners": {"shop": 1.0, "else": 1.0}}, "every owner of a table"),
        ((USERS,), {}, "every owner of a table"),
        ((PRODUCTS,), {}, "nobody is left"),
        ((USERS, PRODUCTS), {"owners": {"shop": 0.0}}, "owners: 'shop'"),
        ((USERS, PRODUCTS), {"name": "shop", "rounds": dn.Rounds(4)}, "rounds are for collections of users"),
        ((USERS, PRODUCTS, dn.Table("a", owner="shop", key="aid", x=dn.Ordinal(0, 1))), {}, "another key than"),
    ],
)
def test_owners_are_checked(tables, settings, why):
    with pytest.raises(InvalidParameter, match=why):
        made(*tables, **settings)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"owner": "shop"}, "an owner or a key, and not both"),
        ({"key": "pid"}, "an owner or a key, and not both"),
        ({"owner": "shop", "key": "pid", "many": 3}, "each id has one row"),
        ({"owner": "shop", "key": "PRICE"}, "an attribute too"),
        ({"owner": "a shop", "key": "pid"}, "owner"),
    ],
)
def test_tables_of_others_are_checked(fields, why):
    with pytest.raises(InvalidParameter, match=why):
        dn.Table("products", price=dn.Ordinal(0, 4), **fields)


def test_both_promises_are_stated():
    words = " ".join(in_words(made()).split())
    assert "spends ε = 3" in words
    assert "A second promise, of shop: every single pid" in words
    assert "What shop reports about one pid spends ε = 1, at most 2.7:1" in words
    assert facts(made())["owners"] == {"shop": {"epsilon": 1.0, "odds": "2.7:1"}}
    assert "may grow" in in_words(made(owners={"shop": 9.0}))
    assert "owners" not in facts(made(USERS, owners=None))


def test_a_ledger_of_a_shop_pays_what_the_shop_reports(tmp_path):
    ledger = dn.Ledger(tmp_path / "ledger.jsonl", limit=1.2)
    collection = made(USERS, PRODUCTS)
    collection.client(ledger=ledger).report("products", {"price": 1})
    with pytest.raises(BudgetExceeded):
        collection.client(ledger=ledger).report("products", {"price": 1})
    with pytest.raises(BudgetExceeded):
        collection.client(ledger=ledger).report("users", {"age": 1})


def test_ids_of_each_population_have_a_type_of_their_own():
    collection = made(USERS, PRODUCTS)
    reports = collection.perturb(users={"uid": [1, 2], "age": [1, 2]}, products={"pid": ["a", "b"], "price": [1, 2]})
    assert dn.connect(reports).stores["products"].rows == 2
    with pytest.raises(dn.DeniableError, match="lacks the column 'pid' of ids of shop"):
        collection.perturb(products={"uid": [1], "price": [1]})
