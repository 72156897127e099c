"""What a collector stored, as tables: while it runs, sealed, in memory and from files, the same as gathering."""

import itertools
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.database import connect
from deniable.engines.collecting.sent_columns import SentReport
from deniable.engines.collecting.stored_reports import collector_folder, seal
from deniable.engines.collecting.wire_reports import ReportDoor
from deniable.engines.local import checked_rows, growing_layers
from deniable.engines.local.growing_store import growing
from deniable.errors import BadInput
from deniable.service.collector import init_folder
from deniable.stores.collector import postgresql_store, settled_runs, sqlite_store
from deniable.stores.collector.upload import Upload, UploadOutcome
from deniable.tables.reports.report import parse
from postgresql_server import new_database

SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95)),
    dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500), city=dn.Public(), score=dn.Public()),
    epsilon=2.0,
    coins="assigned",
    name="shop",
)
PEOPLE = [f"user {number}" for number in range(60)]


@pytest.fixture(scope="module")
def lines():
    made = []
    for number, uid in enumerate(PEOPLE):
        client = SHOP.client(user=uid)
        made.append(client.report("users", {"age": number + 1}).to_json(uid, "users"))
        public = {"city": "Rome" if number % 2 else None, "score": 2.5 if number == 3 else number}
        public["city"] = 7 if number == 5 else public["city"]  # of another type than most
        made += [report.to_json(uid, "orders", public) for report in client.reports("orders", [{"amount": number}])]
    return made


def stored(folder, lines, reverse=False):
    """A collector's folder with these reports."""
    init_folder(SHOP, folder)
    sent = [(str(uid), report.to_bytes(), table, public) for uid, table, report, public in map(parse, lines)]
    sent = [SentReport(*entry) for entry in (reversed(sent) if reverse else sent)]
    uploads = [
        Upload(good.table, good.round, arrived.uid, good.slot, arrived.report, good.public)
        for arrived, good in zip(sent, ReportDoor(SHOP).check(sent), strict=True)
        if good.refusal is None
    ]
    assert len(uploads) == len(lines)
    opened = collector_folder(folder)
    store = opened.open_store()
    assert store.add(uploads) == [UploadOutcome.ACCEPTED] * len(uploads)
    return opened, store


def test_a_store_answers_as_gathered_reports_do(tmp_path, lines):
    _, store = stored(tmp_path / "collected", lines)
    gathered = connect(SHOP.gather(lines))
    question = "SELECT city, COUNT(*) AS n, SUM(score) AS s FROM orders GROUP BY city"
    for limit in (2**30, 0):  # in memory, and from files
        live = connect(tmp_path / "collected", memory_limit=limit, spill=tmp_path)
        assert {name: rows.rows for name, rows in live.stores.items()} == {"users": 60, "orders": 118}
        assert str(live.sql(question)) == str(gathered.sql(question))
        join = "SELECT COUNT(*) AS n FROM users JOIN orders USING (uid) WHERE age < 30"
        assert str(live.sql(join)) == str(gathered.sql(join))
    store.close()


def test_what_is_committed_is_seen_at_once(tmp_path, lines):
    opened, store = stored(tmp_path / "collected", lines[:3])
    assert connect(tmp_path / "collected").stores["users"].rows == 1
    uid, table, report, _ = parse(lines[3])
    store.add([Upload(table, 0, uid, report.slot, report.to_bytes())])
    assert connect(tmp_path / "collected").stores["users"].rows == 2
    assert opened.path == tmp_path / "collected"
    store.close()


def test_sealed_files_are_the_same_whatever_the_order_of_arrival(tmp_path, lines):
    sealed = []
    for name, reverse in (("forth", False), ("back", True)):
        opened, store = stored(tmp_path / name, lines, reverse)
        assert seal(opened, store) == {("orders", 0): 118, ("users", 0): 60}
        sealed.append({path.parent.name: path.read_bytes() for path in (tmp_path / name).glob("*/part-0.parquet")})
        assert not list((tmp_path / name).glob("*/.*"))
        store.close()
    assert sealed[0] == sealed[1]
    table = pq.read_table(tmp_path / "forth" / "users" / "part-0.parquet")
    assert table.column_names == ["uid", "slot", "view", "seed", "y"]
    assert table["uid"].to_pylist() == sorted(PEOPLE)


def test_a_sealed_folder_is_like_any_other_and_is_sealed_again(tmp_path, lines):
    opened, store = stored(tmp_path / "collected", lines[:30])
    seal(opened, store, tmp_path / "out")
    assert connect(tmp_path / "out").stores["users"].rows == 10
    uid, table, report, _ = parse(lines[30])
    store.add([Upload(table, 0, uid, report.slot, report.to_bytes())])
    assert connect(tmp_path / "out").stores["users"].rows == 10
    seal(opened, store, tmp_path / "out")
    assert connect(tmp_path / "out").stores["users"].rows == 11
    store.close()


def test_row_groups_have_a_constant_size(tmp_path, lines, monkeypatch):
    monkeypatch.setattr("deniable.engines.collecting.folder_writing.GROUP_REPORTS", 25)
    opened, store = stored(tmp_path / "collected", lines)
    seal(opened, store)
    store.close()
    footer = pq.read_metadata(tmp_path / "collected" / "users" / "part-0.parquet")
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == [25, 25, 10]


def test_a_folder_is_made_once_and_for_one_specification(tmp_path, lines):
    _, store = stored(tmp_path / "collected", lines[:1])
    store.close()
    with pytest.raises(BadInput, match="exists and is not empty"):
        init_folder(SHOP, tmp_path / "collected")
    dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=1.0).save(tmp_path / "collected/collection.json")
    with pytest.raises(BadInput, match="another specification"):
        connect(tmp_path / "collected")


def test_a_simulation_stays_one(tmp_path):
    init_folder(SHOP, tmp_path / "collected", simulation=True)
    report = SHOP.client(user="7", simulation=True).report("users", {"age": 31})
    released = SHOP.client(user="7").report("users", {"age": 31})
    door = ReportDoor(SHOP, simulation=True)
    checked = door.check([SentReport("7", report.to_bytes()), SentReport("7", released.to_bytes())])
    assert [good.refusal for good in checked] == [None, "of a release, not of a simulation"]
    opened = collector_folder(tmp_path / "collected")
    store = opened.open_store()
    store.add([Upload("users", 0, "7", 0, report.to_bytes())])
    assert connect(tmp_path / "collected").simulation
    seal(opened, store, tmp_path / "out")
    assert connect(tmp_path / "out").simulation
    store.close()


def test_the_door_and_gathering_refuse_the_same(lines):
    """Every byte of a report changed in two ways; the collector's door and `gather` agree on what can be used."""
    uid, _, report, _ = parse(lines[0])
    good, disagreements, refused = report.to_bytes(), [], 0
    for position, change in itertools.product(range(32), (1, 128)):
        data = good[:position] + bytes([good[position] ^ change]) + good[position + 1 :]
        (checked,) = ReportDoor(SHOP).check([SentReport(uid, data)])
        line = f'{{"uid": "{uid}", "table": "users", "report": "{data.hex()}"}}'
        database = connect(SHOP.gather([line])) if SHOP.gather([line]).tables else None
        usable = database is not None and database.stores["users"].rows == 1
        refused += checked.refusal is not None
        if usable != (checked.refusal is None):
            disagreements.append((position, change, checked.refusal))
    assert disagreements == []
    assert refused >= 56


def reports_of(collection, people, turn=None):
    """What people send to a collection, in no order."""
    sent = []
    for uid in people:
        reports = collection.client(user=uid).reports("users", [{"age": 31}], round=turn)
        sent += [Upload("users", turn or 0, uid, report.slot, report.to_bytes()) for report in reports]
    random.Random(len(people)).shuffle(sent)  # noqa: S311 - a test
    return sent


def contents(store, *, named=True):
    """Everything that a store gives, by user if ids are kept."""
    given = []
    ids = iter([uid for names in store.user_ids() for uid in names.tolist()]) if named else itertools.repeat("")
    for block in store.read(["view", "seed", "y"]):
        assert (np.diff(block.users) > 0).all()
        rows = [tuple(row.values()) for row in block.reports.to_pylist()]
        given += [(next(ids), rows[first : first + store.slots]) for first in range(0, len(rows), store.slots)]
    return sorted(given)


@pytest.mark.parametrize("few", [0, 512])
@pytest.mark.parametrize("kind", ["one report", "several", "rounds"])
@pytest.mark.parametrize("database", [False, True], ids=["file", "postgresql"])
def test_a_store_that_grows_is_what_is_read_at_once(tmp_path, monkeypatch, database, kind, few):
    monkeypatch.setattr(checked_rows, "_FEW", few)
    monkeypatch.setattr(settled_runs, "PAGE_ROWS", 3)
    monkeypatch.setattr(sqlite_store, "PAGES_AT_ONCE", 2)
    monkeypatch.setattr(postgresql_store, "MOST_GROWTH", 4)
    monkeypatch.setattr(growing_layers, "LARGEST_MERGED", 30)
    users = dn.Table("users", age=dn.Ordinal(1, 95), **({"many": 3, "tau": 2} if kind == "several" else {}))
    options = {"rounds": dn.Rounds(2, mode="fresh")} if kind == "rounds" else {}
    collection = dn.Collection(users, epsilon=2.0, coins="assigned", name="shop", **options)
    init_folder(collection, tmp_path / "collected", database=new_database() if database else None)
    folder = collector_folder(tmp_path / "collected")
    store = folder.open_store()
    if kind == "rounds":
        store.set_round(1, is_open=True)
    followed, source, checked = growing(folder, store), random.Random(3), []  # noqa: S311 - a test
    possible = checked_rows.possible_rows
    monkeypatch.setattr(
        checked_rows, "possible_rows", lambda *given: checked.append(given[2].num_rows) or possible(*given)
    )
    sent = reports_of(collection, [f"user {number}" for number in range(60)], 1 if kind == "rounds" else None)
    other = folder.open_store() if database else store  # another writer
    for step in range(20):
        store, other = other, store
        chosen = [sent.pop() for _ in range(min(source.randint(1, 6), len(sent)))]
        assert store.add(chosen) == [UploadOutcome.ACCEPTED] * len(chosen)
        if step % 5 == 4:  # what arrived goes elsewhere
            settle(store, monkeypatch)
        if step % 3 == 2 or step == 19:
            grown, anew = dn.connect(engine=followed.engine()), dn.connect(folder.path)
            mine, others = grown.engine.stores["users"], anew.engine.stores["users"]
            if kind == "rounds":
                assert blocks(mine) == blocks(others)
            else:
                held = contents(others)
                if kind == "one report":  # ids are not kept
                    held = sorted(("", rows) for _, rows in held)
                assert contents(mine, named=kind == "several") == held
                assert (mine.view_counts(99) == others.view_counts(99)).all()
            assert grown.engine.refused == anew.engine.refused
    assert sum(checked) == sum(store.summary().counts.values())  # each once
    store.close()
    other.close()


def blocks(store):
    """Everything that a store gives, in its order."""
    return [(block.users.tolist(), block.reports.to_pylist()) for block in store.read(["view", "seed", "y"])]


def settle(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_store, "IDLE_RECENT", 0)
        store.tidy()


def test_tables_that_grow_are_joined(tmp_path, monkeypatch):
    """Users report for the second table later than for the first, in another order, and some never."""
    monkeypatch.setattr(growing_layers, "LARGEST_MERGED", 50)
    shop = dn.Collection(
        dn.Table("users", age=dn.Ordinal(1, 95)),
        dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 9)),
        epsilon=8.0,
        coins="assigned",
        name="shop",
    )
    init_folder(shop, tmp_path / "collected")
    folder = collector_folder(tmp_path / "collected")
    store = folder.open_store()
    followed, sent = growing(folder, store), []
    for name, people in (("users", range(90)), ("orders", range(120, 30, -1))):
        row = {"users": {"age": 31}, "orders": {"amount": 7}}[name]
        for uid in map(str, people):
            reports = shop.client(user=uid).reports(name, [row])
            sent += [Upload(name, 0, uid, report.slot, report.to_bytes()) for report in reports]
    questions = (
        "SELECT COUNT(*) AS n, AVG(age) AS a FROM users",
        "SELECT SUM(amount) AS s FROM orders",
        "SELECT COUNT(*) AS n, SUM(amount) AS s FROM users JOIN orders USING (uid) WHERE age < 40",
    )
    for first in range(0, len(sent), 27):
        assert set(store.add(sent[first : first + 27])) == {UploadOutcome.ACCEPTED}
        if first % 2:
            settle(store, monkeypatch)
        grown, anew = dn.connect(engine=followed.engine()), dn.connect(folder.path)
        for question in questions[: 1 if first < 90 else 3]:
            mine, others = (database.sql(question).to_arrow().to_pylist() for database in (grown, anew))
            assert [*mine[0].values()] == pytest.approx([*others[0].values()], rel=1e-9)
    assert max(len(held.layers) for held in grown.engine.stores.values()) > 2
    ids, _ = grown.engine.id_reports("orders")
    assert sorted(ids) == sorted(map(str, range(31, 121)))
    store.close()
