"""Files and pipes of streams without trust: reports in by batches, and a threshold from the server to the devices."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.errors import Failure, InvalidData
from deniable.files import LockedFile
from deniable.stores.stream_files import UNREADABLE
from deniable.streams.local.stream_report import SIZE, parse
from deniable.tables.reports.report import kind_of

_PIPE_BYTES, _BATCH_ROWS = 1 << 16, 1 << 18
_WAIT_S = 10.0  # for somebody who announces at the same time
_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class ReportBatch:
    """Some reports as Arrow columns `uid` and `report`, and how many more could not be read."""

    reports: pa.Table
    malformed: int = 0


def read_report_lines(stream: BinaryIO) -> Iterator[ReportBatch]:
    """Lines of JSON as they arrive, as `StreamReport.to_json` writes them; nothing waits for more."""
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
    """Batches of one kind of ids each, in the order of the lines."""
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
    place = Path(path)
    if not place.is_file():
        raise InvalidData(f"there is no file {str(path)!r}", "Give a Parquet or JSON-lines file, or - for a pipe.")
    if place.suffix.lower() != ".parquet":
        with place.open("rb") as stream:
            yield from read_report_lines(stream)
        return
    try:
        with pq.ParquetFile(place) as file:
            columns = [name for name in ("uid", "report") if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                yield ReportBatch(pa.table(batch))
    except UNREADABLE:
        raise InvalidData(f"{str(path)!r} is not a Parquet file, or is damaged", "Check the file.") from None


def announce_theta(path: str | os.PathLike[str], theta: float) -> None:
    """Write θ where devices wait for it: into a pipe that `mkfifo` made, or as a new file, all at once."""
    place = Path(path)
    text = f"{theta!r}\n"
    if place.is_fifo():
        # Opening waits for a reader, and there is none if the values have ended: reports must be read meanwhile.
        threading.Thread(target=place.write_text, args=(text,), daemon=True).start()
        return
    with LockedFile(place, "the announcement", cost="The threshold was not announced", wait_s=_WAIT_S) as file:
        file.write(text.encode(), mode=0o644)


def announced_theta(path: str | os.PathLike[str]) -> float | None:
    """θ of a file that an earlier run left; NaN if it holds something else, None if there is no file, or a pipe."""
    place = Path(path)
    if not place.exists() or place.is_fifo():
        return None
    try:
        return float(place.read_text(encoding="ascii"))
    except ValueError:
        return math.nan


def wait_for_theta(path: str | os.PathLike[str], seconds: float) -> float:
    """θ, once somebody has written it."""
    place = Path(path)
    end = time.monotonic() + seconds
    while not place.exists():
        _pause(place, end)
    try:
        return float(_from_fifo(place, end) if place.is_fifo() else place.read_text(encoding="ascii"))
    except (ValueError, OSError):
        raise InvalidData(f"{place.name!r} holds no threshold", "Let `deniable stream collect` write it.") from None


def _from_fifo(place: Path, end: float) -> str:
    pipe = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    data = b""
    try:
        while not data.endswith(b"\n"):
            try:
                part = os.read(pipe, 100)
            except BlockingIOError:  # a writer is there and has not written yet
                part = b""
            data += part
            if not part:
                _pause(place, end)
    finally:
        os.close(pipe)
    return data.decode("ascii", errors="replace")


def _pause(place: Path, end: float) -> None:
    if time.monotonic() > end:
        raise Failure(
            f"no threshold was announced in {place.name!r} in time. First reports were sent and nothing else. "
            "Look at what `deniable stream collect` says, or give --wait more seconds."
        )
    time.sleep(_PAUSE)
