"""A device that uploads: nothing is lost when requests, answers or the device are, and nothing counts twice."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from asgi import REPORTS, SHOP, Served, request
from deniable.client import Ledger, Uploader
from deniable.errors import BadInput, BudgetExceeded, Failure, InvalidParameter
from deniable.tables.device.uploader import LONGEST_WAIT_S, wait_s

LATER = b'{"error": "later"}'


class Collecting(ThreadingHTTPServer):
    """A collector on a port of this machine, which first misbehaves as it is told."""

    def __init__(self, served):
        super().__init__(("127.0.0.1", 0), Handler)
        self.served, self.faults, self.bodies, self.headers = served, [], [], []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(body)
        self.server.headers.append(dict(self.headers))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == "request lost":
            return
        headers = {"content-type": self.headers["content-type"]}
        if "authorization" in self.headers:
            headers["authorization"] = self.headers["authorization"]
        assert self.path == REPORTS
        answer = asyncio.run(request(self.server.served.app, "POST", self.path, body, headers))
        if fault == "answer lost":
            return
        status, content, more = answer.status, answer.body, {}
        if fault == "garbage":
            content = content[:10]
        elif fault:
            status, content, more = fault, LATER, {"Retry-After": "7"}
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing is printed."""


@pytest.fixture
def collecting(tmp_path):
    served = Served(tmp_path / "collected")
    server = Collecting(served)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    served.close()


def uploader(folder, url, user="7", sleeps=None, **more):
    client = SHOP.client(folder / "memory.json", user=user, ledger=more.pop("ledger", None))
    sleep = (lambda _: None) if sleeps is None else sleeps.append
    return Uploader(client, url, user=user, queue=folder / "queue.json", sleep=sleep, **more)


def counts(collecting):
    return collecting.served.collector.store.summary().counts


def test_reports_arrive_and_leave_the_queue(tmp_path, collecting):
    device = uploader(tmp_path, collecting.url)
    device.add("users", [{"age": 31}])
    device.add("orders", [{"amount": 5}], {"city": "Rome"})
    device.add("users", [{"age": 90}])  # the same bytes: queued once
    assert device.waiting == 3
    assert device.deliver()
    assert (device.waiting, device.refused) == (0, {})
    assert counts(collecting) == {("users", 0): 1, ("orders", 0): 2}
    device.add("users", [{"age": 31}])
    assert device.deliver()
    assert counts(collecting) == {("users", 0): 1, ("orders", 0): 2}
    assert device.refused == {}


@pytest.mark.parametrize("fault", ["request lost", "answer lost", "garbage", 429, 503, 507, 500])
def test_what_is_not_answered_is_sent_again(tmp_path, collecting, fault):
    collecting.faults = [fault, fault]
    sleeps = []
    device = uploader(tmp_path, collecting.url, sleeps=sleeps)
    device.add("users", [{"age": 31}])
    assert not device.send()
    assert device.waiting == 1
    assert uploader(tmp_path, collecting.url, sleeps=sleeps).deliver()  # after a restart
    assert counts(collecting) == {("users", 0): 1}
    assert len(set(collecting.bodies)) == 1
    _, pause = sleeps
    assert 0 <= pause <= 1 if isinstance(fault, str) else 7 <= pause <= 8


def test_nobody_answers(tmp_path):
    device = uploader(tmp_path, "http://127.0.0.1:9", sleeps=(sleeps := []))
    device.add("users", [{"age": 31}])
    assert not device.deliver(attempts=3)
    assert len(sleeps) == 3
    assert device.waiting == 1


def test_a_refused_token_stops_and_nothing_is_lost(tmp_path, collecting):
    device = uploader(tmp_path, collecting.url, token="v1.1.9.x")  # noqa: S106 - invalid
    device.add("users", [{"age": 31}])
    with pytest.raises(BadInput, match=r"refused the token\. Reports stay in the queue"):
        device.deliver()
    assert device.waiting == 1
    assert collecting.headers[0]["Authorization"] == "Bearer v1.1.9.x"


def test_another_refusal_stops(tmp_path, collecting):
    collecting.faults = [301]
    device = uploader(tmp_path, collecting.url)
    device.add("users", [{"age": 31}])
    with pytest.raises(Failure, match=r"status 301\. Reports stay in the queue"):
        device.send()
    assert device.waiting == 1


def test_what_is_refused_for_good_is_counted(tmp_path, collecting):
    (tmp_path / "other").mkdir()
    uploader(tmp_path, collecting.url).add("users", [{"age": 31}])
    uploader(tmp_path, collecting.url).deliver()
    while True:  # another device that claims to be the same user, with other bytes
        device = uploader(tmp_path / "other", collecting.url)
        device.add("users", [{"age": 90}])
        device.deliver()
        if device.refused:
            break
        (tmp_path / "other" / "memory.json").unlink()
    assert device.refused == {"conflict": 1}
    assert device.waiting == 0
    assert counts(collecting) == {("users", 0): 1}


def test_nothing_is_queued_before_the_ledger_agrees(tmp_path, collecting):
    ledger = Ledger(tmp_path / "ledger.json", limit=0.5)
    device = uploader(tmp_path, collecting.url, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        device.add("users", [{"age": 31}])
    assert device.waiting == 0
    assert not (tmp_path / "queue.json").exists()
    device.deliver()
    assert collecting.bodies == []


def test_number_and_size_of_requests_do_not_depend_on_rows(tmp_path, collecting):
    sizes = []
    for number, rows in enumerate(([], [{"amount": 500}] * 10, [{"amount": "odd"}])):
        (tmp_path / str(number)).mkdir()
        device = uploader(tmp_path / str(number), collecting.url, user=f"user {number}")
        device.add("orders", rows, {"city": "Rome"})
        collecting.bodies.clear()
        device.deliver()
        sizes.append([len(body) for body in collecting.bodies])
    assert sizes[0] == sizes[1] == sizes[2]


def test_many_reports_go_in_batches(tmp_path, collecting, monkeypatch):
    monkeypatch.setattr("deniable.tables.device.uploader.REPORTS_AT_ONCE", 2)
    device = uploader(tmp_path, collecting.url)
    device.add("users", [{"age": 31}])
    device.add("orders", [])
    collecting.faults = [None, 503]
    assert not device.send()
    assert device.waiting == 1
    assert device.send()
    assert len(collecting.bodies) == 3


def test_a_queue_is_bounded_and_damage_is_noticed(tmp_path, monkeypatch):
    device = uploader(tmp_path, "http://127.0.0.1:9")
    device.add("users", [{"age": 31}])
    monkeypatch.setattr("deniable.tables.device.uploader.MOST_QUEUED", 1)
    with pytest.raises(Failure, match="Nothing was queued"):
        device.add("orders", [])
    content = (tmp_path / "queue.json").read_bytes()
    assert (tmp_path / "queue.json").stat().st_mode & 0o777 == 0o600
    for damaged in (content[:-3], content.replace(b"users", b"user5"), b"[]", b"{}"):
        (tmp_path / "queue.json").write_bytes(damaged)
        with pytest.raises(Failure, match=r"the queue is damaged\. Nothing was sent"):
            device.send()


def test_collections_do_not_share_a_queue(tmp_path, collecting):
    device = uploader(tmp_path, collecting.url)
    device.add("users", [{"age": 31}])
    other = SHOP.with_settings(epsilon=0.5).client(tmp_path / "memory.json", user="7")
    second = Uploader(other, collecting.url, user="7", queue=tmp_path / "queue.json")
    for use in (lambda: second.add("users", [{"age": 31}]), second.send, lambda: second.waiting):
        with pytest.raises(Failure, match=r"holds reports of another collection\. Nothing was sent or queued"):
            use()
    assert (collecting.bodies, device.waiting) == ([], 1)
    assert device.deliver()
    second.add("users", [{"age": 31}])  # an empty queue may change hands
    assert second.waiting == 1


def test_settings_that_cannot_be(tmp_path):
    client = SHOP.client(user="7")
    for url in ("collector.example", "ftp://collector.example", "http://"):
        with pytest.raises(InvalidParameter, match="url is not an address"):
            Uploader(client, url, user="7", queue=tmp_path / "queue.json")
    unnamed = SHOP.with_settings(name=None).client(user="7")
    with pytest.raises(InvalidParameter, match="collection has no name"):
        Uploader(unnamed, "http://127.0.0.1:9", user="7", queue=tmp_path / "queue.json")
    memory, ledger = tmp_path / "memory.json", tmp_path / "ledger.json"
    (tmp_path / "link.json").symlink_to(memory)
    kept = SHOP.client(memory, user="7", ledger=Ledger(ledger, limit=4.0))
    for queue in (memory, ledger, tmp_path / "link.json"):  # "damaged, remove it" would be bad advice
        with pytest.raises(InvalidParameter, match=r"queue is the file of the memory or of the ledger\."):
            Uploader(kept, "http://127.0.0.1:9", user="7", queue=queue)
    shown = repr(Uploader(client, "http://me:secret@127.0.0.1:9/x", "token", user="7", queue=tmp_path / "queue.json"))
    assert shown == "Uploader(http://127.0.0.1:9)"


def test_pauses_grow_and_end():
    assert all(0 <= wait_s(failures) <= 2**failures for failures in range(11) for _ in range(20))
    assert wait_s(60) <= LONGEST_WAIT_S
    assert len({wait_s(5) for _ in range(20)}) > 10
