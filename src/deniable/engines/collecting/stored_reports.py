"""What the collector has stored → tables of reports, in memory or sealed into Parquet.

Sealed files are sorted by user id and cut into groups of a constant size: nothing of the order or the time of arrival
is in them. They are written next to the store, each whole or not at all, and can be written again at any time: the
store stays the truth.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.arrays import Integers
from deniable.cancellation import checkpoint
from deniable.disk_faults import writing
from deniable.engines.collecting.folder_writing import even_batches
from deniable.engines.collecting.sent_columns import wire_reports
from deniable.engines.collecting.wire_reports import public_column, value_family, wire_table
from deniable.engines.duckdb.regular_files import is_folder, why_not_a_file
from deniable.errors import BadInput
from deniable.files import settle
from deniable.stores.collector.database_file import DATABASE_FILE, postgresql, read_database
from deniable.stores.collector.sqlite_store import STORE_FILE, SqliteStore
from deniable.stores.collector.upload import CollectorStore, StoredRows
from deniable.tables.schema.pseudonyms import PSEUDONYM
from deniable.tables.specification.runs import SPECIFICATION_FILE, load_run, run_text
from deniable.tables.specification.specification import Specification


@dataclass(frozen=True, slots=True)
class CollectorFolder:
    """A folder that `deniable serve` fills: a specification, whether it is a simulation, and a store."""

    path: Path
    collection: Specification
    simulation: bool

    @property
    def database(self) -> str | None:
        """The address of the PostgreSQL database that holds the reports; None if a file in the folder does."""
        return read_database(self.path)

    def open_store(self) -> CollectorStore:
        """Its store; any number of processes may open it."""
        address = self.database
        if address is None:
            return SqliteStore(self.path / STORE_FILE, self.collection.sha256)
        store: CollectorStore = postgresql().PostgresqlStore(address, self.collection.sha256)
        return store


def is_collector_folder(folder: Path) -> bool:
    """Whether a folder has a store."""
    return is_folder(folder) and any(not why_not_a_file(folder / name) for name in (STORE_FILE, DATABASE_FILE))


def collector_folder(folder: Path) -> CollectorFolder:
    """A folder with its specification."""
    return CollectorFolder(folder, *load_run(folder / SPECIFICATION_FILE))


def stored_batches(
    collection: Specification, store: CollectorStore, name: str, round_: int, *, simulation: bool
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The reports of a table and round in the order of user ids. Ids are texts, whatever devices send.

    Of public values with several types, the most frequent type counts, and reports with another are left out, as in
    `gather`.
    """
    columns = collection[name].public
    # All rounds of a table have columns of the same types.
    rounds = [number for table, number in sorted(store.summary().counts) if table == name] if columns else []
    usual = _usual_families(columns, chain.from_iterable(store.read(name, number) for number in rounds))
    empty = _table(collection, name, StoredRows.of((), (), ()), usual, simulation=simulation)

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in store.read(name, round_):
            checkpoint()
            table = _table(collection, name, rows, usual, simulation=simulation)
            yield from table.cast(empty.schema).to_batches()

    return empty.schema, batches()


def _usual_families(columns: tuple[str, ...], batches: Iterable[StoredRows]) -> dict[str, tuple[str, pa.DataType]]:
    """The most frequent type of each public column, and the type of its column."""
    families: dict[str, Counter[str]] = defaultdict(Counter)
    fractions: set[str] = set()
    for rows in batches:
        distinct, which = _distinct(rows.publics)
        for values, times in zip(distinct, np.bincount(which, minlength=len(distinct)).tolist(), strict=True):
            for column, value in values.items():
                if value is not None:
                    families[column][value_family(value)] += times
                    if isinstance(value, float):
                        fractions.add(column)
    kinds = {"str": pa.string(), "bool": pa.bool_(), "": pa.string()}
    usual = {}
    for column in columns:
        family = min(families[column].items(), key=lambda item: (-item[1], item[0]), default=("", 0))[0]
        number = pa.float64() if column in fractions else pa.int64()
        usual[column] = (family, kinds.get(family, number))
    return usual


def _distinct(publics: pa.Array) -> tuple[list[dict[str, Any]], Integers]:
    """The public attributes that occur, each parsed once, and which of them every row has."""
    encoded = publics.dictionary_encode(null_encoding="encode")
    values = [json.loads(text or "{}") for text in encoded.dictionary.to_pylist()]
    return values, np.asarray(encoded.indices).astype(np.int64)


def _table(
    collection: Specification,
    name: str,
    rows: StoredRows,
    usual: dict[str, tuple[str, pa.DataType]],
    *,
    simulation: bool,
) -> pa.Table:
    uids, reports, publics = rows
    public: dict[str, pa.Array] = {}
    if usual:
        distinct, which = _distinct(publics)
        fits = np.array([_fits(values, usual) for values in distinct], dtype=np.bool_)
        if not fits.all():
            kept = np.flatnonzero(fits[which])
            uids, reports, which = uids.take(pa.array(kept)), reports.take(pa.array(kept)), which[kept]
            distinct = [values if fit else {} for values, fit in zip(distinct, fits.tolist(), strict=True)]
        for column, (_, kind) in usual.items():
            held = public_column([values.get(column) for values in distinct])
            public[column] = held.cast(kind).take(pa.array(which))
    return wire_table(collection, name, uids, wire_reports(reports), public, simulation=simulation)


def _fits(values: dict[str, Any], usual: dict[str, tuple[str, pa.DataType]]) -> bool:
    """Whether public values are of the usual types, as they were counted; later ones may have arrived since."""
    for column, (family, kind) in usual.items():
        value = values.get(column)
        odd = value_family(value) != family or (isinstance(value, float) and kind != pa.float64())
        if value is not None and odd:
            return False
    return True


def reports_table(collection: Specification, name: str, rows: StoredRows) -> pa.Table:
    """Stored rows of a table without public columns as a table of reports."""
    return _table(collection, name, rows, {}, simulation=False)


def stored_tables(
    folder: CollectorFolder,
    store: CollectorStore,
    kept: Mapping[tuple[str, int], pa.Table] | None = None,
) -> dict[tuple[str, int], pa.Table]:
    """All reports that are committed, in memory, by table and round.

    Of those that were `kept` from an earlier call, only what has grown is read again: nothing is ever removed, so the
    same number of reports is the same reports. Types of public columns depend on all rounds of a table.
    """
    counts, kept = store.summary().counts, kept or {}
    grown = {part for part, rows in counts.items() if part not in kept or kept[part].num_rows != rows}
    grown_tables = {name for name, _ in grown if folder.collection[name].public}
    tables = {}
    for name, round_ in sorted(counts):
        part = name, round_
        if part not in grown and name not in grown_tables:
            tables[part] = kept[part]
            continue
        schema, batches = stored_batches(folder.collection, store, name, round_, simulation=folder.simulation)
        tables[part] = pa.Table.from_batches(list(batches), schema)
    return tables


def joined_rounds(tables: Mapping[tuple[str, int], pa.Table]) -> dict[str, pa.Table]:
    """The rounds of each table together."""
    rounds: dict[str, list[pa.Table]] = defaultdict(list)
    for (name, _), table in sorted(tables.items(), key=lambda item: item[0]):
        rounds[name].append(table)
    return {name: pa.concat_tables(listed) for name, listed in rounds.items()}


def seal(folder: CollectorFolder, store: CollectorStore, out: Path | None = None) -> dict[tuple[str, int], int]:
    """Write what is committed as Parquet, one file per table and round, and say how many reports each has.

    Without `out` the files are written next to the store, where engines that read Parquet find them.
    """
    out = folder.path if out is None else out
    rows = {}
    with writing(f"the folder {out.name!r}", "Reports in the store are untouched"):
        out.mkdir(parents=True, exist_ok=True)
        if not (out / SPECIFICATION_FILE).exists():
            text = run_text(folder.collection, simulation=folder.simulation)
            (out / SPECIFICATION_FILE).write_text(text, encoding="utf-8")
        for name, round_ in _sealable(folder, store):
            rows[name, round_] = _seal_table(folder, store, name, round_, out / name)
    return rows


def _sealable(folder: CollectorFolder, store: CollectorStore) -> list[tuple[str, int]]:
    """Tables and rounds that may be sealed: under pseudonyms only those to which nothing is added any more.

    Two seals with few bundles between them would show which bundles these are.
    """
    if folder.collection.ids == PSEUDONYM and folder.collection.rounds is None:
        store.set_round(0, is_open=False)
    summary = store.summary()
    parts = sorted(summary.counts)
    if folder.collection.ids != PSEUDONYM:
        return parts
    closed = [(name, number) for name, number in parts if not summary.rounds.get(number)]
    if parts and not closed:
        raise BadInput("no round is closed. Nothing was sealed. Close one first: deniable round close FOLDER NUMBER")
    return closed


def check_may_open(folder: CollectorFolder, store: CollectorStore, number: int) -> None:
    """Under pseudonyms, refuse to open a round again: it may be sealed, and what came later would stand out."""
    if folder.collection.ids == PSEUDONYM and store.summary().rounds.get(number) is False:
        raise BadInput(
            "the round was closed, and under pseudonyms it stays closed. Nothing was changed. Open the next one."
        )


def _seal_table(folder: CollectorFolder, store: CollectorStore, name: str, round_: int, out: Path) -> int:
    """Replace the file of a table and round, whole or not at all."""
    out.mkdir(exist_ok=True)
    final, new = out / f"part-{round_}.parquet", out / f".part-{round_}.parquet.new"
    schema, batches = stored_batches(folder.collection, store, name, round_, simulation=folder.simulation)
    rows = 0
    with new.open("wb") as file:
        with pq.ParquetWriter(file, schema) as writer:
            for batch in even_batches(batches, schema):
                writer.write_batch(batch)
                rows += batch.num_rows
        file.flush()
        os.fsync(file.fileno())
    new.replace(final)
    settle(out)
    return rows
