"""Folders of reports: a specification, and for each table the Parquet files that were made under it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deniable.engines.duckdb.regular_files import is_folder, why_not_a_file
from deniable.engines.reports.checked_files import known
from deniable.engines.reports.report_files import ReportFiles, check_sizes, report_files
from deniable.errors import BadInput
from deniable.simulation import one_kind
from deniable.tables.specification.runs import SPECIFICATION_FILE, is_simulation, load_run
from deniable.tables.specification.specification import Specification
from deniable.wording import shown


def read_folders(folders: Sequence[Path]) -> tuple[Specification, dict[str, ReportFiles], bool]:
    """Several folders of one specification as one: the files of each table, in the order of the folders."""
    (collection, files, simulation), *others = [read_folder(folder) for folder in folders]
    for folder, (other, _, kind) in zip(folders[1:], others, strict=True):
        if other.sha256 != collection.sha256 or kind != simulation:
            what = "specification" if other.sha256 != collection.sha256 else "kind: a simulation, or a release"
            problem = f"{shown(folders[0].name)} and {shown(folder.name)} are of another {what}. Nothing was computed."
            raise BadInput(f"{problem} Open them apart, or as groups of users: connect([first, second]).")
    for _, more, _ in others:
        for table, listed in more.items():
            files[table] = files[table].joined(listed) if table in files else listed
    ordered = {table.name: files[table.name] for table in collection.tables if table.name in files}
    return collection, ordered, simulation


def read_folder(folder: Path) -> tuple[Specification, dict[str, ReportFiles], bool]:
    """A folder's specification, the files of each table, and whether it is a simulation. No report is read yet."""
    name = shown(folder.name)
    if not is_folder(folder):
        raise BadInput(f"there is no folder {name}. Nothing was read. Pass a folder of reports.")
    if why_not_a_file(folder / SPECIFICATION_FILE):
        raise BadInput(f"{name} holds no {SPECIFICATION_FILE}. Nothing was read. Pass a folder of reports.")
    collection, simulation = load_run(folder / SPECIFICATION_FILE)
    tables = [table.name for table in collection.tables if is_folder(folder / table.name)]
    files = {table: known(collection, report_files(collection, table, folder / table)) for table in tables}
    kinds = {table: is_simulation(collection, listed.schema.metadata) for table, listed in files.items()}
    simulation = one_kind({SPECIFICATION_FILE: simulation, **kinds})
    check_sizes([listed for listed in files.values() if listed.schema.names and not listed.checked])
    return collection, files, simulation
