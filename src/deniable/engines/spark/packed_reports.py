"""A report in one long, if view, seed and y fit into 63 bits.

Shuffling, joining and converting rows to Arrow cost per column, and more than the kernel does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Words
from deniable.engines.kernel.user_sums import Columns
from deniable.tables.schema.report_format import LARGEST_SEED, SEED_BITS
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.specification.specification import Specification

REPORT = "#report"
"""The column of packed reports, a name that no attribute can have."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How the reports of a table are packed: in one long if they fit, else in two.

    Of two, the second has seed and y, or y alone if it takes more than 32 bits.
    """

    single: bool
    views: int
    y_bits: int
    slots: int

    @classmethod
    def of(cls, collection: Specification, name: str) -> Packing:
        """For a table of a collection."""
        design = collection.design_of(name)
        y_bits = (design.most_outcomes - 1).bit_length()
        single = (design.views - 1).bit_length() + SEED_BITS + y_bits < 64
        return cls(single, design.views, y_bits, collection.reports_per_user(name))

    def packed(self, frame: Any) -> Any:
        """Reports with one column instead of view, seed and y, and of a single slot; an impossible report is −1."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        if not self.single:
            return frame
        gone = ["view", "seed", "y", *(["slot"] if self.slots == 1 else [])]
        bits = {"view": self.views - 1, "seed": LARGEST_SEED, "y": 2**self.y_bits - 1, "slot": self.slots - 1}
        possible = F.lit(True)
        for column in gone:
            possible = possible & F.col(column).between(0, bits[column])
        report = F.when(possible, self._whole()).otherwise(F.lit(-1)).alias(REPORT)
        rest = [f"`{column}`" for column in frame.columns if column not in gone]
        return frame.select(*rest, report)

    def unpacked(self, frame: Any) -> Any:
        """Slot, view, seed and y, whether they are packed or not; NULLs for an impossible report."""
        from pyspark.sql import functions as F  # noqa: N812

        if REPORT not in frame.columns:
            return frame
        report = F.when(F.col(REPORT) >= 0, F.col(REPORT))
        columns = {
            "view": F.shiftright(report, SEED_BITS + self.y_bits),
            "seed": F.shiftright(report, self.y_bits).bitwiseAND(F.lit(LARGEST_SEED)),
            "y": report.bitwiseAND(F.lit(2**self.y_bits - 1)),
            "slot": F.lit(0).cast("long") if self.slots == 1 else F.col("slot"),
        }
        rounds = [ROUND_COLUMN] if ROUND_COLUMN in frame.columns else []
        return frame.select("uid", *(column.alias(name) for name, column in columns.items()), *rounds)

    def columns(self, frame: Any, number: int) -> dict[str, Any]:
        """The columns that carry the reports of a question's table to Python, as Spark expressions by name."""
        from pyspark.sql import functions as F  # noqa: N812

        if REPORT in frame.columns:
            return {f"tail{number}": F.col(REPORT)}
        if self.single:
            return {f"tail{number}": self._whole()}
        if self._long_y:
            seeded = F.shiftleft("view", SEED_BITS).bitwiseOR(F.col("seed"))
            return {f"head{number}": seeded, f"tail{number}": F.col("y")}
        return {f"head{number}": F.col("view"), f"tail{number}": self._tail()}

    @property
    def _long_y(self) -> bool:
        """Whether seed and y do not fit into 64 bits together."""
        return self.y_bits + SEED_BITS > 64

    def _tail(self) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        # At ε = ∞ y alone may take 32 bits.
        return F.shiftleft("seed", self.y_bits).bitwiseOR(F.col("y"))

    def _whole(self) -> Any:
        from pyspark.sql import functions as F  # noqa: N812

        return F.shiftleft("view", SEED_BITS + self.y_bits).bitwiseOR(self._tail())

    def reports(self, batch: pa.RecordBatch, number: int) -> Columns:
        """A table's reports in a batch: all slots of the first user, then of the second."""
        tail = _unsigned(batch.column(f"tail{number}"))
        if self._long_y:
            head = _unsigned(batch.column(f"head{number}"))
            return (head >> np.uint64(SEED_BITS)).astype(np.uint32), head.astype(np.uint32), tail.view(np.int64)
        y = (tail & np.uint64(2**self.y_bits - 1)).astype(np.int64)
        seed = (tail >> np.uint64(self.y_bits)).astype(np.uint32)
        whole = SEED_BITS + self.y_bits
        head = tail >> np.uint64(whole) if self.single else _unsigned(batch.column(f"head{number}"))
        return head.astype(np.uint32), seed, y


def _unsigned(column: pa.Array) -> Words:
    flat = column.flatten() if pa.types.is_list(column.type) else column
    return np.ascontiguousarray(np.asarray(flat)).view(np.uint64)
