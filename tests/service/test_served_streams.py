"""Streams without trust at the collector: both phases, θ after its commit, and nothing twice after a crash."""

import json
import shutil
import sqlite3
import threading

import psycopg
import pytest

from asgi import SHOP, Served
from command_line import run
from deniable.client import ToPLClient
from deniable.errors import BadInput, Failure
from deniable.service.collector import init_folder
from deniable.service.keys import KeyFile
from deniable.stores.collector.database_file import read_database
from deniable.stores.collector.stream_journal import STREAM_LOG_FILE
from deniable.stores.collector.stream_log import StreamLog, StreamUpload, check_streams
from deniable.stores.collector.upload import StoreFailure
from deniable.streams import Released, ToPLServer
from deniable.tables.reports.upload_format import REPORT_LINES, STREAM_REPORTS, binary_body
from postgresql_server import new_database
from remembered_tails import _remembered_tails  # noqa: F401 - for all tests of this module

METERS = {"epsilon": 1.0, "bound": 10, "first": 20}
PATH = "/v1/collections/shop/streams/meters/reports"


@pytest.fixture(params=["file", "postgresql"])
def folder(request, tmp_path):
    database = None if request.param == "file" else new_database()
    init_folder(SHOP, tmp_path / "collected", streams={"meters": METERS}, database=database)
    return tmp_path / "collected"


def halve_thetas(folder):
    """Change what was announced, as nobody should."""
    address = read_database(folder)
    if address is None:
        connection = sqlite3.connect(folder / STREAM_LOG_FILE)
        with connection:
            connection.execute("UPDATE thresholds SET theta = theta / 2")
        connection.close()
    else:
        with psycopg.connect(address) as connection:
            connection.execute("UPDATE deniable_stream_thresholds SET theta = theta / 2")


def first(uid, value=3):
    return uid, ToPLClient(1.0, 10, name="meters").report(value).to_bytes()


def announced(served):
    return served.get("/v1/collections/shop").json["streams"]["meters"]


def send(served, *reports):
    return served.post(binary_body(reports), path=PATH, media_type=STREAM_REPORTS)


def test_both_phases(folder):
    served = Served(folder)
    assert (announced(served)["phase"], announced(served)["theta"]) == (1, None)
    firsts = [first(f"user {number}") for number in range(20)]
    assert send(served, *firsts[:19]).json["accepted"] == 19
    other = next(report for report in iter(lambda: first("user 1", 9), None) if report != firsts[1])
    assert send(served, firsts[0], other).json["failed"] == [{"index": 1, "reason": "conflict"}]
    assert announced(served)["theta"] is None
    assert send(served, firsts[19]).json["accepted"] == 1
    theta = announced(served)["theta"]
    assert 0 < theta <= 10
    assert announced(served)["phase"] == 2
    line = ToPLClient(1.0, 10, name="meters").report(4, theta).to_json("late but good").encode()
    assert served.post(line, path=PATH, media_type=REPORT_LINES).json["accepted"] == 1
    assert served.post(line, path=PATH, media_type=REPORT_LINES).json["repeated"] == 1
    assert send(served, firsts[3]).json["repeated"] == 1  # known, though its phase is over
    halved = ToPLClient(1.0, 10, name="meters").report(4, theta / 2).to_bytes()
    foreign = ToPLClient(1.0, 10, name="others").report(4, theta).to_bytes()
    answer = send(served, first("new"), ("odd", halved), ("foreign", foreign), ("short", b"0123456789abcdef")).json
    assert [entry["reason"] for entry in answer["failed"]] == ["late", "theta", "other_specification", "malformed"]
    served.close()
    assert run("seal", folder).stdout == "stream meters: 1 estimate\n"
    assert len(Released.load(folder / "stream-meters.parquet")) == 1


def test_a_server_that_was_killed_goes_on_with_the_same_threshold(folder, tmp_path):
    served = Served(folder)
    send(served, *(first(f"user {number}") for number in range(20)))
    theta = announced(served)["theta"]
    second = ToPLClient(1.0, 10, name="meters").report(4, theta).to_bytes()
    send(served, ("7", second))
    shutil.copytree(folder, tmp_path / "after")  # what a killed process leaves
    served.close()
    again = Served(tmp_path / "after")
    assert announced(again)["theta"] == theta
    assert send(again, ("7", second)).json["repeated"] == 1
    log, told = again.collector.streams, ToPLServer(**METERS, name="meters")
    for rows in log._journal.logged("meters", 0, 2**62):
        for _, uid, report in rows:
            told.push(report, uid)
    assert (told.total, told.theta) == (log.server("meters").total, theta)
    again.close()


def failing(*_):
    raise StoreFailure("the disk is full. What was being stored is not.")


def test_a_commit_that_fails_leaves_no_trace(folder):
    log = StreamLog(folder)
    uploads = [StreamUpload(*first(f"user {number}")) for number in range(20)]
    announce, log._journal.announce = log._journal.announce, failing
    with pytest.raises(Failure, match="What was being stored is not"):
        log.add("meters", uploads)
    assert (log.state("meters").theta, log.server("meters").heard) == (None, 0)
    log._journal.announce = announce
    assert log.add("meters", uploads) == ["accepted"] * 20
    assert log.state("meters").theta is not None
    log.close()


def test_an_announced_threshold_never_changes(folder):
    log = StreamLog(folder)
    log.add("meters", [StreamUpload(*first(f"user {number}")) for number in range(20)])
    log.close()
    halve_thetas(folder)
    with pytest.raises(Failure, match="another θ was announced"):
        StreamLog(folder)


def test_what_is_refused(folder, tmp_path):
    served = Served(folder, host="0.0.0.0")  # noqa: S104 - no port is opened
    assert send(served, first("7")).status == 401
    assert served.post(b"", path=PATH.replace("meters", "nobody"), media_type=STREAM_REPORTS).status == 404
    served.close()
    for entries in ({}, {"streams": {}}, {"streams": {"a": {"epsilon": 1}}}, {"streams": {"a": {**METERS, "x": 1}}}):
        with pytest.raises(BadInput, match="Nothing was written"):
            check_streams(entries)
    (tmp_path / "streams.toml").write_text("[streams.meters]\nepsilon = 1.0\nbound = 500\n")
    SHOP.save(tmp_path / "shop.toml")
    made = run("serve", "--init", tmp_path / "shop.toml", tmp_path / "made", "--streams", tmp_path / "streams.toml")
    assert made.returncode == 0, made.stderr
    assert json.loads((tmp_path / "made" / "streams.json").read_text())["meters"]["bound"] == 500


@pytest.mark.parametrize("kind", ["file", "postgresql"])
def test_a_threshold_is_renewed_by_an_operator_and_stays_after_a_restart(tmp_path, kind):
    folder, database = tmp_path / "collected", None if kind == "file" else new_database()
    init_folder(SHOP, folder, streams={"meters": {**METERS, "renewal": 0.5}}, database=database)
    keys = {}

    def add(held):
        for scope in ("operate", "ask"):
            held, keys[scope] = held.with_key(scope, scope)
        return held

    KeyFile(folder).change(add)
    served = Served(folder)

    def reports(name, count, *values):
        clients = (ToPLClient(1.0, 10, name="meters", renewal=0.5) for _ in range(count))
        return [(f"{name} {number}", client.report(*values).to_bytes()) for number, client in enumerate(clients)]

    send(served, *reports("user", 20, 3))
    before, path = announced(served)["theta"], PATH.replace("reports", "renewals")
    assert served.post(b"", path=path).status == 401
    assert served.post(b"", path=path, headers={"authorization": f"Bearer {keys['ask']}"}).status == 403
    allowed = {"authorization": f"Bearer {keys['operate']}"}
    too_early = served.post(b"", path=path, headers=allowed)
    assert (too_early.status, too_early.json["error"]) == (409, "renewal")
    assert announced(served)["theta"] == before
    assert send(served, *reports("later", 60, 9, before)).json["accepted"] == 60  # half of them are first reports again
    renewed = served.post(b"", path=path, headers=allowed).json["theta"]
    assert renewed == announced(served)["theta"]  # by chance that may be the θ of before
    assert send(served, *reports("new", 3, 4, renewed)).json["accepted"] == 3
    served.close()
    again = StreamLog(folder)
    assert again.server("meters").thetas == (before, renewed)
    assert again.problems("meters") == []
    again.close()


def test_the_doctor_looks_at_streams(folder):
    served = Served(folder)
    send(served, *(first(f"user {number}") for number in range(20)))
    served.close()
    assert run("doctor", folder).stdout == "stream meters: 20 reports\neverything is in order\n"
    halve_thetas(folder)
    told = run("doctor", folder)
    assert told.returncode == 1
    assert "damage: streams: stream 'meters': another θ was announced" in told.stdout


def test_two_servers_share_one_stream(tmp_path):
    """First reports come to either, θ is chosen once, both announce it, and nothing counts twice."""
    database = new_database()
    for name in ("one", "two"):
        init_folder(SHOP, tmp_path / name, streams={"meters": METERS}, database=database)
    with pytest.raises(BadInput, match="the database holds other streams"):
        init_folder(SHOP, tmp_path / "three", streams={"meters": {**METERS, "first": 21}}, database=database)
    logs = [StreamLog(tmp_path / name) for name in ("one", "two")]
    firsts = [StreamUpload(*first(f"user {number}")) for number in range(20)]
    told = [[], []]

    def add(number):
        for upload in firsts[number:15] + firsts[:number]:
            told[number] += logs[number].add("meters", [upload])

    threads = [threading.Thread(target=add, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told[0] + told[1]) == ["accepted"] * 15 + ["repeated"] * 15
    assert logs[0].add("meters", firsts[15:]) == ["accepted"] * 5
    theta = logs[0].state("meters").theta
    assert theta is not None
    second = [ToPLClient(1.0, 10, name="meters").report(value, theta).to_bytes() for value in (2, 8, 8)]
    assert logs[1].add("meters", [StreamUpload("a", second[0]), StreamUpload("user 3", second[0])]) == [
        "accepted",
        "conflict",
    ]
    assert logs[0].add("meters", [StreamUpload("a", second[0]), StreamUpload("b", second[1])]) == [
        "repeated",
        "accepted",
    ]
    logs[1]._followed_s = 0.0
    assert logs[1].follow()
    assert logs[1].state("meters") == logs[0].state("meters")
    assert logs[1].server("meters").total == logs[0].server("meters").total
    logs[1]._journal._connection.close()  # as after a restart of the database
    assert logs[1].add("meters", [StreamUpload("c", second[2])]) == ["accepted"]
    for log in logs:
        log.close()
