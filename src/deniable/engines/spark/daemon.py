"""Python workers that start with everything loaded: Spark forks them from this process.

Set `spark.python.daemon.module` to this module's name on a session to spare each worker a second or two.
"""

from __future__ import annotations

import atexit
import gc
import importlib
from contextlib import suppress

import numpy as np
import pyarrow as pa

from deniable.arrays import Integers

PRELOADED = (
    "deniable.engines.spark.report_validation",
    "deniable.engines.spark.spark_moments",
    "deniable.engines.spark.spark_perturbing",
)


def serve() -> None:
    """Load what workers need, then serve Spark."""
    for name in PRELOADED:
        importlib.import_module(name)
    with suppress(ImportError):  # every worker would load it for its first task, in two seconds
        importlib.import_module("pandas")
    importlib.import_module("pyspark.worker")
    _compile()
    from pyspark.daemon import manager

    # Workers look for garbage after every task. What is loaded here is none, and there is much of it.
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries complain about objects that are left at the end
    manager()


def _compile() -> None:
    """Load the compiled loops as well, by adding up one report."""
    from deniable.engines.kernel.user_sums import Summing
    from deniable.queries.parsing.sql import parse
    from deniable.queries.planning.plan import make_plan
    from deniable.tables import Ordinal, Table
    from deniable.tables.specification.specification import Specification

    collection = Specification(Table("one", value=Ordinal(0, 9)), epsilon=1.0)
    plan = make_plan(parse("SELECT AVG(value) FROM one WHERE value > 3", collection, {}), collection)
    reports = (np.zeros(1, dtype=np.uint32),) * 3
    summing = Summing.of(plan, {"one": _UnknownReport()}, 1, counted=False)
    summing.add(summing.empty(), [reports], {}, np.zeros(1, dtype=np.int64), 0, 1)


class _UnknownReport:
    """One report about which nothing is known."""

    slots, rows = 1, 1

    def distinct(self, column: str) -> pa.Array:  # noqa: ARG002 - it has no columns
        return pa.array([])

    def view_counts(self, views: int) -> Integers:
        return np.zeros(views, dtype=np.int64)


if __name__ == "__main__":
    serve()
