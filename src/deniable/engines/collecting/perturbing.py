"""From frames and files to reports: read in the order of user ids, randomise batch by batch, write.

Reports leave in the order of user ids and in groups of a constant size, so that neither reveals anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.engines.collecting.collected_reports import Collected, Reports
from deniable.engines.collecting.drawn_names import names_secret
from deniable.engines.collecting.folder_writing import TableReports, even_batches, write_folder, writing_folder
from deniable.engines.collecting.inspecting import MAX_REJECTED, Inspection, check_share, inspect
from deniable.engines.collecting.round_asking import Asking
from deniable.engines.collecting.row_counts import Tally
from deniable.engines.collecting.sorted_rows import PRESENT, SECOND_ROW, UNREADABLE_SUFFIX, RowReader
from deniable.engines.collecting.user_batches import few_users, starts_of
from deniable.engines.duckdb.spill_folders import spill_parent
from deniable.errors import InvalidData, InvalidParameter
from deniable.ledger import Ledger
from deniable.randomness import Source, release_source
from deniable.tables.bulk import bulk_client as bulk
from deniable.tables.bulk.column_encoding import REASONS, encode
from deniable.tables.bulk.memoised_bulk import StickySource
from deniable.tables.bulk.word_columns import dummies
from deniable.tables.reports.report_table import check_texts, report_schema
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.placing import WRONG_TYPE
from deniable.tables.specification.runs import charge_run, largest_epsilon
from deniable.tables.specification.specification import Specification

BATCH_REPORTS = 1 << 18
Advance = Callable[[int], None]


def perturb(
    collection: Specification,
    frames: Mapping[str, Any],
    *,
    key: str = "uid",
    out: str | Path | None = None,
    everyone: Any = None,
    source: Source | None = None,
    simulation: bool = False,
    advance: Advance = lambda _: None,
    spill: str | Path | None = None,
    ledger: Ledger | None = None,
    number: int | None = None,
    memory: str | Path | None = None,
    max_rejected: float = MAX_REJECTED,
) -> Reports | Collected:
    """The reports of all users in the given tables, in the round `number`. See `Collection.perturb`."""
    asking = Asking.of(collection, number, memory, simulation=simulation)
    source = release_source(source, simulation=simulation, epsilon=largest_epsilon(collection))
    secret = names_secret(collection, frames, source)
    if not frames:
        raise InvalidParameter("tables", "are missing", "Pass the rows of one table at least.")
    for name in frames:
        collection[name]
    if out is not None:
        with writing_folder(Path(out)):
            Path(out).parent.mkdir(parents=True, exist_ok=True)  # rows may have to be spilled there
    try:
        parent = spill_parent(spill, out)
        with RowReader(
            collection, frames, key, everyone, repeatable=source.simulation, spill=parent, secret=secret
        ) as reader:
            check_share(collection, inspect(collection, reader), max_rejected)  # before anything is drawn or charged

            def randomised(name: str) -> TableReports:
                charge_run(ledger, collection, name, group=asking.group, number=number)
                return _randomised(asking, reader, name, source.fresh(name), advance, simulation=simulation)

            if out is not None:
                summaries = write_folder(
                    collection, reader.names, randomised, Path(out), simulation=simulation, number=number, key=key
                )
                return Collected(collection, summaries, Path(out), simulation)
            return replace(_in_memory(collection, reader.names, randomised), key=key)
    except (duckdb.Error, pa.ArrowException):
        raise _unreadable() from None


def inspect_rows(
    collection: Specification,
    frames: Mapping[str, Any],
    *,
    key: str = "uid",
    everyone: Any = None,
    spill: str | Path | None = None,
) -> dict[str, Inspection]:
    """What would become of the rows of each table. See `Collection.inspect`."""
    for name in frames:
        collection[name]
    try:
        with RowReader(collection, frames, key, everyone, spill=spill_parent(spill, None)) as reader:
            return inspect(collection, reader)
    except (duckdb.Error, pa.ArrowException):
        raise _unreadable() from None


def _unreadable() -> InvalidData:
    """A table that breaks off; texts of other errors quote data."""
    problem = "a table cannot be read to its end, or holds values of several types in one column"
    return InvalidData(problem, "Clean it first.")


def _in_memory(collection: Specification, names: Sequence[str], randomised: Callable[[str], TableReports]) -> Reports:
    tables, summaries = {}, {}
    for name in names:
        reports = randomised(name)
        tables[name] = pa.Table.from_batches(list(even_batches(reports.batches, reports.schema)), reports.schema)
        summaries[name] = reports.summary()
    return Reports(collection, tables, summaries)


def _randomised(
    asking: Asking, reader: RowReader, name: str, source: Source, advance: Advance, *, simulation: bool
) -> TableReports:
    """The reports of a table, drawn batch by batch as they are taken."""
    tally, collection = Tally(), asking.collection
    stream, uid_type, public = reader.stream(name, tally)
    schema = report_schema(collection, name, uid_type, public, simulation=simulation)
    slots = collection.reports_per_user(name)

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in few_users(stream, max(1, BATCH_REPORTS // slots)):
            arrays = reports_of(asking, name, rows, source, tally)
            advance(rows.num_rows)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return TableReports(schema, batches(), lambda: tally.summary(collection, name))


def reports_of(
    asking: Asking, name: str, rows: pa.Table, source: Source, tally: Tally, *, ids: pa.Array | None = None
) -> list[pa.Array]:
    """The reports of whole users, as columns: uid, slot, view, seed, y, the public ones and the round.

    `ids` are those that coins are assigned by, one per user, where the rows have others. Whose turn it is not is left
    out before anything is looked at.
    """
    collection = asking.collection
    table, design = collection[name], collection.design_of(name)
    rows = asking.whose_turn(rows)
    check_texts((rows["uid"], *(rows[column] for column in table.public)), f"table {table.name!r}")
    slots = collection.reports_per_user(name)
    uid = rows["uid"].combine_chunks()
    before = asking.sticky_source(name, uid.take(pa.array(starts_of(uid)))) or source
    users, first, codes, weights = _prepared(table, rows, before, tally)
    repeats = pa.array(np.repeat(np.arange(len(users)), slots))
    slot = np.tile(np.arange(slots), len(users))
    known = users if ids is None else ids
    coins = asking.coins(name, known.take(repeats), slot)
    columns = bulk.randomise(table, design, codes, weights, source, coins, asking.life(name, users))
    taken = pa.array(np.repeat(first, slots))
    tally.users += len(users)
    tally.reports += len(users) * slots
    return [
        users.take(repeats),
        pa.array(slot.astype(np.uint16)),
        *(pa.array(column) for column in (columns.view, columns.seed, columns.y)),
        *(rows[column].combine_chunks().take(taken) for column in table.public),
        *([] if asking.number is None else [pa.array(np.full(slot.size, asking.number, dtype=np.uint32))]),
    ]


def _prepared(
    table: Table, rows: pa.Table, source: Source, tally: Tally
) -> tuple[pa.Array, Integers, list[Integers], Integers]:
    """Users of a batch, the first row of each, the values to be reported, and how many rows these stand for."""
    uid = rows["uid"].combine_chunks()
    starts = starts_of(uid)
    encoded = [encode(domain, rows[name]) for name, domain in zip(table.private, table.domains, strict=True)]
    codes = [values for values, _ in encoded]
    problems = np.zeros(len(uid), dtype=np.uint8)
    for name, (_, more) in zip(table.private, encoded, strict=True):
        if name + UNREADABLE_SUFFIX in rows.column_names:
            unreadable = np.asarray(pc.fill_null(rows[name + UNREADABLE_SUFFIX], False))
            more = np.where(unreadable, np.uint8(REASONS.index(WRONG_TYPE)), more)
        problems = np.where(problems == 0, more, problems)
    present = np.ones(len(uid), dtype=bool) if table.many is None else np.asarray(pc.is_valid(rows[PRESENT]))
    extra = np.zeros(len(uid), dtype=bool)
    if table.many is None:
        extra = np.ones(len(uid), dtype=bool)
        extra[starts] = False
    tally.rows += int(present.sum())
    tally.rejected[SECOND_ROW] += int(extra.sum())
    for number, count in enumerate(np.bincount(problems[present & ~extra], minlength=len(REASONS))):
        if number:
            tally.rejected[REASONS[number]] += int(count)
    good = present & (problems == 0) & ~extra
    if table.many is None:
        # A row that cannot be reported is replaced by a random one: a missing report would reveal that it was odd.
        chosen = []
        for column, domain in zip(codes, table.domains, strict=True):
            chosen.append(np.where(good[starts], column[starts], dummies(domain, starts.size, source)))
        return uid.take(pa.array(starts)), starts, chosen, np.ones(starts.size, dtype=np.int64)
    kept = np.cumsum(good) - good  # how many good rows come before each
    good_counts = np.add.reduceat(good.astype(np.int64), starts)
    rows_of = [column[good] for column in codes]
    if isinstance(source, StickySource):  # the same rows in another order are chosen alike
        order = np.lexsort((*rows_of[::-1], np.repeat(np.arange(starts.size), good_counts)))
        rows_of = [column[order] for column in rows_of]
    chosen, weights = bulk.truncate(table, kept[starts], good_counts, rows_of, source)
    return uid.take(pa.array(starts)), starts, chosen, weights
