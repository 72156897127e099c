"""Plain uploads, which their connection answers: the same answers as the application's, in order, after the commit."""

import asyncio
import random
import re
import socket
import struct
import threading
import time
from contextlib import suppress

import pytest
from uvicorn.server import ServerState

from asgi import SHOP, report_of
from deniable.service import application, direct_uploads, serving
from deniable.service.tokens import make_token
from deniable.tables.reports.upload_format import BINARY_REPORTS, binary_body
from running_server import Running, answer, upload

THROUGH_THE_APPLICATION = "te: trailers\r\n"


def bodies(uid):
    """Bodies of every kind, all of one user."""
    good, other = report_of(uid), report_of(uid + " else")
    return {
        "accepted": binary_body([(uid, good)]),
        "repeated and malformed": binary_body([(uid, good), (uid, bytes(32))]),
        "conflict": binary_body([(uid, good[:-1] + bytes([good[-1] ^ 1]))]),
        "two users": binary_body([(uid, good), (uid + " else", other)]),
        "coins of another": binary_body([(uid, other)]),
        "ends inside": binary_body([(uid, good)])[:-1],
        "empty": b"",
        "not text": b"\x00\x01\xff" + good,
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Running(tmp_path_factory.mktemp("direct") / "collected", body_seconds=0.5, proxies=("10.0.0.1",))
    yield running
    running.close()


def test_the_answers_are_those_of_the_application(server, monkeypatch):
    secrets = server.collector.keys.keys().token_secrets

    def headers(uid):
        token = make_token(secrets, uid, 4_000_000_000, SHOP.sha256)
        return (
            "",
            f"authorization: Bearer {token}\r\n",
            f"authorization: Bearer {token[:-2]}\r\n",
            "authorization: Bearer v1.1.1.x\r\n",
            "deniable-user: 7\r\n",
            "x-forwarded-for: 10.0.0.9\r\n",
            "connection: close\r\n",
        )

    requests = {
        uid: [(body, more) for body in bodies(uid).values() for more in headers(uid)] for uid in ("plain", "other")
    }
    expected = [server.ask(upload(body, more + THROUGH_THE_APPLICATION))[0] for body, more in requests["other"]]
    with monkeypatch.context() as patch:
        patch.setattr(application, "post_reports", None)  # whoever comes there is answered with 500
        given = [server.ask(upload(body, more))[0] for body, more in requests["plain"]]
    assert given == expected
    statuses = {status for status, _, _ in given}
    assert statuses == {200, 400, 401, 403}
    assert {word for _, _, body in given for word in re.findall(rb'"reason":"(\w+)"', body)} >= {
        b"conflict", b"malformed", b"coins", b"other_user",
    }  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [
        "authorization: Bearer v1.1.1.x\r\nauthorization: Bearer v1.1.1.x\r\n",
        "deniable-user: 7\r\ndeniable-user: 8\r\n",
        f"content-type: {BINARY_REPORTS}\r\n",
        "content-encoding: gzip\r\n",
        "expect: 100-continue\r\n",
        "origin: https://shop.example\r\n",
        "transfer-encoding: identity\r\n",
        "x: " + "y" * 20_000 + "\r\n",
    ],
)
def test_what_is_not_plain_takes_the_other_way(server, monkeypatch, headers):
    seen, post = [], application.post_reports

    async def watched(*given):
        seen.append(1)
        return await post(*given)

    monkeypatch.setattr(application, "post_reports", watched)
    before = server.stored
    with server.connected() as connection:
        connection.sendall(upload(binary_body([("odd", report_of("odd"))]), headers))
        line = connection.recv(100).split(b"\r\n")[0]
    if headers.startswith(("expect", "origin")):
        assert line in (b"HTTP/1.1 100 Continue", b"HTTP/1.1 200 OK")
    else:
        assert re.match(rb"HTTP/1.1 4\d\d ", line)
        assert server.stored == before
    assert len(seen) == (not headers.startswith(("x", "transfer")))


def test_requests_that_are_sent_together_are_answered_in_order(server):
    texts = [upload(binary_body([(f"together {number}", report_of(f"together {number}"))])) for number in range(3)]
    texts.insert(1, b"GET /healthz HTTP/1.1\r\nhost: collector\r\n\r\n")
    with server.connected() as connection:
        connection.sendall(b"".join(texts))
        answers = [answer(connection) for _ in texts]
    assert [status for status, _, _ in answers] == [200] * 4
    assert [b'"accepted":1' in body for _, _, body in answers] == [True, False, True, True]


def test_whoever_leaves_before_all_answers_is_no_failure(server, caplog):
    """uvicorn tells the last of several requests only; the others wrote to a connection that was closed."""
    people = [f"left {number}" for number in range(4)]
    texts = [upload(binary_body([(uid, report_of(uid))]), THROUGH_THE_APPLICATION) for uid in people]
    with caplog.at_level("ERROR"), server.connected() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it is reset
        connection.sendall(b"".join(texts))
        assert answer(connection)[0] == 200
    with server.connected() as connection:
        connection.sendall(upload(binary_body([("stays", report_of("stays"))])))
        assert answer(connection)[0] == 200
    assert not caplog.records


def test_one_answer_to_a_body_that_is_refused_before_it_has_arrived(server):
    """The rest of it is dropped, up to the size of a body, and the connection goes on."""
    refused = "deniable-user: *\r\n"
    with server.connected() as connection:
        for _ in range(2):
            connection.sendall(upload(b"\0" * 900_000, refused))
            assert answer(connection)[0] == 403
        connection.sendall(upload(binary_body([("rest", report_of("rest"))])))
        assert answer(connection)[0] == 200
    text, received = upload(b"\0" * 3_000_000), b""
    with server.connected() as connection, suppress(OSError):
        connection.sendall(text)
        while more := connection.recv(10_000):
            received += more
    assert received.count(b"HTTP/1.1 ") == received.count(b"HTTP/1.1 413 ") <= 1


def test_a_body_in_pieces_one_that_stops_and_one_that_is_cut(server):
    text = upload(binary_body([("pieces", report_of("pieces"))]))
    with server.connected() as connection:
        for byte in range(len(text)):
            connection.sendall(text[byte : byte + 1])
        assert answer(connection)[0] == 200
    before = server.stored
    text = upload(binary_body([("cut", report_of("cut"))]))
    with server.connected() as connection:
        connection.sendall(text[:-1])
    with server.connected() as connection:
        connection.sendall(text[:-1])
        status, headers, body = answer(connection)
        assert (status, headers["connection"], b'"error":"slow"' in body) == (408, "close", True)
        assert connection.recv(1) == b""
    assert server.stored == before


class Written(asyncio.Transport):
    """A connection whose other side only listens."""

    def __init__(self):
        super().__init__({"peername": ("127.0.0.1", 9), "sockname": ("127.0.0.1", 8710)})
        self.data = b""

    def write(self, data):
        self.data += data

    def is_closing(self):
        return False

    def close(self):
        pass


def queued(server, monkeypatch, chunks):
    """What is queued of these chunks of one connection, each answered at once, and how often a head was parsed."""
    seen, heads = [], []

    def queue(uploads, upload):
        seen.append((dict(upload.head.fields), bytes(upload.body)))
        upload.set_result(b"{}")

    plain = direct_uploads.UploadHttp._plain_head
    monkeypatch.setattr(direct_uploads.DirectUploads, "queue", queue)
    monkeypatch.setattr(direct_uploads.UploadHttp, "_plain_head", lambda it: heads.append(1) or plain(it))
    config = serving._config(server.collector, server.collector.settings)
    config.load()
    loop, transport = asyncio.new_event_loop(), Written()
    protocol = config.http_protocol_class(config=config, server_state=ServerState(), app_state={}, _loop=loop)
    protocol.connection_made(transport)
    for chunk in chunks:
        protocol.data_received(chunk)
    protocol.connection_lost(None)
    loop.close()
    assert transport.data.count(b"HTTP/1.1 200 OK") == len(seen)
    return seen, len(heads)


def test_heads_that_come_again_are_not_parsed_and_nothing_else_changes(server, monkeypatch):
    """Requests in random pieces: whatever is taken for a head that came before has its bytes."""
    first = upload(b"\x00\x017" + bytes(32))
    assert queued(server, monkeypatch, [first] * 5)[1] == 1
    assert queued(server, monkeypatch, [first[:-1], first[-1:], first, first, first])[1] == 2
    texts = [
        upload(bytes([number]) * size, f"x-number: {more}\r\n")
        for number, size, more in ((1, 40, "1"), (2, 40, "1"), (3, 40, "2"), (4, 0, "1"), (5, 41, "1"), (6, 300, "1"))
    ]
    texts.append(upload(b"POST /\r\n\r\nPOST /"))
    for seed in range(100):
        source = random.Random(seed)  # noqa: S311 - no secret
        chosen = [source.choice(texts[: source.randint(1, len(texts))]) for _ in range(8)]
        chunks, rest = [], b""
        for text in chosen:  # mostly a request at a time, some in pieces, some together
            cut = source.randint(1, len(text) - 1) if source.random() < 0.3 else len(text)
            chunks, rest = (
                ([*chunks, rest + text[:cut]], text[cut:]) if source.random() < 0.9 else (chunks, rest + text)
            )
        chunks.append(rest)
        given, _ = queued(server, monkeypatch, chunks)
        assert [body for _, body in given] == [text.partition(b"\r\n\r\n")[2] for text in chosen]
        numbers = [re.findall(rb"x-number: (\d)", text) for text in chosen]
        assert [[fields["x-number"].encode()] if "x-number" in fields else [] for fields, _ in given] == numbers


def test_there_is_no_answer_before_the_commit(server, monkeypatch):
    go, add = threading.Event(), server.collector.store.add_codes
    monkeypatch.setattr(server.collector.store, "add_codes", lambda uploads: go.wait(30) and add(uploads))
    with server.connected() as connection:
        connection.sendall(upload(binary_body([("held", report_of("held"))])))
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        go.set()
        connection.settimeout(30)
        assert b'"accepted":1' in answer(connection)[2]


def test_a_fault_is_answered_and_counted_and_the_connection_goes_on(server, monkeypatch):
    body = binary_body([("fault", report_of("fault"))])
    with monkeypatch.context() as patch:
        patch.setattr(server.collector.store, "add_codes", lambda _: 1 // 0)
        status, _, text = server.ask(upload(body))[0]
        assert (status, b"not known" in text) == (500, True)
        patch.setattr(server.collector.store, "add_codes", None)
        assert server.ask(upload(body))[0][0] == 500
    assert server.ask(upload(body), upload(body))[1][2].startswith(b'{"accepted":0,"repeated":1')
    assert re.search(
        rb'requests_total{route="/v1/collections/{name}/reports",status="500"} 2', server.collector.metrics.text()
    )


def test_connections_that_are_idle_are_closed_and_a_server_that_stops_lets_go(tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "_KEEP_ALIVE_S", 1)
    running = Running(tmp_path / "collected")
    text = upload(binary_body([("7", report_of("7"))]))
    with running.connected() as connection:
        for _ in range(2):
            connection.sendall(text)
            assert answer(connection)[0] == 200
            time.sleep(0.6)
        begun = time.monotonic()
        assert connection.recv(1) == b""
        assert time.monotonic() - begun < 10
    go, add = threading.Event(), running.collector.store.add_codes
    running.collector.store.add_codes = lambda uploads: go.wait(30) and add(uploads)
    with running.connected() as connection:
        connection.sendall(text)
        time.sleep(0.1)
        running._server.should_exit = True
        threading.Timer(0.3, go.set).start()
        status, headers, _ = answer(connection)
        assert (status, headers["connection"]) == (200, "close")
    running.close()
