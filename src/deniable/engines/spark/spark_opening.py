"""Folders, DataFrames and catalog tables of reports → a Spark engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.engines.collecting.collected_reports import Reports
from deniable.engines.reports.report_files import RESTORE
from deniable.engines.reports.report_origin import WHOLE_SPECIFICATION, ReportOrigin
from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.kept_frames import partitions_for
from deniable.engines.spark.report_paths import Folder
from deniable.engines.spark.report_validation import SparkStore, validated
from deniable.engines.spark.spark_engine import SparkEngine
from deniable.engines.spark.spark_session import as_frame, checked_session
from deniable.errors import BadInput, InvalidData, InvalidParameter
from deniable.simulation import has_noise, one_kind
from deniable.strict_json import read_json
from deniable.tables.reports.report_table import OTHER_SPECIFICATION, nobody
from deniable.tables.specification.runs import SPECIFICATION_FILE, largest_epsilon, read_run
from deniable.tables.specification.specification import Specification
from deniable.wording import shown


@dataclass(frozen=True, slots=True, eq=False)
class _Frames:
    """DataFrames of reports that nobody has looked into yet."""

    collection: Specification
    frames: Mapping[str, Any]
    origins: Mapping[str, ReportOrigin]
    simulations: Mapping[str, bool]
    """Whether a file next to them says that they are a simulation, by its name."""


def open_spark(
    reports: str | Path | Reports | Mapping[str, Any] | None, session: Any, collection: Specification | None = None
) -> SparkEngine:
    """Open reports with Spark. See `deniable.connect`."""
    spark = checked_session(session)
    if reports is None:
        raise InvalidParameter("reports", "are missing", "Pass the path of a folder, or DataFrames by table.")
    if isinstance(reports, Reports):
        given = _of_tables(spark, reports)
    elif isinstance(reports, Mapping):
        given = _of_frames(spark, reports, collection)
    else:
        with spark_errors("opening the reports"):
            given = _of_folder(Folder(spark, str(reports)))
    return _engine(spark, given)


def _engine(spark: Any, given: _Frames) -> SparkEngine:
    collection = given.collection
    for name in given.frames:
        collection[name]
    noiseless = not has_noise(largest_epsilon(collection))
    simulations = {name: origin.simulation or noiseless for name, origin in given.origins.items()}
    simulation = one_kind({**given.simulations, **simulations})
    stores: dict[str, SparkStore] = {}
    refused: dict[str, Counter[str]] = {}
    partitions = partitions_for(list(given.frames.values())) if given.frames else 1
    for name, frame in given.frames.items():
        foreign = not given.origins[name].names(collection.sha256, name)
        believed = as_frame(spark, nobody(collection, name)) if foreign else frame
        stores[name], refused[name] = validated(collection, name, believed, partitions, joined=len(given.frames) > 1)
        if foreign:
            refused[name][OTHER_SPECIFICATION] = frame.count()
    ordered = {table.name: stores[table.name] for table in collection.tables if table.name in stores}
    return SparkEngine(collection.asked, ordered, refused, simulation)


def _of_tables(spark: Any, reports: Reports) -> _Frames:
    frames = {name: as_frame(spark, table) for name, table in reports.tables.items()}
    origins = {name: ReportOrigin.of_schema(table.schema) for name, table in reports.tables.items()}
    return _Frames(reports.collection, frames, origins, {})


def _of_frames(spark: Any, reports: Mapping[str, Any], collection: Specification | None) -> _Frames:
    """DataFrames, and names in the catalog. One that says nothing is vouched for by whoever passes `collection`."""
    frames = {name: spark.table(frame) if isinstance(frame, str) else frame for name, frame in reports.items()}
    collection = collection or _named_by(frames)
    origins = {
        name: ReportOrigin.of(_metadata(frame), specification=collection.sha256, table=name)
        for name, frame in frames.items()
    }
    return _Frames(collection, frames, origins, {})


def _of_folder(folder: Folder) -> _Frames:
    specification = folder.below(SPECIFICATION_FILE)
    if not specification.exists():
        raise BadInput(f"{folder.name!r} holds no {SPECIFICATION_FILE}. Nothing was read. Pass a folder of reports.")
    try:
        collection, simulation = read_run(read_json(specification.read_text()))
    except ValueError:
        raise InvalidData(f"{SPECIFICATION_FILE} of {shown(folder.name)} is damaged", RESTORE) from None
    frames, origins = {}, {}
    for table in collection.tables:
        below = folder.below(table.name)
        if below.exists():
            origins[table.name] = below.origin(collection)
            frames[table.name] = below.read_parquet(collection)
    return _Frames(collection, frames, origins, {SPECIFICATION_FILE: simulation})


def _metadata(frame: Any) -> dict[str, str]:
    return dict(frame.schema["uid"].metadata) if "uid" in frame.columns else {}


def _named_by(frames: Mapping[str, Any]) -> Specification:
    """The specification that DataFrames carry themselves."""
    named = [_metadata(frame).get(WHOLE_SPECIFICATION) for frame in frames.values()]
    if not named or None in named:
        raise InvalidParameter(
            "collection", "is missing: a frame does not say under which specification it was made", "Pass collection=."
        )
    try:
        return Specification.from_dict(read_json(str(named[0])))
    except ValueError:
        raise InvalidData("the specification that a frame names is damaged", RESTORE) from None
