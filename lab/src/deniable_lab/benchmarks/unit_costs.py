"""What one report, one question and one value cost in CPU time and bytes, and what a billion of them would take."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow.parquet import read_metadata

import deniable as dn
from deniable.stores import DurablePublisher
from deniable.streams import KeyedPublisher, ToPS
from deniable.tables.reports.upload_format import BINARY_REPORTS
from deniable_lab.benchmarks.serve_speed import PATH, bodies, collector, in_batches, stored
from deniable_lab.benchmarks.upload_load import send_all

PEOPLE, STREAMS = 10**9, 10**6
_USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single", "widowed"))
_ORDERS = dn.Table("orders", many=10, amount=dn.Ordinal(0, 500))
SHOP = dn.Collection(_USERS, _ORDERS, epsilon=4.0)
COUNT = "SELECT COUNT(*) AS n FROM users WHERE age < 40"
JOIN = "SELECT AVG(amount) AS a FROM orders JOIN users USING (uid) WHERE marital = 'single'"
Columns = dict[str, NDArray[Any]]
_VALUES, _KEYS, _VALUES_OF_A_KEY = 500_000, 100_000, 13


@dataclass(frozen=True, slots=True)
class UnitCost:
    """The cost of one unit of something."""

    what: str
    unit: str
    cpu_s: float
    size_bytes: float | None = None

    @property
    def per_million(self) -> float:
        """CPU-seconds of a million units."""
        return 1e6 * self.cpu_s


class Clock:
    """CPU time of this process, all its threads."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure a part."""
        begun = time.process_time()
        yield
        self.seconds = time.process_time() - begun


def unit_costs(people: int, progress: Callable[[], None] = lambda: None) -> list[UnitCost]:
    """Measure everything, after a small run of each that compiles and imports what is needed."""
    costs: list[UnitCost] = []
    for part in (_tables, _uploads, _streams):
        costs += part(people)
        progress()
    return costs


def _tables(people: int) -> list[UnitCost]:
    clock = Clock()
    users, orders = _made(people)
    SHOP.perturb(users={name: column[:1000] for name, column in users.items()})
    with tempfile.TemporaryDirectory() as parent:
        with clock.running():
            done = SHOP.perturb(users=users, orders=orders, out=Path(parent, "reports"))
        drawing, size = clock.seconds, sum(file.stat().st_size for file in Path(parent).rglob("*.parquet"))
        reports = sum(summary.reports for summary in done.summaries.values())
        costs = [UnitCost("draw reports in bulk", "report", drawing / reports, size / reports)]
        database = dn.connect(Path(parent, "reports"))
        for what, sql in (("answer a count over one table", COUNT), ("answer an average over a join", JOIN)):
            database.sql(sql.replace("40", "41").replace("single", "married"))
            with clock.running():
                database.sql(sql)
            costs.append(UnitCost(what, "person", clock.seconds / people))
    return costs


def _uploads(people: int) -> list[UnitCost]:
    """A collector and its store. What sending costs is not counted: devices do that."""
    reports = list(bodies(people, 64, np.random.default_rng(2)))
    with collector() as process:
        in_batches(process, 2_000, 1)
        before = process.cpu_s
        send_all(process.port, PATH, BINARY_REPORTS, reports, 32)
        taking = process.cpu_s - before
        assert process.folder is not None  # noqa: S101 - a collector has one
        size = sum(file.stat().st_size for file in process.folder.iterdir()) / (stored(process) or 1)
    return [UnitCost("take an upload, check it and store it", "report", taking / people, size)]


def _streams(_: int) -> list[UnitCost]:
    clock, random = Clock(), np.random.default_rng(3)
    values = random.geometric(0.01, _VALUES)
    ToPS(0.5, 5_000, warmup=1024).push_many(values[:4096])
    tops = ToPS(0.5, 5_000, warmup=1024)
    with clock.running():
        tops.push_many(values)
    costs = [UnitCost("publish a value of one stream", "value", clock.seconds / values.size)]
    keys, minutes = np.arange(_KEYS), random.geometric(0.01, (_VALUES_OF_A_KEY, _KEYS))
    keyed, taken = _keyed_publisher(), minutes[1:].size
    keyed.push_many(keys, minutes[0])
    with clock.running():
        for readings in minutes[1:]:
            keyed.push_many(keys, readings)
    state = len(json.dumps(keyed.state())) / len(keyed.keys)
    costs.append(UnitCost("publish a value of many streams", "value", clock.seconds / taken, state))
    with tempfile.TemporaryDirectory() as parent:
        store = Path(parent, "store")
        with DurablePublisher(store, _keyed_publisher()) as stream:
            stream.push_many(minutes[0], keys=keys)
            with clock.running():
                for readings in minutes[1:]:
                    stream.push_many(readings, keys=keys)
        sealed = list(store.rglob("*.parquet"))
        size = sum(file.stat().st_size for file in sealed) / sum(read_metadata(file).num_rows for file in sealed)
    costs.append(UnitCost("the same, kept on the disk", "value", clock.seconds / taken, size))
    return costs


def _keyed_publisher() -> KeyedPublisher:
    return KeyedPublisher(0.5, 5_000, theta=1_000, horizon=4096, public_keys=True)


def _made(people: int) -> tuple[Columns, Columns]:
    random = np.random.default_rng(1)
    users = {
        "uid": np.arange(people),
        "age": random.integers(1, 96, people),
        "marital": random.choice(["married", "single", "widowed"], people),
    }
    owners = np.repeat(np.arange(people), 3)
    return users, {"uid": owners, "amount": random.integers(0, 501, owners.size)}
