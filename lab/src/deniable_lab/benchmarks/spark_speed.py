"""Questions on Spark, next to DuckDB and the paper's way, in one run on the same reports.

Reports are made, DuckDB asks and Spark asks in processes of their own, one after the other: the peaks of memory are
those of Spark alone, and each number of partitions has a JVM of its own.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.collection import Collection
from deniable.database import connect
from deniable.engines.spark.spark_session import checked_session, require_java, require_pyspark
from deniable.errors import Failure
from deniable.randomness import SeededSource
from deniable.tables import Categorical, Ordinal, Table
from deniable.tables.specification.runs import SPECIFICATION_FILE, run_text
from deniable_lab.benchmarks.spark_udf import our_way, paper_way

T = TypeVar("T")
PEOPLE = Table("people", age=Ordinal(1, 99), kind=Categorical("a", "b", "c", "d", "e"))
JOBS = Table("jobs", salary=Ordinal(0, 124))
COLLECTION = Collection(PEOPLE, JOBS, epsilon=2.0)
PIECE = 1_000_000
RANGE = "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 41"
JOIN = "SELECT COUNT(*) FROM people JOIN jobs USING (uid) WHERE age BETWEEN 20 AND 41 AND salary BETWEEN 30 AND 77"
QUESTIONS = {
    "COUNT, one range": RANGE,
    "AVG, GROUP BY 5": "SELECT kind, AVG(age) FROM people GROUP BY kind",
    "COUNT, join": JOIN,
}
OPENING = "connect"
TIMES, EXTRA = 4.0, 2.0
"""Spark may take so many times DuckDB, and so many seconds more."""
CHECKED = 10_000_000
UDF_TIMES = 20.0


@dataclass(frozen=True, slots=True)
class SparkTiming:
    """One question on one number of reports, in a number of partitions."""

    what: str
    reports: int
    partitions: int
    spark: float
    duckdb: float
    udf: float | None
    """Seconds of the paper's way, where it was tried."""
    driver: float
    jvm: float
    workers: float
    """Peak memory so far in MiB: driver, JVM (of driver and executor), the largest Python worker."""

    @property
    def missed(self) -> list[str]:
        """Targets that were not met."""
        missed = []
        if self.what != OPENING and self.reports == CHECKED and self.spark > TIMES * self.duckdb + EXTRA:
            missed.append(f"{self.what} in {self.partitions} partitions")
        if self.udf is not None and self.udf < UDF_TIMES * self.spark:
            missed.append(f"{self.what}: only {self.udf / self.spark:.1f} times faster than the paper's way")
        return missed


def measure(sizes: tuple[int, ...], partitions: tuple[int, ...], udf_size: int) -> Iterator[SparkTiming]:
    """Opening and each question, on each size and number of partitions; the paper's way on one size."""
    require_pyspark()
    require_java()
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / str(size)
            _apart(partial(write, path, size))
            duckdb = _apart(partial(_duckdb, path))
            for number, count in enumerate(partitions):
                udf = size == udf_size and number == 0
                for what, seconds, paper, peaks in _apart(partial(_spark, path, count, udf=udf)):
                    yield SparkTiming(what, size, count, seconds, duckdb[what], paper, *peaks)


def _apart(work: Callable[[], T]) -> T:
    """Do something in a process of its own, so that its memory is given back."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work).result()


def write(path: Path, size: int) -> None:
    """Reports of a million users; more are copies with other ids, which cost the same to read and to answer from."""
    random = np.random.default_rng(1)
    uid = np.arange(min(PIECE, size))
    people = {"uid": uid, "age": random.integers(1, 100, uid.size), "kind": np.array(list("abcde"))[uid % 5]}
    jobs = {"uid": uid, "salary": random.integers(0, 125, uid.size)}
    made = COLLECTION.perturb(people=pa.table(people), jobs=pa.table(jobs), source=SeededSource(1), simulation=True)
    for name, table in made.tables.items():
        (path / name).mkdir(parents=True)
        for number in range(max(1, size // PIECE)):
            shifted = pa.array(np.asarray(table["uid"]) + number * PIECE)
            pq.write_table(table.set_column(0, "uid", shifted), path / name / f"part-{number:03}.parquet")
    (path / SPECIFICATION_FILE).write_text(run_text(COLLECTION, simulation=True))


def _duckdb(path: Path) -> dict[str, float]:
    start = time.perf_counter()
    database = connect(path)
    opened = time.perf_counter() - start
    return {OPENING: opened, **{what: _best(partial(database.sql, text)) for what, text in QUESTIONS.items()}}


def _spark(
    path: Path, partitions: int, *, udf: bool
) -> list[tuple[str, float, float | None, tuple[float, float, float]]]:
    """For opening and each question: seconds, those of the paper's way if it is tried, and peaks of memory."""
    spark = _session(path, partitions)
    start = time.perf_counter()
    database = connect(path, engine=spark)
    timings: list[tuple[str, float, float | None, tuple[float, float, float]]]
    timings = [(OPENING, time.perf_counter() - start, None, _peaks(spark))]
    papers = {}
    for what, text in QUESTIONS.items():
        timings.append((what, _best(partial(database.sql, text)), None, _peaks(spark)))
        if udf and text in (RANGE, JOIN):
            start = time.perf_counter()
            answer = paper_way(spark, database, path, text)
            papers[what] = time.perf_counter() - start
            expected = our_way(database, text)
            if not math.isclose(answer, expected, rel_tol=1e-9):
                raise Failure(f"the paper's way gives {answer:.12g}, ours {expected:.12g}. Please report this.")
    spark.stop()
    return [(what, seconds, papers.get(what), peaks) for what, seconds, _, peaks in timings]


def _session(path: Path, partitions: int) -> Any:
    """A session on two cores that reads a table in so many partitions."""
    from pyspark.sql import SparkSession

    size = sum(file.stat().st_size for file in (path / "people").glob("*.parquet"))
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "4g")
        .config("spark.python.daemon.module", "deniable.engines.spark.daemon")
        .config("spark.sql.files.openCostInBytes", "0")
        .config("spark.sql.files.maxPartitionBytes", str(-(-size // partitions)))
        .config("spark.sql.shuffle.partitions", str(partitions))
        .getOrCreate()
    )
    return checked_session(spark)


def _best(work: Callable[[], object]) -> float:
    """The shortest of five times, after two that do not count: Java compiles what it has seen a few times."""
    seconds = []
    work()
    work()
    for _ in range(5):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


# Memory ---------------------------------------------------------------------------------------------------------------


def _peaks(spark: Any) -> tuple[float, float, float]:
    """Peak memory in MiB of this process, of the JVM and of its largest Python worker; 0 where unknown."""
    jvm = spark.sparkContext._gateway.proc.pid
    return _peak(os.getpid()), _peak(jvm), max((_peak(pid) for pid in _below(jvm)), default=0.0)


def _peak(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM")), 0.0)


def _below(parent: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*") if os.path.isdir("/proc") else ():  # noqa: PTH112
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    below = {parent}
    while more := {pid for pid, above in parents.items() if above in below} - below:
        below |= more
    return below - {parent}
