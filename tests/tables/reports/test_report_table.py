"""Which reports can be believed: refusals are counted by reason, and good reports of the same batch are kept."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.errors import InvalidData
from deniable.randomness import SeededSource
from deniable.tables.reports.report_table import SPECIFICATION, validate

ORDERS = dn.Table("orders", many=4, tau=2, amount=dn.Ordinal(0, 50), kind=dn.Categorical("a", "b", "c"))
SHOP = dn.Collection(ORDERS, epsilon=2.0)
USERS = 40


@pytest.fixture
def reports():
    everyone = pa.table({"uid": np.arange(USERS)})
    rows = pa.table({"uid": np.arange(USERS), "amount": np.arange(USERS), "kind": ["a", "b"] * (USERS // 2)})
    return SHOP.perturb(orders=rows, everyone=everyone, source=SeededSource(1), simulation=True)["orders"]


def changed(reports, column, row, value):
    values = reports[column].to_pylist()
    values[row] = value
    index = reports.column_names.index(column)
    return reports.set_column(index, reports.schema.field(column), pa.array(values, reports.schema.field(column).type))


def test_honest_reports_pass(reports):
    good, refused = validate(SHOP, "orders", reports)
    assert good.equals(reports)
    assert refused == {}
    assert reports.column_names == ["uid", "slot", "view", "seed", "y"]
    assert reports.num_rows == 2 * USERS


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("view", 10**6, "view out of range"),
        ("y", 10**6, "y or seed out of range"),
        ("slot", 9, "slot out of range"),
        ("uid", None, "with a missing entry"),
        ("slot", 1, "user and slot repeated"),
    ],
)
def test_a_bad_report_is_refused_with_its_companions_and_the_others_are_kept(reports, column, value, reason):
    good, refused = validate(SHOP, "orders", changed(reports, column, 10, value))
    # A user's reports count only together: the other slot of the same user goes with the bad one.
    assert good.num_rows == 2 * USERS - 2
    if reason == "user and slot repeated":
        assert refused == {reason: 2}
    else:
        assert refused == {reason: 1, "of a user with missing slots": 1}
    assert 5 not in good["uid"].to_pylist()


def test_a_seed_where_there_is_none_is_refused(reports):
    plain = next(i for i, seed in enumerate(reports["seed"].to_pylist()) if seed == 0)
    _, refused = validate(SHOP, "orders", changed(reports, "seed", plain, 77))
    assert refused["y or seed out of range"] == 1


def test_missing_slots(reports):
    good, refused = validate(SHOP, "orders", reports.slice(1))
    assert refused == {"of a user with missing slots": 1}
    assert good.num_rows == 2 * USERS - 2


def test_reports_of_another_specification_are_refused_whole(reports):
    other = dn.Collection(ORDERS, epsilon=3.0)
    good, refused = validate(other, "orders", reports)
    assert (good.num_rows, refused) == (0, {"made under another specification": 2 * USERS})
    for metadata in ({}, {**reports.schema.metadata, b"deniable.table": b"users"}):
        good, refused = validate(SHOP, "orders", reports.replace_schema_metadata(metadata))
        assert good.num_rows == 0
    assert reports.schema.metadata[SPECIFICATION] == SHOP.sha256.encode()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: r.drop_columns(["seed"]), "lack the column 'seed'"),
        (
            lambda r: r.set_column(2, "view", r["view"].cast(pa.float64())),
            "column 'view' of the reports must be uint32",
        ),
        (lambda r: r.set_column(0, "uid", r["uid"].cast(pa.float64())), "user ids must be integers or texts"),
    ],
)
def test_wrong_columns_are_refused(reports, damage, message):
    with pytest.raises(InvalidData, match=message):
        validate(SHOP, "orders", damage(reports))


def test_no_reports_at_all(reports):
    good, refused = validate(SHOP, "orders", reports.slice(0, 0))
    assert (good.num_rows, refused) == (0, {})
