"""From report folders to reports that can be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.answering import answer
from deniable.engines.collecting import SPECIFICATION_FILE
from deniable.errors import BadInput, InvalidData, InvalidParameter
from deniable.queries.result import Result
from deniable.queries.sql import parse
from deniable.tables.collection import Collection
from deniable.tables.reports import Reports, validate


@dataclass(frozen=True, slots=True)
class Database:
    """The validated reports of a collection, and what was refused."""

    collection: Collection
    tables: Mapping[str, pa.Table]
    refused: Mapping[str, Counter[str]]
    """For each table, how many reports were refused, by reason."""

    def sql(self, text: str, *, weights: str = "optimal", confidence: float = 0.95) -> Result:
        """Answer a question in SQL, every number with its standard error.

        Supported: COUNT(*), SUM and AVG of private attributes, from one table or several joined with USING (uid), with
        conditions on private and public attributes, grouped by either. Anything else is refused by name.
        """
        if not 0 < confidence < 1:
            raise InvalidParameter("confidence", "must lie between 0 and 1", "Use 0.95.")
        question = parse(text, self.collection)
        return answer(self.collection, self.tables, question, rule=weights, confidence=confidence)

    def __repr__(self) -> str:
        kept = ", ".join(
            f"{name}: {table.num_rows:,} reports"
            + (f" ({total:,} refused)" if (total := self.refused[name].total()) else "")
            for name, table in self.tables.items()
        )
        return f"Database({kept})"


def connect(reports: str | Path | Reports) -> Database:
    """Open a folder that `Collection.perturb` wrote, or the reports it returned.

    Reports that cannot be right are refused and counted; the others are kept.
    """
    if isinstance(reports, Reports):
        collection, found = reports.collection, dict(reports.tables)
    else:
        collection, found = _read(Path(reports))
    tables, refused = {}, {}
    for name, table in found.items():
        tables[name], refused[name] = validate(collection, name, table)
        # Slots of a user stand together, in their order.
        tables[name] = tables[name].sort_by([("uid", "ascending"), ("slot", "ascending")])
    return Database(collection, tables, refused)


def _read(folder: Path) -> tuple[Collection, dict[str, pa.Table]]:
    if not (folder / SPECIFICATION_FILE).exists():
        raise BadInput(f"{folder.name!r} holds no {SPECIFICATION_FILE}. Nothing was read. Pass a folder of reports.")
    collection = Collection.load(folder / SPECIFICATION_FILE)
    names = [table.name for table in collection.tables if (folder / table.name).is_dir()]
    try:
        return collection, {name: _dataset(folder / name) for name in names}
    except (pa.ArrowInvalid, OSError):
        raise InvalidData(f"a file of {folder.name!r} is damaged", "Collect the reports again.") from None


def _dataset(folder: Path) -> pa.Table:
    """All files of a table; every one must name its specification, for the union keeps the first one's only."""
    parts = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    if not parts:
        raise InvalidData(f"table {folder.name!r} has no files", "Collect its reports again.")
    if len({(part.schema.metadata or {}).get(b"deniable.collection") for part in parts}) > 1:
        raise InvalidData(f"files of table {folder.name!r} are of different specifications", "Keep them apart.")
    return pa.concat_tables(parts)
