"""Reports in bulk: their columns, what they were made by, and which of them can be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.errors import InvalidData
from deniable.tables.collection import Collection

SPECIFICATION = b"deniable.collection"
"""Where a table's metadata holds the SHA-256 of its specification."""

TABLE = b"deniable.table"

_COLUMNS = {"slot": pa.uint16(), "view": pa.uint32(), "seed": pa.uint32(), "y": pa.uint32()}


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of the rows of one table: for whoever runs the collection. Its exact counts are not private."""

    rows: int
    users: int
    reports: int
    epsilon_per_report: float
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Rows that were not used, by reason."""


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of one or more tables, in memory: one Arrow table per service."""

    collection: Collection
    tables: Mapping[str, pa.Table]
    summaries: Mapping[str, Summary]

    def __getitem__(self, name: str) -> pa.Table:
        return self.tables[name]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {table.num_rows:,} reports" for name, table in self.tables.items())
        return f"Reports({counts})"


def report_schema(collection: Collection, name: str, uid: pa.DataType, public: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of a service's reports."""
    columns = {"uid": uid, **_COLUMNS, **public}
    return pa.schema(list(columns.items()), metadata={SPECIFICATION: collection.sha256.encode(), TABLE: name.encode()})


def validate(collection: Collection, name: str, reports: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """The reports that can be believed, and how many were refused, by reason.

    A user's reports count only together: where a slot is missing or stands twice, all of hers are refused.
    """
    refused: Counter[str] = Counter()
    metadata = reports.schema.metadata or {}
    if metadata.get(SPECIFICATION) != collection.sha256.encode() or metadata.get(TABLE) != name.encode():
        refused["made under another specification"] = reports.num_rows
        return reports.slice(0, 0), refused
    _check_types(collection, name, reports)
    complete = pc.is_valid(reports["uid"])
    for column in _COLUMNS:
        complete = pc.and_(complete, pc.is_valid(reports[column]))
    reports, refused["with a missing entry"] = _keep(reports, np.asarray(complete))

    view = np.asarray(reports["view"]).astype(np.int64)
    design = collection.design_of(name)
    known = view < design.views
    reports, refused["view out of range"] = _keep(reports, known)
    view = view[known]

    numbers, place = np.unique(view, return_inverse=True)
    views = [design.view(int(number)) for number in numbers]
    outcomes = np.array([one.outcomes for one in views], dtype=np.int64)[place]
    y, seed = (np.asarray(reports[column]).astype(np.int64) for column in ("y", "seed"))
    unseeded = np.array([not hasattr(one.oracle, "g") for one in views], dtype=bool)[place]
    fits = (y < outcomes) & ~(unseeded & (seed != 0))
    reports, refused["y or seed out of range"] = _keep(reports, fits)

    slots = collection.reports_per_user(name)
    slot = np.asarray(reports["slot"]).astype(np.int64)
    parts = np.array([one.part for one in views], dtype=np.int64)[place][fits]
    placed = (slot < slots) & (slot % len(design.parts) == parts)
    reports, refused["slot out of range"] = _keep(reports, placed)

    users = pc.dictionary_encode(reports["uid"].combine_chunks()).indices.to_numpy().astype(np.int64)
    pair = users * slots + slot[placed]
    _, first, copies = np.unique(pair, return_index=True, return_counts=True)
    repeated = np.isin(users, users[first[copies > 1]])
    reports, refused["user and slot repeated"] = _keep(reports, ~repeated)
    users = users[~repeated]
    whole = np.bincount(users, minlength=users.max(initial=0) + 1) == slots
    reports, refused["of a user with missing slots"] = _keep(reports, whole[users])
    return reports, +refused


def _keep(reports: pa.Table, good: np.ndarray) -> tuple[pa.Table, int]:
    count = int(np.count_nonzero(~good))
    return (reports.filter(pa.array(good)) if count else reports), count


def _check_types(collection: Collection, name: str, reports: pa.Table) -> None:
    """A wrong column is no report at all: the whole batch is refused."""
    for column in ("uid", *_COLUMNS, *collection[name].public):
        if column not in reports.column_names:
            raise InvalidData(
                f"reports of table {name!r} lack the column {column!r}", "Send the columns as documented."
            )
    for column, kind in _COLUMNS.items():
        if reports.schema.field(column).type != kind:
            raise InvalidData(f"column {column!r} of the reports must be {kind}", "Send the columns as documented.")
    uid = reports.schema.field("uid").type
    if not (pa.types.is_integer(uid) or pa.types.is_string(uid) or pa.types.is_large_string(uid)):
        raise InvalidData("user ids must be integers or texts", "Convert them first.")
