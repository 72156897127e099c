"""Reports on disk → valid reports, without holding them all in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable import arrow_functions as pc
from deniable.engines.collecting.user_batches import whole_users
from deniable.engines.duckdb.duckdb_session import open_duckdb
from deniable.engines.duckdb.spill_folders import SpillFolder
from deniable.engines.reports.first_reports import ARRIVAL, first_in_order, numbered
from deniable.engines.reports.report_files import ReportFiles
from deniable.engines.reports.report_stores import FileStore, with_text_ids
from deniable.engines.reports.user_blocks import BLOCK_REPORTS
from deniable.errors import DeniableError, Failure
from deniable.tables.reports.report_table import REPEATED, complete_users, possible_rows
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.specification.specification import Specification


def validated_files(
    collection: Specification, files: ReportFiles, memory_limit: int, spill: Path | None, *, text_ids: bool
) -> tuple[FileStore, Counter[str]]:
    """The reports of a table, and how many were refused, by reason.

    Files that are sorted and without faults are used as they are. Others are sorted and cleaned into a temporary copy,
    which lives as long as the store. With `text_ids`, ids become texts first, as in the other tables.
    """
    # Rounds are files of their own, so that users are never in order over all of them.
    if collection.rounds is None and (not text_ids or pa.types.is_string(files.schema.field("uid").type)):
        with suppress(_Fault):
            return _as_they_are(collection, files), Counter()
    return _cleaned(collection, files, memory_limit, spill, text_ids=text_ids)


class _Fault(Exception):
    """The files are not sorted, or contain reports that have to be refused."""


def _as_they_are(collection: Specification, files: ReportFiles) -> FileStore:
    slots = collection.reports_per_user(files.table)
    for users in _bounded_users(_ascending(collection, files), slots, Counter()):
        _, refused = complete_users(collection, files.table, users)
        slot = users["slot"].to_numpy().astype(np.int64)
        if refused or not (slot == np.arange(slot.size) % slots).all():
            raise _Fault
    return FileStore(files, slots)


def _ascending(collection: Specification, files: ReportFiles) -> Iterator[pa.Table]:
    """Batches without fault whose users ascend."""
    last = None
    for batch in files.batches():
        _, refused = possible_rows(collection, files.table, batch)
        uid = batch["uid"].combine_chunks()
        if refused or not pc.all(pc.less_equal(uid.slice(0, max(len(uid) - 1, 0)), uid.slice(1))).as_py():
            raise _Fault
        if len(uid):
            if last is not None and pc.less(uid[0], last).as_py():
                raise _Fault
            last = uid[-1]
        yield batch


def _cleaned(
    collection: Specification, files: ReportFiles, memory_limit: int, spill: Path | None, *, text_ids: bool
) -> tuple[FileStore, Counter[str]]:
    folder = SpillFolder(spill)
    total: Counter[str] = Counter()
    problems: list[DeniableError] = []
    name, most = files.table, collection.reports_per_user(files.table) * len(files.paths)
    order = "uid, slot"
    if collection.rounds is not None:
        most, order = most * collection.rounds.count, f"uid, {ROUND_COLUMN}, slot"

    def possible() -> Iterator[pa.RecordBatch]:
        try:
            for number, batch in files.numbered_batches():
                good, refused = possible_rows(collection, name, batch)
                total.update(refused)
                yield from numbered(with_text_ids(good) if text_ids else good, number).to_batches()
        except DeniableError as error:
            problems.append(error)  # DuckDB would replace it by an error of its own
            raise

    empty, _ = possible_rows(collection, name, files.schema.empty_table())
    schema = (with_text_ids(empty) if text_ids else empty).schema
    sorted_schema = numbered(schema.empty_table(), 0).schema
    rows, path = 0, folder.path / "clean.parquet"
    try:
        with (
            open_duckdb(memory_limit=memory_limit, folder=folder.path) as connection,
            pq.ParquetWriter(path, schema) as writer,
        ):
            connection.register("reports", pa.RecordBatchReader.from_batches(sorted_schema, possible()))
            ordered = connection.table("reports").order(f'{order}, "{ARRIVAL}"').to_arrow_reader(BLOCK_REPORTS)
            for users in _bounded_users((pa.Table.from_batches([batch]) for batch in ordered), most, total):
                first, later = first_in_order(users)
                good, refused = complete_users(collection, name, first)
                total.update(refused + later)
                rows += good.num_rows
                writer.write_table(good.cast(schema))
    except (duckdb.Error, pa.ArrowException, OSError):
        if problems:
            raise problems[0] from None
        problem = f"the reports of table {name!r} could not be sorted: memory or the disk did not suffice"
        raise Failure(f"{problem}. Nothing was computed. Raise memory_limit, or make room for spill files.") from None
    return FileStore(ReportFiles(name, (path,), schema, rows), collection.reports_per_user(name), folder), +total


def _bounded_users(batches: Iterable[pa.Table], most: int, refused: Counter[str]) -> Iterator[pa.Table]:
    """Sorted batches, cut between users. Of a user with more reports than there can be only one too many is kept."""

    def hold(reports: pa.Table) -> pa.Table:
        kept = reports.slice(0, most + 1)
        refused[REPEATED] += reports.num_rows - kept.num_rows
        return kept

    return whole_users(batches, hold=hold)
