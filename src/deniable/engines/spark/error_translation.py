"""Errors of Spark as errors of this package: file names and conditions, never a value."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from deniable.engines.reports.report_files import RESTORE
from deniable.errors import DeniableError, Failure, InvalidData, QueryRefused

_TYPE_CONDITIONS = (
    "CAST_INVALID_INPUT", "CAST_OVERFLOW", "DATATYPE_MISMATCH", "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE",
    "BINARY_ARITHMETIC_OVERFLOW", "INCOMPARABLE",
)  # fmt: skip
_FILE = re.compile(r"(?:file|hdfs|s3a?|abfss?|gs|dbfs|wasbs?)(?::/|/)\S*?([^/\s]+\.parquet)")


@contextmanager
def spark_errors(what: str, *, collected: bool = True) -> Iterator[None]:
    """Run something on Spark and translate its errors. Files hold what was `collected`, or rows that will be."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # it is not used here
            yield
    except (PySparkException, Py4JError) as error:
        raise _translated(error, what, collected) from None


def _translated(error: Exception, what: str, collected: bool) -> DeniableError:
    text = str(error)  # may quote data: only names of conditions and files leave it
    named = re.findall(r"\[([A-Z][A-Z_]+(?:\.[A-Z_]+)*)\]", text)
    if any(condition.startswith(_TYPE_CONDITIONS) for condition in named):
        problem = "a public attribute is used as the wrong type"
        return QueryRefused(problem, "Compare like with like.")
    lacking = re.search(r"No module named '(\w+)", text)
    if lacking:
        return Failure(
            f"the Python of Spark's executors has no package {lacking.group(1)!r}. Nothing was done. "
            "Install deniable there, and point PYSPARK_PYTHON to that Python."
        )
    file = _FILE.search(text)
    if file and (any(condition.startswith("FAILED_READ_FILE") for condition in named) or "ParquetDecoding" in text):
        problem = f"file {file.group(1)!r} is damaged or missing"
        if collected:
            return InvalidData(problem, RESTORE)
        return InvalidData(problem, "Restore it from a copy, then collect.", cost="Nothing was written")
    reason = named[0] if named else type(error).__name__
    return Failure(f"Spark could not finish {what} ({reason}). Nothing was written. See its log.")
