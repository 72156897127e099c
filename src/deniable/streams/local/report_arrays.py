"""Reports of a stream without trust as columns: how they are read, and why they may be refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers
from deniable.errors import InvalidData
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.stream_report import FIRST, SECOND, SIZE, STREAM_REPORT_VERSION

_STREAM_WIRE = np.dtype([("version", ">u1"), ("phase", ">u1"), ("tag", ">u2"), ("y", ">u4"), ("theta", ">f8")])
MALFORMED, OTHER_SETTINGS = "malformed", "made under other settings"
LATE, OTHER_THETA = "first-phase, after θ was announced", "made for another θ"
OTHER_KIND = {False: "of a simulation", True: "of a release, not of a simulation"}
OUT_OF_RANGE, DUPLICATE = "out of range", "of a user who has answered"


def report_table(
    protocol: ToPLProtocol, codes: Integers, theta: float | None = None, uid: Any = None, *, simulation: bool = False
) -> pa.Table:
    """Reports as an Arrow table for `ToPLServer.push_many`: what a gateway makes of the bytes that devices send.

    >>> import numpy as np
    >>> report_table(ToPLProtocol(epsilon=1.0, bound=500), np.array([3, 4]), uid=[1, 2]).column_names
    ['uid', 'report']
    """
    wire = np.zeros(codes.size, dtype=_STREAM_WIRE)
    wire["version"], wire["phase"] = STREAM_REPORT_VERSION, FIRST if theta is None else SECOND
    wire["tag"] = protocol.run_tag(simulation=simulation)
    wire["y"], wire["theta"] = codes, 0.0 if theta is None else theta
    column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(SIZE), codes.size, [None, pa.py_buffer(wire.tobytes())])
    return pa.table({"report": column} if uid is None else {"uid": uid, "report": column})


def read_table(reports: Any) -> NDArray[Any]:
    """The fields of the reports of an Arrow table, one row each."""
    if not isinstance(reports, (pa.Table, pa.RecordBatch)) or "report" not in reports.schema.names:
        raise InvalidData("reports must be an Arrow table with a column `report`", "See `report_table`.")
    column = reports.column("report")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.type != pa.binary(SIZE) or column.null_count:
        raise InvalidData(f"the column `report` must hold {SIZE} bytes in every row", "See `report_table`.")
    if not len(column):
        return np.zeros(0, dtype=_STREAM_WIRE)
    return np.frombuffer(column.buffers()[1], dtype=_STREAM_WIRE)[column.offset : column.offset + len(column)]


def read_one(data: bytes) -> NDArray[Any] | None:
    """The fields of one report as a single row; None if it is not of the right length."""
    return np.frombuffer(data, dtype=_STREAM_WIRE) if len(data) == SIZE else None


def refusals(
    wire: NDArray[Any], protocol: ToPLProtocol, thetas: tuple[float, ...], *, simulation: bool
) -> list[tuple[str, Booleans]]:
    """Why reports cannot be taken: for each reason that occurs, which ones. Each report has at most one reason.

    A second report names its θ, which must be one of those that were announced, the present one or an earlier one.
    """
    phase = wire["phase"]
    checks = [
        (MALFORMED, (wire["version"] != STREAM_REPORT_VERSION) | ((phase != FIRST) & (phase != SECOND))),
        (OTHER_KIND[simulation], wire["tag"] == protocol.run_tag(simulation=not simulation)),
        (OTHER_SETTINGS, wire["tag"] != protocol.run_tag(simulation=simulation)),
    ]
    if thetas and not protocol.renewal:
        checks.append((LATE, phase == FIRST))
    named = wire["theta"].astype(np.float64)
    checks.append((OTHER_THETA, np.where(phase == FIRST, bool(thetas) & (named != 0.0), ~np.isin(named, thetas))))
    largest = np.where(phase == FIRST, protocol.outputs(), protocol.outputs(protocol.bound))  # the same under any θ
    checks.append((OUT_OF_RANGE, wire["y"] >= largest))
    reasons = []
    good = np.ones(wire.size, dtype=np.bool_)
    for reason, where in checks:
        which = where & good
        if which.any():
            reasons.append((reason, which))
            good &= ~which
    return reasons
