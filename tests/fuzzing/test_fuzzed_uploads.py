"""Odd bodies, headers and paths at the collector's endpoint: never a 500, and nothing of them is stored."""

import asyncio
import gzip
import resource
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from harness import cases, fuzz
from mutations import PIECES

from asgi import REPORTS, SHOP, new_report, request
from deniable.service.application import application
from deniable.service.collector import init_folder, open_collector
from deniable.service.settings import ServeSettings
from deniable.tables.reports.upload_format import BINARY_REPORTS, REPORT_LINES, binary_body
from running_server import Running, answer, upload

GOOD = new_report("7")
LINE = SHOP.client(user="7").report("users", {"age": 31}).to_json("7", "users").encode()
MEDIA_TYPES = [
    BINARY_REPORTS,
    REPORT_LINES,
    "",
    "text/plain",
    f"{BINARY_REPORTS}; charset=utf-8",
    BINARY_REPORTS.upper(),
]


@pytest.fixture(scope="module")
def collector():
    folder = Path(tempfile.mkdtemp())
    init_folder(SHOP, folder / "collected")
    opened = open_collector(folder / "collected", ServeSettings(requests_per_minute=1e9, reports_per_minute=1e9))
    yield opened
    opened.close()
    shutil.rmtree(folder)


def spoilt(source, body):
    """A body with some bytes changed, cut, doubled or put in; what is left cannot be used."""
    for _ in range(source.randint(1, 4)):
        at, piece = source.randrange(len(body) + 1), source.choice(PIECES)
        body = source.choice([
            lambda body=body, at=at, piece=piece: body[:at] + piece + body[at:],
            lambda body=body, at=at, piece=piece: body[:at] + piece + body[at + len(piece) :],
            lambda body=body, at=at: body[:at],
            lambda body=body, at=at: body[at:] + body[:at],
            lambda body=body: source.randbytes(len(body)),
        ])()  # fmt: skip
    return body


def attempt(app):
    def try_it(source):
        # Version 1 of the format, so that nothing of it can be stored, whatever else is changed.
        old = b"\1" + GOOD[1:]
        body = source.choice(
            [binary_body([("7", old)] * source.randint(0, 3)), LINE.replace(b'"02', b'"01'), b"", b"{}"]
        )
        body = spoilt(source, body)
        headers = {"content-type": source.choice(MEDIA_TYPES)}
        if source.random() < 0.3:
            headers["content-encoding"] = source.choice(["gzip", "gzip", "deflate", "GZIP", " "])
            body = gzip.compress(body) if source.random() < 0.7 else body
            body = spoilt(source, body) if source.random() < 0.3 else body
        if source.random() < 0.2:
            headers[source.choice(["content-length", "authorization", "deniable-user", "if-none-match", "via"])] = (
                source.choice(PIECES).decode("latin-1").replace("\r", "").replace("\n", "")
            )
        path = (
            REPORTS
            if source.random() < 0.9
            else source.choice(["/", "/v1/collections/%00/reports", "/v1//", "/\udc80"])
        )
        method = source.choice(["POST"] * 8 + ["GET", "PUT", "NONSENSE"])
        path = path.encode("utf-8", "replace").decode()
        answer = asyncio.run(request(app, method, path, body, headers))
        assert answer.status in (200, 400, 401, 403, 404, 405, 413, 415), answer.status
        if answer.status == 200 and method == "POST":
            assert (answer.json["accepted"], answer.json["repeated"]) == (0, 0)

    return try_it


@cases(few=400)
def test_odd_uploads_are_refused_and_nothing_is_stored(collector, count):
    app = application(collector)
    fuzz(attempt(app), "uploads", 50)  # what is loaded and compiled once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = fuzz(attempt(app), "uploads", count)
    assert outcomes["works"] == count
    assert collector.store.summary().counts == {}
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mib < 100


def odd_request(source):
    """An upload as bytes: most have a head that is plain, and a body that is not."""
    old = b"\1" + GOOD[1:]
    body = spoilt(source, binary_body([(source.choice(["7", "", "\u00e9" * 20]), old)] * source.randint(1, 70)))
    text = upload(body)
    if source.random() < 0.2:
        at, end = source.randrange(text.index(b"\r\n\r\n")), len(text) - len(body) - 2
        line = source.choice(PIECES).replace(b"\n", b"") + b": 7\r\n"
        text = source.choice([text[:at] + source.choice(PIECES) + text[at:], text[:end] + line + text[end:], text * 2])
    return text


@cases(few=200)
def test_odd_bytes_at_the_port(tmp_path, count):
    """Answered, or the connection is closed; never a 500, and nothing is stored."""
    settings = {"requests_per_minute": 1e9, "reports_per_minute": 1e9, "body_seconds": 0.05, "header_seconds": 0.1}
    server, statuses, before = Running(tmp_path / "collected", **settings), set(), []

    def try_it(source):
        with server.connected() as connection:
            for _ in range(source.randint(1, 5)):
                try:
                    connection.sendall(odd_request(source))
                    connection.shutdown(socket.SHUT_WR) if source.random() < 0.02 else None
                    statuses.add(answer(connection)[0])
                except (AssertionError, OSError, KeyError):
                    break  # it was closed, as after a head that is not HTTP
        if len(before) < 20:
            before.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        assert not {status for status in statuses if status >= 500}

    try:
        fuzz(try_it, "odd bytes", count)
        assert server.ask(upload(binary_body([("7", b"\1" + GOOD[1:])])))[0][0] == 200  # it still answers
        assert server.stored == 0
        assert {200, 400} <= statuses
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before[-1] < 100 * 1024
    finally:
        server.close()
