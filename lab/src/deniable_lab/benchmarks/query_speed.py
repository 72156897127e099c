"""Time of questions next to a bare loop over the same arrays: hash every cell that the plan needs, and nothing else.

Times are those of all processors together, so that the ratio does not depend on what else the machine does.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.collection import Collection
from deniable.database import Database, connect
from deniable.engines.kernel.contributions import shared_out
from deniable.engines.reports.report_stores import MemoryStore
from deniable.mechanisms._compiled import compiled, compiled_sum
from deniable.mechanisms._support import hash_cell
from deniable.randomness import SeededSource
from deniable.tables import Categorical, Ordinal, Table

PEOPLE = Table(
    "people",
    age=Ordinal(1, 99),
    hours=Ordinal(0, 99),
    state=Categorical(range(50)),
    marital=Categorical("a", "b", "c", "d", "e", "f"),
)
JOBS = Table("jobs", salary=Ordinal(0, 124), sector=Categorical(range(20)))
QUESTIONS = {
    "COUNT, one range": "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 41",
    "COUNT, two ranges": "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 41 AND hours BETWEEN 30 AND 52",
    "AVG, two ranges": "SELECT AVG(hours) FROM people WHERE age BETWEEN 20 AND 41 AND hours BETWEEN 30 AND 52",
    "COUNT, join, a range each": "SELECT COUNT(*) FROM people JOIN jobs USING (uid) "
    "WHERE age BETWEEN 20 AND 41 AND salary BETWEEN 30 AND 77",
    "COUNT, GROUP BY 50 values": "SELECT state, COUNT(*) FROM people GROUP BY state",
}
FEW = 4
TARGET, JOIN_TARGET = 2.0, 3.0
"""A question about one table, and about a join, may take so many times the bare loop."""
CHECKED = 1_000_000
"""From so many reports on: below, what a question costs anyway prevails."""
MOST_FIRST = 1.0
"""Seconds of processor time that the first question of a process may take, and one about 2,000 groups."""
FIRST = {
    "COUNT": "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 41",
    "AVG": "SELECT AVG(hours) FROM people WHERE age < 30",
}


@dataclass(frozen=True, slots=True)
class Timing:
    """One question on one number of reports."""

    what: str
    reports: int
    seconds: float
    bare_seconds: float
    cells: float
    """Cells per report that the plan compares."""
    target: float
    """How many times the bare loop it may take."""

    @property
    def ratio(self) -> float:
        """Times the bare loop."""
        return self.seconds / self.bare_seconds


@compiled_sum
def _matching(seed: Any, target: Any, keys: Any, weights: Any) -> Any:
    total = 0.0
    for cell in range(keys.size):
        hashed = hash_cell(seed, keys[cell], np.uint32(keys[cell] | np.uint32(1)))
        total += weights[cell] if np.uint32(hashed >> np.uint32(29)) == target else 0.0
    return total


@compiled
def _bare(view: Any, seed: Any, y: Any, starts: Any, keys: Any, weights: Any) -> Any:
    """Hash every cell of every report's view; add the weights of those that match."""
    total = 0.0
    for report in range(view.size):
        low, high = starts[view[report]], starts[view[report] + 1]
        if low < high:
            total += _matching(np.uint32(seed[report]), np.uint32(y[report]), keys[low:high], weights[low:high])
    return total


@compiled
def _bare_groups(view: Any, seed: Any, y: Any, starts: Any, keys: Any, weights: Any, columns: Any, sums: Any) -> None:
    """The same with a sum and a sum of squares for each group: one cell of a view for each."""
    for report in range(view.size):
        for cell in range(starts[view[report]], starts[view[report] + 1]):
            hashed = hash_cell(np.uint32(seed[report]), keys[cell], np.uint32(keys[cell] | np.uint32(1)))
            value = weights[cell] if np.uint32(hashed >> np.uint32(29)) == np.uint32(y[report]) else -0.1
            sums[0, columns[cell]] += value
            sums[1, columns[cell]] += value * value


def measure(*, large: bool) -> Iterator[Timing]:
    """Each question at a million reports, then the first one at more and fewer."""
    database = _database(1_000_000)
    for what, text in QUESTIONS.items():
        yield _timing(database, what, text, 1_000_000)
    what, text = next(iter(QUESTIONS.items()))
    for count in (100_000, 10_000_000) if large else (100_000,):
        yield _timing(_database(count), what, text, count)


def _database(count: int) -> Database:
    collection = Collection(PEOPLE, JOBS, epsilon=2.0)
    frames = _frames(count, (PEOPLE, JOBS))
    return connect(collection.perturb(**frames, source=SeededSource(1), simulation=True))


def _frames(count: int, tables: tuple[Table, ...]) -> dict[str, pa.Table]:
    random = np.random.default_rng(1)
    return {
        table.name: pa.table(
            {
                "uid": np.arange(count),
                **{
                    name: pa.array([domain.decode(code) for code in range(domain.size)]).take(
                        pa.array(random.integers(0, domain.size, count))
                    )
                    for name, domain in zip(table.private, table.domains, strict=True)
                },
            }
        )
        for table in tables
    }


def _timing(database: Database, what: str, text: str, count: int) -> Timing:
    plan = database.plan(text)
    loops = []
    for table in plan.tables:
        store = database.stores[table.table]
        assert isinstance(store, MemoryStore)  # noqa: S101 - these reports fit
        views = sorted(table.parts[0].views, key=lambda view: view.view)
        sizes = np.zeros(database.collection.design_of(table.table).views + 1, dtype=np.int64)
        sizes[[view.view + 1 for view in views]] = [view.cells.size for view in views]
        keys = np.concatenate([view.cells for view in views]).astype(np.uint32)
        weights = np.concatenate([view.weights for view in views])
        columns = [np.asarray(store.reports[name]) for name in ("view", "seed", "y")]
        groups = np.concatenate([np.arange(view.cells.size) % table.columns for view in views])
        loops.append(_loop(columns, np.cumsum(sizes), keys, weights, groups if table.columns > FEW else None))
    seconds, bare = _best(lambda: database.sql(text), lambda: [loop() for loop in loops])
    cells = sum(table.parts[0].cells_per_report for table in plan.tables)
    return Timing(what, count, seconds, bare, cells, TARGET if len(plan.tables) == 1 else JOIN_TARGET)


def _loop(columns: list[Any], starts: Any, keys: Any, weights: Any, groups: Any) -> Callable[[], object]:
    view, seed, y = columns
    if groups is not None:
        count = int(groups.max()) + 1
        plan = (starts, keys, weights, groups)
        return lambda: shared_out(
            view.size, lambda a, b: _bare_groups(view[a:b], seed[a:b], y[a:b], *plan, np.zeros((2, count)))
        )
    return lambda: shared_out(view.size, lambda a, b: _bare(view[a:b], seed[a:b], y[a:b], starts, keys, weights))


def _best(*works: Callable[[], object], times: int = 7) -> list[float]:
    """The least processor time of each, taken in turns."""
    seconds: list[list[float]] = []
    for _ in range(times + 1):
        seconds.append([])
        seconds[-1] += [_processor_seconds(work) for work in works]
    return [min(each) for each in zip(*seconds[1:], strict=True)]  # the first turn compiles and plans


@dataclass(frozen=True, slots=True)
class ManyGroups:
    """A question about many groups of a table with few cells."""

    groups: int
    reports: int
    read_seconds: float
    """All reports are read for the question."""
    counted_seconds: float
    """Pairs of cells are counted for it."""
    next_seconds: float
    """It is asked again: they are known."""


def many_groups(count: int = 200_000) -> ManyGroups:
    """A grid of two attributes by both: reading reports next to counting once which cells they support."""
    table = Table("people", age=Ordinal(0, 63), state=Categorical(range(16)))
    random = np.random.default_rng(1)
    frame = {"uid": np.arange(count), "age": random.integers(0, 64, count), "state": random.integers(0, 16, count)}
    grid = Collection(table, epsilon=1.0, design="grid")
    reports = grid.perturb(people=frame, source=SeededSource(1), simulation=True)
    warm, fresh = connect(reports), connect(reports)
    text = "SELECT age, state, COUNT(*) FROM people GROUP BY age, state"
    plan = fresh.plan(text)
    warm._moments(plan)
    counted, following = (_seconds(lambda: fresh._moments(plan)) for _ in range(2))
    read = _seconds(lambda: fresh.engine.moments(plan, {}))
    return ManyGroups(64 * 16, count, read, counted, following)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def grouped_first(count: int = 100_000, groups: int = 2_000) -> tuple[float, float]:
    """Processor time of a question about so many groups, the first time (compiled code being loaded) and again."""
    text = "SELECT zip, COUNT(*) FROM people GROUP BY zip"
    databases = []
    for size in (groups // 4, groups):
        frame = {"uid": np.arange(count), "zip": np.random.default_rng(1).integers(0, size, count)}
        collection = Collection(Table("people", zip=Categorical(range(size))), epsilon=2.0)
        databases.append(connect(collection.perturb(people=frame, source=SeededSource(1), simulation=True)))
    smaller, database = databases
    smaller.sql(text)
    first, again = (_processor_seconds(lambda: database.sql(text)) for _ in range(2))
    return first, again


def _processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@dataclass(frozen=True, slots=True)
class FirstCall:
    """The first question of a process, from its start to its end."""

    what: str
    elapsed: float
    """How long `deniable query` takes in a warm file cache, with modules that Python has compiled before."""
    seconds: float
    """Its processor time."""
    loop_seconds: float
    """Processor time of a process that adds up ten million numbers in Python, measured in between."""


def first_calls(count: int = 1_000_000, times: int = 3) -> list[FirstCall]:
    """`deniable query` in processes of their own: the first compiles and checks all reports, and is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "reports")
        Collection(PEOPLE, epsilon=2.0).perturb(**_frames(count, (PEOPLE,)), out=path)
        loop = ["-c", "total = 0\nfor number in range(10**7): total += number"]
        calls = []
        for what, text in FIRST.items():
            asked = [_process_time("-m", "deniable", "query", path, text) for _ in range(times + 1)][1:]
            elapsed, spent = (min(each) for each in zip(*asked, strict=True))
            calls.append(FirstCall(what, elapsed, spent, min(_process_time(*loop)[1] for _ in range(times))))
    return calls


def _process_time(*arguments: str) -> tuple[float, float]:
    """How long a Python process takes, and its processor time."""
    # Installed packages come compiled, or are compiled by their first use, unless this variable forbids it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, env=environment)  # noqa: S603 - this interpreter
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
