"""Where reports come from, as files and DataFrames say it. Spark keeps it in the metadata of the user id column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from deniable.simulation import is_marked, mark
from deniable.strict_json import read_json
from deniable.tables.reports.report_table import SPECIFICATION, TABLE

SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema in a Parquet file."""
WHOLE_SPECIFICATION = "deniable.specification"
"""Where the user id column of a DataFrame holds its whole specification."""


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """Under which specification reports were made, for which table, and whether in a simulation."""

    specification: str
    """Its SHA-256; empty if nothing is said."""
    table: str
    simulation: bool

    @classmethod
    def of(cls, metadata: Mapping[str, str], *, specification: str = "", table: str = "") -> ReportOrigin:
        """What the metadata of a file or column say; where they say nothing, what is passed."""
        return cls(
            metadata.get(SPECIFICATION.decode(), specification),
            metadata.get(TABLE.decode(), table),
            is_marked(metadata),
        )

    @classmethod
    def of_schema(cls, schema: pa.Schema) -> ReportOrigin:
        """What the schema of an Arrow table says."""
        return cls.of({key.decode(): text.decode() for key, text in (schema.metadata or {}).items()})

    @classmethod
    def of_spark_schema(cls, schema: str | bytes) -> ReportOrigin:
        """What a schema of Spark, in JSON, says."""
        for field in read_json(schema).get("fields", ()):
            if field.get("name") == "uid":
                return cls.of(field.get("metadata") or {})
        return cls.of({})

    def names(self, specification: str, table: str) -> bool:
        """Whether the reports are of this specification (its SHA-256) and table."""
        return (self.specification, self.table) == (specification, table)


def with_origin(schema: pa.Schema) -> pa.Schema:
    """A file's schema. An origin that Spark wrote into its own schema is copied to the schema's metadata."""
    metadata = schema.metadata or {}
    if SPECIFICATION in metadata or SPARK_SCHEMA.encode() not in metadata:
        return schema
    origin = ReportOrigin.of_spark_schema(metadata[SPARK_SCHEMA.encode()])
    return schema.with_metadata(
        {
            SPECIFICATION: origin.specification.encode(),
            TABLE: origin.table.encode(),
            **mark(simulation=origin.simulation),
        }
    )
