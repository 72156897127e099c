"""Spark sessions, and functions for Spark SQL. `connect` and `Collection.perturb` take engine=session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.collection import Collection

if TYPE_CHECKING:
    import pyarrow as pa

    from deniable.database import Database

__all__ = ["register", "session", "unregister"]


def session(master: str = "local[*]") -> Any:
    """Start a Spark session at a master. On a cluster you usually have one already."""
    from deniable.engines.spark.spark_session import open_session

    return open_session(master)


def register(
    spark: Any,
    collection: Collection,
    reports: str | Path | Mapping[str, Any] | None = None,
    *,
    dimensions: Mapping[str, Any] | None = None,
    simulation: bool = False,
) -> None:
    """Make a collection known to Spark SQL.

    `deniable_<table>(uid, attribute, …)` gives the reports of a user, an array of (slot, view, seed, y); private
    attributes stand in the order of the specification. For a table with many rows per user it is
    `deniable_<table>(uid, rows)` with an array of structs. Every call is a new release: write its result once.

    From then on `spark.sql` of this session answers plain SQL about the collection's tables: `spark.sql("SELECT
    AVG(amount) AS a FROM orders JOIN users USING (uid) WHERE age < 48")` is a DataFrame with the answer, its standard
    errors and intervals. A SELECT from these tables and `dimensions` alone is rewritten, also as a part of a larger
    statement, into `SELECT * FROM deniable_sql('SELECT …')`, which can be written out as well. A SELECT that joins such
    a table with another one is refused. Statements about other tables pass untouched, and so do those that perturb
    rows. A name of the collection means reports, even where a view of that name has the rows.

    Reports are looked for in `reports` (a path, or DataFrames and catalog names by table), else in the catalog's tables
    and views named `<table>_reports`. Answers from a simulation have a column `simulation`.

    An ε without noise needs `simulation`, as everywhere.
    """
    from deniable.engines.spark.spark_session import checked_session

    checked_session(spark)
    from deniable.engines.spark.sql_functions import register_functions

    reader = _ReportReader(spark, collection, reports, dimensions or {})
    register_functions(spark, collection, reader.answer, dimensions or (), simulation=simulation)


def unregister(spark: Any) -> None:
    """Give a session its own `sql` back, and drop the functions that `register` made."""
    from deniable.engines.spark.spark_session import checked_session

    checked_session(spark)
    from deniable.engines.spark.sql_functions import unregister_functions

    unregister_functions(spark)


class _ReportReader:
    """The reports that `deniable_sql` asks: opened for the first question, and again when tables were added."""

    def __init__(self, spark: Any, collection: Collection, reports: Any, dimensions: Mapping[str, Any]) -> None:
        self._spark, self._collection, self._reports, self._dimensions = spark, collection, reports, dimensions
        self._opened: tuple[object, Database] | None = None

    def answer(self, text: str) -> pa.Table:
        """The answer to a question."""
        import pyarrow as pa

        from deniable.database import connect

        reports = self._reports
        if reports is None:
            names = {table.name: f"{table.name}_reports" for table in self._collection.tables}
            reports = {table: name for table, name in names.items() if self._spark.catalog.tableExists(name)}
        known = tuple(reports) if isinstance(reports, Mapping) else reports
        if self._opened is None or self._opened[0] != known:
            collection = self._collection if isinstance(reports, Mapping) else None
            database = connect(reports, engine=self._spark, collection=collection, dimensions=self._dimensions)
            self._opened = (known, database)
        result = self._opened[1].sql(text)
        rows = result.to_arrow()
        # Spark SQL shows rows and nothing else, so here the mark is a column.
        return rows.append_column("simulation", pa.repeat(True, len(rows))) if result.simulation else rows
