"""Rows sorted by user, in batches that hold whole users: a user in two batches would send two sets of reports."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.arrays import Integers
from deniable.errors import Failure

BATCH_ROWS = 1 << 18


def starts_of(uid: pa.Array) -> Integers:
    """Where each user's rows begin, in a column sorted by user."""
    if len(uid) == 1:
        return np.zeros(1, dtype=np.int64)
    changes = np.asarray(pc.not_equal(uid.slice(1), uid.slice(0, len(uid) - 1)))
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def whole_users(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows of a sorted stream in batches; the last user of a batch waits until it is known that she is complete."""
    held = reader.schema.empty_table()
    last_seen = None
    for batch in reader:
        if not batch.num_rows:
            continue
        last_seen = _checked_order(batch["uid"], last_seen)
        held = pa.concat_tables([held, pa.Table.from_batches([batch])])
        if held.num_rows < BATCH_ROWS:
            continue
        last = int(starts_of(held["uid"].combine_chunks())[-1])
        if last:
            yield held.slice(0, last)
            held = held.slice(last).combine_chunks()
    if held.num_rows:
        yield held


def few_users(stream: Iterator[pa.Table], users: int) -> Iterator[pa.Table]:
    """Batches of at most so many users: a user may send more reports than she has rows."""
    for rows in stream:
        starts = starts_of(rows["uid"].combine_chunks())
        cuts = [*starts[::users].tolist(), rows.num_rows]
        for first, last in pairwise(cuts):
            yield rows.slice(first, last - first)


def _checked_order(uid: pa.Array, last_seen: Any) -> Any:
    """The last id of a batch. Ids out of order would make a user send two sets of reports, so that ends the run."""
    ordered = pc.all(pc.less_equal(uid.slice(0, len(uid) - 1), uid.slice(1))).as_py() is not False
    if not ordered or (last_seen is not None and pc.less(uid[0], last_seen).as_py()):
        raise Failure("rows came out of the order of user ids. Nothing was written. Please report this.")
    return uid[-1]
