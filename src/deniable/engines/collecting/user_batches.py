"""Rows sorted by user, in batches that hold whole users: a user in two batches would send two sets of reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.errors import Failure

USER_BATCH_ROWS = 1 << 18


def starts_of(uid: pa.Array) -> Integers:
    """Where each user's rows begin, in a column sorted by user."""
    if len(uid) <= 1:
        return np.zeros(len(uid), dtype=np.int64)
    changes = np.asarray(pc.not_equal(uid.slice(1), uid.slice(0, len(uid) - 1)))
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def last_user(rows: pa.Table) -> int:
    """Where the rows of the last user begin."""
    uid = rows["uid"].combine_chunks()
    return int(pc.index(uid, uid[len(uid) - 1]).as_py())


def whole_users(
    batches: Iterable[pa.Table],
    *,
    least: int = 1,
    incomplete: Callable[[pa.Table], int] = last_user,
    hold: Callable[[pa.Table], pa.Table] = lambda rows: rows,
) -> Iterator[pa.Table]:
    """Sorted rows, cut between users: a user who may not be complete waits for the next batch.

    Every batch but the last is cut from at least `least` rows. `incomplete` says where the rows of the waiting user
    begin, and `hold` what is kept of them meanwhile.
    """
    held: pa.Table | None = None
    for batch in batches:
        held = pa.concat_tables([held, batch]) if held is not None and held.num_rows else batch
        if held.num_rows < least:
            continue
        start = incomplete(held)
        if start:
            yield held.slice(0, start)
            held = held.slice(start).combine_chunks()  # lets go of the rows before
        held = hold(held)
    if held is not None and held.num_rows:
        yield held


def sorted_users(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows of a sorted stream in large batches of whole users. Ids out of order end the run."""
    return whole_users(_in_order(reader), least=USER_BATCH_ROWS)


def few_users(stream: Iterable[pa.Table], users: int) -> Iterator[pa.Table]:
    """Batches of at most `users` users each: a user may send more reports than she has rows."""
    for rows in stream:
        starts = starts_of(rows["uid"].combine_chunks())
        cuts = [*starts[::users].tolist(), rows.num_rows]
        for first, last in pairwise(cuts):
            yield rows.slice(first, last - first)


def _in_order(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    last_seen = None
    for batch in reader:
        if batch.num_rows:
            last_seen = _checked_order(batch["uid"], last_seen)
            yield pa.Table.from_batches([batch])


def _checked_order(uid: pa.Array, last_seen: Any) -> Any:
    """The last id of a batch. Ids out of order would make a user send two sets of reports, so that ends the run."""
    ordered = pc.all(pc.less_equal(uid.slice(0, len(uid) - 1), uid.slice(1))).as_py() is not False
    if not ordered or (last_seen is not None and pc.less(uid[0], last_seen).as_py()):
        raise Failure("rows came out of the order of user ids. Nothing was written. Please report this.")
    return uid[-1]
