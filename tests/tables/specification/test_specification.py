import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.errors import BadInput, InvalidParameter

USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public())
ORDERS = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, "5.00", "0.01"), gift=dn.Categorical(True, False))


def shop(**settings):
    return dn.Collection(USERS, ORDERS, **{"epsilon": 2.0, **settings})


def test_a_specification_survives_toml_and_json(tmp_path):
    for settings in (
        {},
        {"design": "ahio", "fanout": 4, "oracle": "olh"},
        {"name": "shop", "coins": "assigned"},
        {"shares": {"users": 1, "orders": 3}},
    ):
        collection = shop(**settings)
        for name in ("shop.toml", "shop.json"):
            collection.save(tmp_path / name)
            again = dn.Collection.load(tmp_path / name)
            assert again == collection
            assert again.sha256 == collection.sha256
            assert hash(again) == hash(collection)
    infinite = shop(epsilon=math.inf)
    infinite.save(tmp_path / "infinite.toml")
    assert dn.Collection.load(tmp_path / "infinite.toml") == infinite


def test_dates_and_times_survive_too(tmp_path):
    from datetime import date, datetime, timedelta

    table = dn.Table(
        "visits",
        day=dn.Ordinal(date(2020, 1, 1), date(2020, 3, 1)),
        hour=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 2), "hour"),
        tick=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 1), timedelta(milliseconds=125)),
    )
    collection = dn.Collection(table, epsilon=1.0)
    for name in ("visits.toml", "visits.json"):
        collection.save(tmp_path / name)
        assert dn.Collection.load(tmp_path / name) == collection


def test_the_identity_is_stable_and_sees_every_change():
    assert shop().sha256 == "9a064b5fd3d2fdb17a51f8fa0cfd5cec68204f9d0deb319879a8da0aa2042284"
    identities = {
        collection.sha256
        for collection in (
            shop(),
            shop(epsilon=2.1),
            shop(design="sc"),
            shop(fanout=4),
            shop(oracle="olh"),
            shop(name="shop"),
            shop(coins="assigned"),
            shop(shares={"users": 1, "orders": 1}),
            dn.Collection(ORDERS, USERS, epsilon=2.0),
            dn.Collection(USERS, epsilon=2.0),
        )
    }
    assert len(identities) == 10


@given(
    st.floats(0.01, 50),
    st.integers(1, 7),
    st.sampled_from(["hio", "sc", "ahio"]),
    st.one_of(st.none(), st.tuples(st.floats(0.01, 10), st.floats(0.01, 10))),
)
def test_all_reports_together_never_spend_more_than_epsilon(epsilon, tau, design, shares):
    orders = dn.Table("orders", many=10, tau=tau, amount=dn.Ordinal(0, 9))
    named = None if shares is None else dict(zip(("users", "orders"), shares, strict=True))
    collection = dn.Collection(USERS, orders, epsilon=epsilon, design=design, shares=named)
    spent = sum(
        collection.reports_per_user(table.name) * Fraction(collection.epsilon_per_report(table.name))
        for table in collection.tables
    )
    assert spent <= Fraction(epsilon)
    assert float(spent) == pytest.approx(epsilon, rel=1e-12)


def test_shares_divide_epsilon():
    collection = shop(shares={"users": 1, "orders": 3})
    assert collection.epsilon_per_report("users") == pytest.approx(0.5)
    assert collection.epsilon_per_report("orders") == pytest.approx(0.75)
    assert collection.reports_per_user("orders") == 2


def wide(count):
    return dn.Table("wide", **{f"a{i}": dn.Ordinal(0, 999) for i in range(count)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dn.Collection(epsilon=1.0), "tables must be one Table or more"),
        (lambda: dn.Collection("users", epsilon=1.0), "tables must be one Table or more"),
        (lambda: shop(epsilon=0), "epsilon must be a positive number"),
        (lambda: dn.Collection(USERS, USERS, epsilon=1.0), "table 'users' is named twice"),
        (lambda: shop(design="best"), "design is unknown"),
        (lambda: shop(fanout=1), "fanout must be an integer from 2"),
        (lambda: shop(oracle="rappor"), "oracle is unknown"),
        (lambda: shop(shares={"users": 1}), "shares must name every table once"),
        (lambda: shop(shares={"users": 1, "orders": 0}), "shares of 'orders' must be a positive number"),
        (lambda: dn.Collection(wide(13), epsilon=1.0), "more than 32 bits can number"),
        (lambda: shop(design=["hio"]), "design is unknown"),
        (lambda: shop(shares=3), "shares must name every table once"),
        (lambda: shop(shares={"users": 1e-300, "orders": 1}), "epsilon per report of table 'users' is too small"),
        (lambda: dn.Collection(USERS, dn.Table("USERS", a=dn.Categorical("x", "y")), epsilon=1.0), "is named twice"),
        (lambda: dn.Table("t", a=dn.Categorical("x", "y"), A=dn.Categorical("x", "y")), "named twice, apart from case"),
        (lambda: dn.Collection.from_dict([]), "the specification must have named fields"),
        (lambda: dn.Collection.from_dict({"epsilon": 1, "tables": [1]}), "a table must have named fields"),
        (lambda: dn.Collection.from_dict({"epsilon": 1, "tables": {"u": 3}}), "table 'u' must have named fields"),
        (lambda: dn.Collection.from_dict({"epsilon": 1, "tables": {"u": {"name": "v"}}}), "name is given by the key"),
        (lambda: shop()["visits"], "table 'visits' is not in this collection"),
        (lambda: dn.Collection.from_dict({"tables": []}), "epsilon is missing"),
        (lambda: dn.Collection.from_dict({"epsilon": 1}), "tables are missing"),
        (
            lambda: dn.Collection.from_dict({"epsilon": 1, "tables": [], "budget": 2}),
            "budget is not a field of a collection",
        ),
        (lambda: dn.Collection.from_dict({"deniable": 9, "epsilon": 1, "tables": []}), "version of the format"),
    ],
)
def test_every_mistake_names_the_field(make, message):
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('epsilon = 1\n[tables.t]\nattributes.a = { kind = "ordinal", low = 1 }', "attribute 'a' lacks a field"),
        (
            'epsilon = 1\n[tables.t]\nattributes.a = { kind = "ordinal", low = 5, high = 1 }',
            "attribute 'a': low is above high",
        ),
        ('epsilon = 1\n[tables.t]\nattributes.a = { kind = "number" }', "attribute 'a': kind is unknown"),
        (
            'epsilon = 1\n[tables.t]\nattributes.a = { kind = "public", low = 1 }',
            "attribute 'a': low is not a field of public",
        ),
        ('epsilon = 1\n[tables.t]\nrows = 1\nattributes.a = { kind = "public" }', "rows is not a field of a table"),
        ("epsilon = 1\n[tables.t]\n", "table 't' has no attributes"),
        ("epsilon = ", "is not well-formed"),
        ("epsilon = 1\n[tables.t]\nattributes.a = 5", "attribute 'a' must have named fields"),
        ('epsilon = 1\n[tables.t]\nattributes.a = { kind = ["x"] }', "kind is unknown"),
        (
            'epsilon = 1\n[tables.t]\nattributes.a = { kind = "ordinal", low = 1, high = "x s" }',
            "high must be a number",
        ),
    ],
)
def test_mistakes_in_files_name_the_place(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InvalidParameter) as caught:
        dn.Collection.load(path)
    assert message in str(caught.value)


def test_equality_is_identity():
    numbers, flags = (dn.Categorical(1, 0), dn.Categorical(True, False))
    assert numbers != flags
    first = dn.Table("t", a=dn.Ordinal(0, 1), b=dn.Ordinal(0, 1))
    second = dn.Table("t", b=dn.Ordinal(0, 1), a=dn.Ordinal(0, 1))
    assert first != second
    assert dn.Collection(first, epsilon=1.0) != dn.Collection(second, epsilon=1.0)
    assert dn.Collection(first, epsilon=1) == dn.Collection(first, epsilon=1.0)
    assert dn.Ordinal("1.0", 5.0) == dn.Ordinal(1, 5)


def test_the_callers_decimal_context_does_not_matter():
    from decimal import localcontext

    with localcontext(prec=4):
        narrow = dn.Ordinal("0.12345", "1.12345")
    assert narrow == dn.Ordinal("0.12345", "1.12345")


def test_odd_characters_survive(tmp_path):
    odd = dn.Table("t", a=dn.Categorical("\x7f", '"', "\\", "\n", "\u2028", "🦊", ""))
    for name in ("odd.toml", "odd.json"):
        dn.Collection(odd, epsilon=1.0).save(tmp_path / name)
        assert dn.Collection.load(tmp_path / name) == dn.Collection(odd, epsilon=1.0)
    with pytest.raises(InvalidParameter, match="an unpaired surrogate"):
        dn.Categorical("\ud800", "b")
    (tmp_path / "latin.toml").write_bytes(b"epsilon = 1 # \xff")
    with pytest.raises(BadInput, match="not UTF-8"):
        dn.Collection.load(tmp_path / "latin.toml")


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        dn.Collection.load(tmp_path / "none.toml")
