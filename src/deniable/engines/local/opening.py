"""Folders and tables of reports → a local engine: reports are validated and kept in memory or in their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.checks import check_integer
from deniable.engines.collecting.collected_reports import Reports
from deniable.engines.collecting.stored_reports import (
    CollectorFolder,
    collector_folder,
    is_collector_folder,
    joined_rounds,
    seal,
    stored_tables,
)
from deniable.engines.duckdb.spill_folders import SpillFolder, spill_parent
from deniable.engines.local.local_engine import LocalEngine
from deniable.engines.reports.checked_files import held, remember
from deniable.engines.reports.file_validation import validated_files
from deniable.engines.reports.first_reports import first_reports
from deniable.engines.reports.report_files import ReportFiles
from deniable.engines.reports.report_folders import read_folder, read_folders
from deniable.engines.reports.report_stores import FileStore, memory_stores, with_text_ids
from deniable.engines.reports.round_files import round_file_stores
from deniable.engines.reports.round_stores import round_stores
from deniable.engines.reports.user_blocks import Store
from deniable.errors import InvalidParameter
from deniable.tables.reports.report_table import OTHER_SPECIFICATION, names_origin, narrowed, nobody, validate
from deniable.tables.specification.runs import SPECIFICATION_FILE, read_key
from deniable.tables.specification.specification import Specification

BYTES_PER_REPORT = 64
MEMORY_LIMIT = 2**30
"""Reports that need less are kept in memory; more are read from their files for every question."""


def open_local(reports: Any, *, memory_limit: int = MEMORY_LIMIT, spill: str | Path | None = None) -> LocalEngine:
    """Open a folder of reports, or `Reports` in memory. See `deniable.connect`."""
    check_integer("memory_limit", memory_limit, 0, 2**63, problem="must be a number of bytes", repair="Use 2**30.")
    folder = spill_parent(spill, None)
    if isinstance(reports, Reports):
        return replace(_from_memory(reports), key=reports.key)
    if isinstance(reports, (str, Path)):
        if is_collector_folder(Path(reports)):
            return _from_store(collector_folder(Path(reports)), memory_limit, folder)
        return _from_folder(Path(reports), memory_limit, folder)
    raise InvalidParameter("reports", "are not a folder of reports", "Pass its path, or what Collection.perturb gave.")


def _from_memory(reports: Reports, *, simulation: bool = False) -> LocalEngine:
    kept: dict[str, pa.Table] = {}
    refused: dict[str, Counter[str]] = {}
    for name, table in reports.tables.items():
        kept[name], refused[name] = validate(reports.collection, name, table)
    return _engine(reports.collection, kept, {}, refused, text_ids=False, simulation=simulation or reports.simulation)


def open_validated(
    collection: Specification, kept: dict[str, pa.Table], refused: dict[str, Counter[str]]
) -> LocalEngine:
    """An engine over reports that `validate` would keep, by table."""
    return _engine(collection, kept, {}, refused, text_ids=False, simulation=False)


def _from_store(folder: CollectorFolder, memory_limit: int, spill: Path | None) -> LocalEngine:
    """What a collector has committed by now, also while it runs."""
    store = folder.open_store()
    try:
        if sum(store.summary().counts.values()) * BYTES_PER_REPORT <= memory_limit:
            tables = joined_rounds(stored_tables(folder, store))
            return _from_memory(Reports(folder.collection, tables, {}), simulation=folder.simulation)
        sealed = SpillFolder(spill)
        seal(folder, store, sealed.path)
        return _from_folder(sealed.path, memory_limit, spill, keeps=sealed)
    finally:
        store.close()


def _from_folder(folder: Path, memory_limit: int, spill: Path | None, keeps: SpillFolder | None = None) -> LocalEngine:
    """The reports in a folder's files. `keeps` is what has to live as long as they do."""
    opened = _from_files(*read_folder(folder), memory_limit, spill, keeps)
    return replace(opened, key=read_key(folder / SPECIFICATION_FILE))


def open_folders(
    folders: Sequence[Path], *, memory_limit: int = MEMORY_LIMIT, spill: str | Path | None = None
) -> LocalEngine:
    """Open several folders of one specification. Of several reports for a user and slot the first counts."""
    opened = _from_files(*read_folders(folders), memory_limit, spill_parent(spill, None), None)
    return replace(opened, key=read_key(folders[0] / SPECIFICATION_FILE))


def _from_files(
    collection: Specification,
    files: Mapping[str, ReportFiles],
    simulation: bool,
    memory_limit: int,
    spill: Path | None,
    keeps: SpillFolder | None,
) -> LocalEngine:
    text_ids = _mixed_ids([listed.schema for listed in files.values() if listed.rows])
    kept: dict[str, pa.Table] = {}
    filed: dict[str, FileStore] = {}
    refused: dict[str, Counter[str]] = {}
    small = collection.rounds is None or all(_fits(listed, memory_limit) for listed in files.values())
    for name, listed in files.items():
        if not names_origin(collection, name, listed.schema):
            kept[name], refused[name] = nobody(collection, name), +Counter({OTHER_SPECIFICATION: listed.rows})
            continue
        listed = held(collection, listed) if _fits(listed, memory_limit) else listed
        tables = _if_small(listed, memory_limit) if small else None  # rounds are in memory, or none is
        if tables is not None and listed.checked:
            kept[name], refused[name] = narrowed(pa.concat_tables(tables)), Counter()
        elif tables is not None:
            reports, later = first_reports(tables)
            kept[name], refused[name] = validate(collection, name, reports)
            refused[name] += later
            if kept[name].num_rows == listed.rows:
                remember(collection, listed)
        else:
            store, refused[name] = validated_files(collection, listed, memory_limit, spill, text_ids=text_ids)
            filed[name] = store if store.keeps is not None else replace(store, keeps=keeps)
    if collection.rounds is not None and filed:
        numbered: dict[str, Store] = dict(round_file_stores(filed, memory_limit, spill))
        empty = {name: collection.reports_per_user(name) for name in kept}  # tables of another specification
        numbered |= round_stores(kept, empty) if kept else {}
        return _ordered(collection, numbered, refused, simulation=simulation)
    return _engine(collection, kept, filed, refused, text_ids=text_ids, simulation=simulation)


def _if_small(files: ReportFiles, memory_limit: int) -> list[pa.Table] | None:
    """The reports of some files; None if they need too much memory."""
    return files.tables_within(memory_limit) if _fits(files, memory_limit) else None


def _fits(files: ReportFiles, memory_limit: int) -> bool:
    return files.rows * BYTES_PER_REPORT <= memory_limit


def _engine(
    collection: Specification,
    kept: dict[str, pa.Table],
    filed: dict[str, FileStore],
    refused: dict[str, Counter[str]],
    *,
    text_ids: bool,
    simulation: bool,
) -> LocalEngine:
    """Stores for tables in memory and tables in files, with user ids of one type."""
    if text_ids or _mixed_ids([table.schema for table in kept.values() if table.num_rows]):
        kept = {name: with_text_ids(table) for name, table in kept.items()}
    slots = {name: collection.reports_per_user(name) for name in kept}
    stores: dict[str, Store]
    if collection.rounds is not None:
        stores = dict(round_stores(kept, slots))
    else:
        stores = {**filed, **memory_stores(kept, slots, tuple(filed.values()))}
    return _ordered(collection, stores, refused, simulation=simulation)


def _ordered(
    collection: Specification, stores: Mapping[str, Store], refused: dict[str, Counter[str]], *, simulation: bool
) -> LocalEngine:
    """The engine, with tables in the order of the specification."""
    ordered = {table.name: stores[table.name] for table in collection.tables if table.name in stores}
    return LocalEngine(collection.asked, ordered, refused, simulation)


def _mixed_ids(schemas: Sequence[pa.Schema]) -> bool:
    """Whether user ids are integers in one table and texts in another."""
    return len({pa.types.is_string(schema.field("uid").type) for schema in schemas if "uid" in schema.names}) > 1
