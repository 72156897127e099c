"""Reports in Spark → valid reports: the same checks and counts as `report_table.validate`.

One job counts the reports of every view and slot, with the extremes of their numbers; if the extremes are possible, all
are. Another job walks along the users. Only if one of them finds a fault is every report checked on its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Booleans, Floats, Integers
from deniable.engines.collecting.user_batches import sorted_users, starts_of
from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.kept_frames import KeptFrame, by_user
from deniable.engines.spark.packed_reports import Packing
from deniable.engines.spark.spark_session import large_batches
from deniable.engines.spark.task_sums import added
from deniable.queries.question.question import MOST_GROUPS
from deniable.tables.reports.report_table import (
    COINS,
    INCOMPLETE,
    MISSING_ENTRY,
    NO_SUCH_ROUND,
    OTHER_COINS,
    OTHER_TURN,
    REPEATED,
    ROW_FAULTS,
    check_names,
    columns_of,
    complete_users,
    has_assigned_coins,
    has_round,
    is_turn,
    named_cells,
    row_faults,
)
from deniable.tables.schema.report_format import ASSIGNED, REPORT_COLUMNS, SEED_BITS
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.specification.specification import Specification

Batches = Iterator[pa.RecordBatch]
_FAULTS = (MISSING_ENTRY, *ROW_FAULTS, NO_SUCH_ROUND, OTHER_TURN, OTHER_COINS)


@dataclass(frozen=True, slots=True, eq=False)
class SparkStore:
    """The valid reports of one table, as a DataFrame."""

    frame: Any
    slots: int
    rows: int
    _views: dict[int, int]
    """How many reports there are of each view that occurs."""
    _packing: Packing
    _kept: KeptFrame | None = None
    persons: int = 0
    """How many users there are, where there are rounds."""
    _distinct: dict[str, pa.Array] = field(default_factory=dict)

    def distinct(self, column: str) -> pa.Array:
        """The values of a public column, asked once; only some if there are too many to group by."""
        if column not in self._distinct:
            with spark_errors("listing groups"):
                values = self.frame.select(f"`{column}`").distinct().limit(MOST_GROUPS + 1).toArrow()
            self._distinct[column] = values[column].combine_chunks()
        return self._distinct[column]

    def view_counts(self, views: int) -> Integers:
        """How many reports there are of each view."""
        counts = np.zeros(views, dtype=np.int64)
        counts[list(self._views)] = list(self._views.values())
        return counts

    def seed_ranges(self, views: Booleans, bits: int) -> Integers:
        """How many reports of some views have a seed in each of 2^bits ranges."""

        def count(batches: Batches) -> Floats:
            counts: Floats = np.zeros(1 << bits)
            for batch in batches:
                view, seed = (np.asarray(batch.column(column)) for column in ("view", "seed"))
                counts += np.bincount(seed[views[view]] >> (SEED_BITS - bits), minlength=counts.size)
            return counts

        with spark_errors("counting seeds"):
            return added(self._packing.unpacked(self.frame).select("view", "seed"), count, 1 << bits).astype(np.int64)

    def close(self) -> None:
        """Give back what Spark keeps for this table."""
        if self._kept is not None:
            self._kept.close()


def validated(
    collection: Specification, name: str, frame: Any, partitions: int, *, joined: bool
) -> tuple[SparkStore, Counter[str]]:
    """The valid reports of a table, and how many were refused, by reason.

    If they may be `joined`, or users send several, the reports of each user are brought together and kept so.
    """
    slots, rounds = collection.reports_per_user(name), collection.rounds
    frame = typed(collection, name, frame)
    packing = Packing.of(collection, name)
    together = joined or slots > 1 or rounds is not None

    def arranged(reports: Any) -> KeptFrame:
        return KeptFrame(by_user(packing.packed(reports), slots, partitions, rounds=rounds is not None))

    def store(reports: Any, views: dict[int, int], kept: KeptFrame | None) -> SparkStore:
        persons = 0 if rounds is None else reports.select("uid").distinct().count()
        return SparkStore(reports, slots, sum(views.values()), views, packing, kept, persons)

    kept = arranged(frame) if together else None
    try:
        with spark_errors(f"checking the reports of table {name!r}"), large_batches(frame.sparkSession):
            reports = kept.frame if kept else frame
            views = _views(collection, name, packing.unpacked(reports))
            if (
                views is not None
                and not _forged(collection, name, packing.unpacked(reports))
                and not _faulty_users(collection, name, packing, reports, partitions, together=kept is not None)
            ):
                return store(reports, views, kept), Counter()
            clean, refused = _cleaned(collection, name, frame)
            faulty, kept = kept, arranged(clean)
            views = _views(collection, name, packing.unpacked(kept.frame)) or {}
            if faulty:
                faulty.close()
            return store(kept.frame, views, kept), refused
    except BaseException:
        if kept:
            kept.close()
        raise


def typed(collection: Specification, name: str, frame: Any) -> Any:
    """The columns of reports, numbers as longs. Frames with other types are refused."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = [f"`{column}`" for column in check_names(collection, name, frame.columns)]
    columns_of(collection, name, to_arrow_schema(frame.select(*wanted).schema))
    numbers = {column: F.col(column).cast("long").alias(column) for column in (*REPORT_COLUMNS, *_round(collection))}
    return frame.select(*(numbers.get(column.strip("`"), column) for column in wanted))


# All reports at once --------------------------------------------------------------------------------------------------


def _views(collection: Specification, name: str, frame: Any) -> dict[int, int] | None:
    """How many reports there are of each view; None if any of them is impossible.

    The driver gets one row per view and slot, and one for all that are unknown.
    """
    from pyspark.sql import functions as F  # noqa: N812

    views, slots = collection.design_of(name).views, collection.reports_per_user(name)
    possible = F.col("view").between(0, views - 1) & F.col("slot").between(0, slots - 1)
    for column in ("uid", "seed", "y"):
        possible = possible & F.col(column).isNotNull()
    keys = [F.when(possible, F.col(column)).otherwise(F.lit(-1)).alias(column) for column in ("slot", "view")]
    extremes = [
        function(column).alias(f"{column}{number}")
        for column in ("seed", "y")
        for number, function in enumerate((F.min, F.max))
    ]
    counted = frame.select("seed", "y", *keys).groupBy("slot", "view")
    bits = [F.min(F.bit_count("y")).alias("fewest"), F.max(F.bit_count("y")).alias("most")]
    counts = counted.agg(F.count(F.lit(1)).alias("reports"), *extremes, *bits).toArrow()
    columns = {column: np.asarray(counts[column]) for column in ("slot", "view", "reports")}
    for number in (0, 1):
        ends = {column: np.asarray(counts[f"{column}{number}"]) for column in ("seed", "y")}
        if (columns["view"] < 0).any() or row_faults(collection, name, columns | ends).any():
            return None
    design = collection.design_of(name)
    for view, fewest, most in zip(*(counts[column].to_pylist() for column in ("view", "fewest", "most")), strict=True):
        named = named_cells(design.view(view))
        if named and not fewest == most == named:
            return None
    totals: Counter[int] = Counter()
    for view, reports in zip(columns["view"].tolist(), columns["reports"].tolist(), strict=True):
        totals[view] += reports
    return dict(totals)


def _round(collection: Specification) -> tuple[str, ...]:
    """The column of rounds, where there are any."""
    return () if collection.rounds is None else (ROUND_COLUMN,)


def _forged(collection: Specification, name: str, frame: Any) -> bool:
    """Whether a report, of those that are possible, has another view or seed than the assigned ones, or round."""
    if collection.coins != ASSIGNED and collection.rounds is None:
        return False

    def judge(batches: Batches) -> Batches:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"forged": [bool(_forgeries(collection, name, batch).any())]})

    wanted = frame.select("uid", *COINS, *_round(collection))
    judged = wanted.mapInArrow(judge, "forged boolean").where("forged").limit(1)
    return bool(judged.toArrow().num_rows)


def _forgeries(collection: Specification, name: str, batch: pa.RecordBatch) -> Integers:
    """For every report that is possible otherwise, the number of its fault among the last three of `_FAULTS`, or 0."""
    reports = pa.Table.from_batches([batch])
    faults: Integers = np.zeros(reports.num_rows, dtype=np.int64)
    checks = [(OTHER_COINS, partial(has_assigned_coins, collection, name))]
    if collection.rounds is not None:
        checks = [(NO_SUCH_ROUND, partial(has_round, collection.rounds)), (OTHER_TURN, partial(is_turn, collection))]
        checks.append((OTHER_COINS, partial(has_assigned_coins, collection, name)))
    for reason, is_good in checks:
        rows = np.flatnonzero(faults == 0)
        good = is_good(reports.take(pa.array(rows)).combine_chunks())
        faults[rows[~good]] = _FAULTS.index(reason) + 1
    return faults


def _faulty_users(
    collection: Specification, name: str, packing: Packing, frame: Any, partitions: int, *, together: bool
) -> bool:
    """Whether a user has a slot twice in a round, or lacks one."""
    slots = collection.reports_per_user(name)
    if collection.rounds is not None:
        wanted = packing.unpacked(frame).select("uid", "slot", ROUND_COLUMN)
        walked = wanted.mapInArrow(_walking_rounds(collection, name), "faulty boolean").where("faulty").limit(1)
        return bool(walked.toArrow().num_rows)
    wanted = frame.select("uid", "slot") if slots > 1 else frame.select("uid")
    walked = wanted if together else by_user(wanted, slots, partitions)
    faulty = walked.mapInArrow(_walking(slots), "faulty boolean").where("faulty").limit(1)
    return bool(faulty.toArrow().num_rows)


def _walking_rounds(collection: Specification, name: str) -> Callable[[Batches], Batches]:
    """For a task: whether each of its users has every slot once in each of her rounds."""

    def walk(batches: Batches) -> Batches:
        first = next(batches, None)
        if first is None:
            return
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        faulty = False
        for users in sorted_users(reader):
            faulty |= bool(complete_users(collection, name, users)[1])
        yield pa.RecordBatch.from_pydict({"faulty": [faulty]})

    return walk


def _walking(slots: int) -> Callable[[Batches], Batches]:
    """For a task: whether each of its sorted users has slots 0, 1, … once."""

    def walk(batches: Batches) -> Batches:
        first = next(batches, None)
        if first is None:
            return
        faulty = False
        last: Any = None
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        for users in sorted_users(reader) if slots > 1 else reader:
            uid = users["uid"]
            uid = uid.combine_chunks() if isinstance(uid, pa.ChunkedArray) else uid
            if not len(uid):
                continue
            if slots == 1:
                faulty |= last == uid[0] or starts_of(uid).size < len(uid)
                last = uid[-1]
            else:
                expected = np.arange(len(uid)) % slots
                starts = starts_of(uid)
                faulty |= not np.array_equal(starts, np.arange(0, len(uid), slots))
                faulty |= not np.array_equal(np.asarray(users["slot"]), expected)
        yield pa.RecordBatch.from_pydict({"faulty": [bool(faulty)]})

    return walk


# Report by report -----------------------------------------------------------------------------------------------------


def _cleaned(collection: Specification, name: str, frame: Any) -> tuple[Any, Counter[str]]:
    """Reports without those that are refused, and how many are, by reason."""
    from pyspark.sql import functions as F  # noqa: N812

    slots = collection.reports_per_user(name)
    slim = frame.select("uid", *REPORT_COLUMNS, *_round(collection))
    faults = slim.mapInArrow(_counting(collection, name), "fault int, reports bigint")
    counts = faults.groupBy("fault").agg(F.sum("reports").alias("reports")).toArrow().to_pylist()
    refused = Counter({_FAULTS[row["fault"] - 1]: row["reports"] for row in counts if row["fault"]})
    good = frame.mapInArrow(_keeping(collection, name), frame.schema)
    slot = F.count_distinct("slot") if slots > 1 else F.lit(1)
    key = ["uid", *_round(collection)]
    users = good.groupBy(*key).agg(F.count(F.lit(1)).alias("reports"), slot.alias("different"))
    repeated = F.col("reports") > F.col("different")
    lacking = ~repeated & (F.col("reports") != slots)
    totals = users.agg(
        *(F.coalesce(F.sum(F.when(fault, F.col("reports"))), F.lit(0)) for fault in (repeated, lacking))
    ).first()
    refused += Counter({REPEATED: totals[0], INCOMPLETE: totals[1]})
    if totals[0] or totals[1]:
        good = good.join(users.where(repeated | lacking).select(*key), key, "left_anti")
    return good, +refused


def _faults(collection: Specification, name: str, batch: pa.RecordBatch) -> Integers:
    """For every report the number of its fault in `_FAULTS` plus one; 0 for none."""
    numbers = {column: batch.column(column) for column in REPORT_COLUMNS}
    missing = np.asarray(batch.column("uid").is_null())
    for column in numbers.values():
        if column.null_count:
            missing = missing | np.asarray(column.is_null())
    filled = {column: np.asarray(values.fill_null(0)) for column, values in numbers.items()}
    faults = row_faults(collection, name, filled).astype(np.int64)
    faults = np.where(missing, 1, np.where(faults > 0, faults + 1, 0))
    possible = np.flatnonzero(faults == 0)
    faults[possible] = _forgeries(collection, name, batch.take(pa.array(possible)))
    return faults


def _counting(collection: Specification, name: str) -> Callable[[Batches], Batches]:
    def count(batches: Batches) -> Batches:
        totals = np.zeros(len(_FAULTS) + 1, dtype=np.int64)
        for batch in batches:
            totals += np.bincount(_faults(collection, name, batch), minlength=totals.size)
        yield pa.RecordBatch.from_pydict({"fault": np.arange(totals.size, dtype=np.int32), "reports": totals})

    return count


def _keeping(collection: Specification, name: str) -> Callable[[Batches], Batches]:
    def keep(batches: Batches) -> Batches:
        for batch in batches:
            yield batch.filter(pa.array(_faults(collection, name, batch) == 0))

    return keep
