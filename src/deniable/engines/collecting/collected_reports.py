"""What a collection has gathered: reports in memory, or in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from deniable.engines.collecting.row_counts import Summary
from deniable.notebook import html_table
from deniable.simulation import NOTE, one_kind
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.specification.runs import is_simulation
from deniable.tables.specification.specification import Specification
from deniable.wording import counted


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of one or more tables, in memory: one Arrow table per service.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> reports = shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})
    >>> reports["users"].column_names
    ['uid', 'slot', 'view', 'seed', 'y']
    """

    collection: Specification
    tables: Mapping[str, pa.Table]
    summaries: Mapping[str, Summary]
    key: str = USER_COLUMN
    """What the column of user ids was called: SQL may say it, too."""

    def __getitem__(self, name: str) -> pa.Table:
        return self.tables[name]

    def __post_init__(self) -> None:
        self.simulation  # noqa: B018 - its check is ours

    @property
    def simulation(self) -> bool:
        """Whether they protect nobody; a simulation and a release cannot be mixed."""
        tables = self.tables.items()
        return one_kind({name: is_simulation(self.collection, table.schema.metadata) for name, table in tables})

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {counted(table.num_rows, 'report')}" for name, table in self.tables.items())
        return f"Reports({counts}{'; simulation' * self.simulation})"

    def save(self, folder: str | Path) -> Collected:
        """Write the reports to a folder, as `perturb(out=…)` does; nothing is overwritten.

        >>> import pathlib, tempfile
        >>> line = shop.client().report("users", {"age": 31}).to_json(uid=7, table="users")
        >>> folder = pathlib.Path(tempfile.mkdtemp(), "reports")
        >>> dn.connect(shop.gather([line]).save(folder))
        Database(users: 1 report)
        """
        from deniable.engines.collecting.folder_writing import TableReports, write_folder

        def stored(name: str) -> TableReports:
            return TableReports(self[name].schema, iter(self[name].to_batches()), lambda: self.summaries[name])

        names = [name for name, table in self.tables.items() if table.num_rows]
        write_folder(self.collection, names, stored, Path(folder), simulation=self.simulation, key=self.key)
        return Collected(self.collection, self.summaries, Path(folder), self.simulation)

    def _repr_html_(self) -> str:
        """How many reports there are, for notebooks."""
        rows = ((name, f"{table.num_rows:,}") for name, table in self.tables.items())
        return html_table(
            ("table", "reports"), rows, title=f"Reports of {self.collection.sha256[:8]}", notes=[NOTE] * self.simulation
        )


@dataclass(frozen=True, slots=True, repr=False)
class Collected:
    """A folder of reports that a run has written, and what became of the rows.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "reports")
    >>> written = shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]}, out=folder)
    >>> dn.connect(written)
    Database(users: 3 reports)
    """

    collection: Specification
    summaries: Mapping[str, Summary]
    path: Path | str
    simulation: bool = False
    """Whether they protect nobody."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {counted(summary.reports, 'report')}" for name, summary in self.summaries.items())
        return f"Collected({counts}; in {str(self.path)!r}{'; simulation' * self.simulation})"

    def _repr_html_(self) -> str:
        """How many reports there are, for notebooks."""
        rows = ((name, f"{summary.reports:,}") for name, summary in self.summaries.items())
        notes = [NOTE] * self.simulation
        return html_table(("table", "reports"), rows, title=f"Reports in {str(self.path)!r}", notes=notes)
