"""Folders of reports, written whole or not at all: one Parquet dataset per table next to `collection.json`.

Reports leave in groups of a constant size, so that the sizes say nothing about the rows.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.disk_faults import writing
from deniable.engines.collecting.row_counts import Summary
from deniable.errors import BadInput
from deniable.files import Lock
from deniable.simulation import one_kind
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.specification.runs import SPECIFICATION_FILE, load_run, run_text
from deniable.tables.specification.specification import Specification

GROUP_REPORTS = 1 << 18
ROUND_FOLDER = re.compile(r"round-\d{6}")


class TableReports(NamedTuple):
    """The reports of a table, batch by batch, and the summary once all were taken."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    summary: Callable[[], Summary]


def round_name(number: int) -> str:
    """What the file of a round or, from Spark, its folder is called."""
    return f"round-{number:06}"


def writing_folder(out: Path) -> AbstractContextManager[None]:
    """Disk errors while a folder of reports is written, as failures that say what to do."""
    return writing(f"the folder {out.name!r}", "Nothing was written, and no report left")


def write_folder(
    collection: Specification,
    names: Sequence[str],
    reports_of: Callable[[str], TableReports],
    out: Path,
    *,
    simulation: bool,
    number: int | None = None,
    key: str = USER_COLUMN,
) -> dict[str, Summary]:
    """Write the dataset of each table next to the folder, and move it there when it is whole.

    A round, `number`, is one file per table, which is added to those of other rounds.
    """
    file = "part-0.parquet" if number is None else f"{round_name(number)}.parquet"
    with writing_folder(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with Lock(out, "the folder") as lock:
            check_folder(collection, out, names, simulation=simulation, file=None if number is None else file)
            with _partial_folder(lock.path) as partial:
                summaries = _write_tables(names, reports_of, partial, file)
                text = run_text(collection, simulation=simulation, key=key)
                (partial / SPECIFICATION_FILE).write_text(text, encoding="utf-8")
                if out.exists():
                    for name in names:
                        _move(partial / name, out / name, file)
                else:
                    partial.rename(lock.path)
    return summaries


def _move(whole: Path, target: Path, file: str) -> None:
    """Move a table's folder or, where there is one already, the file in it."""
    if target.exists():
        (whole / file).rename(target / file)
    else:
        whole.rename(target)


@contextmanager
def _partial_folder(out: Path) -> Iterator[Path]:
    """An empty folder next to `out`, which is gone afterwards.

    Only the holder of the lock of `out` comes here, so an existing one is what a killed run left behind.
    """
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_tables(
    names: Sequence[str], reports_of: Callable[[str], TableReports], folder: Path, file: str
) -> dict[str, Summary]:
    summaries = {}
    for name in names:
        reports = reports_of(name)
        (folder / name).mkdir()
        with pq.ParquetWriter(folder / name / file, reports.schema) as writer:
            for batch in even_batches(reports.batches, reports.schema):
                writer.write_batch(batch)
        summaries[name] = reports.summary()
    return summaries


def even_batches(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same reports in batches of a constant size.

    A batch of input ends after a certain number of rows. If its reports made a row group of their own, the sizes of
    groups would reveal how many rows users have.
    """
    held = schema.empty_table()
    for batch in batches:
        held = pa.concat_tables([held, pa.Table.from_batches([batch], schema)])
        while held.num_rows >= GROUP_REPORTS:
            yield held.slice(0, GROUP_REPORTS).combine_chunks().to_batches()[0]
            held = held.slice(GROUP_REPORTS)
    if held.num_rows:
        yield held.combine_chunks().to_batches()[0]


def check_folder(
    collection: Specification, out: Path, names: Sequence[str], *, simulation: bool, file: str | None = None
) -> None:
    """Nothing is overwritten; a table, or a round in a `file`, may be added to a folder of the same specification."""
    if not out.exists():
        return
    specification = out / SPECIFICATION_FILE
    held = [name for name in names if _is_held(out / name, file)]
    if file is not None:
        for name in names:
            others = (out / name).iterdir() if (out / name).is_dir() else ()
            check_writer(out.name, name, [path.name for path in others if path.suffix != ".parquet"])
    check_destination(
        out.name, collection, load_run(specification) if specification.exists() else None, held, simulation
    )


def _is_held(folder: Path, file: str | None) -> bool:
    """Whether a table has reports, or a round that this file or, from Spark, a folder of its name would hold."""
    if file is None:
        return folder.exists()
    return (folder / file).exists() or (folder / file.removesuffix(".parquet")).exists()


def check_writer(folder: str, name: str, others: Sequence[str]) -> None:
    """Refuse to add a round to those that another engine wrote: their columns have other types."""
    if any(ROUND_FOLDER.match(other) for other in others):
        raise BadInput(
            f"{folder!r} holds rounds of table {name!r} that another engine collected. Nothing was read or written. "
            "Collect all rounds with one engine, or choose another folder."
        )


def check_destination(
    folder: str, collection: Specification, run: tuple[Specification, bool] | None, held: list[str], simulation: bool
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
