"""A real server: its process, its port, its signals and its files."""

import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

import deniable as dn
from asgi import REPORTS, SHOP, report_of
from deniable.files import InUse
from deniable.service.collector import init_folder, open_collector
from deniable.service.settings import ServeSettings
from deniable.tables.reports.upload_format import BINARY_REPORTS, binary_body
from running_server import Running
from self_signed import self_signed

IDS = [f"user {number}" for number in range(40)]


@contextmanager
def running(folder, *options, **environment):
    """`deniable serve` on a free port of this machine; gives (process, port)."""
    command = [sys.executable, "-m", "deniable", "serve", str(folder), "--port", "0", *options]
    settings = {**os.environ, **environment, "NUMBA_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=settings) as process:
        try:
            port = None
            for line in process.stderr:
                if match := re.search(r"listening on https?://127\.0\.0\.1:(\d+)", line):
                    port = int(match[1])
                    break
            assert port, process.wait(10)
            yield process, port
        finally:
            process.kill()


@contextmanager
def running_here(folder, **settings):
    """A server in a thread of this process; gives its port."""
    server = Running(folder, **settings)
    try:
        yield server.port
    finally:
        server.close()


def post(port, body, timeout=30):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", REPORTS, body, {"Content-Type": BINARY_REPORTS})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def reports():
    return {uid: report_of(uid) for uid in IDS}


def test_what_was_answered_survives_kill_9_and_can_be_asked(tmp_path, reports):
    folder = tmp_path / "collected"
    init_folder(SHOP, folder)
    with running(folder) as (process, port):
        for uid in IDS[:20]:
            assert post(port, binary_body([(uid, reports[uid])]))[0] == 200
        # While it runs, the folder is a database, and of one server only.
        assert dn.connect(folder).stores["users"].rows == 20
        with pytest.raises(InUse, match=r"in use by another process or thread\. Nothing was started"):
            open_collector(folder, ServeSettings(port=0))
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with running(folder) as (process, port):
        status, answer = post(port, binary_body(list(reports.items())))
        assert (status, b'"accepted":20,"repeated":20' in answer) == (200, True)
        # Strange bytes on the port: the server goes on.
        head = b"GET /nowhere HTTP/1.1\r\nx: " + b"y" * 20_000 + b"\r\n\r\n"
        for odd in (b"\0" * 100, head, b"POST " + b"/" * 9_000):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(odd)
                connection.shutdown(socket.SHUT_WR)
                assert b" 200 " not in connection.recv(1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        assert '"message": "stopped", "reports": 40' in process.stderr.read()
    assert dn.connect(folder).stores["users"].rows == 40
    assert not list(folder.glob("*.lock"))


def test_a_head_that_is_too_long_or_too_slow_ends_the_connection(tmp_path):
    with running_here(tmp_path / "collected", header_seconds=3) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nx: " + b"y" * 17_000)
            assert b" 431 " in connection.recv(1000)
        for rest in (b"\r\n\r\n", b"\r\ncontent-length: 3\r\n\r\nabc"):  # at once, and with a body behind it
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 60_000 + rest)
                assert connection.recv(1000).startswith(b"HTTP/1.1 431 ")
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            assert connection.recv(1000) == b""  # silence is closed as well
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            for _ in range(3):
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
                answer = b""
                while b"}" not in answer:
                    answer += connection.recv(1000) or b"} closed"
                assert answer.startswith(b"HTTP/1.1 200 ")


def test_tls_a_slow_body_and_too_many_connections(tmp_path):
    certificate, key = self_signed(tmp_path)
    settings = {"certificate": str(certificate), "private_key": str(key), "body_seconds": 1, "connections": 4}
    with running_here(tmp_path / "collected", **settings) as port:
        trusted = ssl.create_default_context(cafile=str(certificate))

        def connected():
            return trusted.wrap_socket(socket.create_connection(("127.0.0.1", port), 20), server_hostname="127.0.0.1")

        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trusted)
        connection.request("POST", REPORTS, binary_body([("7", report_of("7"))]), {"Content-Type": BINARY_REPORTS})
        assert b'"accepted":1' in connection.getresponse().read()
        connection.close()
        with pytest.raises(ssl.SSLCertVerificationError):  # nobody vouches for the certificate
            http.client.HTTPSConnection("127.0.0.1", port, context=ssl.create_default_context()).connect()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 20) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b" 200 " not in plain.recv(1000)
        with connected() as slow:
            slow.sendall(f"POST {REPORTS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf".encode())
            assert b" 408 " in slow.recv(1000)
        held = [connected() for _ in range(6)]
        deadline, answers = time.monotonic() + 20, set()
        while b"503" not in answers and time.monotonic() < deadline:
            held[-1].sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            answers.add(held[-1].recv(1000)[9:12])
        for connection in held:
            connection.close()
        assert b"503" in answers
