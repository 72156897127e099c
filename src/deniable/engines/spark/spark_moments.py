"""Plan and reports in Spark → moments.

Public conditions, factors and dimensions are SQL expressions of Spark's; a user's slots are brought together and
tables joined on the user id by Spark. The result, one row per user with her reports in all tables, goes once through
the kernel, in Arrow batches on the executors. Each task adds up its users and sends one set of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from deniable.arrays import Floats, Integers
from deniable.engines.collecting.user_batches import starts_of, whole_users
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.duckdb.public_columns import codes, evaluate
from deniable.engines.kernel.grouped_moments import listed_groups, moments_of, stores_of
from deniable.engines.kernel.moment_totals import Totals
from deniable.engines.kernel.user_sums import Summing, TableSumming
from deniable.engines.reports.round_stores import people_asked
from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.kept_frames import KeptJoins
from deniable.engines.spark.packed_reports import Packing
from deniable.engines.spark.report_validation import SparkStore
from deniable.engines.spark.spark_session import as_frame
from deniable.engines.spark.task_sums import Batches, added
from deniable.queries.answers.estimation import Moments, over_rounds
from deniable.queries.planning.plan import Plan, public_groups
from deniable.queries.question.partners import PARTNER
from deniable.queries.question.public_trees import Tree, factor_tree, passes
from deniable.tables.schema.rounds import ROUND_COLUMN

HERE = "here"
"""The column that says whether a user has a row in a table that LEFT JOIN names, with the table's number."""


def spark_moments(
    plan: Plan,
    stores: Mapping[str, SparkStore],
    dimensions: Mapping[str, DimensionTable],
    joins: KeptJoins | None = None,
    *,
    counted: bool = True,
) -> Moments:
    """The moments of a plan, for every combination of groups. See `engines.local.block_moments`.

    Joins that many questions may have in common, those without public conditions and columns, are kept in `joins`.
    """
    chosen = stores_of(plan, stores)
    listed, public_count = listed_groups(plan, chosen, dimensions)
    rounds = plan.collection.rounds
    optional = plan.question.optional
    summing = Summing.of(plan, chosen, public_count, counted=counted and rounds is None)
    with spark_errors("the question"):
        key = ["uid"] if rounds is None else ["uid", ROUND_COLUMN]
        frames = [_users(plan, table, chosen[table.name], dimensions, key) for table in summing.tables]
        arranged = len(frames) == 1 and (summing.tables[0].slots == 1 or not summing.tables[0].reads)
        missing = [number for number, table in enumerate(summing.tables) if table.name in optional]
        users = _joined(frames, key, arranged=arranged, missing=missing)
        users = users.select(*_filled_up(users.columns, plan, summing)) if missing else users
        if joins is not None and len(summing.tables) > 1 and _private_only(plan):
            users = joins.frame(tuple((table.name, table.reads) for table in summing.tables), users)
        packings = [Packing.of(plan.collection, table.name) for table in summing.tables]
        by_person = rounds is not None
        flat = added(users, _adding(summing, listed, packings, by_person=by_person), _length(summing))
    moments = moments_of(plan, _unpacked(summing, flat), listed, summing)
    return moments if rounds is None else over_rounds(moments, rounds, *people_asked(rounds, chosen))


def _private_only(plan: Plan) -> bool:
    """Whether a question's users depend on nothing but which tables it joins."""
    question = plan.question
    special = plan.public or public_groups(question) or question.lookups or question.optional
    return not (special or any(question.filters.values()))


def spark_sql(tree: Tree) -> str:
    """A recognised expression in Spark's dialect."""
    return str(tree.sql(dialect="spark"))


def _users(
    plan: Plan, table: TableSumming, store: SparkStore, dimensions: Mapping[str, DimensionTable], key: list[str]
) -> Any:
    """One row per user and round: uid, her reports in this table, public factors f…, values of groups g…."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    number = plan.question.tables.index(table.name)
    frame = store.frame
    if table.name in plan.question.optional:
        frame = frame.withColumn(PARTNER, F.lit(True))
    if not table.reads and table.slots > 1:
        frame = frame.where(F.col("slot") == 0)  # one row per user is all that is needed
    for lookup in plan.question.lookups:
        if lookup.table == table.name:
            frame = _looked_up(frame, lookup, dimensions)
    tests = plan.question.filters.get(table.name, ())
    public = {f"f{number}": F.expr(spark_sql(factor_tree(factor))) for number, factor in _factors(plan, table.name)}
    public |= {f"g{number}": F.col(f"`{group.column}`") for number, group in _groups(plan, table.name)}
    if table.name in plan.question.optional:
        public[f"{HERE}{number}"] = F.lit(True)
    reports = Packing.of(plan.collection, table.name).columns(frame, number) if table.reads else {}
    if table.slots == 1 or not table.reads:
        if tests:
            frame = frame.where(spark_sql(passes(tests)))
        return frame.select(*key, *(column.alias(name) for name, column in (reports | public).items()))
    # Public columns belong to the user; those of her first slot count.
    public["kept"] = F.expr(spark_sql(passes(tests)))
    entry = F.struct("slot", *(column.alias(name) for name, column in (reports | public).items()))
    gathered = frame.groupBy(*key).agg(F.array_sort(F.collect_list(entry)).alias("entries"))
    gathered = gathered.where("entries[0].kept")
    return gathered.select(
        *key,
        *(F.col(f"entries.{name}").alias(name) for name in reports),
        *(F.expr(f"entries[0].{name}").alias(name) for name in public if name != "kept"),
    )


def _filled_up(columns: list[str], plan: Plan, summing: Summing) -> list[Any]:
    """All columns of joined users, with what counts for those who have no row in a table in the place of NULL."""
    from pyspark.sql import functions as F  # noqa: N812

    filled: dict[str, Any] = {}
    for number, table in enumerate(summing.tables):
        if table.name not in plan.question.optional:
            continue
        nothing = F.lit(0).cast("long")
        nothing = F.array_repeat(nothing, table.slots) if table.slots > 1 and table.reads else nothing
        filled |= dict.fromkeys((f"head{number}", f"tail{number}"), nothing)
        factors = _factors(plan, table.name)
        names = [*plan.collection[table.name].public_columns]
        names += [f"{each.alias}.{name}" for each in plan.question.lookups for name in _read_of(factors, each.alias)]
        row = pa.table({**{name: pa.nulls(1) for name in names}, PARTNER: pa.array([False])})
        values = evaluate(row, [factor_tree(factor) for _, factor in factors])
        filled |= {f"f{factor}": F.lit(float(value[0])) for (factor, _), value in zip(factors, values, strict=True)}
        filled[f"{HERE}{number}"] = F.lit(False)
    return [F.coalesce(F.col(name), filled[name]).alias(name) if name in filled else F.col(name) for name in columns]


def _read_of(factors: list[tuple[int, Any]], alias: str) -> set[str]:
    """The columns of a dimension that factors read."""
    trees = (factor_tree(factor) for _, factor in factors)
    names = (str(part.name) for tree in trees for part in tree.find_all(exp.Column))
    return {name.removeprefix(f"{alias}.") for name in names if name.startswith(f"{alias}.")}


def _factors(plan: Plan, table: str) -> list[tuple[int, Any]]:
    return [(number, factor) for number, (name, factor) in enumerate(plan.public) if name == table]


def _groups(plan: Plan, table: str) -> list[tuple[int, Any]]:
    return [(number, group) for number, group in enumerate(public_groups(plan.question)) if group.table == table]


def _looked_up(frame: Any, lookup: Any, dimensions: Mapping[str, DimensionTable]) -> Any:
    """Add a dimension's columns to a frame; NULLs if it has no row for an attribute's value."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = dimensions[lookup.dimension].frame
    renamed = rows.rename_columns([f"{lookup.alias}.{name}" for name in rows.column_names])
    other = as_frame(frame.sparkSession, renamed)
    key = F.col(f"`{lookup.alias}.{lookup.key}`")
    return frame.join(F.broadcast(other), F.col(f"`{lookup.attribute}`") == key, "left")


def _joined(frames: list[Any], key: list[str], *, arranged: bool, missing: Sequence[int] = ()) -> Any:
    """Users who are in all tables that are not `missing`, or in any if all are.

    The number 7 and the text "7" are the same id, as in the local engine.

    With rounds, users in a round are joined, and all rounds of a user stay together: they are `arranged` so already if
    there is one table, whose frame was kept so.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types as T  # noqa: N812

    texts = [isinstance(frame.schema["uid"].dataType, T.StringType) for frame in frames]
    if any(texts) and not all(texts):
        frames = [frame.withColumn("uid", F.col("uid").cast("string")) for frame in frames]
    needed = [frame for number, frame in enumerate(frames) if number not in missing]
    joined = reduce(lambda left, right: left.join(right, key), needed) if needed else frames[missing[0]]
    for number in missing if needed else missing[1:]:
        joined = joined.join(frames[number], key, "left" if needed else "full")
    rest = [name for name in joined.columns if name not in key]
    if len(key) > 1:
        return (joined if arranged else joined.repartition("uid").sortWithinPartitions(*key)).select("uid", *rest)
    return joined.select(*rest) if rest else joined.select(F.lit(True).alias("here"))


def _adding(
    summing: Summing, listed: Mapping[str, pa.Array], packings: list[Packing], *, by_person: bool
) -> Callable[[Batches], Floats | None]:
    """For a task: the sums over its users; `by_person`, over all of her rounds."""
    values = list(listed.values())
    nothing = (np.zeros(0, dtype=np.uint32),) * 3

    def add(batches: Batches) -> Floats | None:
        totals, seen = summing.empty(), 0
        for batch in _whole_persons(batches) if by_person else batches:
            users = batch.num_rows
            persons = _numbers(batch.column("uid")) if by_person else None
            seen += users
            reports = [
                packing.reports(batch, number) if table.reads else nothing
                for number, (table, packing) in enumerate(zip(summing.tables, packings, strict=True))
            ]
            factors = {
                number: np.asarray(batch.column(f"f{number}")).astype(np.float64) for number in range(summing.public)
            }
            absent = {
                number: ~np.asarray(batch.column(f"{HERE}{number}")).astype(bool)
                for number in range(len(packings))
                if f"{HERE}{number}" in batch.schema.names
            }
            group = np.zeros(users, dtype=np.int64)
            for number, known in enumerate(values):
                code = codes(pa.chunked_array([batch.column(f"g{number}").cast(known.type)]), known)
                group = np.where((group < 0) | (code < 0), -1, group * len(known) + code)
            summing.add(totals, reports, factors, group, 0, users, persons, absent)
        return _packed_totals(totals) if seen else None

    return add


def _numbers(uid: pa.Array) -> Integers:
    """A number for each person, ascending, in a column sorted by person."""
    first: Integers = np.zeros(len(uid), dtype=np.int64)
    first[starts_of(uid)] = 1
    return np.cumsum(first)


def _whole_persons(batches: Batches) -> Batches:
    """Sorted rows in batches that hold all rounds of each person."""
    tables = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
    for persons in whole_users(tables):
        yield persons.combine_chunks().to_batches()[0]


def _packed_totals(totals: Totals) -> Floats:
    return np.concatenate([part.astype(np.float64).ravel() for part in _parts(totals)])


def _parts(totals: Totals) -> tuple[NDArray[Any], ...]:
    return totals.users, totals.sums, totals.crosses, totals.by_stratum, totals.by_round, totals.rows


def _length(summing: Summing) -> int:
    return sum(part.size for part in _parts(summing.empty()))


def _unpacked(summing: Summing, flat: Floats) -> Totals:
    totals = summing.empty()
    first = 0
    for part in _parts(totals):
        values = flat[first : first + part.size].reshape(part.shape)
        part[...] = np.rint(values) if part.dtype == np.int64 else values
        first += part.size
    return totals
