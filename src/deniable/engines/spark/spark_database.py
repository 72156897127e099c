"""From folders, DataFrames and catalog tables to reports that can be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from deniable.arrays import Floats
from deniable.collection import Collection
from deniable.engines.collecting.collected_reports import Reports
from deniable.engines.kernel.cell_pairs import Pairs
from deniable.engines.reading import Database, dimension_tables
from deniable.engines.reports.spark_metadata import Origin, origin_of
from deniable.engines.spark.cell_counts import cell_counts, cell_pairs
from deniable.engines.spark.error_translation import RESTORE, told
from deniable.engines.spark.kept_frames import KeptJoins, partitions_for
from deniable.engines.spark.packed_reports import Packing
from deniable.engines.spark.report_paths import Folder
from deniable.engines.spark.report_validation import SparkStore, validated
from deniable.engines.spark.session import as_frame, checked_session
from deniable.engines.spark.spark_moments import measure
from deniable.errors import BadInput, InvalidData, InvalidParameter
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.plan import Plan
from deniable.simulation import has_noise, is_marked, one_kind
from deniable.strict_json import read_json
from deniable.tables.designs.views import View
from deniable.tables.reports.report_table import OTHER_SPECIFICATION, SPECIFICATION, TABLE, nobody
from deniable.tables.specification.runs import SPECIFICATION_FILE, largest_epsilon, read_run
from deniable.tables.specification.specification import Specification
from deniable.wording import shown

WHOLE_SPECIFICATION = "deniable.specification"
"""Where a DataFrame's column of user ids holds its whole specification."""


@dataclass(frozen=True, slots=True)
class SparkDatabase(Database):
    """The validated reports of a collection in Spark, and what was refused."""

    _joins: KeptJoins = field(default_factory=KeptJoins, init=False, repr=False)

    def _measured(self, plan: Plan) -> Moments:
        return measure(plan, cast("Mapping[str, SparkStore]", self.stores), self.dimensions, self._joins)

    def _cell_counts(self, name: str, views: Sequence[View]) -> Floats:
        return cell_counts(cast("SparkStore", self.stores[name]), Packing.of(self.collection, name), views)

    def _cell_pairs(self, name: str) -> Pairs:
        design = self.collection.design_of(name)
        return cell_pairs(cast("SparkStore", self.stores[name]), Packing.of(self.collection, name), design)

    def close(self) -> None:
        """Give back what Spark keeps of the reports, in memory and on disks. Dropping the database does it, too."""
        self._joins.close()
        for store in self.stores.values():
            cast("SparkStore", store).close()

    def __repr__(self) -> str:
        return Database.__repr__(self)


def connect_spark(
    reports: str | Path | Reports | Mapping[str, Any],
    engine: Any,
    collection: Specification | None,
    dimensions: Mapping[str, Any],
) -> SparkDatabase:
    """Open reports with Spark. See `deniable.connect`."""
    spark = checked_session(engine)
    marks: dict[str, Origin]
    kinds: dict[str, bool] = {}
    if isinstance(reports, Reports):
        collection = reports.collection
        frames = {name: as_frame(spark, table) for name, table in reports.tables.items()}
        marks = {
            name: origin_of({key.decode(): text.decode() for key, text in (table.schema.metadata or {}).items()})
            for name, table in reports.tables.items()
        }
    elif isinstance(reports, Mapping):
        frames = {name: spark.table(frame) if isinstance(frame, str) else frame for name, frame in reports.items()}
        collection = collection or _named_by(frames)
        marks = {name: _mark(frame, name, collection) for name, frame in frames.items()}
    else:
        with told("opening the reports"):
            collection, frames, marks, kinds[SPECIFICATION_FILE] = _folder(Folder(spark, str(reports)))
    for name in frames:
        collection[name]
    noiseless = not has_noise(largest_epsilon(collection))
    simulation = one_kind(kinds | {name: origin[2] or noiseless for name, origin in marks.items()})
    stores: dict[str, SparkStore] = {}
    refused: dict[str, Counter[str]] = {}
    partitions = partitions_for(list(frames.values())) if frames else 1
    for name, frame in frames.items():
        other = marks[name][:2] != (collection.sha256, name)
        mine = as_frame(spark, nobody(collection, name)) if other else frame
        stores[name], refused[name] = validated(collection, name, mine, partitions, joined=len(frames) > 1)
        if other:
            refused[name][OTHER_SPECIFICATION] = frame.count()
    ordered = {table.name: stores[table.name] for table in collection.tables if table.name in stores}
    tables = dimension_tables(collection, dimensions)
    return SparkDatabase(Collection.of(collection), cast("Any", ordered), refused, tables, simulation)


def _folder(folder: Folder) -> tuple[Specification, dict[str, Any], dict[str, Origin], bool]:
    specification = folder.below(SPECIFICATION_FILE)
    if not specification.exists():
        raise BadInput(f"{folder.name!r} holds no {SPECIFICATION_FILE}. Nothing was read. Pass a folder of reports.")
    try:
        collection, simulation = read_run(read_json(specification.read_text()))
    except ValueError:
        raise InvalidData(f"{SPECIFICATION_FILE} of {shown(folder.name)} is damaged", RESTORE) from None
    frames, marks = {}, {}
    for table in collection.tables:
        mine = folder.below(table.name)
        if mine.exists():
            marks[table.name] = mine.mark(collection)
            frames[table.name] = mine.read_parquet()
    return collection, frames, marks, simulation


def _entries(frame: Any) -> dict[str, str]:
    return dict(frame.schema["uid"].metadata) if "uid" in frame.columns else {}


def _named_by(frames: Mapping[str, Any]) -> Specification:
    """The specification that DataFrames name themselves."""
    named = [_entries(frame).get(WHOLE_SPECIFICATION) for frame in frames.values()]
    if not named or None in named:
        raise InvalidParameter(
            "collection", "is missing: a frame does not say under which specification it was made", "Pass collection=."
        )
    try:
        return Specification.from_dict(read_json(str(named[0])))
    except ValueError:
        raise InvalidData("the specification that a frame names is damaged", RESTORE) from None


def _mark(frame: Any, name: str, collection: Specification) -> Origin:
    """What a DataFrame says of its origin; one that says nothing is vouched for by whoever passes `collection`."""
    entries = _entries(frame)
    specification, table = SPECIFICATION.decode(), TABLE.decode()
    return entries.get(specification, collection.sha256), entries.get(table, name), is_marked(entries)
