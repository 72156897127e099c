"""How fast rows become reports, next to what reading, sorting and writing the same rows takes anyway."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.collection import Collection
from deniable.engines.duckdb.duckdb_session import literal_path, open_duckdb
from deniable.tables import Categorical, Ordinal, Table

USERS, MANY_ROWS = 1_000_000, 10_000_000
PEOPLE = Table(
    "people", age=Ordinal(1, 125), income=Ordinal(0, 499), hours=Ordinal(0, 99), state=Categorical(range(50))
)
ORDERS = Table("orders", many=10, amount=Ordinal(0, 500))


@dataclass(frozen=True, slots=True)
class Row:
    """One run: what was done, how long it took, how long the plain sort of the same file took, and the peak memory."""

    what: str
    seconds: float
    plain_seconds: float
    mebibytes: float


def measure(*, large: bool) -> Iterator[Row]:
    """Runs from Parquet to Parquet in a process of their own; `large` adds those with ten million rows."""
    with tempfile.TemporaryDirectory(prefix="deniable-bench-") as name:
        folder = Path(name)
        sizes = [USERS, MANY_ROWS] if large else [USERS]
        for size in sizes:
            rng = np.random.default_rng(size)
            people = {"uid": rng.permutation(size)}
            people |= {
                attribute: domain.low + rng.integers(0, domain.size, size)
                if isinstance(domain, Ordinal)
                else rng.integers(0, 50, size)
                for attribute, domain in zip(PEOPLE.private, PEOPLE.domains, strict=True)
            }
            pq.write_table(pa.table(people), folder / "people.parquet")
            plain = _plain(folder / "people.parquet", folder / "sorted.parquet")
            for design in ("hio", "ahio") if size == USERS else ("hio",):
                collection = Collection(PEOPLE, epsilon=2.0, design=design)
                seconds, peak = _in_child(collection, folder, {"people": folder / "people.parquet"}, None)
                yield Row(f"{size:,} users × 4 attributes, {design}", seconds, plain, peak)
            orders = {"uid": rng.integers(0, size // 3, size), "amount": rng.integers(0, 501, size)}
            pq.write_table(pa.table(orders), folder / "orders.parquet")
            pq.write_table(pa.table({"uid": np.arange(size // 3)}), folder / "everyone.parquet")
            plain = _plain(folder / "orders.parquet", folder / "sorted.parquet")
            collection = Collection(ORDERS, epsilon=2.0, design="ahio")
            tables = {"orders": folder / "orders.parquet"}
            seconds, peak = _in_child(collection, folder, tables, folder / "everyone.parquet")
            yield Row(f"{size:,} orders of {size // 3:,} users, ahio", seconds, plain, peak)


def _plain(source: Path, target: Path) -> float:
    start = time.perf_counter()
    with open_duckdb(memory_limit=2**32, folder=target.parent, files=[source]) as connection:
        connection.read_parquet(literal_path(source)).order("uid").write_parquet(str(target))
    return time.perf_counter() - start


_CHILD = """
import resource, sys, time
from deniable.engines.collecting.perturbing import perturb
from deniable.collection import Collection
specification, out, everyone, *tables = sys.argv[1:]
collection = Collection.load(specification)
start = time.perf_counter()
perturb(collection, dict(entry.split("=", 1) for entry in tables), out=out, everyone=everyone or None)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def _in_child(
    collection: Collection, folder: Path, tables: dict[str, Path], everyone: Path | None
) -> tuple[float, float]:
    """Seconds and peak memory of one run with the secure source."""
    collection.save(folder / "collection.json")
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command = [sys.executable, "-c", _CHILD, str(folder / "collection.json"), f"{out}/reports", str(everyone or "")]
        named = [f"{name}={path}" for name, path in tables.items()]
        done = subprocess.run([*command, *named], check=True, capture_output=True, text=True)  # noqa: S603 - our own text
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak
