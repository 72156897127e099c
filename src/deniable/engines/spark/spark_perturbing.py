"""From DataFrames to report datasets, on executors.

Spark brings each user's rows together, partitions users by their ids, sorts, and commits what its tasks have written.
A task randomises its partition in batches of whole users. The key of a batch is a keyed hash of the run's secret, the
table, the partition, the batch's number and everything in the batch. So a task that is retried with the same rows
draws the same bits and sends the same reports; with other rows it draws other bits.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.engines.collecting.collected_reports import Collected
from deniable.engines.collecting.drawn_names import refuse_pseudonyms
from deniable.engines.collecting.folder_writing import check_destination, check_writer, round_name
from deniable.engines.collecting.perturbing import BATCH_REPORTS, reports_of
from deniable.engines.collecting.round_asking import Asking
from deniable.engines.collecting.row_counts import Summary, Tally
from deniable.engines.collecting.sorted_rows import (
    NO_USER,
    PRESENT,
    UNKNOWN_USER,
    everyone_missing,
    outer_type,
    public_of_rows,
    unreadable_column,
    varying,
)
from deniable.engines.collecting.user_batches import few_users, sorted_users
from deniable.engines.reports.report_origin import WHOLE_SPECIFICATION
from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.report_paths import Folder
from deniable.engines.spark.spark_session import checked_session
from deniable.errors import InvalidData, InvalidParameter
from deniable.ledger import Ledger
from deniable.randomness import SecureSource, Source, release_source
from deniable.simulation import mark
from deniable.tables.bulk.column_encoding import readable
from deniable.tables.reports.report_table import SPECIFICATION, TABLE
from deniable.tables.schema.report_format import ANSWER_COLUMNS, REPORT_COLUMNS
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.specification.runs import SPECIFICATION_FILE, charge_run, largest_epsilon, read_run, run_text
from deniable.tables.specification.specification import Specification

Batches = Iterator[pa.RecordBatch]
ROWS_READ, USERS_COUNTED, REPORTS_SENT = "rows", "users", "reports"


def perturb_spark(
    collection: Specification,
    frames: Mapping[str, Any],
    engine: Any,
    *,
    key: str,
    out: str | Path | None,
    everyone: Any,
    source: Source | None,
    simulation: bool,
    number: int | None = None,
    memory: str | Path | None = None,
    ledger: Ledger | None = None,
) -> Collected:
    """Write the reports of all users in the given DataFrames, in the round `number`. See `Collection.perturb`.

    Executors get the secret that all rounds share, which stays the same if a task is retried.
    """
    refuse_pseudonyms(collection)
    asking = Asking.of(collection, number, memory, simulation=simulation)
    source = release_source(source, simulation=simulation, epsilon=largest_epsilon(collection))
    spark = checked_session(engine)
    if out is None:
        # A DataFrame is computed again whenever it is used; reports must not be.
        raise InvalidParameter("out", "is missing: on Spark, reports are written to a folder", "Say where to put them.")
    if not frames:
        raise InvalidParameter("tables", "are missing", "Pass the rows of one table at least.")
    for name in frames:
        collection[name]
    with spark_errors("randomising", collected=False):
        rows = _Rows(spark, collection, frames, key, everyone)
        return _written(rows, asking, Folder(spark, str(out)), source, ledger, simulation=simulation)


def _written(
    rows: _Rows, asking: Asking, out: Folder, source: Source, ledger: Ledger | None, *, simulation: bool
) -> Collected:
    """Write each table's dataset next to its destination, and move it there when it is complete.

    A round is a folder in that of its table: moving it is one step.
    """
    collection = rows.collection

    def target(folder: Folder, name: str) -> Folder:
        return folder.below(name) if asking.number is None else folder.below(name).below(round_name(asking.number))

    def is_held(name: str) -> bool:
        folder = target(out, name)
        return folder.exists() or (asking.number is not None and Folder(out.spark, f"{folder.path}.parquet").exists())

    specification = out.below(SPECIFICATION_FILE)
    existing = out.exists()
    if existing:
        run = read_run(json.loads(specification.read_text())) if specification.exists() else None
        held = [name for name in rows.names if is_held(name)]
        for name in rows.names if asking.number is not None else ():
            check_writer(out.name, name, [file for file in out.below(name).names() if file.endswith(".parquet")])
        check_destination(out.name, collection, run, held, simulation)
    charge_run(ledger, collection, *rows.names, group=asking.group, number=asking.number)
    above = out.path.rstrip("/").rsplit("/", 1)[0] if "/" in out.path.rstrip("/") else "."
    partial = Folder(out.spark, f"{above}/.{out.name}.partial-{uuid.uuid4().hex[:8]}")
    summaries = {}
    try:
        partial.make()
        for name in rows.names:
            secret = source.fresh(name).words(4).tobytes()
            tally = Tally()
            frame = randomised(rows, name, secret, tally, asking, simulation=simulation)
            frame.write.parquet(target(partial, name).path)
            summaries[name] = _summary(collection, name, tally, rows.counted.value[name])
        if existing:
            for name in rows.names:
                if asking.number is not None:
                    out.below(name).make()
                target(partial, name).move(target(out, name))
        else:
            partial.below(SPECIFICATION_FILE).write_text(run_text(collection, simulation=simulation))
            partial.move(out)
    finally:
        partial.remove()
    return Collected(collection, summaries, out.path, simulation)


def randomised(
    rows: _Rows, name: str, secret: bytes, tally: Tally, asking: Asking | None = None, *, simulation: bool
) -> Any:
    """A table's reports as a DataFrame. It must be written once, and not used otherwise."""
    from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

    collection = rows.collection
    prepared = rows.prepared(name, tally)
    table = collection[name]
    public = [T.StructField(table.column(label), prepared.schema[label].dataType) for label in table.public]
    numbers = [T.StructField(column, T.LongType()) for column in ANSWER_COLUMNS]
    rounds = [] if collection.rounds is None else [T.StructField(ROUND_COLUMN, T.LongType())]
    columns = [prepared.schema["uid"], T.StructField("slot", T.IntegerType()), *numbers, *public, *rounds]
    randomising = _randomising(asking or Asking(collection), name, secret, rows.counted)
    reports = prepared.mapInArrow(randomising, T.StructType(columns))
    origin = {
        SPECIFICATION.decode(): collection.sha256,
        TABLE.decode(): name,
        WHOLE_SPECIFICATION: collection.to_json(),
        **{key.decode(): text.decode() for key, text in mark(simulation=simulation).items()},
    }
    return reports.withMetadata("uid", origin)


def _randomising(asking: Asking, name: str, secret: bytes, counted: Any) -> Callable[[Batches], Batches]:
    collection = asking.collection
    table = collection[name]
    users = max(1, BATCH_REPORTS // collection.reports_per_user(name))

    def randomise(batches: Batches) -> Batches:
        from pyspark import TaskContext

        partition = TaskContext.get().partitionId()
        tally = Tally()
        first = next(batches, None)
        if first is None:
            return
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        for number, rows in enumerate(few_users(sorted_users(reader), users)):
            source = SecureSource(batch_key(secret, name, partition, number, rows)).recomputable(again=True)
            uid, slot, view, seed, y, *public = reports_of(asking, name, rows, source, tally)
            numbers = [slot.cast(pa.int32()), *(column.cast(pa.int64()) for column in (view, seed, y))]
            names = ["uid", *REPORT_COLUMNS, *table.public_columns]
            if asking.number is not None:
                names, public = [*names, ROUND_COLUMN], [*public[:-1], public[-1].cast(pa.int64())]
            yield pa.RecordBatch.from_arrays([uid, *numbers, *public], names)
        totals = Counter(
            {ROWS_READ: tally.rows, USERS_COUNTED: tally.users, REPORTS_SENT: tally.reports, **tally.rejected}
        )
        counted.add({name: totals})

    return randomise


def batch_key(secret: bytes, table: str, partition: int, number: int, rows: pa.Table) -> bytes:
    """The key for a batch of whole users. It differs for any other content, position, table or run."""
    digest = hashlib.blake2b(key=secret, digest_size=32, person=b"spark batch")
    digest.update(json.dumps([table, partition, number, rows.schema.to_string(), rows.num_rows]).encode())
    compact = rows.take(pa.array(np.arange(rows.num_rows))).combine_chunks()  # the same content, the same bytes
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, compact.schema) as writer:
        writer.write_table(compact)
    digest.update(sink.getvalue())
    return digest.digest()


def _summary(collection: Specification, name: str, tally: Tally, counted: Counter[str]) -> Summary:
    rejected = tally.rejected + Counter(
        {k: n for k, n in counted.items() if k not in (ROWS_READ, USERS_COUNTED, REPORTS_SENT)}
    )
    spent = collection.epsilon_per_report(name)
    return Summary(
        tally.rows + counted[ROWS_READ], counted[USERS_COUNTED], counted[REPORTS_SENT], spent, dict(+rejected)
    )


class _Counts:
    """How Spark adds the counts of tasks. A task that is retried counts once, because it writes."""

    def zero(self, value: Any) -> Any:
        return {name: Counter() for name in value}

    def addInPlace(self, total: Any, added: Any) -> Any:  # noqa: N802 - Spark's name
        for name, counts in added.items():
            total[name] = total.get(name, Counter()) + counts
        return total


class _Rows:
    """The DataFrames that were passed: users brought together, partitioned by id and sorted."""

    def __init__(
        self, spark: Any, collection: Specification, frames: Mapping[str, Any], key: str, everyone: Any
    ) -> None:
        self.collection = collection
        self.names = [table.name for table in collection.tables if table.name in frames]
        self._spark, self._key = spark, key
        self._frames = {
            name: self._opened(frame, f"table {name!r}", collection[name].key or key) for name, frame in frames.items()
        }
        self._given = None if everyone is None else self._opened(everyone, "everyone", key)
        kinds: dict[str | None, set[bool]] = {} if self._given is None else {None: {self._is_text(self._given)}}
        for name, frame in self._frames.items():
            kinds.setdefault(collection[name].owner, set()).add(self._is_text(frame))
        if any(len(mine) > 1 for mine in kinds.values()):
            raise InvalidData("user ids are integers in one table and texts in another", "Use one type for all.")
        self.counted = spark.sparkContext.accumulator({name: Counter() for name in self.names}, _Counts())
        for name in self.names:
            self._check(name)

    def _opened(self, frame: Any, where: str, key: str) -> Any:
        frame = self._spark.table(frame) if isinstance(frame, str) else frame
        if not hasattr(frame, "mapInArrow"):
            raise InvalidData(f"{where} is not a Spark DataFrame", "Pass one, or a name in its catalog.")
        if key not in frame.columns:
            raise InvalidData(f"{where} has no column {key!r}", "Name the column of user ids with key=.")
        return frame.withColumnRenamed(key, "uid") if key != "uid" else frame

    def _is_text(self, frame: Any) -> bool:
        from pyspark.sql import types as T  # noqa: N812

        kind = frame.schema["uid"].dataType
        if not isinstance(kind, (T.StringType, T.ByteType, T.ShortType, T.IntegerType, T.LongType)):
            problem = f"user ids must be integers or texts, not {outer_type(kind.simpleString())}"
            raise InvalidData(problem, "Convert them.")
        return isinstance(kind, T.StringType)

    def _check(self, name: str) -> None:
        """Refuse a table whose columns cannot hold its domains."""
        from pyspark.sql.pandas.types import to_arrow_schema

        table, frame = self.collection[name], self._frames[name]
        wanted = (*table.private, *(table.public if table.many is None else ()))
        for column in wanted:
            if column not in frame.columns:
                problem = f"table {name!r} has no column {column!r}"
                raise InvalidData(problem, "Rename it, or change the specification.")
        kinds = to_arrow_schema(frame.select(*table.private).schema)
        for column, domain in zip(table.private, table.domains, strict=True):
            if not readable(domain, kinds.field(column).type):
                raise unreadable_column(name, column, frame.schema[column].dataType.simpleString())

    def prepared(self, name: str, tally: Tally) -> Any:
        """All rows of a table's users, and users without rows if they report too; counts what is left out."""
        from pyspark.sql import functions as F  # noqa: N812

        table, frame = self.collection[name], self._frames[name]
        tally.reject(NO_USER, frame.where("uid IS NULL").count())
        rows = frame.where("uid IS NOT NULL")
        if table.many is None:
            rows = rows.select("uid", *(f"`{column}`" for column in (*table.private, *table.public)))
        else:
            users = self._everyone(table.public, rows)
            tally.reject(UNKNOWN_USER, rows.join(users, "uid", "left_anti").count())
            mine = rows.select("uid", F.lit(True).alias(PRESENT), *(f"`{column}`" for column in table.private))
            rows = users.join(mine, "uid", "left")
        # The number of partitions is a setting, so it reveals nothing about the rows. Sorting by everything makes the
        # order, and with it the reports, a function of the set of rows.
        count = int(self._spark.conf.get("spark.sql.shuffle.partitions"))
        rest = [f"`{column}`" for column in rows.columns if column != "uid"]
        return rows.repartition(count, "uid").sortWithinPartitions("uid", *rest)

    def _everyone(self, public: tuple[str, ...], rows: Any) -> Any:
        """Who sends reports for a table with many rows, with the public columns of each."""
        from pyspark.sql import functions as F  # noqa: N812

        if self._given is None:
            if public:
                raise public_of_rows(public[0], self._key)
            users = [self.collection[name] for name in self.names if self.collection[name].owner is None]
            single = [self._frames[table.name] for table in users if table.many is None]
            if not single:
                raise everyone_missing()
            listed = [frame.select("uid") for frame in single]
            users = listed[0]
            for other in listed[1:]:
                users = users.union(other)
            return users.where("uid IS NOT NULL").distinct()
        for column in public:
            if column not in self._given.columns:
                raise public_of_rows(column, self._key)
        known = self._given.where("uid IS NOT NULL").select("uid", *(f"`{column}`" for column in public))
        users = (
            known.groupBy("uid").agg(*(F.first(f"`{column}`").alias(column) for column in public))
            if public
            else (known.distinct())
        )
        for column in public:
            for other in (known, rows) if column in rows.columns else (known,):
                theirs = other.select("uid", F.col(f"`{column}`").alias("theirs"))
                differing = users.join(theirs, "uid").where(~F.col(f"`{column}`").eqNullSafe(F.col("theirs")))
                if not differing.isEmpty():
                    raise varying(column)
        return users
