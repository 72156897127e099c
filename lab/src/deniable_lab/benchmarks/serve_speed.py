"""Speed of the collector, next to a bare ASGI application in the same run. The client shares the machine's cores."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import deniable as dn
from deniable.engines.collecting.stored_reports import collector_folder
from deniable.service.collector import init_folder
from deniable.service.keys import KeyFile, Keys
from deniable.tables.reports.upload_format import BINARY_REPORTS
from deniable.tables.schema.report_format import COIN_MODES, FIELD_BYTES, REPORT_VERSION
from deniable_lab.benchmarks.upload_load import Load, send_all

SHOP = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, coins="assigned", name="shop")
PATH = "/v1/collections/shop/reports"
BATCH, ONE_BY_ONE_CONNECTIONS, BATCH_CONNECTIONS, OVERLOAD_CONNECTIONS = 64, 64, 32, 2_000
OVERLOAD, _OVERLOAD_S = 1.8, 3.0
_MADE_AT_ONCE = 200_000
_COUNT = "SELECT COUNT(*) AS n FROM users"
_AVERAGE = "SELECT AVG(age) AS n FROM users WHERE age < 50"


def bodies(reports: int, per_request: int, source: np.random.Generator) -> Iterator[bytes]:
    """Binary bodies with reports of new users, whose ids are 16 random digits; made some at a time."""
    wire = np.dtype([("length", ">u2"), ("uid", "S16"), *((name, f">u{size}") for name, size in FIELD_BYTES.items())])
    for first in range(0, reports, _MADE_AT_ONCE):
        count = min(_MADE_AT_ONCE, reports - first)
        ids = source.integers(10**15, 10**16, count).astype("U16")
        made = SHOP.perturb(users={"uid": ids, "age": source.integers(1, 96, count)})["users"]
        rows = np.zeros(made.num_rows, dtype=wire)
        rows["length"], rows["uid"], rows["version"] = 16, np.array(made["uid"].to_pylist(), "S16"), REPORT_VERSION
        rows["coins"], rows["tag"] = COIN_MODES.index("assigned"), SHOP.tag("users")
        for column in ("slot", "view", "seed", "y"):
            rows[column] = made[column].to_numpy()
        rows = rows[source.permutation(rows.size)]  # not in the order of ids
        data, size = rows.tobytes(), wire.itemsize * per_request
        yield from (data[begin : begin + size] for begin in range(0, len(data), size))


@dataclass(frozen=True, slots=True)
class Process:
    """A server that is measured."""

    pid: int
    port: int
    folder: Path | None = None
    key: str = ""

    @property
    def mebibytes(self) -> float:
        """Memory that the process holds now."""
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024

    @property
    def cpu_s(self) -> float:
        """Seconds of processor that the process has used, in all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, sql: str = _COUNT) -> float:
        """How many users an answer counts, or what else is asked."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/sql",
            json.dumps({"sql": sql}).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return float(json.load(answer)["rows"][0]["n"])


@contextmanager
def _running(command: list[str], **settings: str) -> Iterator[tuple[int, int]]:
    """A process that prints its port; gives (pid, port)."""
    environment = {**os.environ, **settings}
    with subprocess.Popen(  # noqa: S603 - our own programs
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            port = next(int(match[1]) for line in process.stdout if (match := re.search(r"(?:^|:)(\d+)$", line)))
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield process.pid, port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextmanager
def bare_application() -> Iterator[Process]:
    """The bare application."""
    with _running([sys.executable, "-m", "deniable_lab.benchmarks.bare_application"]) as (pid, port):
        yield Process(pid, port)


@contextmanager
def collector(**settings: object) -> Iterator[Process]:
    """A collector with an empty store, without limits of pace."""
    paces = {"requests_per_minute": 1e9, "reports_per_minute": 1e9, "connections": 4_000}
    environment = {f"DENIABLE_SERVE_{name.upper()}": str(value) for name, value in {**paces, **settings}.items()}
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "collected")
        init_folder(SHOP, folder)
        made: list[str] = []

        def add(keys: Keys) -> Keys:
            changed, text = keys.with_key("bench", "ask")
            made.append(text)
            return changed

        KeyFile(folder).change(add)
        command = [sys.executable, "-m", "deniable", "serve", str(folder), "--port", "0"]
        with _running(command, **environment) as (pid, port):
            yield Process(pid, port, folder, made[0])


def stored(process: Process) -> int:
    """Reports in the store."""
    assert process.folder is not None  # noqa: S101 - a collector has one
    store = collector_folder(process.folder).open_store()
    try:
        return sum(store.summary().counts.values())
    finally:
        store.close()


def one_by_one(process: Process, requests: int, seed: int) -> Load:
    """One report per request."""
    return _sent(process, requests, 1, seed, ONE_BY_ONE_CONNECTIONS)


def in_batches(process: Process, reports: int, seed: int) -> Load:
    """64 reports per request."""
    return _sent(process, reports, BATCH, seed, BATCH_CONNECTIONS)


def _sent(process: Process, reports: int, per_request: int, seed: int | list[int], connections: int) -> Load:
    """Bodies are made before the clocks start."""
    made = list(bodies(reports, per_request, np.random.default_rng(seed)))
    before = process.cpu_s
    load = send_all(process.port, PATH, BINARY_REPORTS, made, connections)
    load.server_cpu_s = process.cpu_s - before
    return load


@dataclass(frozen=True, slots=True)
class Growth:
    """A long load: memory after each part, and how fast parts were."""

    reports: int
    mebibytes: tuple[float, ...]
    reports_per_second: tuple[float, ...]
    cpu_us: tuple[float, ...]
    """Microseconds of the server's processor for a report, in each part."""


def growth(process: Process, reports: int, parts: int, seed: int) -> Growth:
    """Send reports in parts, and look at the process after each."""
    memory, rates, costs = [], [], []
    for part in range(parts):
        load = _sent(process, reports // parts, BATCH, [seed, part], BATCH_CONNECTIONS)
        memory.append(process.mebibytes)
        rates.append(load.accepted / load.seconds)
        costs.append(1e6 * load.server_cpu_s / load.accepted)
    return Growth(reports, tuple(memory), tuple(rates), tuple(costs))


def first_answer(process: Process) -> tuple[float, float]:
    """What the first question is answered with, and after how many seconds; asked again where its time was over."""
    begun = time.perf_counter()
    while True:
        try:
            return process.ask(), time.perf_counter() - begun
        except TimeoutError:
            continue
        except urllib.error.HTTPError as problem:
            if problem.code != 504:
                raise


def time_to_average(process: Process) -> tuple[float, float]:
    """Seconds that a question with a condition takes, and seconds of the server's processor; the second of two."""
    process.ask(_AVERAGE)
    begun, spent = time.perf_counter(), process.cpu_s
    process.ask(_AVERAGE)
    return time.perf_counter() - begun, process.cpu_s - spent


def time_to_answer(process: Process, seed: int, attempts: int = 5) -> list[float]:
    """Seconds from an acknowledgement until an answer counts the report, asked again and again."""
    waits, before = [], first_answer(process)[0]
    for attempt in range(attempts):
        made = bodies(1, 1, np.random.default_rng([seed, attempt, 1]))
        send_all(process.port, PATH, BINARY_REPORTS, list(made), 1)
        begun = time.perf_counter()
        while first_answer(process)[0] <= before:
            time.sleep(0.02)
        waits.append(time.perf_counter() - begun)
        before += 1
    return waits


@dataclass(frozen=True, slots=True)
class Overload:
    """What happened at more than the highest load."""

    offered_reports: int
    shed_requests: int
    other_failures: int
    accepted: int
    stored: int
    stored_in_the_end: int
    """After everything that was shed was sent again."""
    offered_ratio: float
    """Requests that were offered per second, over those that are taken at the highest load."""

    @property
    def lost(self) -> int:
        """Reports that were acknowledged and are not there, or are there and were not."""
        return abs(self.accepted - self.stored)


def overload(process: Process, highest: float, seed: int) -> Overload:
    """For some seconds, offer more requests per second than the `highest` number that is taken."""
    reports = int(OVERLOAD * _OVERLOAD_S * highest) * BATCH
    made = list(bodies(reports, BATCH, np.random.default_rng(seed)))
    load = send_all(process.port, PATH, BINARY_REPORTS, made, OVERLOAD_CONNECTIONS, per_second=OVERLOAD * highest)
    held = stored(process)
    rest = load.refused
    while rest:
        rest = send_all(process.port, PATH, BINARY_REPORTS, rest, 8).refused
    others = load.requests - load.statuses[200] - load.statuses[429]
    ratio = load.requests / load.seconds / highest
    return Overload(reports, load.statuses[429], others, load.accepted, held, stored(process), ratio)
