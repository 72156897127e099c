"""Skew and stragglers under Spark's own scheduler: a local cluster whose tasks sleep instead of computing.

Executors of `local-cluster` are processes of their own, with a driver that schedules and speculates as between
machines. A task that sleeps needs no core, so one machine stands for several. One executor is slow: whatever runs there
sleeps a multiple of its time. All traffic stays on the loopback interface.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.engines.spark.spark_session import require_java, require_pyspark
from deniable_lab.benchmarks.straggling import SPECULATION, scheduled_seconds

EXECUTORS, CORES_EACH, SLOWDOWN = 3, 4, 5.0
_EXECUTOR_MIB = 512
_REGISTER_S = 300


def slow_factors() -> Floats:
    """How many times as long a task takes on each core: those of one executor are slow."""
    return np.repeat([SLOWDOWN, *[1.0] * (EXECUTORS - 1)], CORES_EACH)


def compared(works: Sequence[Floats], *, speculative: bool) -> list[tuple[float, float]]:
    """For each of several lists of tasks: when the last one ends on a cluster, and in our simulation of one.

    Once in a process: Java reads where the temporary home of Spark is when it starts.
    """
    with _home_of_spark(), _local_cluster(speculative=speculative) as context:
        simulated = [scheduled_seconds(work, slow_factors(), speculative=speculative) for work in works]
        return [(cluster_seconds(context, work), end) for work, end in zip(works, simulated, strict=True)]


@contextmanager
def _home_of_spark() -> Iterator[None]:
    """A temporary home of Spark, in which executors have their folders."""
    require_pyspark()
    require_java()
    import pyspark

    with tempfile.TemporaryDirectory(prefix="deniable-cluster-") as home:
        for part in Path(pyspark.__file__).parent.iterdir():
            (Path(home) / part.name).symlink_to(part)
        os.environ |= {"SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
        os.environ |= {"PYSPARK_PYTHON": sys.executable}
        yield


@contextmanager
def _local_cluster(*, speculative: bool) -> Iterator[Any]:
    """A Spark context with executors in processes of their own."""
    from pyspark import SparkConf, SparkContext

    settings = {
        "spark.master": f"local-cluster[{EXECUTORS},{CORES_EACH},{_EXECUTOR_MIB}]",
        "spark.app.name": "stragglers",
        "spark.executor.memory": f"{_EXECUTOR_MIB}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{_REGISTER_S}s",
        "spark.speculation": str(speculative).lower(),
        "spark.speculation.multiplier": str(SPECULATION),
        "spark.speculation.quantile": "0.5",
        "spark.speculation.interval": "50ms",
    }
    context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
    try:
        yield context
    finally:
        context.stop()


def cluster_seconds(context: Any, work: Floats) -> float:
    """When the last of these tasks ends, as Spark schedules them; the best of two."""
    seconds, slowdown = work.tolist(), SLOWDOWN

    def sleep(part: int, _: Iterable[int]) -> Iterator[int]:
        # An executor works in a folder that has its number for a name.
        time.sleep(seconds[part] * (slowdown if Path.cwd().name == "0" else 1.0))
        yield part

    tasks = context.parallelize(range(len(seconds)), len(seconds))
    context.parallelize(range(64), 64).foreach(lambda _: time.sleep(0.05))  # workers start
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        tasks.mapPartitionsWithIndex(sleep).collect()
        best = min(best, time.perf_counter() - start)
    return best
