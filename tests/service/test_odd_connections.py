"""Connections that send more than they may, or do not read: what they cost is bounded, and others are served."""

import socket
import time
from contextlib import suppress

import pytest

from running_server import Running, answer, upload

PACES = {"requests_per_minute": 1e9, "reports_per_minute": 1e9}
ASKED = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture
def started(tmp_path):
    servers = []

    def start(**settings):
        servers.append(Running(tmp_path / "collected", **PACES, **settings))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def protocols(server):
    return list(server._server.server_state.connections)


def send_unread(connection, text):
    """Send many requests for a second; returns how many bytes the other side took."""
    connection.settimeout(0.2)
    sent, whole, ends = 0, text * 2**11, time.monotonic() + 1
    while time.monotonic() < ends:
        with suppress(OSError):
            sent += connection.send(whole[sent % len(text) :])
    return sent


def ends_within(seconds, condition):
    ends = time.monotonic() + seconds
    while not condition() and time.monotonic() < ends:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("text", [ASKED, upload(b"")], ids=["questions", "uploads"])
def test_requests_that_are_sent_before_answers_are_read_wait_at_the_other_side(started, text):
    server = started()
    with server.connected() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sent = send_unread(connection, text)
        (protocol,) = protocols(server)
        assert len(protocol.pipeline) * len(text) <= 2 * 2**18  # what one or two reads bring, not all that was sent
        assert server.ask(ASKED)[0][0] == 200
        connection.settimeout(60)
        for _ in range(min(sent // len(text), 200)):  # whatever came whole is answered
            assert answer(connection)[0] == 200


def test_whoever_reads_no_answers_is_let_go(started):
    server = started(body_seconds=1)
    server._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with server.connected() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        send_unread(connection, ASKED)
        assert ends_within(60, lambda: not protocols(server))
    assert server.ask(ASKED)[0][0] == 200


@pytest.mark.parametrize(("begin", "more"), [(b"1\r\na\r\n0\r\nx: ", b"y"), (b"1;", b"y"), (b"", b"1\r\na\r\n")])
def test_what_stands_around_a_body_is_bounded(started, begin, more):
    """Trailers, extensions of chunks, and chunks of one byte."""
    server = started(body_bytes=10_000, body_seconds=600)
    head = upload(b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
    with server.connected() as connection, suppress(OSError):
        connection.sendall(head + begin)
        for _ in range(2_000):
            connection.sendall(more * 10_000)
        assert ends_within(5, lambda: not protocols(server))
    assert server.stored == 0
