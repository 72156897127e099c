"""Servers with an open port that are killed while many connections upload: what each was told is compared in the end.

Connections send plain uploads, which the connection itself takes (`direct_uploads`), without a pause. After the last
server is killed, the store holds everything that was acknowledged, byte for byte, each key once, and nothing that was
not sent.
"""

import os
import random
import signal
import socket
import threading
import time

from collector_simulation import FAST, SHOP, empty_folder, final_state

from deniable.service import serving
from deniable.service.settings import ServeSettings
from deniable.tables.reports.upload_format import binary_body
from running_server import answer, upload

CONNECTIONS, USERS_PER_LIFE = 6, 60
SETTINGS = ServeSettings(port=0, free_bytes=0, **FAST)


def begun_server(folder):
    """A fork that serves the folder; returns its process and its port."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            serving.serve(folder, SETTINGS, lambda address: os.write(write, address.rpartition(":")[2].encode()))
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        return pid, int(pipe.read(5))


def send_until_it_ends(port, reports, source, told):
    """Upload some of these again and again over one connection; `told` gets what was sent and what was acknowledged."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            while True:
                chosen = source.choices(reports, k=source.choice([1, 1, 3, 20]))
                told.append(("sent", chosen))
                connection.sendall(upload(binary_body(chosen)))
                status, _, body = answer(connection)
                assert (status, b'"refused":{}' in body) == (200, True), body
                told.append(("acknowledged", chosen))
    except (OSError, AssertionError) as problem:
        if "closed" not in str(problem) and not isinstance(problem, OSError):
            told.append(("failed", problem))


def kill_servers(folder, lives, seed):
    """Returns how many uploads were cut off; raises if the store is not what connections were told."""
    empty_folder(folder)
    source, told = random.Random(seed), []  # noqa: S311 - no secret
    for life in range(lives):
        people = [f"{life} {number}" for number in range(USERS_PER_LIFE)]
        mine = [(uid, SHOP.client(user=uid).report("users", {"age": 31}).to_bytes()) for uid in people]
        pid, port = begun_server(folder)
        threads = [
            threading.Thread(target=send_until_it_ends, args=(port, mine, random.Random(source.random()), told))  # noqa: S311
            for _ in range(CONNECTIONS)
        ]
        try:
            for thread in threads:
                thread.start()
            before, ends = len(told), time.monotonic() + 30
            while all(what == "sent" for what, _ in told[before:]) and time.monotonic() < ends:
                time.sleep(0.001)  # until the first answer
            time.sleep(source.uniform(0, 0.05))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for thread in threads:
            thread.join(60)
    failed = [problem for what, problem in told if what == "failed"]
    assert not failed, failed[0]
    sent, acknowledged = (
        {pair for word, pairs in told if word == what for pair in pairs} for what in ("sent", "acknowledged")
    )
    stored, _, counts, _ = final_state(folder, sealed=False)
    held = [(uid, report) for (_, _, uid, _), (report, _) in stored]
    assert len(held) == len(set(held)) == len({uid for uid, _ in held}) == sum(counts.values()), "something is twice"
    assert acknowledged <= set(held), "something that was acknowledged is lost"
    assert set(held) <= sent, "something is stored that nobody sent"
    assert acknowledged, "nothing was acknowledged"
    return sum(what == "sent" for what, _ in told) - sum(what == "acknowledged" for what, _ in told)
