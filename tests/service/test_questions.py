"""Analysts ask over HTTP what they could ask of the folder."""

import asyncio
import csv
import io
import json
import threading
import time

import pyarrow as pa
import pytest

import deniable as dn
from asgi import SHOP, Served, report_of, request
from deniable.cancellation import Ended, checkpoint
from deniable.engines.collecting.stored_reports import collector_folder
from deniable.service import open_database
from deniable.service.collector import init_folder
from deniable.service.keys import Keys
from deniable.service.open_database import MOST_WAITING, OpenDatabase
from deniable.stores.collector.upload import Upload

COUNT = "SELECT COUNT(*) AS n FROM users WHERE age < 50"
AVERAGE = "SELECT AVG(age) FROM users WHERE age < 50"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(tmp_path_factory.mktemp("asking") / "collected")
    for number in range(30):
        made.send((f"user {number}", report_of(f"user {number}")))
    yield made
    made.close()


@pytest.fixture(scope="module")
def keys(served):
    made = {}

    def add(keys):
        for scope in ("ask", "operate"):
            keys, made[scope] = keys.with_key(scope, scope)
        return keys

    assert isinstance(served.collector.keys.change(add), Keys)
    return made


def ask(served, key, path="/v1/sql", accept="", **fields):
    headers = {"authorization": f"Bearer {key}", "accept": accept} if key else {}
    return served.post(json.dumps(fields).encode(), path=path, media_type="application/json", headers=headers)


def test_answers_are_those_of_the_folder(served, keys):
    expected = dn.connect(served.folder).sql(COUNT, confidence=0.9).to_arrow()
    answer = ask(served, keys["ask"], sql=COUNT, options={"confidence": 0.9})
    assert answer.json == {
        "columns": ["n", "n_stderr", "n_low", "n_high"], "groups": [], "answers": ["n"], "rows": expected.to_pylist(),
        "total": 1,         "notes": answer.json["notes"], "simulation": False,
    }  # fmt: skip
    (row,) = csv.DictReader(io.StringIO(ask(served, keys["ask"], accept="text/csv", sql=COUNT).body.decode()))
    assert float(row["n"]) == expected["n"][0].as_py()
    arrow = ask(served, keys["ask"], accept="application/vnd.apache.arrow.stream;q=0.9, */*", sql=COUNT).body
    assert pa.ipc.open_stream(arrow).read_all()["n"] == expected["n"]


def test_explain_and_forecast(served, keys):
    explained = ask(served, keys["ask"], "/v1/explain", sql=COUNT).json["text"]
    assert explained == str(dn.connect(served.folder).explain(COUNT))
    forecast = ask(served, keys["ask"], "/v1/forecast", sql=COUNT, users=1000).json["text"]
    assert forecast == str(SHOP.forecast(COUNT, 1000))
    known = {"rows": {"users": [0.5, 0.8]}, "matching": 0.2}
    told = ask(served, keys["ask"], "/v1/forecast", sql=AVERAGE, users=1000, **known).json["text"]
    assert told == str(SHOP.forecast(AVERAGE, 1000, rows={"users": (0.5, 0.8)}, matching=0.2)) != forecast
    assert ask(served, keys["ask"], "/v1/forecast", sql=COUNT, users=1000, matching=2).status == 400
    explained = ask(served, keys["ask"], "/v1/explain", sql=AVERAGE, matching=0.2).json["text"]
    assert explained == str(dn.connect(served.folder).explain(AVERAGE, matching=0.2))


def test_only_a_key_of_the_scope_may_ask(served, keys):
    for path in ("/v1/sql", "/v1/explain", "/v1/forecast"):
        assert ask(served, None, path, sql=COUNT).status == 401
        assert ask(served, keys["operate"], path, sql=COUNT).status == 403
        assert served.get(path).status == 405


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sql": "SELECT MAX(age) FROM users"}, "refused"),
        ({"sql": "DROP TABLE users"}, "refused"),
        ({"sql": "SELECT COUNT(*) FROM nobody"}, "refused"),
        ({"sql": 7}, "question"),
        ({"sql": COUNT, "more": 1}, "question"),
        ({"sql": COUNT, "options": {"confidence": 2}}, "options"),
        ({"sql": COUNT, "options": {"confidences": 0.9}}, "options"),
        ({"sql": COUNT, "options": {"weights": []}}, "options"),
        ({"sql": COUNT, "options": []}, "options"),
    ],
)
def test_questions_that_are_refused(served, keys, fields, reason):
    answer = ask(served, keys["ask"], **fields)
    assert (answer.status, answer.json["error"]) == (400, reason)


def test_answers_stay_out_of_caches_and_are_read_as_what_they_are(served, keys):
    asked = [ask(served, keys["ask"], accept=accept, sql=COUNT) for accept in ("", "text/csv")]
    refused = [ask(served, keys["ask"], sql="SELECT '<script>'"), ask(served, "", sql=COUNT)]
    other = [
        asyncio.run(request(served.app, "GET", path, headers={"authorization": f"Bearer {keys['operate']}"}))
        for path in ("/v1/status", "/metrics", "/nothing")
    ]
    for answer in (*asked, *refused, *other):
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    described = asyncio.run(request(served.app, "GET", "/v1/collections/shop"))  # public, and asked for by every device
    assert described.headers["cache-control"] == "max-age=60"


def test_an_answer_sees_new_reports_after_a_second(served, keys):
    moment = [0.0]
    served.collector.questions._elapsed = lambda: moment[0]
    served.collector.questions._opened = None
    everybody = "SELECT COUNT(*) AS n FROM users"
    assert ask(served, keys["ask"], sql=everybody).json["rows"][0]["n"] == 30
    opened = served.collector.questions._opened[2]
    moment[0] = 1.0
    ask(served, keys["ask"], sql=everybody)
    assert served.collector.questions._opened[2] is opened  # nothing is new
    served.send(("late", report_of("late")))
    moment[0] = 2.0
    assert ask(served, keys["ask"], sql=everybody).json["rows"][0]["n"] == 31


def test_so_many_questions_may_wait(served, keys):
    go = threading.Event()
    futures = [served.collector.questions.ask(lambda _: go.wait(30)) for _ in range(MOST_WAITING)]
    answer = ask(served, keys["ask"], sql=COUNT)
    assert (answer.status, answer.json["error"]) == (429, "questions")
    futures[-1].cancel()
    go.set()
    assert all(future.result(300) for future in futures[:-1])
    assert ask(served, keys["ask"], sql=COUNT).status == 200


def test_a_question_that_takes_too_long(tmp_path, keys):
    slow = Served(tmp_path / "collected", question_seconds=0.05)
    made = []

    def add(keys):
        changed, text = keys.with_key("dashboard", "ask")
        made.append(text)
        return changed

    slow.collector.keys.change(add)
    go = threading.Event()
    slow.collector.questions.ask(lambda _: go.wait(30))
    answer = ask(slow, made[0], sql=COUNT)
    go.set()
    slow.close()
    assert (answer.status, answer.json["error"]) == (504, "time")


def test_a_store_that_takes_long_to_read_is_asked_as_it_was_and_says_so(tmp_path):
    """Otherwise every question would read everything again, and none would ever be answered."""
    served, moment = Served(tmp_path / "collected"), [0.0]
    served.send(("7", report_of("7")))
    questions = served.collector.questions
    questions._elapsed, questions._growing = lambda: moment[0], None
    read = questions._refreshed

    def slowly(reports):
        moment[0] += 100.0
        return read(reports)

    questions._refreshed = slowly
    everybody = "SELECT COUNT(*) AS n FROM users"

    def asked():
        return questions.ask(lambda database: database.sql(everybody)).result(300)

    assert "do not count" not in str(asked())
    served.send(("8", report_of("8")))
    moment[0] += 50.0
    answer = asked()
    assert answer.answers["n"][0].value == 1
    assert "reports of the last 150 s do not count yet" in answer.notes[-1]
    assert questions.ask(lambda database: str(database.explain(everybody))).result(300)  # has no notes
    moment[0] += 51.0
    assert asked().answers["n"][0].value == 2
    served.close()


def test_a_first_reading_that_takes_long_is_not_repeated_where_only_new_reports_are_read(tmp_path):
    shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, name="shop")
    served, moment = Served(tmp_path / "collected", shop), [0.0]
    reports = [(uid, shop.client().report("users", {"age": 31}).to_bytes()) for uid in ("7", "8")]
    served.send(reports[0])
    questions = served.collector.questions
    questions._elapsed = lambda: moment[0]
    read = questions._refreshed

    def slowly(count):
        moment[0] += 100.0 if count == 1 else 0.1
        return read(count)

    questions._refreshed = slowly
    assert questions.ask(repr).result(300) == "Database(users: 1 report)"
    served.send(reports[1])
    moment[0] += 1.0
    assert questions.ask(repr).result(300) == "Database(users: 2 reports)"
    served.close()


def test_a_time_that_is_over_while_reports_are_read(tmp_path):
    slow, made = Served(tmp_path / "collected", question_seconds=0.05), []

    def add(keys):
        changed, text = keys.with_key("dashboard", "ask")
        made.append(text)
        return changed

    slow.collector.keys.change(add)
    slow.send(("7", report_of("7")))
    questions, begun, go = slow.collector.questions, threading.Event(), threading.Event()
    read = questions._refreshed

    def slowly(reports):
        begun.set()
        go.wait(30)
        return read(reports)

    questions._refreshed = slowly
    first = questions.ask(repr)
    assert begun.wait(60)
    answer = ask(slow, made[0], sql=COUNT)
    go.set()
    assert (answer.status, answer.json["error"]) == (503, "reading")
    assert answer.headers["retry-after"] == "10"
    assert first.result(300) == "Database(users: 1 report)"  # what was begun goes on
    slow.close()


def test_a_server_that_stops_ends_the_question_that_runs(tmp_path):
    served, begun = Served(tmp_path / "collected"), threading.Event()
    served.send(("7", report_of("7")))

    def endless(_):
        begun.set()
        while True:
            checkpoint()
            time.sleep(0.01)

    answer = served.collector.questions.ask(endless)
    assert begun.wait(60)
    served.close()
    assert isinstance(answer.exception(60), Ended)


def test_a_question_ends_when_its_asker_leaves(served, keys):
    """It is being computed; the next block of reports is not read, and others may ask."""
    ended, begun = threading.Event(), threading.Event()

    class Endless:
        def answer(self, sql, options):
            begun.set()
            try:
                while not ended.wait(0.01):
                    checkpoint()
            finally:
                ended.set()

    questions = served.collector.questions
    questions._database, database = Endless, questions._database
    body = json.dumps({"sql": COUNT}).encode()
    headers = {"authorization": f"Bearer {keys['ask']}"}

    async def leaving():
        asked = asyncio.create_task(
            request(served.app, "POST", "/v1/sql", headers=headers, parts=[body, None], leaves=True)
        )
        return await asked

    answer = asyncio.run(leaving())
    assert (answer.status, answer.json["error"]) == (400, "disconnected")
    assert ended.wait(10) or not begun.is_set()
    questions._database = database
    assert ask(served, keys["ask"], sql=COUNT).status == 200


def test_only_rounds_that_grew_are_read_again(tmp_path):
    rounds = dn.Collection(
        dn.Table("users", age=dn.Ordinal(1, 95)),
        epsilon=2.0,
        coins="assigned",
        name="shop",
        rounds=dn.Rounds(3, mode="fresh"),
    )
    served = Served(tmp_path / "collected", rounds)
    client = rounds.client(user="7")
    for number in (1, 2):
        served.collector.store.set_round(number, is_open=True)
        served.send(("7", client.report("users", {"age": 31}, round=number).to_bytes()))
    questions, moment = served.collector.questions, [0.0]
    questions._elapsed = lambda: moment[0]
    assert questions.ask(repr).result(300) == "Database(users: 2 reports)"
    first = questions._growing._parts["users", 1]
    other = rounds.client(user="8")
    served.send(("8", other.report("users", {"age": 40}, round=2).to_bytes()))
    moment[0] = 2.0
    assert questions.ask(repr).result(300) == "Database(users: 3 reports)"
    assert questions._growing._parts["users", 1].both is first.both
    assert questions._growing._parts["users", 2].both.table.num_rows == 2
    served.close()


def test_once_asked_a_database_follows_its_store(tmp_path, monkeypatch):
    monkeypatch.setattr(open_database, "FRESH_S", 0.01)
    shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, name="shop")
    init_folder(shop, tmp_path / "collected")
    folder = collector_folder(tmp_path / "collected")
    store = folder.open_store()
    questions = OpenDatabase(folder, store)

    def send(uid):
        store.add([Upload("users", 0, uid, 0, shop.client().report("users", {"age": 31}).to_bytes())])

    send("first")
    assert questions.ask(lambda database: database.stores["users"].rows).result() == 1
    send("second")
    ends = time.monotonic() + 30
    while questions._opened[2].stores["users"].rows < 2 and time.monotonic() < ends:
        time.sleep(0.01)
    assert questions._opened[2].stores["users"].rows == 2  # nobody has asked
    questions.close()
    questions._following.join(30)
    assert not questions._following.is_alive()
    store.close()


def test_what_is_there_at_the_start_is_read_before_anybody_asks(tmp_path, monkeypatch):
    shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, name="shop")
    init_folder(shop, tmp_path / "collected")
    folder = collector_folder(tmp_path / "collected")
    store = folder.open_store()

    def send(uid):
        store.add([Upload("users", 0, uid, 0, shop.client().report("users", {"age": 31}).to_bytes())])

    send("first")
    questions, read = OpenDatabase(folder, store), []
    since = store.since
    monkeypatch.setattr(store, "since", lambda *about: read.append(since(*about)) or read[-1])
    questions.read_ahead()
    questions.compute(lambda: None).result()  # asked after it
    assert [len(growth.recent.uids) for growth in read] == [1]
    assert questions._following is None  # what comes before the first question waits for it
    send("second")
    assert questions.ask(lambda database: database.stores["users"].rows).result() == 2
    assert [len(growth.recent.uids) for growth in read[:2]] == [1, 1]
    questions.close()
    store.close()
