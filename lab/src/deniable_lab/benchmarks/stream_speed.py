"""How fast and how large a publisher is, next to numpy drawing as many Laplace variables in the same run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from deniable.streams import Publisher, Released, ToPS

VALUES = 1 << 20
RATIO_TARGET, PUSH_TARGET, WINDOWS_TARGET = 20.0, 300_000.0, 1e6


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement, with its target if there is one; `most` says on which side of it."""

    what: str
    figure: float
    unit: str
    target: float | None = None
    most: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the target was met."""
        if self.target is None:
            return None
        return self.figure <= self.target if self.most else self.figure >= self.target


def measure(*, large: bool) -> Iterator[Row]:
    """Speed in this process, memory in processes of their own; `large` adds 10^8 values and a horizon of 2^24."""
    rng = np.random.default_rng(1)
    values = rng.geometric(0.13, VALUES + (1 << 16))
    plain = best_seconds(lambda: np.random.default_rng(2).laplace(size=VALUES))
    legacy = best_seconds(lambda: np.random.laplace(size=VALUES))  # noqa: NPY002 - the yardstick by name
    yield Row("numpy.random.laplace, 2^20", legacy, "s")
    yield Row("numpy Generator.laplace, 2^20", plain, "s")
    for what, settings in (("", {}), (", no smoother", {"block": 1}), (", blocks of 256", {"block": 256})):
        seconds = best_seconds(lambda settings=settings: _publisher(**settings).push_many(values))  # type: ignore[misc]
        yield Row(f"push_many, 2^20 + 2^16{what}", seconds, "s")
        yield Row(f"… to numpy.random.laplace{what}", seconds / legacy, "times", RATIO_TARGET)
    numbers = values[: 1 << 19].tolist()
    for what, settings in (("", {}), (", no smoother", {"block": 1}), (", blocks of 16", {"block": 16})):
        publisher = _publisher(**settings)
        publisher.push_many(values[: 1 << 16])
        start = time.perf_counter()
        for number in numbers:
            publisher.push(number)
        rate = len(numbers) / (time.perf_counter() - start)
        yield Row(f"push{what}", rate, "/s", PUSH_TARGET, most=False)
    for what, settings in (("", {}), (", no smoother", {"block": 1})):
        publisher = _publisher(**settings)
        publisher.push_many(values)
        rate = _windows(publisher.released)
        yield Row(f"window sums, stderr{what}", rate, "/s", WINDOWS_TARGET, most=False)
    start = time.perf_counter()
    ToPS(0.05, 1638, warmup=1 << 16, horizon=1 << 30, block=1).push_many(values[: (1 << 16) + 1])
    yield Row("r = 2^30: until the first value", time.perf_counter() - start, "s")
    if large:
        for what, horizon, count, block, target in (
            ("10^8, r = 2^20", 1 << 20, 10**8, None, 200.0),
            ("10^8, r = 2^20, no smoother", 1 << 20, 10**8, 1, 200.0),
            ("r = 2^24, no smoother", 1 << 24, 1 << 24, 1, 300.0),
        ):
            seconds, mebibytes = _in_child(horizon, count, block)
            yield Row(f"{what}", count / seconds, "/s")
            yield Row(f"{what}: memory", mebibytes, "MiB", target)


def _publisher(**settings: int) -> Publisher:
    return ToPS(0.05, 1638, **settings)  # type: ignore[arg-type]


def best_seconds(run: Callable[[], object], repetitions: int = 5) -> float:
    """The time of the fastest repetition; what a first one compiles is not in it."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def _windows(released: Released) -> float:
    pairs = np.sort(np.random.default_rng(3).integers(0, len(released), (1_000_000, 2)), axis=1)
    released.sums(pairs[:10, 0], pairs[:10, 1])  # the running sum is made once
    return 1_000_000 / best_seconds(lambda: released.sums(pairs[:, 0], pairs[:, 1]), 3)


_CHILD = """
import sys, time
import numpy as np
from deniable.streams import ToPS
horizon, count, block = (int(text) for text in sys.argv[1:])
piece = np.random.default_rng(1).geometric(0.13, 1 << 18)
settings = {"block": block} if block else {}
publisher = ToPS(0.05, 1638, horizon=horizon, keep=False, **settings)
ToPS(0.05, 1638, warmup=100, horizon=256, block=1).push_many(piece[:500])
def kibibytes(what):  # getrusage would count what the parent used before the fork
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))
before = kibibytes("VmRSS")
start = time.perf_counter()
done, total = 0, 0.0
while done < count:
    total += float(publisher.push_many(piece[: count - done]).sum())
    done += min(piece.size, count - done)
print(time.perf_counter() - start, (kibibytes("VmHWM") - before) / 1024)
"""


def _in_child(horizon: int, count: int, block: int | None) -> tuple[float, float]:
    command = [sys.executable, "-c", _CHILD, str(horizon), str(count), str(block or 0)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - this package's own code
    seconds, mebibytes = done.stdout.split()
    return float(seconds), float(mebibytes)
