"""Where reports come from, if Spark wrote them: it keeps that in the metadata of the column of user ids."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from deniable.simulation import is_marked, mark
from deniable.strict_json import read_json
from deniable.tables.reports.report_table import SPECIFICATION, TABLE

SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema in a Parquet file."""


Origin = tuple[str, str, bool]
"""The specification's SHA-256, the table's name, and whether a simulation made the reports."""


def origin_of(metadata: Mapping[str, str]) -> Origin:
    """What metadata of Spark, or of a file, say; texts are empty if they are missing."""
    return metadata.get(SPECIFICATION.decode(), ""), metadata.get(TABLE.decode(), ""), is_marked(metadata)


def spark_marks(schema: str | bytes) -> Origin:
    """Where the reports come from that a schema of Spark, in JSON, describes."""
    for field in read_json(schema).get("fields", ()):
        if field.get("name") == "uid":
            return origin_of(field.get("metadata") or {})
    return origin_of({})


def marked(schema: pa.Schema) -> pa.Schema:
    """A file's schema; what Spark wrote into it is put where we keep it."""
    metadata = schema.metadata or {}
    if SPECIFICATION in metadata or SPARK_SCHEMA.encode() not in metadata:
        return schema
    specification, table, simulation = spark_marks(metadata[SPARK_SCHEMA.encode()])
    return schema.with_metadata(
        {SPECIFICATION: specification.encode(), TABLE: table.encode(), **mark(simulation=simulation)}
    )
