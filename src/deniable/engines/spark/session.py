"""Sessions of Spark: what they need, and what is said if it is missing."""

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

_HOMES = ("usr/lib/jvm/*", "opt/homebrew/opt/openjdk*", "usr/local/opt/openjdk*")
"""Where Debian and Homebrew put it, from the root on."""


def require_pyspark() -> None:
    """Refuse where pyspark is not installed, or too old."""
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
        said = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - Java
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found else None


def require_java() -> None:
    """Refuse where there is no Java that runs Spark; one that is installed but not on the path is put there."""
    found = java_version()
    if (found is None or found < OLDEST_JAVA) and not os.environ.get("JAVA_HOME"):
        for place in _HOMES:
            for home in sorted(Path("/").glob(place), reverse=True):
                if (_version(str(home / "bin" / "java")) or 0) >= OLDEST_JAVA:
                    os.environ["JAVA_HOME"] = str(home)
                    return
    if found is None or found < OLDEST_JAVA:
        problem = "Java was not found" if found is None else f"Java {found} is too old"
        raise Failure(f"{problem}; Spark 4 needs Java {OLDEST_JAVA} or newer. Nothing was done. Run: {INSTALL_JAVA}")


def open_session(master: str = "local[*]") -> Any:
    """A session for the command line: quiet, and with workers that start fast."""
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
    )
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise Failure(
            f"Spark did not start at master {master!r} ({type(error).__name__}). Nothing was done. "
            "Check the address, or use local[*]."
        ) from None


def checked_session(engine: Any) -> Any:
    """The session that was handed in, if it can be used."""
    require_pyspark()
    if not hasattr(engine, "_jsparkSession"):
        raise InvalidParameter("engine", "must be a SparkSession (not one of Spark Connect)", "Pass engine=spark.")
    if engine.conf.get("spark.sql.ansi.enabled") != "true":
        # Otherwise Spark compares unlike types by guessing, where DuckDB refuses.
        raise InvalidParameter(
            "spark.sql.ansi.enabled", "must be true, the default of Spark 4", "Set it on the session."
        )
    context = engine.sparkContext
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # on this machine it is this Python that has the package
    return engine


_SWIFT = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Spark measures a batch after every row that it adds, unless there is no limit; 65,536 rows are one anyway.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}


_lock = threading.Lock()
_waiting: dict[int, tuple[int, dict[str, str]]] = {}
"""For each session, how many questions run at the moment, and what its settings were before the first."""


@contextmanager
def large_batches(spark: Any) -> Iterator[None]:
    """Reports go to Python workers in large batches meanwhile, whatever the session is set to."""
    session = id(spark)
    with _lock:
        count, former = _waiting.get(session) or (0, {name: spark.conf.get(name) for name in _SWIFT})
        _waiting[session] = count + 1, former
        for name, value in _SWIFT.items():
            spark.conf.set(name, value)
    try:
        yield
    finally:
        with _lock:
            count, former = _waiting.pop(session)
            if count > 1:
                _waiting[session] = count - 1, former
            else:
                for name, value in former.items():
                    spark.conf.set(name, value)


def as_frame(spark: Any, table: pa.Table) -> Any:
    """An Arrow table as a DataFrame; Spark knows neither dictionaries nor numbers without sign."""
    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = pa.int64() if pa.types.is_unsigned_integer(kind) else kind
        if kind != field.type:
            table = table.set_column(place, pa.field(field.name, kind), table.column(place).cast(kind))
    return spark.createDataFrame(table)
