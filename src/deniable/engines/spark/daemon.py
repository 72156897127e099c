"""Python workers that have everything loaded when they start: Spark forks them from this process.

Set `spark.python.daemon.module` to this module's name on a session to spare each worker a second or two.
"""

from __future__ import annotations

import importlib

LOADED = ("deniable.engines.spark.validating", "deniable.engines.spark.measuring", "deniable.engines.spark.collecting")


def serve() -> None:
    """Load what workers need, and wait for Spark."""
    for name in LOADED:
        importlib.import_module(name)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    serve()
