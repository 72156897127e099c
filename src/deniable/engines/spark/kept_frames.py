"""The reports of each user brought together once, and persisted by Spark while questions are asked.

Joins, and tables whose users send several reports, need all reports of a user in one place. Spark would bring them
together for every question; a persisted DataFrame remembers how it is partitioned and sorted.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from deniable.tables.schema.rounds import ROUND_COLUMN

PARTITION_BYTES = 4 * 2**20
"""The least compressed reports that are worth a task, at about eight bytes each."""


class KeptFrame:
    """A DataFrame that Spark persists, in memory and then on disks, until this is closed or garbage."""

    def __init__(self, frame: Any) -> None:
        # Spark takes two readers of one path for the same data, even if the files have changed. A condition of its own,
        # which costs nothing, distinguishes this copy from any other.
        mark = uuid.uuid4().hex
        self.frame = frame.where(f"'{mark}' = '{mark}'").persist()
        self._forget = weakref.finalize(self, _forget_aside, self.frame)
        self._forget.atexit = False

    def close(self) -> None:
        """Give the memory back; questions are still answered, slowly."""
        if self._forget.detach() is not None:
            _forget(self.frame)


class KeptJoins:
    """Users of several tables joined once, and persisted from the second question about them on."""

    MOST_JOINS = 4

    def __init__(self) -> None:
        self._closed = False
        self._seen: set[Hashable] = set()
        self._kept: dict[Hashable, KeptFrame] = {}
        self._lock = threading.Lock()

    def frame(self, key: Hashable, made: Any) -> Any:
        """The DataFrame of a key: as it is made the first time, persisted later."""
        with self._lock:
            if key in self._kept:
                return self._kept[key].frame
            if self._closed or key not in self._seen:
                self._seen.add(key)
                return made
            while len(self._kept) >= self.MOST_JOINS:
                self._kept.pop(next(iter(self._kept))).close()
            self._kept[key] = KeptFrame(made)
            return self._kept[key].frame

    def close(self) -> None:
        """Give the memory back, and keep nothing more."""
        with self._lock:
            self._closed = True
            for kept in self._kept.values():
                kept.close()
            self._kept.clear()


def _forget(frame: Any) -> None:
    with suppress(Exception):  # the session may have ended
        frame.unpersist()


def _forget_aside(frame: Any) -> None:
    """Forget it in a separate thread, because the thread that drops the last reference may be calling Spark."""
    with suppress(RuntimeError):  # the interpreter is ending
        threading.Thread(target=_forget, args=(frame,), daemon=True).start()


def partitions_for(frames: list[Any]) -> int:
    """The number of partitions: the same for all tables, so that they can be joined without another shuffle.

    At most `spark.sql.shuffle.partitions`, fewer for fewer reports.
    """
    spark = frames[0].sparkSession
    sizes = [int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) for frame in frames]
    most = int(spark.conf.get("spark.sql.shuffle.partitions"))
    cores = int(spark.sparkContext.defaultParallelism)
    return max(1, min(most, max(cores, max(sizes) // PARTITION_BYTES)))


def by_user(frame: Any, slots: int, partitions: int, *, rounds: bool = False) -> Any:
    """The reports of each user together, in the order of rounds and slots."""
    # A single number is sorted fastest.
    order = ["uid", *([ROUND_COLUMN] if rounds else []), *(["slot"] if slots > 1 else [])]
    return frame.repartition(partitions, "uid").sortWithinPartitions(*order)
