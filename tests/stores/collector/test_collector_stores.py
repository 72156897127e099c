"""Every store of the collector, against the same expectations and against the model."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import BadInput, Failure
from deniable.stores.collector import settled_runs, sqlite_store
from deniable.stores.collector.group_commit import CommitLimits, GroupCommit, QueueFull, adding
from deniable.stores.collector.key_digests import digests
from deniable.stores.collector.model_store import ModelStore
from deniable.stores.collector.postgresql_store import PostgresqlStore, create_postgresql_store
from deniable.stores.collector.run_filters import MOST_ACROSS, RunFilters, run_filter
from deniable.stores.collector.sqlite_store import STORE_FILE, SqliteStore, create_store, file_damage
from deniable.stores.collector.upload import StoreFailure, Upload, UploadOutcome
from deniable.stores.collector.upload_columns import UploadColumns
from postgresql_server import new_database

HASH = "ab" * 32
A, R, C, X = UploadOutcome.ACCEPTED, UploadOutcome.REPEATED, UploadOutcome.CONFLICT, UploadOutcome.CLOSED


def model(folder):
    store = ModelStore()
    store.set_round(0, is_open=True)
    return store


def sqlite(folder):
    path = folder / STORE_FILE
    if not path.exists():
        create_store(path, HASH)
    return SqliteStore(path, HASH)


def moving(folder):
    """A store in which what arrived settles at every chance, in pages of two rows."""
    return Moving(sqlite(folder))


class Moving:
    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite_store, "IDLE_RECENT", 0)
            patch.setattr(settled_runs, "PAGE_ROWS", 2)
            self._store.tidy()
        return getattr(self._store, name)


def postgresql(folder):
    address = folder / "address"
    if not address.exists():
        address.write_text(new_database())
        assert create_postgresql_store(address.read_text(), HASH)
    return PostgresqlStore(address.read_text(), HASH)


STORES = {"model": model, "sqlite": sqlite, "moving": moving, "postgresql": postgresql}
LASTING = ["sqlite", "moving", "postgresql"]


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    made = STORES[request.param](tmp_path)
    yield made
    made.close()


def sent(uid="7", slot=0, report=b"first", table="users", turn=0, public=None):
    return Upload(table, turn, uid, slot, report, public)


def rows(store, table="users", turn=0):
    return [row for batch in store.read(table, turn) for row in batch.listed()]


def test_the_same_bytes_are_repeated_and_other_bytes_refused(store):
    assert store.add([sent(), sent(), sent(report=b"other")]) == [A, R, C]
    assert store.add([sent(), sent(report=b"other"), sent(slot=1), sent(uid="8")]) == [R, C, A, A]
    assert rows(store) == [("7", b"first", None), ("7", b"first", None), ("8", b"first", None)]


def test_what_came_after_a_mark_is_told_once(store):
    store.set_round(3, is_open=True)
    store.add([sent(), sent(turn=3)])
    first = store.since("users", 0, None)
    assert [row.listed() for row in (first.settled, first.recent) if len(row.uids)] == [[("7", b"first", None)]]
    store.add([sent(uid="8"), sent(), sent(table="orders")])
    second = store.since("users", 0, first.mark)
    told = [row for rows_ in (second.settled, second.recent) for row in rows_.listed()]
    known = [] if second.replaces_recent else first.recent.listed()
    assert sorted(first.settled.listed() + known + told) == sorted(rows(store))
    third = store.since("users", 0, second.mark)
    assert not len(third.settled.uids)
    assert third.replaces_recent or not len(third.recent.uids)


def test_what_another_server_commits_late_is_not_missed(tmp_path):
    first, second = postgresql(tmp_path), postgresql(tmp_path)
    first.add([sent(uid="before")])
    connection = first._open_writer()
    with connection.transaction():
        first._add(connection, [sent(uid="late")])
        second.add([sent(uid="early")])
        growth = second.since("users", 0, None)
        assert sorted(uid for uid, _, _ in growth.settled.listed()) == ["before", "early"]
    growth = second.since("users", 0, growth.mark)
    assert [uid for uid, _, _ in growth.settled.listed()] == ["late"]
    first.close()
    second.close()


def test_public_values_are_part_of_what_was_sent(store):
    assert store.add([sent(public='{"city":"Rome"}'), sent(public='{"city":"Oslo"}')]) == [A, C]
    assert rows(store) == [("7", b"first", '{"city":"Rome"}')]


def test_tables_and_rounds_are_kept_apart(store):
    store.set_round(3, is_open=True)
    assert store.add([sent(), sent(table="orders", report=b"b"), sent(turn=3, report=b"c")]) == [A, A, A]
    assert store.summary().counts == {("users", 0): 1, ("orders", 0): 1, ("users", 3): 1}
    assert rows(store, turn=3) == [("7", b"c", None)]
    assert rows(store, table="nobody") == []


def test_a_closed_round_takes_nothing_new_and_still_knows_what_it_has(store):
    store.add([sent()])
    store.set_round(0, is_open=False)
    assert store.add([sent(), sent(report=b"other"), sent(uid="8"), sent(turn=9)]) == [R, C, X, X]
    store.set_round(0, is_open=True)
    assert store.add([sent(uid="8")]) == [A]
    assert store.summary().rounds == {0: True}


def test_rows_come_in_the_order_of_ids_whatever_the_order_of_arrival(store):
    ids = ["b", "a", "10", "9", "", "é", "z", "Z", "\U0001f600", "\uffff", "a\0b"]
    store.add([sent(uid=uid, slot=slot) for slot in (1, 0) for uid in ids])
    assert [uid for uid, _, _ in rows(store)] == [uid for uid in sorted(ids, key=str.encode) for _ in (0, 1)]


def test_a_change_has_another_version_and_a_repetition_has_not(store):
    versions = [store.summary().version]
    for change in (lambda: store.add([sent()]), lambda: store.set_round(1, is_open=True)):
        change()
        versions.append(store.summary().version)
    store.add([sent(), sent(report=b"other")])
    assert len(set(versions)) == 3
    assert store.summary().version == versions[-1]


uploads = st.builds(
    sent,
    uid=st.sampled_from("ab"),
    slot=st.integers(0, 1),
    report=st.sampled_from([b"x", b"y"]),
    turn=st.integers(0, 2),
)
steps = st.lists(st.one_of(st.lists(uploads, max_size=5), st.tuples(st.integers(0, 2), st.booleans())), max_size=12)


@pytest.mark.parametrize("name", LASTING)
@settings(max_examples=12)
@given(plan=steps)
def test_every_store_does_what_the_model_does(tmp_path_factory, name, plan):
    folder = tmp_path_factory.mktemp("store")
    expected, store = model(folder), STORES[name](folder)
    for step in plan:
        if isinstance(step, tuple):
            for each in (expected, store):
                each.set_round(step[0], is_open=step[1])
        else:
            assert store.add(step) == expected.add(step)
            store.close()
            store = STORES[name](folder)  # as after a restart
    assert store.summary().counts == expected.summary().counts
    assert store.summary().rounds == expected.summary().rounds
    for turn in range(3):
        assert rows(store, turn=turn) == rows(expected, turn=turn)
    store.close()


# SQLite ---------------------------------------------------------------------------------------------------------------


def test_a_store_belongs_to_one_specification_and_is_not_made_twice(tmp_path):
    sqlite(tmp_path).close()
    with pytest.raises(BadInput, match="another specification"):
        SqliteStore(tmp_path / STORE_FILE, "cd" * 32)
    with pytest.raises(BadInput, match=r"a store 'reports\.sqlite' already"):
        create_store(tmp_path / STORE_FILE, HASH)
    with pytest.raises(BadInput, match="there is no store"):
        SqliteStore(tmp_path / "other.sqlite", HASH)
    (tmp_path / "odd.sqlite").write_bytes(b"nothing like it" * 100)
    with pytest.raises((BadInput, Failure)):
        SqliteStore(tmp_path / "odd.sqlite", HASH)


def test_commits_wait_for_the_disk(tmp_path):
    store = sqlite(tmp_path)
    assert store._open_writer().execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._open_writer().execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_a_reader_sees_one_moment_while_others_are_added(tmp_path):
    store = sqlite(tmp_path)
    store.add([sent(uid=f"{number:06}") for number in range(20_000)])
    reading = store.read("users", 0)
    seen = len(next(reading).uids)
    store.add([sent(uid=f"9{number:05}") for number in range(100)])
    assert seen + sum(len(batch.uids) for batch in reading) == 20_000
    assert store.summary().counts == {("users", 0): 20_100}
    store.close()


def test_after_an_error_nothing_of_the_batch_is_there(tmp_path):
    store = sqlite(tmp_path)
    store._open_writer().execute("CREATE TRIGGER no BEFORE INSERT ON counts BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(StoreFailure, match="What was being stored is not"):
        store.add([sent(), sent(uid="8")])
    store._open_writer().execute("DROP TRIGGER no")
    assert rows(store) == []
    assert store.add([sent()]) == [A]
    store.close()


WRITER = """
import sys
from pathlib import Path
from deniable.stores.collector.sqlite_store import SqliteStore
from deniable.stores.collector.upload import Upload
store = SqliteStore(Path(sys.argv[1]), sys.argv[2])
first = int(sys.argv[3])
for batch in range(first, first + 10_000):
    store.add([Upload("users", 0, f"{batch}.{number}", 0, b"x" * 32) for number in range(40)])
    print(batch, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path):
    """A process that only adds is killed while it does; every batch that it told of is there, and none in part."""
    sqlite(tmp_path).close()
    told = set()
    for attempt in range(4):
        first = attempt * 100_000
        command = [sys.executable, "-c", WRITER, str(tmp_path / STORE_FILE), HASH, str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            told.update(int(process.stdout.readline()) for _ in range(3 + 7 * attempt))
            os.kill(process.pid, signal.SIGKILL)
            told.update(int(line) for line in process.stdout.read().split("\n")[:-1])
        store = sqlite(tmp_path)
        batches = [int(uid.split(".")[0]) for uid, _, _ in rows(store)]
        store.close()
        assert told <= set(batches)
        assert all(batches.count(batch) == 40 for batch in set(batches))
        assert len(set(batches) - told) <= attempt + 1  # stored, and killed before it was told


@pytest.mark.parametrize("name", ["sqlite", "postgresql"])
def test_threads_that_add_under_the_same_keys_agree(tmp_path, name):
    store = STORES[name](tmp_path)
    told = [[], []]

    def add(number):
        for key in range(30):
            told[number] += store.add([sent(uid=str(key), report=b"%d" % number)])

    threads = [threading.Thread(target=add, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all({first, second} == {A, C} for first, second in zip(*told, strict=True))
    assert len(rows(store)) == 30
    store.close()


# PostgreSQL -----------------------------------------------------------------------------------------------------------


def test_two_servers_on_one_database_keep_one_report_each(tmp_path):
    """Both add other bytes under the same keys, in opposite orders and many at once."""
    stores = [postgresql(tmp_path), postgresql(tmp_path)]
    told = [[], []]

    def add(number):
        for batch in range(5):
            keys = range(40 * batch, 40 * batch + 40)
            ids = [str(key) for key in (keys if number else reversed(keys))]
            told[number] += zip(
                ids, stores[number].add([sent(uid=uid, report=b"%d" % number) for uid in ids]), strict=True
            )

    threads = [threading.Thread(target=add, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = {uid: int(report) for uid, report, _ in rows(stores[0])}
    assert len(held) == 200 == stores[1].summary().counts["users", 0]
    for number, outcomes in enumerate(told):
        assert all(became is (A if held[uid] == number else C) for uid, became in outcomes)
    stores[1].set_round(0, is_open=False)
    assert stores[0].add([sent(uid="new"), sent(uid="0", report=b"%d" % held["0"])]) == [X, R]
    for store in stores:
        store.close()


def test_a_database_belongs_to_one_specification_and_its_errors_show_nothing(tmp_path):
    address = new_database()
    with pytest.raises(BadInput, match="the database holds no store"):
        PostgresqlStore(address, HASH)
    assert create_postgresql_store(address, HASH)
    assert not create_postgresql_store(address, HASH)  # joins
    with pytest.raises(BadInput, match="another specification"):
        create_postgresql_store(address, "cd" * 32)
    store = PostgresqlStore(address, HASH)
    store._open_writer().close()  # as after a restart of the database
    assert store.add([sent()]) == [A]
    store.close()
    with pytest.raises(StoreFailure) as told:
        PostgresqlStore("postgresql://somebody:secret@/nowhere?host=/nowhere", HASH)
    assert not {"secret", "somebody", "nowhere"} & set(str(told.value).replace(":", " ").replace("/", " ").split())


# Group commit ---------------------------------------------------------------------------------------------------------


def test_nothing_is_added_after_the_database_was_replaced(tmp_path):
    """The connection ended and the database now holds something else: every further try is refused, not only one."""
    store, other = postgresql(tmp_path), PostgresqlStore((tmp_path / "address").read_text(), HASH)
    assert store.add([sent()]) == [A]
    connection = other._open_writer()
    connection.execute("UPDATE deniable_settings SET value = 'another' WHERE name = 'specification'")
    (process,) = store._open_writer().execute("SELECT pg_backend_pid()").fetchone()
    connection.execute("SELECT pg_terminate_backend(%s, 10000)", (process,))
    with pytest.raises(StoreFailure):
        store.add([sent(uid="8")])
    for _ in range(2):
        with pytest.raises(BadInput, match="another specification"):
            store.add([sent(uid="8")])
    assert rows(other) == [("7", b"first", None)]
    store.close()
    other.close()


def test_corrected_counts_have_another_version(tmp_path):
    for made in (sqlite(tmp_path), postgresql(tmp_path)):
        made.add([sent(), sent(uid="8")])
        versions = [made.summary().version]
        for count in (1, 0, 2):
            made.correct_counts({("users", 0): count})
            versions.append(made.summary().version)
        assert versions == sorted(set(versions))
        made.close()


def submit(writer, uploads):
    return writer.submit(uploads, len(uploads))


class Slow(ModelStore):
    """Commits when it is told to, and counts."""

    def __init__(self):
        super().__init__()
        self.set_round(0, is_open=True)
        self.go, self.commits = threading.Semaphore(0), []

    def add(self, uploads):
        self.go.acquire()
        self.commits.append(len(uploads))
        if uploads and uploads[0].uid == "bad":
            raise StoreFailure("the disk is full. Nothing was stored. Make room.")
        return super().add(uploads)


def test_requests_wait_together_and_each_gets_its_own_outcomes():
    store = Slow()
    writer = GroupCommit(adding(store), CommitLimits(delay_s=5.0, quiet_s=5.0, reports=3))
    futures = [submit(writer, [sent(uid=str(number))]) for number in range(3)]
    store.go.release()
    assert [future.result(10) for future in futures] == [[A], [A], [A]]
    assert store.commits == [3]
    futures = [submit(writer, [sent(uid="2"), sent(uid="3")]), submit(writer, [sent(uid="3", report=b"other")])]
    store.go.release()
    assert [future.result(10) for future in futures] == [[R, A], [C]]
    writer.close()


def test_a_full_queue_refuses_and_drains():
    store = Slow()
    writer = GroupCommit(adding(store), CommitLimits(queued_reports=4, reports=1))
    futures = [submit(writer, [sent(uid="1"), sent(uid="2")]), submit(writer, [sent(uid="3"), sent(uid="4")])]
    with pytest.raises(QueueFull, match=r"Nothing was stored\. Send them again later"):
        submit(writer, [sent(uid="5")])
    assert writer.queued == 4
    store.go.release(10)
    assert [future.result(10) for future in futures] == [[A, A], [A, A]]
    assert writer.queued == 0
    assert submit(writer, [sent(uid="5")]).result(10) == [A]
    writer.close()


def test_closing_commits_what_waits_and_takes_nothing_more():
    store = Slow()
    writer = GroupCommit(adding(store), CommitLimits(reports=1))
    futures = [submit(writer, [sent(uid=str(number))]) for number in range(5)]
    store.go.release(10)
    writer.close()
    writer.close()
    assert [future.result(0) for future in futures] == [[A]] * 5
    with pytest.raises(Failure, match=r"being closed\. Nothing was stored"):
        submit(writer, [sent()])
    assert not writer.alive


def test_a_failed_commit_is_told_to_all_who_wait_and_the_next_succeeds():
    store, watched = Slow(), []
    writer = GroupCommit(adding(store), CommitLimits(reports=1), watch=watched.append)
    store.go.release(10)
    with pytest.raises(StoreFailure, match="the disk is full"):
        submit(writer, [sent(uid="bad")]).result(10)
    assert submit(writer, [sent()]).result(10) == [A]
    writer.close()
    assert [(commit.reports, commit.failed) for commit in watched] == [(1, True), (1, False)]


def test_a_fault_while_tidying_does_not_end_the_thread():
    """Otherwise whoever uploads next would wait for ever."""
    store, seen, tried = ModelStore(), [], threading.Event()
    store.set_round(0, is_open=True)

    def tidy():
        tried.set()
        raise RuntimeError

    writer = GroupCommit(adding(store), CommitLimits(idle_s=0.001), watch=seen.append, tidy=tidy)
    assert submit(writer, [sent()]).result(10) == [UploadOutcome.ACCEPTED]
    assert tried.wait(10)
    assert submit(writer, [sent(uid="8")]).result(10) == [UploadOutcome.ACCEPTED]
    writer.close()
    assert any(commit.failed for commit in seen)


def test_nobody_waits_for_a_thread_that_has_ended():
    """Whoever is told may fail, too: what is stored is stored, and others learn that nothing more is."""
    store, wrong, reached = ModelStore(), threading.excepthook, threading.Event()
    store.set_round(0, is_open=True)
    told, gone = [], [False]

    def deliver(deliveries):
        told.extend(deliveries)
        if not gone[0]:
            gone[0] = True
            reached.wait(10)
            raise RuntimeError

    threading.excepthook = lambda _: None
    try:
        writer = GroupCommit(adding(store), CommitLimits(reports=1), deliver=deliver)
        submit(writer, [sent()])
        while not told:
            time.sleep(0.001)
        submit(writer, [sent(uid="8")])
        reached.set()
        writer.close()
    finally:
        threading.excepthook = wrong
    assert [delivery.result for delivery in told] == [[A], None]
    assert "has stopped. Nothing was stored" in str(told[1].problem)
    assert not writer.alive
    with pytest.raises(Failure, match="Nothing was stored"):
        submit(writer, [sent(uid="9")])


def test_a_request_that_was_cancelled_does_not_end_the_thread():
    store = Slow()
    writer = GroupCommit(adding(store), CommitLimits(reports=1))
    future = submit(writer, [sent()])
    assert future.cancel()
    store.go.release(2)
    assert submit(writer, [sent()]).result(10) == [R]
    writer.close()


def test_a_full_disk_is_a_failure_that_names_no_row(tmp_path):
    store = sqlite(tmp_path)
    store._open_writer().execute("PRAGMA max_page_count=20")
    with pytest.raises(StoreFailure, match=r"\(SQLITE_FULL\)") as told:
        store.add([sent(uid=f"somebody {number}" * 20) for number in range(2_000)])
    assert "somebody" not in str(told.value)
    assert rows(store) == []
    store.close()


def contents(folder, statement):
    connection = sqlite3.connect(Path(folder, STORE_FILE))
    held = connection.execute(statement).fetchall()
    connection.close()
    return held


def test_what_has_settled_is_in_no_order_of_arrival(tmp_path, monkeypatch):
    """Two files with one secret, and rows that arrived in opposite orders: every byte of the run is the same."""
    monkeypatch.setattr(sqlite_store, "IDLE_RECENT", 0)
    monkeypatch.setattr(sqlite_store.secrets, "token_hex", lambda size: "5a" * size)
    ids, settled = [f"user {number}" for number in range(700)], []
    for folder, order in (("forwards", ids), ("backwards", ids[::-1])):
        Path(tmp_path, folder).mkdir()
        store = sqlite(tmp_path / folder)
        for first in range(0, len(order), 100):
            store.add([sent(uid=uid, report=uid.encode()) for uid in order[first : first + 100]])
        store.tidy()
        store.close()
        settled.append(contents(tmp_path / folder, "SELECT * FROM runs, pages"))
        assert contents(tmp_path / folder, "SELECT COUNT(*) FROM arrivals") == [(0,)]
    assert len(settled[0]) == 2
    assert settled[0] == settled[1]


def test_what_is_stored_is_accepted_though_it_cannot_settle(tmp_path, monkeypatch):
    """The disk may become full between the commit and what follows it."""

    def full(*_):
        raise StoreFailure("the disk is full. Nothing was stored. Make room.")

    monkeypatch.setattr(sqlite_store, "MOST_RECENT", 1)
    store = sqlite(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_store, "add_run", full)
        assert store.add([sent(), sent(uid="8")]) == [A, A]
        assert store.add([sent(), sent(uid="9", report=b"b")]) == [R, A]
    assert contents(tmp_path, "SELECT COUNT(*) FROM runs") == [(0,)]
    assert store.add([sent(uid="8"), sent(uid="9", report=b"c")]) == [R, C]
    assert contents(tmp_path, "SELECT COUNT(*) FROM runs") == [(1,)]
    assert [uid for uid, _, _ in rows(store)] == ["7", "8", "9"]
    store.close()


def test_long_rows_settle_before_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_store, "MOST_RECENT_BYTES", 200)
    store = sqlite(tmp_path)
    for uid in ("7", "8"):
        assert store.add([sent(uid=uid * 90)]) == [A]
    assert contents(tmp_path, "SELECT rows FROM runs") == []
    assert store.add([sent(uid="9" * 90)]) == [A]
    assert contents(tmp_path, "SELECT rows FROM runs") == [(3,)]
    assert store.add([sent(uid="7" * 90)]) == [R]
    store.close()


def test_memory_that_fails_after_a_commit_is_read_again(tmp_path, monkeypatch):
    """What was stored must be known, though the one who waits was told that nobody knows."""

    def fails(*_):
        raise MemoryError

    store = sqlite(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_store.RecentRows, "keep", fails)
        with pytest.raises(MemoryError):
            store.add([sent()])
    assert store.add([sent(), sent(report=b"b")]) == [R, C]
    assert store.summary().counts == {("users", 0): 1}
    store.close()


def test_runs_are_read_in_one_order_and_keys_are_found_in_all(tmp_path, monkeypatch):
    for module, name, value in (
        (sqlite_store, "MOST_RECENT", 30),
        (sqlite_store, "ROWS_AT_ONCE", 7),
        (settled_runs, "ROWS_AT_ONCE", 3),
        (settled_runs, "PAGE_ROWS", 4),
    ):
        monkeypatch.setattr(module, name, value)
    store = sqlite(tmp_path)
    ids = [str(7919 * number % 1009) for number in range(400)]
    for first in range(0, len(ids), 9):
        batch = [sent(uid=uid, report=uid.encode()) for uid in ids[first : first + 9]]
        assert set(store.add(batch)) == {A}
    assert contents(tmp_path, "SELECT COUNT(*) FROM runs") == [(11,)]
    again = [sent(uid=uid, report=uid.encode() if number % 2 else b"x") for number, uid in enumerate(ids)]
    for _ in range(2):
        assert [uid for uid, _, _ in rows(store)] == sorted(ids)
        assert store.add([*again, *again]) == [C, R] * 400
        store.close()
        store = sqlite(tmp_path)  # as after a restart
    assert file_damage(tmp_path / STORE_FILE) is None
    store.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE pages SET content = zeroblob(length(content)) WHERE number = 1",
        "UPDATE pages SET uid = x'00' WHERE number = 2",
        "DELETE FROM pages WHERE number = 2",
        "UPDATE runs SET filter = x'00000000' || substr(filter, 5)",
        "UPDATE runs SET filter = x''",
        "UPDATE arrivals SET content = substr(content, 2)",
        "UPDATE arrivals SET content = x''",
    ],
)
def test_damage_is_noticed(tmp_path, monkeypatch, change):
    store = moving(tmp_path)
    store.add([sent(uid=str(number)) for number in range(5)])
    store.tidy()
    store._store.add([sent(uid="last")])
    store._store.close()
    assert file_damage(tmp_path / STORE_FILE) is None
    connection = sqlite3.connect(tmp_path / STORE_FILE)
    with connection:
        connection.execute(change)
    connection.close()
    assert file_damage(tmp_path / STORE_FILE) is not None


def test_filters_pass_every_key_and_few_others():
    """More filters than lie across each other in one array, of two sizes."""
    held, others = (np.random.default_rng(seed).integers(0, 2**64, 20_000, np.uint64) for seed in (1, 2))
    cuts = np.sort(np.concatenate([np.arange(500, 20_000, 500), [20_000 - 50]]))
    filters, run_of = RunFilters(), np.searchsorted(cuts, np.arange(20_000), side="right")
    for part in np.split(held, cuts):
        filters.append(run_filter(part))
    assert cuts.size + 1 > MOST_ACROSS + 8
    assert set(enumerate(run_of.tolist())) <= set(filters.may_hold(held))
    assert len(filters.may_hold(others)) < 80  # 820,000 looks, of which one in about 50,000 passes


def test_digests_are_siphash_of_the_key():
    columns = UploadColumns.of([sent(uid=uid, slot=slot) for uid in ("", "7", "12345678", "é" * 9) for slot in (0, 3)])
    parts = np.full(len(columns), 2**63 + 5, dtype=np.uint64)
    given = digests(bytes(range(16)), parts, columns.rows).tolist()
    messages = [
        (2**63 + 5).to_bytes(8, "little") + row.slot.to_bytes(8, "little") + row.uid.encode() for row in columns
    ]
    lengths = [len(row.uid.encode()) for row in columns]
    assert given == [siphash13(bytes(range(16)), *pair) for pair in zip(messages, lengths, strict=True)]


def siphash13(key, message, length):
    """SipHash-1-3 in plain Python; the length on top of the last word is that of the id."""
    mask = 2**64 - 1
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turn(number, bits):
        return (number << bits | number >> (64 - bits)) & mask

    def mix():
        v[0] = v[0] + v[1] & mask
        v[1] = turn(v[1], 13) ^ v[0]
        v[0] = turn(v[0], 32)
        v[2] = v[2] + v[3] & mask
        v[3] = turn(v[3], 16) ^ v[2]
        v[0] = v[0] + v[3] & mask
        v[3] = turn(v[3], 21) ^ v[0]
        v[2] = v[2] + v[1] & mask
        v[1] = turn(v[1], 17) ^ v[2]
        v[2] = turn(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([length & 255])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        mix()
        v[0] ^= word
    v[2] ^= 255
    for _ in range(3):
        mix()
    return v[0] ^ v[1] ^ v[2] ^ v[3]
