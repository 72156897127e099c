"""Which specification reports were made under, where Spark wrote them: it keeps that beside the column of user ids."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from deniable.tables.reports import SPECIFICATION, TABLE

SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema in a Parquet file."""


def spark_marks(schema: Any) -> tuple[str, str]:
    """The specification's SHA-256 and the table's name in a schema of Spark, parsed; empty if they are missing."""
    for field in schema.get("fields", ()):
        if field.get("name") == "uid":
            entries = field.get("metadata") or {}
            return entries.get(SPECIFICATION.decode(), ""), entries.get(TABLE.decode(), "")
    return "", ""


def marked(schema: pa.Schema) -> pa.Schema:
    """A file's schema; what Spark wrote into it is put where we keep it."""
    metadata = schema.metadata or {}
    if SPECIFICATION in metadata or SPARK_SCHEMA.encode() not in metadata:
        return schema
    specification, table = spark_marks(json.loads(metadata[SPARK_SCHEMA.encode()]))
    return schema.with_metadata({SPECIFICATION: specification.encode(), TABLE: table.encode()})
