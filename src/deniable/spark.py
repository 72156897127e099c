"""Spark sessions, functions for Spark SQL, and streams. `connect` and `Collection.perturb` take engine=session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.collection import Collection

if TYPE_CHECKING:
    import pyarrow as pa

    from deniable.database import Database

__all__ = ["gather_stream", "gathered", "publish_stream", "register", "session", "unregister"]


def session(master: str = "local[*]") -> Any:
    """Start a Spark session at a master. On a cluster you usually have one already.

    For example:

        spark = dn.spark.session("local[4]")
    """
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

    For example:

        dn.spark.register(spark, shop, "hdfs:///data/reports")
        spark.sql("SELECT AVG(amount) AS spent FROM orders JOIN users USING (uid) WHERE age < 30").show()
    """
    from deniable.engines.spark.spark_session import checked_session

    checked_session(spark)
    from deniable.engines.spark.sql_functions import register_functions

    reader = _ReportReader(spark, collection, reports, dimensions or {})
    register_functions(spark, collection, reader.answer, dimensions or (), simulation=simulation)


def unregister(spark: Any) -> None:
    """Give a session its own `sql` back, and drop the functions that `register` made.

    For example:

        dn.spark.unregister(spark)
    """
    from deniable.engines.spark.spark_session import checked_session

    checked_session(spark)
    from deniable.engines.spark.sql_functions import unregister_functions

    unregister_functions(spark)


def publish_stream(
    frame: Any,
    *,
    key: str,
    value: str,
    order: str | Sequence[str],
    settings: Mapping[str, Any],
    secret: str | Path | Callable[[], bytes],
    checkpoint: str | Path,
    on_bad: str = "stop",
) -> Any:
    """Publish a streaming DataFrame privately, one stream per key: a `DataStreamWriter`. Choose its sink and start it.

    `settings` are the arguments of `dn.streams.KeyedPublisher`, `{"epsilon": 1.0, "bound": 100, "theta": 50,
    "public_keys": True}` for example. θ is public, or every key learns its own (`per_key`). What is published has the
    columns key, position and value, and equals what a `KeyedPublisher` with the same secret and settings publishes.

    `order` names columns that order the values of a key in a micro-batch and do not depend on values: an offset, a
    position, a time. `secret` is the path of a file with 64 hexadecimal digits that the driver and all executors can
    read, or a function that fetches 32 bytes. `on_bad` says what becomes of values that are not numbers or below the
    range: "stop", "skip", "clip" or "zero".

    A batch that is tried again publishes the same bytes. The checkpoint holds values of open blocks: it is as secret as
    the data. A secret publishes from one checkpoint.

    For example:

        settings = {"epsilon": 1.0, "bound": 500, "theta": 80, "public_keys": True}
        writer = dn.spark.publish_stream(
            readings, key="region", value="reading", order="offset", settings=settings,
            secret="/etc/deniable/stream.key", checkpoint="hdfs:///data/checkpoint",
        )
        writer.format("parquet").option("path", "hdfs:///data/published").start()
    """
    from deniable.engines.spark.spark_session import require_pyspark

    require_pyspark()
    from deniable.engines.spark.stream_publishing import publishing

    return publishing(
        frame,
        key=key,
        value=value,
        order=order,
        settings=settings,
        secret=secret,
        checkpoint=checkpoint,
        on_bad=on_bad,
    )


def gather_stream(
    frame: Any,
    collection: Collection,
    out: str | Path,
    *,
    column: str = "value",
    checkpoint: str | Path,
    public: Mapping[str, str] | None = None,
    simulation: bool = False,
) -> Any:
    """Gather device reports from a streaming DataFrame into a folder: a `DataStreamWriter`. Choose a trigger, start it.

    `column` holds lines of JSON as `Report.to_json` writes them: of text files, or the value of Kafka messages. What
    passes the checks of a collector is appended to `out`, one file or more per table, round and micro-batch, and
    `dn.connect(out, engine=spark)` answers questions about it at any time. User ids are texts. `public` gives the types
    of public attributes: "string" (if it is left out), "bigint", "double" or "boolean".

    Of several reports for a user, round and slot, the one of the earliest micro-batch counts. So lines may arrive any
    number of times: from devices that repeat themselves, in a batch that is tried again, or from the beginning with a
    new checkpoint. One query at a time may gather into a folder. `gathered` says what became of the lines.

    For example:

        lines = spark.readStream.text("hdfs:///data/arriving")
        writer = dn.spark.gather_stream(lines, shop, "hdfs:///data/gathered", checkpoint="hdfs:///data/gathering")
        writer.trigger(availableNow=True).start().awaitTermination()
    """
    from deniable.engines.spark.spark_session import require_pyspark

    require_pyspark()
    from deniable.engines.spark.report_gathering import gathering

    return gathering(
        frame,
        collection,
        out,
        column=column,
        checkpoint=checkpoint,
        public=public or {},
        simulation=simulation,
    )


def gathered(spark: Any, out: str | Path) -> dict[str, int]:
    """What became of the lines that `gather_stream` took: `lines`, `reports`, `repeated`, and refusals by reason.

    For example:

        dn.spark.gathered(spark, "hdfs:///data/gathered")["repeated"]
    """
    from deniable.engines.spark.spark_session import checked_session

    checked_session(spark)
    from deniable.engines.spark.report_gathering import gathered
    from deniable.engines.spark.report_paths import Folder

    return dict(gathered(Folder(spark, str(out))))


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
