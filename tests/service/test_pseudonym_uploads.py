"""Bundles under pseudonyms at a collector: whole or not at all, never with a user's name, sealed without an order."""

import asyncio
import json
import random

import pyarrow.parquet as pq
import pytest

import deniable as dn
from asgi import Served, request
from command_line import run
from deniable.client import Uploader
from deniable.engines.collecting.stored_reports import collector_folder, seal
from deniable.errors import InvalidParameter
from deniable.service.collector import init_folder, open_collector
from deniable.service.settings import ServeSettings
from deniable.stores.collector import sqlite_store
from deniable.tables.reports.upload_format import BINARY_BUNDLES, BINARY_REPORTS, REPORT_LINES, binary_body
from running_server import Running, upload

SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95)),
    dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500)),
    epsilon=4.0,
    name="shop",
    ids="pseudonym",
)
ELSEWHERE = "203.0.113.9"


def device(age=31, amount=5, collection=SHOP, number=None):
    client = collection.client()
    client.report("users", {"age": age}, number)
    client.reports("orders", [{"amount": amount}], number)
    return client.bundle(number)


@pytest.fixture(scope="module")
def people():
    return [device(1 + number % 95, number) for number in range(60)]


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path / "collected", SHOP)
    yield made
    made.close()


def send(served, *bundles, **more):
    return served.post(b"".join(bundles), media_type=BINARY_BUNDLES, **more)


def counted(accepted=0, repeated=0, failed=()):
    words = {reason: list(failed).count(reason) for reason in failed}
    listed = [{"index": index, "reason": reason} for index, reason in enumerate(failed)]
    return {"accepted": accepted, "repeated": repeated, "refused": words, "failed": listed}


def test_bundles_are_counted_and_repeating_one_is_harmless(served, people):
    first, second = (bundle.to_bytes() for bundle in people[:2])
    assert send(served, first).json == counted(accepted=1)
    assert send(served, first, second).json == counted(accepted=1, repeated=1)
    lines = "\n".join(bundle.to_json() for bundle in people[1:4]).encode()
    assert served.post(lines, media_type=REPORT_LINES).json == counted(accepted=2, repeated=1)
    assert served.collector.store.summary().counts == {("users", 0): 4, ("orders", 0): 8}


def test_a_name_that_was_taken_with_other_bytes_is_refused_as_a_whole(served, people):
    first, other = people[0].to_bytes(), people[1].to_bytes()
    forged = first[:16] + other[16:]
    assert send(served, first).json == counted(accepted=1)
    assert send(served, forged).json == counted(failed=["conflict"])
    in_one_commit = people[2].to_bytes(), people[2].to_bytes()[:16] + other[16:]
    answer = send(served, *in_one_commit).json
    assert (answer["accepted"], answer["failed"]) == (1, [{"index": 1, "reason": "conflict"}])
    (rows,) = served.collector.store.read("orders", 0)
    kept = {name: people[number].reports[32:] for number, name in ((0, people[0].name), (2, people[2].name))}
    assert {uid: kept[uid] for uid in rows.uids.to_pylist()} == kept
    assert b"".join(rows.reports.to_pylist()) == b"".join(kept[name] for name in sorted(kept))


def spoilt(bundle, how):
    name, users, first, second = bundle[:16], bundle[16:48], bundle[48:80], bundle[80:112]
    return {
        "a table twice": name + users + users + second,
        "a slot twice": name + users + first + first,
        "another order": name + first + second + users,
        "one report malformed": name + users + first + bytes(32),
        "one view impossible": name + users + first + second[:16] + b"\xff" * 4 + second[20:],
    }[how]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("a table twice", "bundle"),
        ("a slot twice", "bundle"),
        ("another order", "bundle"),
        ("one report malformed", "malformed"),
        ("one view impossible", "view"),
    ],
)
def test_a_bundle_that_is_not_whole_leaves_nothing(served, people, how, reason):
    bad, good = spoilt(people[0].to_bytes(), how), people[1].to_bytes()
    assert send(served, bad).json == counted(failed=[reason])
    answer = send(served, good, bad).json
    assert (answer["accepted"], answer["failed"]) == (1, [{"index": 1, "reason": reason}])
    assert served.collector.store.summary().counts == {("users", 0): 1, ("orders", 0): 2}
    assert send(served, people[0].to_bytes()).json == counted(accepted=1)  # the name is still free


def test_bodies_of_single_reports_are_not_taken(served, people):
    reports = [(people[0].name, people[0].reports[at : at + 32]) for at in (0, 32, 64)]
    assert served.post(binary_body(reports), media_type=BINARY_REPORTS).status == 415
    assert send(served, people[0].to_bytes()[:-1]).status == 400
    client = SHOP.client()
    line = client.report("users", {"age": 3}).to_json("7", "users").encode()
    assert served.post(line, media_type=REPORT_LINES).json == counted(failed=["malformed"])
    assert served.collector.store.summary().counts == {}
    by_id = Served(served.folder.parent / "by id", SHOP.with_settings(ids="user"))
    assert send(by_id, people[0].to_bytes()).status == 415
    by_id.close()


def test_whatever_names_the_user_is_refused(tmp_path, people):
    served = Served(tmp_path / "collected", SHOP, host="0.0.0.0", proxies=("10.0.0.7",))  # noqa: S104
    body = people[0].to_bytes()
    assert send(served, body, client=ELSEWHERE).status == 401
    for headers in ({"authorization": "Bearer v1.1.4000000000.x"}, {"deniable-user": people[0].name}):
        for client in (ELSEWHERE, "10.0.0.7", "127.0.0.1"):
            answer = send(served, body, client=client, headers=headers)
            assert (answer.status, answer.json["error"]) == (403, "pseudonym")
    assert send(served, body, client=ELSEWHERE, headers={"deniable-user": "*"}).status == 403
    assert send(served, body, client="10.0.0.7", headers={"deniable-user": "*"}).json == counted(accepted=1)
    served.close()


def test_settings_under_which_only_tokens_count_are_refused(tmp_path):
    init_folder(SHOP, tmp_path / "collected")
    with pytest.raises(InvalidParameter, match="tokens name their users"):
        open_collector(tmp_path / "collected", ServeSettings(host="0.0.0.0"))  # noqa: S104
    done = run("serve", tmp_path / "collected", "--check", "--host", "0.0.0.0")  # noqa: S104
    assert done.returncode == 2
    assert "List the mixer's address" in done.stderr
    done = run("token", tmp_path / "collected", "7")
    assert done.returncode == 2
    assert "would say whose they are" in done.stderr


def sealed_files(folder, bundles, by_commit, monkeypatch, settle_after=1 << 18):
    """Bytes of the sealed files, when bundles arrive in this order, so many in a commit."""
    monkeypatch.setattr(sqlite_store, "MOST_RECENT", settle_after)
    served = Served(folder, SHOP)
    for first in range(0, len(bundles), by_commit):
        assert send(served, *(bundle.to_bytes() for bundle in bundles[first : first + by_commit])).status == 200
    served.close()
    opened = collector_folder(folder)
    store = opened.open_store()
    seal(opened, store, folder / "sealed")
    store.close()
    return {path.relative_to(folder / "sealed"): path.read_bytes() for path in sorted((folder / "sealed").rglob("*.*"))}


def test_sealed_files_do_not_depend_on_the_order_or_commits_of_arrival(tmp_path, people, monkeypatch):
    shuffled = list(people)
    random.Random(1).shuffle(shuffled)  # noqa: S311
    made = [
        sealed_files(tmp_path / "together", people, 60, monkeypatch),
        sealed_files(tmp_path / "one by one", shuffled, 1, monkeypatch),
        sealed_files(tmp_path / "settled", list(reversed(people)), 7, monkeypatch, settle_after=20),
    ]
    assert made[0] == made[1] == made[2]
    table = pq.read_table(tmp_path / "together" / "sealed" / "orders")
    assert table["uid"].to_pylist() == [name for name in sorted(bundle.name for bundle in people) for _ in range(2)]
    assert table.column_names == ["uid", "slot", "view", "seed", "y"]


def test_what_is_sealed_is_closed_and_asked_only_then(served, people):
    send(served, *(bundle.to_bytes() for bundle in people[:40]))
    keys = {}
    served.collector.keys.change(lambda old: keys.setdefault("made", old.with_key("ask", "ask"))[0])
    headers = {"authorization": f"Bearer {keys['made'][1]}", "content-type": "application/json"}
    question = json.dumps({"sql": "SELECT COUNT(*) AS n FROM users JOIN orders USING (uid)"}).encode()

    def ask():
        return asyncio.run(request(served.app, "POST", "/v1/sql", question, headers))

    refused = ask()
    assert refused.status == 400
    assert b"once they are shuffled" in refused.body
    opened = collector_folder(served.folder)
    seal(opened, served.collector.store, served.folder / "sealed")
    assert send(served, people[41].to_bytes()).json == counted(failed=["round_not_open"])
    assert send(served, people[0].to_bytes()).json == counted(repeated=1)
    assert ask().status == 200
    again = {path: path.read_bytes() for path in (served.folder / "sealed").rglob("*.parquet")}
    seal(opened, served.collector.store, served.folder / "sealed")
    assert again == {path: path.read_bytes() for path in (served.folder / "sealed").rglob("*.parquet")}
    database = dn.connect(served.folder / "sealed")
    assert repr(database) == "Database(users: 40 reports, orders: 80 reports)"


def test_only_closed_rounds_are_sealed(tmp_path):
    rounds = SHOP.with_settings(rounds=dn.Rounds(2, mode="fresh"))
    served = Served(tmp_path / "collected", rounds)
    store = served.collector.store
    store.set_round(1, is_open=True)
    assert send(served, device(collection=rounds, number=1).to_bytes()).json == counted(accepted=1)
    done = run("seal", served.folder, "-o", tmp_path / "sealed")
    assert done.returncode == 2
    assert "no round is closed" in done.stderr
    store.set_round(1, is_open=False)
    assert "under pseudonyms it stays closed" in run("round", "open", served.folder, "1").stderr
    assert run("round", "open", served.folder, "2").returncode == 0
    send(served, device(collection=rounds, number=2).to_bytes())
    mixed = device(collection=rounds, number=2).to_bytes()
    other = device(collection=rounds, number=1).to_bytes()
    assert send(served, mixed[:48] + other[48:]).json == counted(failed=["bundle"])
    assert run("seal", served.folder, "-o", tmp_path / "sealed").returncode == 0
    assert sorted(path.name for path in (tmp_path / "sealed").rglob("*.parquet")) == ["part-1.parquet"] * 2
    served.close()


def test_devices_deliver_bundles_over_the_wire(tmp_path):
    running = Running(tmp_path / "collected", SHOP)
    try:
        queues = []
        for number in range(3):
            memory = tmp_path / f"memory {number}"
            url = f"http://127.0.0.1:{running.port}"
            uploaders = [Uploader(SHOP.client(memory), url, queue=tmp_path / f"q{number}{s}") for s in "ab"]
            uploaders[0].add("users", [{"age": 31}])
            uploaders[1].add("orders", [{"amount": 3}])
            assert all(uploader.deliver() for uploader in uploaders)
            queues += uploaders
        assert not any(uploader.refused for uploader in queues)
        body = device().to_bytes()
        answers = running.ask(*[upload(body, media_type=BINARY_BUNDLES)] * 2, upload(body, media_type=BINARY_REPORTS))
        assert [status for status, _, _ in answers] == [200, 200, 415]
        assert [json.loads(answer[2]) for answer in answers[:2]] == [counted(accepted=1), counted(repeated=1)]
        assert running.collector.store.summary().counts == {("users", 0): 4, ("orders", 0): 8}
    finally:
        running.close()
