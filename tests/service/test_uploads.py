"""What becomes of uploads: every refusal, every limit, and that repeating is harmless."""

import asyncio
import gzip
import itertools
import json
import threading

import pytest

import deniable as dn
from asgi import REPORTS, SHOP, Served, new_report, report_of, request
from deniable.stores.collector.upload import UploadOutcome
from deniable.tables.reports.upload_format import BINARY_REPORTS, REPORT_LINES, binary_body


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path / "collected")
    yield made
    made.close()


def lines(*texts):
    return "\n".join(texts).encode()


def order_lines(uid, city="Rome", amount=5):
    reports = SHOP.client(user=uid).reports("orders", [{"amount": amount}])
    return [report.to_json(uid, "orders", {"city": city}) for report in reports]


def test_an_upload_is_accepted_once(served):
    report = report_of("7")
    assert served.send(("7", report)).json == {"accepted": 1, "repeated": 0, "refused": {}, "failed": []}
    assert served.send(("7", report), ("8", report_of("8"))).json == {
        "accepted": 1, "repeated": 1, "refused": {}, "failed": []
    }  # fmt: skip
    assert served.collector.store.summary().counts == {("users", 0): 2}


def test_other_bytes_are_refused_and_the_first_stay(served):
    first = report_of("7")
    other = next(report for report in iter(lambda: new_report("7", age=90), None) if report != first)
    served.send(("7", first))
    answer = served.send(("7", other), ("7", first)).json
    assert answer == {"accepted": 0, "repeated": 1, "refused": {"conflict": 1},
                      "failed": [{"index": 0, "reason": "conflict"}]}  # fmt: skip
    (rows,) = served.collector.store.read("users", 0)
    assert rows.reports.to_pylist() == [first]


def test_lines_carry_public_attributes(served):
    answer = served.post(lines(*order_lines("7"), *order_lines(8, None)), media_type=REPORT_LINES).json
    assert answer["accepted"] == 4
    served.close()
    database = dn.connect(served.folder)
    assert repr(database) == "Database(orders: 4 reports)"
    assert sorted(database.stores["orders"].distinct("city").to_pylist(), key=str) == [None, "Rome"]


def changed(report, position, byte):
    return report[:position] + bytes([byte]) + report[position + 1 :]


@pytest.mark.parametrize(
    ("reason", "uid", "spoil"),
    [
        ("malformed", "7", lambda report: changed(report, 0, 1)),
        ("malformed", "7", lambda report: changed(report, 1, 9)),
        ("other_specification", "7", lambda report: changed(report, 1, 0)),
        ("other_specification", "7", lambda report: changed(report, 8, report[8] ^ 1)),
        ("simulation", "7", lambda report: report[:8] + bytes(byte ^ 255 for byte in report[8:16]) + report[16:]),
        ("unknown_round", "7", lambda report: changed(report, 7, 1)),
        ("slot", "7", lambda report: changed(report, 3, 1)),
        ("view", "7", lambda report: changed(report, 16, 255)),
        ("outcome", "7", lambda report: changed(report, 24, 255)),
        ("coins", "8", lambda report: report),
        ("malformed", "x" * 1001, lambda report: report),
    ],
    ids=itertools.count(),  # workers have to agree on names, and reports are random
)
def test_every_fault_has_its_reason(served, reason, uid, spoil):
    answer = served.send((uid, spoil(report_of("7"))), ("9", report_of("9"))).json
    assert (answer["accepted"], answer["refused"]) == (1, {reason: 1})
    assert answer["failed"] == [{"index": 0, "reason": reason}]


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("malformed", "{"),
        ("malformed", '{"uid": 7, "uid": 8, "table": "users", "report": ""}'),
        ("malformed", "[" * 5_000),
        ("unknown_table", json.dumps({"uid": "7", "table": "nobody", "report": report_of("7").hex()})),
        ("other_specification", json.dumps({"uid": "7", "table": "orders", "report": report_of("7").hex()})),
        ("public_value", order_lines("7", city="x" * 1001)[0].replace("null", json.dumps("x" * 1001))),
    ],
    ids=itertools.count(),  # workers have to agree on names, and reports are random
)
def test_lines_that_cannot_be_used(served, reason, line):
    answer = served.post(line.encode(), media_type=REPORT_LINES).json
    assert answer["refused"] == {reason: 1}
    assert served.collector.store.summary().counts == {}


def test_bytes_alone_cannot_hold_public_attributes(served):
    report = SHOP.client(user="7").reports("orders", [])[0].to_bytes()
    assert served.send(("7", report)).json["refused"] == {"public_missing": 1}


def test_an_id_as_number_and_as_text_is_one_user(served):
    line = SHOP.client(user=7).report("users", {"age": 31}).to_json(7, "users")
    assert served.post(line.encode(), media_type=REPORT_LINES).json["accepted"] == 1
    assert served.send(("7", bytes.fromhex(json.loads(line)["report"]))).json["repeated"] == 1


@pytest.mark.parametrize(
    ("status", "reason", "body", "media_type", "headers"),
    [
        (415, "media_type", b"", "text/plain", {}),
        (415, "encoding", b"", BINARY_REPORTS, {"content-encoding": "br"}),
        (400, "framing", b"\0\1x", BINARY_REPORTS, {}),
        (400, "framing", b"\0", BINARY_REPORTS, {}),
        (400, "gzip", b"nothing", BINARY_REPORTS, {"content-encoding": "gzip"}),
        (400, "gzip", gzip.compress(b"a" * 100)[:-9], BINARY_REPORTS, {"content-encoding": "gzip"}),
        (400, "gzip", gzip.compress(b"") * 2, BINARY_REPORTS, {"content-encoding": "gzip"}),
        (413, "unpacked_size", gzip.compress(bytes(2**24)), BINARY_REPORTS, {"content-encoding": "gzip"}),
        (413, "size", bytes(2**20 + 1), BINARY_REPORTS, {}),
        (413, "size", b"", BINARY_REPORTS, {"content-length": str(10**30)}),
        (413, "too_many_reports", binary_body([("", bytes(32))] * 10_001), BINARY_REPORTS, {}),
        (413, "too_many_reports", b"{}\n" * 10_001, REPORT_LINES, {}),
    ],
    ids=itertools.count(),  # workers have to agree on names, and reports are random
)
def test_bodies_that_are_refused_as_a_whole(served, status, reason, body, media_type, headers):
    answer = served.post(body, media_type=media_type, headers=headers)
    assert (answer.status, answer.json["error"]) == (status, reason)


def test_gzip_is_unpacked(served):
    answer = served.post(gzip.compress(binary_body([("7", report_of("7"))])), headers={"content-encoding": "gzip"})
    assert answer.json["accepted"] == 1


def test_an_empty_body_is_fine(served):
    assert served.post(b"").json == {"accepted": 0, "repeated": 0, "refused": {}, "failed": []}


def test_a_request_that_is_cut_short_stores_nothing(served):
    body = binary_body([("7", report_of("7"))])
    assert served.post(b"", parts=[body[:20], None]).status == 400
    assert served.collector.store.summary().counts == {}


def test_a_body_that_does_not_arrive_in_time(tmp_path):
    served = Served(tmp_path / "collected", body_seconds=0.05)
    messages = [{"type": "http.request", "body": b"\0", "more_body": True}]

    async def slow():
        answer = {}

        async def receive():
            return messages.pop() if messages else await asyncio.sleep(60)

        async def send(message):
            answer.update(message)

        scope = {"type": "http", "method": "POST", "path": REPORTS, "headers": [], "client": None, "query_string": b""}
        await served.app(scope, receive, send)
        return answer

    assert b'"slow"' in asyncio.run(slow())["body"]
    served.close()


def test_the_other_paths_and_methods(served):
    assert served.post(b"", path="/v1/collections/other/reports").status == 404
    assert served.get("/v1/collections/other").status == 404
    assert served.get("/nothing").json["error"] == "http"
    assert served.get(REPORTS).status == 405


def test_a_queue_that_is_full_answers_429(tmp_path):
    served = Served(tmp_path / "collected", queued_reports=1)
    answer = served.send(("7", report_of("7")), ("8", report_of("8")))
    assert (answer.status, answer.json["error"], answer.headers["retry-after"]) == (429, "queue", "1")
    assert served.collector.store.summary().counts == {}
    assert served.send(("7", report_of("7"))).status == 200
    served.close()


def test_a_disk_that_is_nearly_full_answers_507_before_it_is(tmp_path):
    served = Served(tmp_path / "collected", free_bytes=2**40)
    answer = served.send(("7", report_of("7")))
    assert (answer.status, answer.json["error"]) == (507, "disk")
    assert served.get("/readyz").status == 503
    assert served.get("/healthz").status == 200
    served.close()


def test_a_store_that_fails_answers_503_and_nothing_is_stored(served):
    served.collector.store._open_writer().execute("PRAGMA query_only=ON")
    answer = served.send(("7", report_of("7")))
    assert (answer.status, answer.json["error"]) == (503, "store")
    served.collector.store._open_writer().execute("PRAGMA query_only=OFF")
    assert served.send(("7", report_of("7"))).json["accepted"] == 1


def test_paces_are_limited_per_address_and_per_user(tmp_path):
    served = Served(tmp_path / "collected", requests_per_minute=3.0, reports_per_minute=2.0)
    report = report_of("7")
    assert served.send(("7", report), ("7", report)).status == 200
    slowed = served.send(("7", report))
    assert (slowed.status, slowed.json["error"], int(slowed.headers["retry-after"]) > 0) == (429, "pace", True)
    assert served.send(("8", report_of("8"))).status == 200
    assert served.send(("9", report_of("9"))).status == 429  # the fourth request of this address
    assert served.send(("9", report_of("9")), client="127.0.0.2").status == 200
    served.close()


def test_the_answer_comes_after_the_commit(served):
    """While the commit is held up, there is no answer."""
    store, go = served.collector.store, threading.Event()
    add = store.add_codes
    store.add_codes = lambda uploads: add(uploads) if go.wait(30) else None
    body, headers = binary_body([("7", report_of("7"))]), {"content-type": BINARY_REPORTS}

    async def upload():
        task = asyncio.create_task(request(served.app, "POST", REPORTS, body, headers))
        await asyncio.wait([task], timeout=0.2)
        waited = not task.done()
        go.set()
        return waited, await task

    waited, answer = asyncio.run(upload())
    assert waited
    assert answer.json["accepted"] == 1


def test_every_reason_has_a_word():
    from deniable.engines.collecting import wire_reports
    from deniable.service.report_commits import REASON_WORDS
    from deniable.tables.reports import report_table

    known = {wire_reports.MALFORMED, wire_reports.NO_ROUND,
        wire_reports.NOT_MY_TURN,
        report_table.OTHER_TURN, wire_reports.ODD_PUBLIC, wire_reports.UNKNOWN_TABLE,
             wire_reports.UNNAMED_PUBLIC, *wire_reports.OTHER_KIND.values(), report_table.OTHER_COINS,
             report_table.OTHER_SPECIFICATION, *report_table.ROW_FAULTS,
             UploadOutcome.CONFLICT.value, UploadOutcome.CLOSED.value}  # fmt: skip
    assert known <= set(REASON_WORDS)
    assert len(set(REASON_WORDS.values())) == len(REASON_WORDS)
