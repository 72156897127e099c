"""From frames and files to reports: read in the order of user ids, randomise batch by batch, write.

Reports leave in the order of user ids and in groups of a constant size, so that neither tells anything.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deniable.arrays import Integers
from deniable.disk_faults import writing
from deniable.engines.collecting.sorted_rows import PRESENT, UNREADABLE, RowReader, Tally
from deniable.engines.collecting.user_batches import few_users, starts_of
from deniable.engines.duckdb.spill_folders import spill_place
from deniable.errors import BadInput, InvalidData, InvalidParameter
from deniable.files import Lock
from deniable.notebook import html_table
from deniable.randomness import Source, release_source
from deniable.simulation import NOTE, one_kind
from deniable.tables.bulk import bulk_client as bulk
from deniable.tables.bulk.column_encoding import REASONS, encode
from deniable.tables.designs.views import Design
from deniable.tables.reports.report_table import Reports, Summary, check_texts, report_schema
from deniable.tables.schema.attributes import WRONG_TYPE, Table
from deniable.tables.specification.collection import Collection
from deniable.tables.specification.runs import largest_epsilon, run_text
from deniable.tables.specification.specification_files import load_run
from deniable.wording import counted

BATCH_REPORTS = 1 << 18
GROUP_REPORTS = 1 << 18
SPECIFICATION_FILE = "collection.json"
SECOND_ROW = "a second row of a user"
Advance = Callable[[int], None]
_Made = tuple[pa.Schema, Iterator[pa.RecordBatch], Callable[[], Summary]]
"""The reports of a table, and the summary once all were taken."""


@dataclass(frozen=True, slots=True, repr=False)
class Collected:
    """What a run has read and sent.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "reports")
    >>> written = shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]}, out=folder)
    >>> dn.connect(written)
    Database(users: 3 reports)
    """

    collection: Collection
    summaries: Mapping[str, Summary]
    path: Path | str
    simulation: bool = False
    """Whether they protect nobody."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {counted(one.reports, 'report')}" for name, one in self.summaries.items())
        return f"Collected({counts}; in {str(self.path)!r}{'; simulation' * self.simulation})"

    def _repr_html_(self) -> str:
        """How many reports there are, for notebooks: not what became of the rows."""
        rows = ((name, f"{one.reports:,}") for name, one in self.summaries.items())
        notes = [NOTE] * self.simulation
        return html_table(("table", "reports"), rows, title=f"Reports in {str(self.path)!r}", notes=notes)


def perturb(
    collection: Collection,
    frames: Mapping[str, Any],
    *,
    key: str = "uid",
    out: str | Path | None = None,
    everyone: Any = None,
    source: Source | None = None,
    simulation: bool = False,
    advance: Advance = lambda _: None,
    spill: str | Path | None = None,
) -> Reports | Collected:
    """The reports of all users in the given tables. See `Collection.perturb`."""
    source = release_source(source, simulation=simulation, epsilon=largest_epsilon(collection))
    if not frames:
        raise InvalidParameter("tables", "are missing", "Pass the rows of one table at least.")
    for name in frames:
        collection[name]
    if out is not None:
        with _writing(Path(out)):
            Path(out).parent.mkdir(parents=True, exist_ok=True)  # rows may have to be spilled there
    try:
        place = spill_place(spill, out)
        with RowReader(collection, frames, key, everyone, repeatable=source.simulation, spill=place) as reader:
            if out is None:
                return _into_memory(collection, reader, source, advance, simulation=simulation)

            def made(name: str) -> _Made:
                stream = source.fresh(name)
                schema, batches, tally = _randomised(collection, reader, name, stream, advance, simulation=simulation)
                return schema, batches, lambda: tally.summary(collection, name)

            with _writing(Path(out)):
                return _into_files(collection, reader.names, made, Path(out), simulation=simulation)
    except (duckdb.Error, pa.ArrowException):
        # Their texts quote data.
        raise InvalidData(
            "a table cannot be read to its end, or holds values of several types in one column", "Clean it first."
        ) from None


def _into_memory(
    collection: Collection, reader: RowReader, source: Source, advance: Advance, *, simulation: bool
) -> Reports:
    tables, summaries = {}, {}
    for name in reader.names:
        schema, batches, tally = _randomised(
            collection, reader, name, source.fresh(name), advance, simulation=simulation
        )
        tables[name] = pa.Table.from_batches(list(_even(batches, schema)), schema)
        summaries[name] = tally.summary(collection, name)
    return Reports(collection, tables, summaries)


def save(reports: Reports, out: str | Path) -> Collected:
    """Write reports that are in memory to a folder. See `Reports.save`."""

    def made(name: str) -> _Made:
        return reports[name].schema, iter(reports[name].to_batches()), lambda: reports.summaries[name]

    names = [name for name, table in reports.tables.items() if table.num_rows]
    with _writing(Path(out)):
        written = _into_files(reports.collection, names, made, Path(out), simulation=reports.simulation)
    return replace(written, summaries=reports.summaries)


def _writing(out: Path) -> AbstractContextManager[None]:
    return writing(f"the folder {out.name!r}", "Nothing was written, and no report left")


def _into_files(
    collection: Collection, names: list[str], made: Callable[[str], _Made], out: Path, *, simulation: bool
) -> Collected:
    """Write each table's dataset next to its place, and move it there when it is whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with Lock(out, "the folder") as lock:
        check_folder(collection, out, names, simulation=simulation)
        with _partial_folder(lock.path) as partial:
            summaries = _write_tables(names, made, partial)
            (partial / SPECIFICATION_FILE).write_text(run_text(collection, simulation=simulation), encoding="utf-8")
            if out.exists():
                for name in names:
                    (partial / name).rename(out / name)
            else:
                partial.rename(lock.path)
    return Collected(collection, summaries, out, simulation)


@contextmanager
def _partial_folder(out: Path) -> Iterator[Path]:
    """An empty folder next to `out`, which is gone afterwards.

    Only who holds the lock of `out` comes here, so one that is there already is a killed run's.
    """
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_tables(names: list[str], made: Callable[[str], _Made], folder: Path) -> dict[str, Summary]:
    summaries = {}
    for name in names:
        schema, batches, summary = made(name)
        (folder / name).mkdir()
        with pq.ParquetWriter(folder / name / "part-0.parquet", schema) as writer:
            for batch in _even(batches, schema):
                writer.write_batch(batch)
        summaries[name] = summary()
    return summaries


def _even(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same reports in batches of a constant size.

    A batch of input ends after a certain number of rows. If its reports made a row group of their own, the sizes of
    groups would tell how many rows users have.
    """
    held = schema.empty_table()
    for batch in batches:
        held = pa.concat_tables([held, pa.Table.from_batches([batch], schema)])
        while held.num_rows >= GROUP_REPORTS:
            yield held.slice(0, GROUP_REPORTS).combine_chunks().to_batches()[0]
            held = held.slice(GROUP_REPORTS)
    if held.num_rows:
        yield held.combine_chunks().to_batches()[0]


def check_folder(collection: Collection, out: Path, names: list[str], *, simulation: bool) -> None:
    """Nothing is overwritten; a table may be added to a folder of the same specification."""
    if not out.exists():
        return
    specification = out / SPECIFICATION_FILE
    held = [name for name in names if (out / name).exists()]
    check_destination(
        out.name, collection, load_run(specification) if specification.exists() else None, held, simulation
    )


def check_destination(
    folder: str, collection: Collection, run: tuple[Collection, bool] | None, held: list[str], simulation: bool
) -> None:
    """Refuse a folder of another specification or kind (`run` is what it holds), and one that has a table's reports."""
    if run is None or run[0] != collection:
        raise BadInput(
            f"{folder!r} exists and holds something else. Nothing was read or written. Choose another folder."
        )
    one_kind({folder: run[1], "what would be added": simulation})
    for name in held:
        raise BadInput(
            f"{folder!r} holds reports of table {name!r} already; new ones would spend ε again. "
            "Nothing was read or written. Keep the old ones, or choose another folder."
        )


def _randomised(
    collection: Collection, reader: RowReader, name: str, source: Source, advance: Advance, *, simulation: bool
) -> tuple[pa.Schema, Iterator[pa.RecordBatch], Tally]:
    """The schema of a table's reports, the reports batch by batch, and counts that are right once all were read."""
    table, design = collection[name], collection.design_of(name)
    tally = Tally()
    stream, uid_type, public = reader.stream(name, tally)
    schema = report_schema(collection, name, uid_type, public, simulation=simulation)
    slots = collection.reports_per_user(name)

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in few_users(stream, max(1, BATCH_REPORTS // slots)):
            arrays = reports_of(table, design, rows, source, tally)
            advance(rows.num_rows)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return schema, batches(), tally


def reports_of(table: Table, design: Design, rows: pa.Table, source: Source, tally: Tally) -> list[pa.Array]:
    """The reports of whole users, as columns: uid, slot, view, seed, y and the public ones."""
    check_texts((rows["uid"], *(rows[column] for column in table.public)), f"table {table.name!r}")
    slots = table.tau * len(design.parts)
    users, first, codes, weights = _prepared(table, rows, source, tally)
    columns = bulk.randomise(table, design, codes, weights, source)
    taken = pa.array(np.repeat(first, slots))
    tally.users += len(users)
    tally.reports += len(users) * slots
    return [
        users.take(pa.array(np.repeat(np.arange(len(users)), slots))),
        pa.array(np.tile(np.arange(slots, dtype=np.uint16), len(users))),
        *(pa.array(column) for column in (columns.view, columns.seed, columns.y)),
        *(rows[column].combine_chunks().take(taken) for column in table.public),
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
        if name + UNREADABLE in rows.column_names:
            unreadable = np.asarray(pc.fill_null(rows[name + UNREADABLE], False))
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
        # A row that cannot be reported is replaced by a random one: a missing report would tell that it was odd.
        chosen = []
        for column, domain in zip(codes, table.domains, strict=True):
            dummies = source.below(domain.size, starts.size)
            chosen.append(np.where(good[starts], column[starts], dummies))
        return uid.take(pa.array(starts)), starts, chosen, np.ones(starts.size, dtype=np.int64)
    kept = np.cumsum(good) - good  # how many good rows come before each
    good_counts = np.add.reduceat(good.astype(np.int64), starts)
    chosen, weights = bulk.truncate(table, kept[starts], good_counts, [column[good] for column in codes], source)
    return uid.take(pa.array(starts)), starts, chosen, weights
