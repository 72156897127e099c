"""Skew and stragglers under Spark's own scheduler: a cluster on this machine whose tasks sleep instead of computing.

Master and workers are those of Spark's standalone mode, each a process of its own, so the driver schedules as between
machines. A task that sleeps needs no core, so one machine stands for several. One worker is slow: whatever runs there
sleeps a multiple of its time. All traffic stays on the loopback interface. Each worker has an address of its own there,
because Spark starts the copy of a task only on another host; in a `local-cluster` all executors have the same one, and
no copy ever starts. Linux answers to all of 127.0.0.0/8.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.engines.spark.spark_session import require_java, require_pyspark
from deniable_lab.benchmarks.straggling import MULTIPLIER, QUANTILE, scheduled_seconds

EXECUTORS, CORES_EACH, SLOWDOWN = 3, 4, 5.0
_EXECUTOR_MIB = 512
_WAIT_S = 300
_SLOW = "DENIABLE_SLOWDOWN"
"""The environment of the slow worker, and of all that it starts."""


def slow_factors() -> Floats:
    """How many times as long a task takes on each core: those of one executor are slow."""
    return np.repeat([SLOWDOWN, *[1.0] * (EXECUTORS - 1)], CORES_EACH)


@dataclass(frozen=True, slots=True)
class Compared:
    """When the last task of a list ends on a cluster, and in our simulation of one."""

    spark_s: float
    """The middle of three runs."""
    copies: int
    """How many copies of tasks the cluster started in that run."""
    simulated_s: tuple[float, float]
    """From and to, in nine of ten drawn orders of cores."""


def compared(works: Sequence[Floats], *, speculative: bool) -> list[Compared]:
    """Several lists of tasks. Once in a process: Java reads its environment when it starts."""
    with _cluster() as master, _context(master, speculative=speculative) as context:
        return [
            Compared(*cluster_seconds(context, work), simulated_seconds(work, speculative=speculative))
            for work in works
        ]


def simulated_seconds(work: Floats, *, speculative: bool) -> tuple[float, float]:
    """When the last of these tasks ends in a simulation of this cluster: in nine of ten of a hundred draws."""
    machines = np.repeat(np.arange(EXECUTORS), CORES_EACH).tolist()
    ends = [
        scheduled_seconds(work, slow_factors(), machines, speculative=speculative, seed=seed) for seed in range(100)
    ]
    low, high = np.quantile(ends, [0.05, 0.95])
    return float(low), float(high)


@contextmanager
def _cluster() -> Iterator[str]:
    """The address of a master, with workers of which the first is slow."""
    require_pyspark()
    require_java()
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    os.environ |= {"SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with ExitStack() as ending:
        folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="deniable-cluster-"))

        def started(name: str, host: str, *arguments: str, **environment: str) -> Path:
            """Start a master or a worker, and return the file of its log."""
            log = Path(folder, f"{host}.log")
            command = [
                f"{home}/bin/spark-class",
                f"org.apache.spark.deploy.{name}",
                "--host",
                host,
                "--webui-port",
                "0",
            ]
            with log.open("wb") as output:
                process = subprocess.Popen(  # noqa: S603 - Spark's own program
                    [*command, *arguments],
                    stdout=output, stderr=output, env={**os.environ, "SPARK_LOCAL_IP": host, **environment},
                )  # fmt: skip
            ending.callback(process.wait)
            ending.callback(process.terminate)
            return log

        master = _logged(
            started("master.Master", "127.0.0.1", "--port", "0"), r"Starting Spark master at (spark://\S+)"
        )
        for number in range(EXECUTORS):
            work = ("--cores", str(CORES_EACH), "--memory", f"{_EXECUTOR_MIB}m", "--work-dir", f"{folder}/{number}")
            slow = {_SLOW: str(SLOWDOWN)} if number == 0 else {}
            started("worker.Worker", f"127.0.0.{number + 2}", *work, master, **slow)
        yield master


def _logged(log: Path, pattern: str) -> str:
    """What a log says, as soon as it does."""
    until = time.monotonic() + _WAIT_S
    while (match := re.search(pattern, log.read_text())) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"Spark's master did not start. The end of its log: {log.read_text()[-2000:]}")
        time.sleep(0.1)
    return match[1]


@contextmanager
def _context(master: str, *, speculative: bool) -> Iterator[Any]:
    """A Spark context on this cluster."""
    from pyspark import SparkConf, SparkContext

    settings = {
        "spark.master": master,
        "spark.app.name": "stragglers",
        "spark.executor.memory": f"{_EXECUTOR_MIB}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{_WAIT_S}s",
        "spark.speculation": str(speculative).lower(),
        "spark.speculation.multiplier": str(MULTIPLIER),
        "spark.speculation.quantile": str(QUANTILE),
        "spark.speculation.interval": "50ms",
        "spark.speculation.efficiency.enabled": "false",
    }
    context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
    try:
        yield context
    finally:
        context.stop()


def cluster_seconds(context: Any, work: Floats) -> tuple[float, int]:
    """When the last of these tasks ends, as Spark schedules them, and how many copies start; the middle of three."""
    seconds, slow = work.tolist(), _SLOW
    context.parallelize(range(64), 64).foreach(lambda _: time.sleep(0.05))  # workers start
    with tempfile.TemporaryDirectory(prefix="deniable-attempts-") as folder:

        def sleep(part: int, _: Iterable[int]) -> Iterator[int]:
            Path(folder, f"{time.time_ns()} {part}").touch()
            time.sleep(seconds[part] * float(os.environ.get(slow, "1")))
            yield part

        tasks = context.parallelize(range(len(seconds)), len(seconds)).mapPartitionsWithIndex(sleep)
        runs = []
        for _ in range(3):
            before, start = len(list(Path(folder).iterdir())), time.perf_counter()
            tasks.collect()
            took, attempts = time.perf_counter() - start, len(list(Path(folder).iterdir())) - before
            runs.append((took, attempts - len(seconds)))
        return sorted(runs)[1]
