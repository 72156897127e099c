"""Reports in Spark → reports that can be believed: the same checks and counts as `tables.reports.validate`.

One job looks at every report on its own and counts the reports of each view; another one counts the slots of each
user. Reports without fault are used where they are; others are cleaned into a copy that Spark keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.engines.spark.faults import told
from deniable.errors import InvalidData
from deniable.queries.plan import MOST_GROUPS
from deniable.tables.collection import Collection
from deniable.tables.reports import INCOMPLETE, MISSING_ENTRY, REPEATED, ROW_FAULTS, row_faults

Batches = Iterator[pa.RecordBatch]
NUMBERS = ("slot", "view", "seed", "y")
_REASONS = (MISSING_ENTRY, *ROW_FAULTS)
_FAULT, _VIEW = 0, 1
_COUNTS = pa.schema([("kind", pa.int32()), ("number", pa.int64()), ("count", pa.int64())])


@dataclass(frozen=True, slots=True, eq=False)
class SparkStore:
    """The believable reports of one table, as a DataFrame."""

    frame: Any
    slots: int
    rows: int
    _views: pa.Table
    """How many reports there are of each view that occurs: `number` and `count`."""
    _distinct: dict[str, pa.Array] = field(default_factory=dict)

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has, asked once; some of them if there are too many to group by."""
        if column not in self._distinct:
            with told("listing groups"):
                found = self.frame.select(f"`{column}`").distinct().limit(MOST_GROUPS + 1).toArrow()
            self._distinct[column] = found[column].combine_chunks()
        return self._distinct[column]

    def view_counts(self, views: int) -> NDArray[np.int64]:
        """How many reports there are of each view."""
        counts = np.zeros(views, dtype=np.int64)
        counts[np.asarray(self._views["number"])] = np.asarray(self._views["count"])
        return counts


def validated(collection: Collection, name: str, frame: Any) -> tuple[SparkStore, Counter[str]]:
    """The reports of a table that can be believed, and how many were refused, by reason."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    slots = collection.reports_per_user(name)
    frame = _typed(collection, name, frame)
    with told(f"checking the reports of table {name!r}"):
        counts = _counts(collection, name, frame)
        refused = Counter({_REASONS[number - 1]: count for number, count in counts[_FAULT].items() if number})
        if refused:
            frame = frame.mapInArrow(_keeping(collection, name), frame.schema)
        slot = F.count_distinct("slot") if slots > 1 else F.lit(1)
        users = frame.groupBy("uid").agg(F.count(F.lit(1)).alias("reports"), slot.alias("different"))
        repeated = F.col("reports") > F.col("different")
        lacking = ~repeated & (F.col("reports") != slots)
        found = users.agg(
            *(F.coalesce(F.sum(F.when(fault, F.col("reports"))), F.lit(0)) for fault in (repeated, lacking))
        ).first()
        refused += Counter({REPEATED: found[0], INCOMPLETE: found[1]})
        if found[0] or found[1]:
            frame = frame.join(users.where(repeated | lacking).select("uid"), "uid", "left_anti")
        if +refused:
            frame = frame.persist()
            counts = _counts(collection, name, frame)
    views = pa.table({"number": list(counts[_VIEW]), "count": list(counts[_VIEW].values())}, schema=_VIEWS)
    return SparkStore(frame, slots, sum(counts[_VIEW].values()), views), +refused


_VIEWS = pa.schema([("number", pa.int64()), ("count", pa.int64())])


def _typed(collection: Collection, name: str, frame: Any) -> Any:
    """The columns of reports, numbers as longs; other types are no reports at all."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types as T  # noqa: N812

    public = collection[name].public
    for column in ("uid", *NUMBERS, *public):
        if column not in frame.columns:
            raise InvalidData(
                f"reports of table {name!r} lack the column {column!r}", "Send the columns as documented."
            )
    integers = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
    for column in NUMBERS:
        if not isinstance(frame.schema[column].dataType, integers):
            raise InvalidData(f"column {column!r} of the reports must be an integer", "Send the columns as documented.")
    if not isinstance(frame.schema["uid"].dataType, (*integers, T.StringType)):
        raise InvalidData("user ids must be integers or texts", "Convert them first.")
    numbers = [F.col(column).cast("long").alias(column) for column in NUMBERS]
    return frame.select("uid", *numbers, *(f"`{column}`" for column in public))


def _counts(collection: Collection, name: str, frame: Any) -> tuple[dict[int, int], dict[int, int]]:
    """How many reports have each fault (0: none), and how many of those without there are of each view."""
    from pyspark.sql import functions as F  # noqa: N812

    slim = frame.select(F.col("uid").isNotNull().alias("known"), *NUMBERS)
    counted = slim.mapInArrow(_counting(collection, name), "kind int, number bigint, count bigint")
    found = counted.groupBy("kind", "number").agg(F.sum("count").alias("count")).toArrow().to_pylist()
    by_kind: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for row in found:
        by_kind[row["kind"]][row["number"]] = row["count"]
    return by_kind


def _faults(collection: Collection, name: str, batch: pa.RecordBatch, known: Any) -> NDArray[np.int64]:
    """For every report the number of its fault: 1 for a missing entry, then those of `ROW_FAULTS`; 0 for none."""
    numbers = {column: batch.column(column) for column in NUMBERS}
    missing = ~np.asarray(known)
    for column in numbers.values():
        if column.null_count:
            missing = missing | np.asarray(column.is_null())
    filled = {column: np.asarray(values.fill_null(0)) for column, values in numbers.items()}
    faults = row_faults(collection, name, filled).astype(np.int64)
    return np.where(missing, 1, np.where(faults > 0, faults + 1, 0))


def _counting(collection: Collection, name: str) -> Callable[[Batches], Batches]:
    def count(batches: Batches) -> Batches:
        faults: Counter[int] = Counter()
        views: Counter[int] = Counter()
        for batch in batches:
            found = _faults(collection, name, batch, batch.column("known"))
            faults.update(dict(zip(*_tallied(found), strict=True)))
            good = np.asarray(batch.column("view").fill_null(0))[found == 0]
            views.update(dict(zip(*_tallied(good), strict=True)))
        kinds = [_FAULT] * len(faults) + [_VIEW] * len(views)
        columns = [kinds, [*faults, *views], [*faults.values(), *views.values()]]
        yield pa.RecordBatch.from_pydict(dict(zip(_COUNTS.names, columns, strict=True)), schema=_COUNTS)

    return count


def _tallied(values: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    numbers, counts = np.unique(values, return_counts=True)
    return numbers.tolist(), counts.tolist()


def _keeping(collection: Collection, name: str) -> Callable[[Batches], Batches]:
    def keep(batches: Batches) -> Batches:
        for batch in batches:
            yield batch.filter(pa.array(_faults(collection, name, batch, batch.column("uid").is_valid()) == 0))

    return keep
