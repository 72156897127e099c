"""Arrays that tasks make of their rows, added up on the executors.

Each task sends one array, and a last task adds them, so what reaches the driver does not grow with rows or partitions.
Long arrays travel in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Floats
from deniable.engines.spark.spark_session import large_batches

Batches = Iterator[pa.RecordBatch]
PIECE_LENGTH = 2**16
"""Numbers that travel in one row."""
_PIECES = pa.schema([("start", pa.int64()), ("values", pa.list_(pa.float64()))])
_PIECES_SQL = "start bigint, values array<double>"


def added(frame: Any, work: Callable[[Batches], Floats | None], length: int) -> Floats:
    """The sum of what `work` makes of the rows of each task: arrays of this length, or nothing."""

    def run(batches: Batches) -> Batches:
        sums = work(batches)
        if sums is not None:
            yield from _pieces(sums)

    def merge(batches: Batches) -> Batches:
        total = np.zeros(length)
        for batch in batches:
            _put(batch, total)
        yield from _pieces(total)

    with large_batches(frame.sparkSession):
        parts = frame.mapInArrow(run, _PIECES_SQL)
        pieces = parts.repartition(1).mapInArrow(merge, _PIECES_SQL).toArrow()
    total = np.zeros(length)
    _put(pieces, total)
    return total


def _pieces(values: Floats) -> Batches:
    for start in range(0, values.size, PIECE_LENGTH):
        piece = pa.array([values[start : start + PIECE_LENGTH]], _PIECES.field("values").type)
        yield pa.RecordBatch.from_arrays([pa.array([start], pa.int64()), piece], schema=_PIECES)


def _put(pieces: Any, total: Floats) -> None:
    for start, values in zip(pieces.column("start").to_pylist(), pieces.column("values"), strict=True):
        piece = values.values.to_numpy()
        total[start : start + piece.size] += piece
