"""Reports of devices from files and pipes, in batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import InvalidData
from deniable.streams.local.stream_report import SIZE, parse
from deniable.streams.released.release_file import READ_ERRORS
from deniable.tables.reports.report import kind_of

_PIPE_BYTES, _BATCH_ROWS = 1 << 16, 1 << 18


@dataclass(frozen=True, slots=True)
class ReportBatch:
    """Reports as Arrow columns `uid` and `report`, and how many more could not be read.

    >>> ReportBatch(pa.table({"uid": [1], "report": pa.array([bytes(16)], pa.binary(16))})).number
    1
    """

    reports: pa.Table
    malformed: int = 0

    @property
    def number(self) -> int:
        """How many reports arrived, readable or not."""
        return int(self.reports.num_rows) + self.malformed


def read_report_lines(stream: BinaryIO) -> Iterator[ReportBatch]:
    """Lines of JSON as they arrive, in the form that `StreamReport.to_json` writes. Nothing waits for more."""
    rest = b""
    read = getattr(stream, "read1", stream.read)
    while True:
        data = read(_PIPE_BYTES)
        lines = (rest + data).split(b"\n")
        rest = lines.pop() if data else b""
        yield from _batches(lines)
        if not data:
            return


def _batches(lines: list[bytes]) -> Iterator[ReportBatch]:
    """Batches in the order of the lines; all ids of a batch have one type."""
    ids: list[Any] = []
    reports: list[bytes] = []
    malformed = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            uid, data = parse(line)
        except InvalidData:
            malformed += 1
            continue
        if len(data) != SIZE or kind_of(uid) is None:
            malformed += 1
            continue
        if ids and type(uid) is not type(ids[0]):
            yield ReportBatch(_table(ids, reports), malformed)
            ids, reports, malformed = [], [], 0
        ids.append(uid)
        reports.append(data)
    if ids or malformed:
        yield ReportBatch(_table(ids, reports), malformed)


def _table(ids: list[Any], reports: list[bytes]) -> pa.Table:
    kind = pa.string() if ids and isinstance(ids[0], str) else pa.int64()
    return pa.table({"uid": pa.array(ids, kind), "report": pa.array(reports, pa.binary(SIZE))})


def read_report_file(path: str | os.PathLike[str]) -> Iterator[ReportBatch]:
    """Reports of a Parquet file with columns `report` and perhaps `uid`, or of a file of JSON lines."""
    source = Path(path)
    if not source.is_file():
        raise InvalidData(f"there is no file {str(path)!r}", "Give a Parquet or JSON-lines file, or - for a pipe.")
    if source.suffix.lower() != ".parquet":
        with source.open("rb") as stream:
            yield from read_report_lines(stream)
        return
    try:
        with pq.ParquetFile(source) as file:
            columns = [name for name in ("uid", "report") if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                yield ReportBatch(pa.table(batch))
    except READ_ERRORS:
        raise InvalidData(f"{str(path)!r} is not a Parquet file, or is damaged", "Check the file.") from None
