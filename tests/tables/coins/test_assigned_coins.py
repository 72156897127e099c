"""Assigned coins: one public function on devices, in bulk and on servers; nobody chooses a view or a seed."""

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
import deniable.tables.coins.coin_columns as coin_columns_module
from agreement import agrees
from deniable.errors import Failure, InvalidParameter
from deniable.tables.coins.assigned_coins import assigned_coins, coin_prefix, scaled
from deniable.tables.coins.coin_columns import CoinCheck, assigned_views, coin_columns, matches, scaled_words
from deniable.tables.coins.sha256_blocks import digest_words
from deniable.tables.reports.report_table import OTHER_COINS

USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public())
ORDERS = dn.Table("orders", many=10, tau=3, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b", "c"))
DESIGNS = ("hio", "ahio", "ehio", "sr-hio", "sc", "mg", "amg", "grid")
ROW = {"age": 31, "marital": "single"}


def shop(design="hio", **settings):
    return dn.Collection(USERS, ORDERS, **{"epsilon": 2.0, "coins": "assigned", "design": design, **settings})


def frames(ids):
    users = {"uid": ids, "age": [31] * len(ids), "marital": ["single"] * len(ids), "city": ["Rome"] * len(ids)}
    return {"users": pa.table(users), "orders": pa.table({"uid": ids[:1], "amount": [7], "kind": ["b"]})}


@pytest.mark.parametrize("design", DESIGNS)
def test_a_server_checks_small_groups_as_it_checks_many(design, monkeypatch):
    """Reports of both tables: right ones, and ones with a view, a seed or a user that is not theirs."""
    collection, source = shop(design), np.random.default_rng(5)
    ids = pa.array([f"user {number}" for number in range(40)])
    for table in ("users", "orders"):
        slots = np.arange(40) % collection.reports_per_user(table)
        coins = coin_columns(collection, table, ids, slots)
        views, counts = assigned_views(collection.design_of(table), slots, coins)
        seeds = scaled_words(coins.seed, counts)
        spoilt = source.integers(0, 4, 40)
        views, seeds = (
            np.where(spoilt == 1, (views + 1) % collection.design_of(table).views, views),
            seeds + (spoilt == 2),
        )
        users = pa.array(["else" if kind == 3 else uid for uid, kind in zip(ids.to_pylist(), spoilt, strict=True)])
        given = users, slots, views, seeds
        expected = matches(collection, table, *given)
        assert 5 < expected.sum() < 35
        assert CoinCheck(collection, table).matches(*given).tolist() == expected.tolist()
        with monkeypatch.context() as patch:
            patch.setattr(coin_columns_module, "MOST_TABULATED_VIEWS", 0)
            assert CoinCheck(collection, table).matches(*given).tolist() == expected.tolist()


def test_the_compiled_hash_is_sha_256():
    texts = [b"x" * length for length in (0, 1, 51, 52, 53, 54, 55, 116, 117, 118, 119, 1000)]
    prefix = bytes(range(64))
    slots, edges = np.arange(len(texts)) * 5461, np.concatenate(([0], np.cumsum([len(text) for text in texts])))
    words = digest_words(prefix, slots, edges, np.frombuffer(b"".join(texts), dtype=np.uint8))
    for number, text in enumerate(texts):
        digest = hashlib.sha256(prefix + int(slots[number]).to_bytes(2, "big") + text).digest()
        assert words[:, number].astype(">u8").tobytes() == digest[:24]


def test_words_are_scaled_alike_on_devices_and_in_bulk():
    words = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15]
    for count in (1, 2, 7, 95, 2**32 - 1, 2**32, 2**32 + 5, 2**45):
        assert scaled_words(np.array(words, dtype=np.uint64), count).tolist() == [scaled(w, count) for w in words]


@pytest.mark.parametrize("ids", [[7, -3, 2**62], ["7", "", "é" * 400, "Ada Lovelace"]])
def test_a_user_has_the_same_coins_as_an_integer_a_text_and_in_a_column(ids):
    users, slots = pa.chunked_array([pa.array([ids[0], *ids])]).combine_chunks().slice(1), np.arange(len(ids))
    columns = coin_columns(shop(), "orders", users, slots, 4)
    for number, user in enumerate(ids):
        coins = assigned_coins(shop(), "orders", str(user), number, 4)
        assert coins == assigned_coins(shop(), "orders", user, number, 4)
        assert coins == tuple(int(words[number]) for words in (columns.group, columns.view, columns.seed))


def test_coins_change_with_everything_that_they_are_a_function_of():
    settings = [
        (shop(), "users", 7, 0),
        (shop(), "users", 7, 0, 0),
        (shop(), "users", 7, 0, 1),
        (shop(), "users", 8, 0),
    ]
    settings += [(shop(), "orders", 7, 0), (shop(), "users", 7, 1), (shop(epsilon=2.1), "users", 7, 0)]
    assert len({assigned_coins(*given) for given in settings}) == len(settings)
    assert len(coin_prefix(shop(), "users")) == 64


@pytest.mark.parametrize("design", DESIGNS)
def test_a_device_and_a_bulk_run_send_the_same_views_and_seeds(design):
    collection, ids = shop(design), [3, 5, 8, 13]
    bulk = collection.perturb(**frames(ids))
    for table, rows in (("users", [ROW]), ("orders", [])):
        sent = [report for user in ids for report in collection.client(user=user).reports(table, rows)]
        assert [(r.slot, r.view, r.seed) for r in sent] == list(
            zip(*(bulk[table][column].to_pylist() for column in ("slot", "view", "seed")), strict=True)
        )
        assert {report.coins for report in sent} == {"assigned"}
    assert not any(dn.connect(bulk).refused.values())


def test_assigned_views_and_seeds_follow_the_designs_law():
    views = [
        dn.GridView({"age": 40}, weight=5),
        dn.GridView({"age": 3, "marital": 2}, weight=2),
        dn.GridView({"age": 60}),
    ]
    for collection in (shop(), shop("ahio"), shop("grid", grids={"users": views})):
        design, count = collection.design_of("users"), 50_000
        slots = np.zeros(count, dtype=np.int64)
        coins = coin_columns(collection, "users", pa.array(np.arange(count)), slots)
        drawn, _ = assigned_views(design, slots, coins)
        law = [float(view.probability) for view in design]
        assert agrees(drawn, law)
        if design.views > 2:
            assert not agrees(drawn, [1 / 2, *[1 / 2 / (design.views - 1)] * (design.views - 1)])
        assert agrees(scaled_words(coins.seed, 2**32) >> 27, [1 / 32] * 32)


def test_a_server_refuses_every_other_view_and_seed(tmp_path):
    collection = shop("mg", epsilon=1.0)
    honest = collection.perturb(**frames(list(range(200))))
    reports = honest["users"]
    forged_seed = pa.array(np.where(np.arange(200) < 17, 12_345, reports["seed"].to_numpy()), pa.uint32())
    swapped = reports.set_column(0, "uid", pa.array(np.where(np.arange(200) < 2, 1 - np.arange(200), np.arange(200))))
    forged = reports.set_column(3, "seed", forged_seed)
    for table, count in ((reports, 0), (forged, 17), (swapped, 2)):
        changed = type(honest)(
            collection, {"users": table.replace_schema_metadata(reports.schema.metadata)}, honest.summaries
        )
        assert Counter(dn.connect(changed).refused["users"]) == Counter({OTHER_COINS: count} if count else {})
        changed.save(tmp_path / str(count))
        for limit in (0, 2**30):  # from files, and in memory
            refused = dn.connect(tmp_path / str(count), memory_limit=limit).refused["users"]
            assert Counter(refused) == Counter({OTHER_COINS: count} if count else {})


def test_lines_of_a_device_are_refused_under_another_id():
    collection = shop()
    client = collection.client(user=7)
    lines = [client.report("users", ROW).to_json(uid, "users", {"city": "Rome"}) for uid in ("7", 8)]
    gathered = collection.gather(lines)
    assert gathered["users"].num_rows == 2
    refused = dn.connect(gathered).refused["users"]
    view = client.report("users", ROW)
    expected = assigned_coins(collection, "users", 8, 0)
    same = scaled(expected.view, collection.views("users")) == view.view and view.seed == 0
    assert Counter(refused) == Counter({} if same else {OTHER_COINS: 1})


def test_a_client_needs_its_user_and_a_memory_belongs_to_one(tmp_path):
    collection = shop("mg", epsilon=1.0)
    with pytest.raises(InvalidParameter, match="user is missing: this collection assigns"):
        collection.client()
    for bad in (True, 1.5, "x" * 1001, 2**63, "\ud800", b"7"):
        with pytest.raises(InvalidParameter, match="user must be a 64-bit integer or a text"):
            collection.client(user=bad)
    for memory in ({}, tmp_path / "memory.json"):
        first = collection.client(memory, user=7).report("users", ROW)
        assert collection.client(memory, user="7").report("users", ROW) == first
        with pytest.raises(Failure, match="reports of another user"):
            collection.client(memory, user=8).report("users", ROW)
    assert shop(coins="drawn").client(user=7).report("users", ROW).coins == "drawn"
