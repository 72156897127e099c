"""Spark sessions: what they need, and a clear message if it is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.errors import Failure, InvalidParameter, MissingExtra

OLDEST_JAVA = 17
INSTALL_JAVA = "apt-get install openjdk-17-jre-headless (Debian, Ubuntu), brew install openjdk@17 (macOS)"

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store that streams need: the only one with states by name."""

_JAVA_HOMES = ("usr/lib/jvm/*", "opt/homebrew/opt/openjdk*", "usr/local/opt/openjdk*")
"""Where Debian and Homebrew install Java, below the root."""


def require_pyspark() -> None:
    """Refuse if pyspark is not installed, or too old."""
    try:
        import pyspark
    except ImportError:
        raise MissingExtra("pyspark", "spark") from None
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise Failure(
            f"pyspark {pyspark.__version__} is too old. Nothing was done. Install 4.2 or newer: pip install '.[spark]'"
        )


def java_version() -> int | None:
    """The major version of the Java that Spark would start; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return _version(command) if command else None


def _version(command: str) -> int | None:
    try:
        printed = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - Java
    except OSError:
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    return int(version.group(1)) if version else None


def require_java() -> None:
    """Refuse if no Java can run Spark. One that is installed but not on the path becomes JAVA_HOME."""
    version = java_version()
    if (version is None or version < OLDEST_JAVA) and not os.environ.get("JAVA_HOME"):
        for pattern in _JAVA_HOMES:
            for home in sorted(Path("/").glob(pattern), reverse=True):
                if (_version(str(home / "bin" / "java")) or 0) >= OLDEST_JAVA:
                    os.environ["JAVA_HOME"] = str(home)
                    return
    if version is None or version < OLDEST_JAVA:
        problem = "Java was not found" if version is None else f"Java {version} is too old"
        raise Failure(f"{problem}; Spark 4 needs Java {OLDEST_JAVA} or newer. Nothing was done. Run: {INSTALL_JAVA}")


def open_session(master: str = "local[*]") -> Any:
    """A session for the command line: quiet, with workers that start fast."""
    require_pyspark()
    require_java()
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(master)
        .appName("deniable")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.python.daemon.module", "deniable.engines.spark.daemon")
        .config(STATE_STORE, ROCKSDB)
    )
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise Failure(
            f"Spark did not start at master {master!r} ({type(error).__name__}). Nothing was done. "
            "Check the address, or use local[*]."
        ) from None


def checked_session(engine: Any) -> Any:
    """The session that was passed, if it can be used."""
    require_pyspark()
    if not hasattr(engine, "_jsparkSession"):
        raise InvalidParameter("engine", "must be a SparkSession (not one of Spark Connect)", "Pass engine=spark.")
    if engine.conf.get("spark.sql.ansi.enabled") != "true":
        # Otherwise Spark converts unlike types to compare them, where DuckDB refuses.
        raise InvalidParameter(
            "spark.sql.ansi.enabled", "must be true, the default of Spark 4", "Set it on the session."
        )
    context = engine.sparkContext
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # on this machine it is this Python that has the package
    return engine


_LARGE_BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Spark measures a batch after every row, unless there is no limit. A batch has 65,536 rows anyway.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}


_lock = threading.Lock()
_running: dict[int, tuple[int, dict[str, str]]] = {}
"""For each session, how many questions are running, and its settings before the first."""


@contextmanager
def large_batches(spark: Any) -> Iterator[None]:
    """Send reports to Python workers in large batches, whatever the session is set to."""
    session = id(spark)
    with _lock:
        count, former = _running.get(session) or (0, {name: spark.conf.get(name) for name in _LARGE_BATCHES})
        _running[session] = count + 1, former
        for name, value in _LARGE_BATCHES.items():
            spark.conf.set(name, value)
    try:
        yield
    finally:
        with _lock:
            count, former = _running.pop(session)
            if count > 1:
                _running[session] = count - 1, former
            else:
                for name, value in former.items():
                    spark.conf.set(name, value)


def as_frame(spark: Any, table: pa.Table) -> Any:
    """An Arrow table as a DataFrame. Spark has neither dictionaries nor unsigned integers."""
    for index, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = pa.int64() if pa.types.is_unsigned_integer(kind) else kind
        if kind != field.type:
            table = table.set_column(index, pa.field(field.name, kind), table.column(index).cast(kind))
    return spark.createDataFrame(table)
