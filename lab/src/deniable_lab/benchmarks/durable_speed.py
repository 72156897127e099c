"""How fast a stream in a store is, next to a plain write and fsync of the same bytes, and to a publisher in memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deniable.stores import DurablePublisher
from deniable.stores.live.frames import HEADER_BYTES
from deniable.stores.live.value_log import LoggedBatch
from deniable.streams import KeyedPublisher, ToPS
from deniable_lab.benchmarks.stream_speed import Row

BATCHES = {1: 300, 100: 300, 10_000: 100}
"""How many batches of each size are timed."""
SETTLED = 1 << 19
"""Values before that: the first epochs are short, and each is learnt anew, which is a row of its own."""
RATIO_TARGET, RESTART_TARGET_S, KEYED_TARGET, QUIET_TARGET = 0.7, 2.0, 1e6, 1024.0
_RESTART = """
import sys, time
start = time.perf_counter()
from deniable.stores import DurablePublisher
with DurablePublisher(sys.argv[1]) as stream:
    print(stream.position, time.perf_counter() - start, time.process_time())
"""


def measure(*, large: bool) -> Iterator[Row]:
    """Rates by size of batch, a restart, and streams of many keys; `large`: 10^8 values before the restart."""
    yield Row(f"learning the epochs of the first {SETTLED:,} values", _learning_s(), "s")
    with tempfile.TemporaryDirectory() as folder:
        for size, count in BATCHES.items():
            yield from _rates(Path(folder), size, count)
        yield from _restart(Path(folder) / "restart", 10**8 if large else 1 << 22)
    yield from _keys()


def _learning_s() -> float:
    """What the first epochs take more than as many values of a long one do, in time of the processor."""
    tops, values = ToPS(0.5, 1638, keep=False), np.random.default_rng(2).geometric(0.13, SETTLED)
    seconds = []
    for _ in range(2):
        start = time.process_time()
        tops.push_many(values)
        seconds.append(time.process_time() - start)
    return seconds[0] - seconds[1]


def _rates(folder: Path, size: int, count: int) -> Iterator[Row]:
    """Batches in turn: into the store, onto the disk as they are, and through a publisher in memory."""
    values = np.random.default_rng(1).geometric(0.13, size)
    warm = np.random.default_rng(2).geometric(0.13, SETTLED)
    bare = bytes(HEADER_BYTES + len(LoggedBatch(values, position=10**6).to_bytes()))
    seconds = {"store": 0.0, "disk": 0.0, "memory": 0.0}
    memory = ToPS(0.5, 1638, keep=False)
    memory.push_many(warm)
    with (
        DurablePublisher(folder / f"store-{size}", ToPS(0.5, 1638)) as store,
        (folder / f"plain-{size}").open("ab", buffering=0) as plain,
    ):
        store.push_many(warm)

        def to_disk(_: object) -> None:
            plain.write(bare)
            os.fsync(plain.fileno())

        ways: dict[str, Callable[[Any], object]] = {
            "store": store.push_many,
            "disk": to_disk,
            "memory": memory.push_many,
        }
        for _ in range(count):
            for name, way in ways.items():
                start = time.perf_counter()
                way(values)
                seconds[name] += time.perf_counter() - start
    what = f"store, batches of {size:,}"
    yield Row(what, size * count / seconds["store"], "values/s")
    yield Row(
        f"… to write and fsync of the same bytes, {size:,}",
        seconds["disk"] / seconds["store"],
        "times",
        RATIO_TARGET,
        most=False,
    )
    yield Row(f"… to push_many in memory, {size:,}", seconds["memory"] / seconds["store"], "times")


def _restart(folder: Path, count: int) -> Iterator[Row]:
    """A store with so many values, left as a killed process leaves it, and opened by a new process."""
    values = np.random.default_rng(1).geometric(0.13, 1 << 16)
    store = DurablePublisher(folder, ToPS(0.5, 1638))
    sizes = []
    for _ in range(-(-count // values.size)):
        store.push_many(values)
        sizes.append(_resident())
    store._let_go()
    early, late = max(sizes[: len(sizes) // 2]), max(sizes[len(sizes) // 2 :])
    yield Row(f"memory, second half of {count:,.0f} values to the first", late / early, "times")
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", _RESTART, str(folder)], capture_output=True, text=True, check=True
    )
    wall, processor = map(float, done.stdout.split()[1:])
    yield Row(f"restart after {count:,.0f} values, killed", wall, "s", RESTART_TARGET_S)
    yield Row("… time of the processor, imports included", processor, "s")


def _resident() -> float:
    """Memory of this process in bytes."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _keys(keys: int = 100_000, batch: int = 1_000_000, batches: int = 8) -> Iterator[Row]:
    """Many keys in one process: what a quiet one takes, and how fast batches are, in time of the processor."""
    names = [f"region {number}" for number in range(keys)]
    random = np.random.default_rng(1)
    before = _resident()
    keyed = KeyedPublisher(0.5, 1638, theta=60, horizon=1 << 14, block=256, public_keys=True)
    keyed.push_many((np.arange(keys), names), np.ones(keys, dtype=np.int64))
    yield Row(f"quiet key, of {keys:,}", (_resident() - before) / keys, "bytes", QUIET_TARGET)
    seconds = []
    for _ in range(batches):
        codes, values = random.integers(0, keys, batch), random.geometric(0.13, batch)
        start = time.process_time()
        keyed.push_many((codes, names), values)
        seconds.append(time.process_time() - start)
    yield Row(
        f"{keys:,} keys, batches of {batch:,}", batch / float(np.median(seconds)), "values/s", KEYED_TARGET, most=False
    )
    start = time.process_time()
    for number in range(200):
        keyed._chunk_noise(number, 1)
    yield Row("noise of a chunk of one key, 16,384 values", (time.process_time() - start) / 200, "s")
