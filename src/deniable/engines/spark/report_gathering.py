"""Lines that devices sent, in a streaming DataFrame → files of reports in a folder, appended batch by batch.

    folder/collection.json
    folder/users/round-000002/1f0c9a4e-000000017-00000.parquet     of batch 17 of the checkpoint 1f0c9a4e
    folder/.gathered/1f0c9a4e-000000017.json                       the batch is complete: what became of its lines

A batch is tried again until its last file stands there. What an attempt left behind is removed first, and a batch that
is complete is left out. Of several reports for a user, round and slot, one counts: that of the earliest batch. Batches
are compared with the files of their rounds, so nothing is counted twice either if a checkpoint is lost and everything
is read again.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.engines.collecting.drawn_names import refuse_pseudonyms
from deniable.engines.collecting.folder_writing import round_name
from deniable.engines.collecting.gathering import ANOTHER
from deniable.engines.collecting.sent_columns import SentColumns
from deniable.engines.collecting.sent_lines import sent_line
from deniable.engines.collecting.wire_reports import ODD_PUBLIC, ReportDoor
from deniable.engines.reports.report_origin import WHOLE_SPECIFICATION
from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.report_paths import Folder, literal_path
from deniable.engines.spark.spark_session import checked_session
from deniable.errors import BadInput, Failure, InvalidParameter
from deniable.simulation import check_noise, mark, one_kind
from deniable.strict_json import read_json
from deniable.tables.reports.report_table import SPECIFICATION, TABLE
from deniable.tables.schema.report_format import REPORT_COLUMNS
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.specification.runs import SPECIFICATION_FILE, largest_epsilon, read_run, run_text
from deniable.tables.specification.specification import Specification

Batches = Iterator[pa.RecordBatch]
GATHERED, REPEATED_LINES, LINES = "reports", "repeated", "lines"
_COMPLETE, _MARK_FILE = ".gathered", "deniable-gathering.json"
_UNGATHERED = "Nothing was gathered"
_PUBLIC_KINDS = {"string": str, "bigint": int, "double": float, "boolean": bool}
_SLOT = ("uid", ROUND_COLUMN, "slot")
_JUDGED = (
    "fault string, name string, uid string, round bigint, slot int, view bigint, seed bigint, y bigint, public string"
)


def gathering(
    frame: Any,
    collection: Specification,
    out: Any,
    *,
    column: str,
    checkpoint: Any,
    public: Mapping[str, str],
    simulation: bool,
) -> Any:
    """See `deniable.spark.gather_stream`."""
    refuse_pseudonyms(collection)
    if not getattr(frame, "isStreaming", False):
        raise InvalidParameter(
            "frame", "must be a streaming DataFrame", "Read it with spark.readStream; for others use Collection.gather."
        )
    spark = checked_session(frame.sparkSession)
    if dict(frame.dtypes).get(column) not in ("string", "binary"):
        raise InvalidParameter("column", f"is {column!r}, which is not a column of texts", "Name the column of lines.")
    check_noise(largest_epsilon(collection), simulation=simulation)
    kinds = _public_kinds(collection, public)
    with spark_errors("opening the folder of reports"):
        folder, name = Folder(spark, str(out)), _name_of(Folder(spark, str(checkpoint)))
        _begin(folder, collection, simulation=simulation)
    gatherer = _Gatherer(folder, collection, name, kinds, simulation)
    lines = frame.select(frame[column].cast("binary").alias("line"))
    writer = lines.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint))
    return writer.foreachBatch(gatherer.take)


def gathered(folder: Folder) -> Counter[str]:
    """What became of all lines so far: `lines`, `reports`, `repeated`, and refusals by reason."""
    complete = folder.below(_COMPLETE)
    total: Counter[str] = Counter()
    for name in complete.names():
        if name.endswith(".json"):
            total += Counter(read_json(complete.below(name).read_text()))
    return total


def _public_kinds(collection: Specification, given: Mapping[str, str]) -> dict[str, str]:
    names = {column for table in collection.tables for column in table.public}
    for name, kind in given.items():
        if name not in names or kind not in _PUBLIC_KINDS:
            repair = f"Write {{'city': 'string'}}; types are {', '.join(_PUBLIC_KINDS)}."
            raise InvalidParameter("public", "must give types of public attributes", repair)
    return {name: given.get(name, "string") for name in names}


def _begin(folder: Folder, collection: Specification, *, simulation: bool) -> None:
    """Make the folder, or go on with one of the same specification."""
    file = folder.below(SPECIFICATION_FILE)
    if file.exists():
        existing, kind = read_run(read_json(file.read_text()))
        if existing != collection:
            raise BadInput(f"{folder.name!r} is of another specification. {_UNGATHERED}. Choose another folder.")
        one_kind({folder.name: kind, "what arrives": simulation})
        if not folder.below(_COMPLETE).exists() and any(folder.below(table.name).exists() for table in existing.tables):
            problem = f"{folder.name!r} has reports that were not gathered from a stream"
            raise BadInput(f"{problem}. {_UNGATHERED}. Choose another folder.")
    elif folder.exists() and folder.names():
        raise BadInput(f"{folder.name!r} exists and holds something else. {_UNGATHERED}. Choose another folder.")
    else:
        folder.make()
        file.write_text(run_text(collection, simulation=simulation))
    folder.below(_COMPLETE).make()


def _name_of(checkpoint: Folder) -> str:
    """The name of a checkpoint: numbers of batches are its own."""
    file = checkpoint.below(_MARK_FILE)
    if file.exists():
        name = read_json(file.read_text()).get("name", "")
        if not isinstance(name, str) or len(name) != 8:
            raise Failure(f"{_MARK_FILE} of the checkpoint is damaged. {_UNGATHERED}. Begin with a new checkpoint.")
        return name
    if checkpoint.exists() and checkpoint.names():
        raise BadInput(f"the checkpoint {checkpoint.name!r} is of another query. {_UNGATHERED}. Use a new folder.")
    checkpoint.make()
    name = secrets.token_hex(4)
    file.write_text(json.dumps({"name": name}))
    return name


@dataclass(frozen=True, slots=True)
class _Gatherer:
    """Takes micro-batches, each once."""

    folder: Folder
    collection: Specification
    name: str
    kinds: Mapping[str, str]
    simulation: bool

    def take(self, lines: Any, number: int) -> None:
        """Append the reports of a batch. A second call with the same batch does nothing."""
        batch = f"{self.name}-{number:09}"
        complete = self.folder.below(_COMPLETE)
        partial = self.folder.below(f".partial-{batch}")
        if complete.below(f"{batch}.json").exists():
            return
        for holder in self._report_folders():
            for file in holder.names():
                if file.startswith(batch):
                    holder.below(file).remove()
        partial.remove()
        judged = lines.mapInArrow(_judging(self.collection, self.kinds, simulation=self.simulation), _JUDGED).persist()
        try:
            counts = self._append(judged, batch, partial)
            partial.below("counts").write_text(json.dumps(counts))
            partial.below("counts").move(complete.below(f"{batch}.json"))
        finally:
            judged.unpersist()
            partial.remove()

    def _report_folders(self) -> list[Folder]:
        """Every folder that may hold files of a batch."""
        tables = [self.folder.below(table.name) for table in self.collection.tables]
        if self.collection.rounds is None:
            return tables
        return [table.below(name) for table in tables for name in table.names()]

    def _append(self, judged: Any, batch: str, partial: Folder) -> Counter[str]:
        counts: Counter[str] = Counter()
        for row in judged.groupBy("fault").count().collect():
            counts[LINES] += row["count"]
            if row["fault"] is not None:
                counts[row["fault"]] += row["count"]
        good = judged.where("fault IS NULL")
        for row in good.groupBy("name", ROUND_COLUMN).count().orderBy("name", ROUND_COLUMN).collect():
            table, number, arrived = row["name"], row[ROUND_COLUMN], row["count"]
            reports = good.where((good["name"] == table) & (good[ROUND_COLUMN] == number))
            target = self.folder.below(table)
            target = target if self.collection.rounds is None else target.below(round_name(number))
            another, kept = self._unseen(reports, target)
            written_to = partial.below(f"{table}-{number}")
            self._reports(kept, table).write.parquet(written_to.path)
            files = sorted(name for name in written_to.names() if name.endswith(".parquet"))
            written = int(_read(written_to).count())
            if written:
                target.make()
                for index, file in enumerate(files):
                    written_to.below(file).move(target.below(f"{batch}-{index:05}.parquet"))
            counts += Counter({GATHERED: written, ANOTHER: another, REPEATED_LINES: arrived - written - another})
        return +counts

    def _unseen(self, reports: Any, target: Folder) -> tuple[int, Any]:
        """How many reports are others than one that came before for their slot, and those that are the first."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        said = F.struct("view", "seed", "y")
        # Which of several came first in a batch is not known: the least of them, whatever the order of arrival.
        first = reports.groupBy(*_SLOT).agg(
            F.min(F.struct("view", "seed", "y", "public")).alias("first"),
            F.collect_list(said).alias("said"),
        )
        if target.names():
            before = _read(target)
            earlier = before.select("uid", "slot", said.alias("earlier"))
            first = first.join(earlier, ["uid", "slot"], "left")
        else:
            first = first.withColumn("earlier", F.lit(None).cast(first.schema["said"].dataType.elementType))
        counted = F.coalesce("earlier", F.struct("first.view", "first.seed", "first.y"))
        differing = F.size(F.filter("said", lambda report: report != counted))
        another = first.agg(F.coalesce(F.sum(differing), F.lit(0))).first()[0]
        return int(another), first.where("earlier IS NULL").select(*_SLOT, "first.*")

    def _reports(self, kept: Any, table: str) -> Any:
        """The columns of reports, in the order of user ids, with what they were made under."""
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql import types as T  # noqa: N812

        kinds = {"string": T.StringType, "bigint": T.LongType, "double": T.DoubleType, "boolean": T.BooleanType}
        about = self.collection[table]
        columns = [F.col("uid"), *(F.col(column) for column in REPORT_COLUMNS)]
        if about.public:
            fields = T.StructType([T.StructField(label, kinds[self.kinds[label]]()) for label in about.public])
            values = F.from_json("public", fields)
            columns += [values.getField(label).alias(about.column(label)) for label in about.public]
        if self.collection.rounds is not None:
            columns.append(F.col(ROUND_COLUMN))
        origin = {
            SPECIFICATION.decode(): self.collection.sha256,
            TABLE.decode(): table,
            WHOLE_SPECIFICATION: self.collection.to_json(),
            **{key.decode(): text.decode() for key, text in mark(simulation=self.simulation).items()},
        }
        return kept.select(*columns).sort("uid", "slot").withMetadata("uid", origin)


def _read(folder: Folder) -> Any:
    return folder.spark.read.parquet(literal_path(folder.path), pathGlobFilter="*.parquet", recursiveFileLookup=False)


def _judging(collection: Specification, kinds: Mapping[str, str], *, simulation: bool) -> Callable[[Batches], Batches]:
    """For a task: each line with its report, or with the reason for which it is refused."""

    def judge(batches: Batches) -> Batches:
        door = ReportDoor(collection, simulation=simulation)
        for batch in batches:
            lines = [line for line in batch.column(0).to_pylist() if line is not None and line.strip()]
            sent = SentColumns.of([[sent_line(line) for line in lines]])
            judged, wire = door.judge(sent), sent.wire
            faults = [judged.reason(index) for index in range(len(lines))]
            for index, text in judged.publics.items():
                if faults[index] is None and not _fits(json.loads(text), kinds):
                    faults[index] = ODD_PUBLIC
            names = np.array([*door.tables, ""], dtype=object)[np.minimum(judged.tables, len(door.tables))]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(faults, pa.string()),
                    pa.array(names, pa.string()),
                    sent.uids,
                    pa.array(judged.rounds),
                    pa.array(judged.slots.astype(np.int32)),
                    *(pa.array(wire[column].astype(np.int64)) for column in ("view", "seed", "y")),
                    pa.array([judged.publics.get(index) for index in range(len(lines))], pa.string()),
                ],
                ["fault", "name", "uid", ROUND_COLUMN, "slot", "view", "seed", "y", "public"],
            )

    return judge


def _fits(public: Mapping[str, Any], kinds: Mapping[str, str]) -> bool:
    """Whether public values are missing, or of the types of their columns; a whole number is a double as well."""
    for name, value in public.items():
        kind = _PUBLIC_KINDS[kinds[name]]
        whole = kind is float and type(value) is int
        if value is not None and type(value) is not kind and not whole:
            return False
    return True
