"""Reports on disk → reports that can be believed, without holding them all in memory."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deniable.engines.duckdb_session import open_duckdb
from deniable.engines.report_folders import file_schema
from deniable.engines.stores import FileStore, batches
from deniable.tables.collection import Collection
from deniable.tables.reports import MISSING_ENTRY, validate


def validated_files(
    collection: Collection, name: str, paths: tuple[Path, ...], memory_limit: int
) -> tuple[FileStore, Counter[str]]:
    """The reports of a table, and how many were refused, by reason.

    Files that are in order and without fault are used as they are; others are sorted and cleaned into a temporary copy,
    which lives as long as the store.
    """
    slots, schema = collection.reports_per_user(name), file_schema(paths[0])
    rows = 0
    with suppress(_Fault):
        for chunk in _whole_users(batches(paths, schema.names, memory_limit), check_order=True):
            good, refused = validate(collection, name, chunk.replace_schema_metadata(schema.metadata))
            if refused or not _in_slot_order(good, slots):
                raise _Fault
            rows += good.num_rows
        return FileStore(paths, slots, rows, schema, memory_limit), Counter()
    return _cleaned(collection, name, paths, schema, memory_limit)


class _Fault(Exception):
    """The files are not sorted, or hold reports that have to be refused."""


def _in_slot_order(reports: pa.Table, slots: int) -> bool:
    slot = reports["slot"].to_numpy().astype(np.int64)
    return bool((slot == np.arange(slot.size) % slots).all())


class _TemporaryFolder:
    """A folder that is removed with the last reference to it, or when the program ends, without a warning."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="deniable-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _cleaned(
    collection: Collection, name: str, paths: tuple[Path, ...], schema: pa.Schema, memory_limit: int
) -> tuple[FileStore, Counter[str]]:
    folder = _TemporaryFolder()
    sorted_path, clean_path = folder.path / "sorted.parquet", folder.path / "clean.parquet"
    with open_duckdb(memory_limit=memory_limit, folder=folder.path) as made:
        ordered = made.read_parquet([str(path) for path in paths]).order("uid, slot")
        ordered.write_parquet(str(sorted_path))
    slots, rows, total = collection.reports_per_user(name), 0, Counter[str]()
    missing = 0
    with pq.ParquetWriter(clean_path, schema) as writer:
        for batch in _whole_users(batches([sorted_path], schema.names, memory_limit)):
            known = batch.filter(pc.is_valid(batch["uid"]))
            missing += batch.num_rows - known.num_rows
            good, refused = validate(collection, name, known.replace_schema_metadata(schema.metadata))
            total.update(refused)
            rows += good.num_rows
            if good.num_rows:
                writer.write_table(good.cast(schema))
    sorted_path.unlink()
    total[MISSING_ENTRY] += missing
    return FileStore((clean_path,), slots, rows, schema, memory_limit, folder), +total


def _whole_users(found: Iterable[pa.Table], *, check_order: bool = False) -> Iterator[pa.Table]:
    """Batches cut between users; rows without a user, which are sorted last, come as they are.

    With `check_order`, users who do not ascend and rows without a user are a fault.
    """
    rest: pa.Table | None = None
    for batch in found:
        table = batch if rest is None else pa.concat_tables([rest, batch])
        uid = table["uid"].combine_chunks()
        if check_order and (uid.null_count or (len(uid) > 1 and not pc.all(pc.less_equal(uid[:-1], uid[1:])).as_py())):
            raise _Fault
        valid = len(uid) - uid.null_count
        last = int(pc.index(uid, uid[valid - 1]).as_py()) if valid else table.num_rows
        if last:
            yield table.slice(0, last)
        rest = table.slice(last)
    if rest is not None and rest.num_rows:
        yield rest
