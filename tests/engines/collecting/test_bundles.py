"""Bundles that were gathered from lines, and names that `perturb` draws: whole messages, shuffled."""

import pytest

import deniable as dn
from deniable.engines.collecting.bundles import BROKEN
from deniable.engines.collecting.gathered_bundles import OTHER_BUNDLE
from deniable.engines.collecting.wire_reports import MALFORMED
from deniable.engines.spark.spark_perturbing import perturb_spark
from deniable.errors import InvalidParameter
from deniable.tables.reports.report_table import OTHER_SPECIFICATION

SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95)),
    dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500)),
    epsilon=4.0,
    name="shop",
    ids="pseudonym",
)


def device(number, collection=SHOP):
    client = collection.client()
    client.report("users", {"age": 1 + number})
    client.reports("orders", [{"amount": number}])
    return client.bundle()


def test_lines_are_gathered_whole_and_once_in_the_order_of_names():
    people = [device(number) for number in range(20)]
    lines = [bundle.to_json() for bundle in people]
    forged = lines[0].replace(people[0].reports.hex(), people[1].reports.hex())
    partial = device(1).to_json()[:-66] + '"}'
    twice = (lost := device(2)).to_json().replace(lost.reports.hex(), lost.reports[:32].hex() * 3)
    other = SHOP.with_settings(epsilon=3.0)
    reports = SHOP.gather([*lines, lines[3], forged, partial, twice, "{}", device(3, other).to_json()])
    assert {name: table.num_rows for name, table in reports.tables.items()} == {"users": 20, "orders": 40}
    refused = reports.summaries["(none)"].rejected
    assert refused == {OTHER_BUNDLE: 1, MALFORMED: 2, BROKEN: 1, OTHER_SPECIFICATION: 1}
    assert reports.tables["users"]["uid"].to_pylist() == sorted(bundle.name for bundle in people)
    assert SHOP.gather(reversed(lines)).tables["orders"] == SHOP.gather(lines).tables["orders"]


def test_perturb_draws_names_that_tables_share_and_forgets_them():
    rows = {"users": {"uid": list(range(200)), "age": [40] * 200}, "orders": {"uid": [5, 5, 7], "amount": [1, 2, 3]}}
    first, again, other = (SHOP.perturb(**rows, source=dn.SeededSource(seed), simulation=True) for seed in (1, 1, 2))
    names = first.tables["users"]["uid"].to_pylist()
    assert names == sorted(names)
    assert len(set(names)) == 200
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in names)
    assert sorted(set(first.tables["orders"]["uid"].to_pylist())) == names
    assert again.tables["users"]["uid"].to_pylist() == names
    assert not set(other.tables["users"]["uid"].to_pylist()) & set(names)
    assert not set(SHOP.perturb(**rows).tables["users"]["uid"].to_pylist()) & set(names)


def test_ids_as_numbers_and_texts_in_files_have_one_name(tmp_path):
    (tmp_path / "users.csv").write_text("uid,age\n7,30\n8,40\n")
    reports = SHOP.perturb(users=tmp_path / "users.csv", orders={"uid": [7, 8], "amount": [1, 2]})
    assert set(reports.tables["users"]["uid"].to_pylist()) == set(reports.tables["orders"]["uid"].to_pylist())


def test_what_would_break_the_names_is_refused():
    rows = {"uid": [1, 2], "age": [30, 40]}
    with pytest.raises(InvalidParameter, match="table 'orders' is missing"):
        SHOP.perturb(users=rows)
    rounds = SHOP.with_settings(rounds=dn.Rounds(3, mode="fresh"))
    with pytest.raises(InvalidParameter, match="which devices keep over all rounds"):
        rounds.perturb(users=rows, orders={"uid": [1], "amount": [2]}, round=1)
    with pytest.raises(InvalidParameter, match="which Spark cannot draw"):
        perturb_spark(SHOP, {}, None, key="uid", out=None, everyone=None, source=None, simulation=False)
