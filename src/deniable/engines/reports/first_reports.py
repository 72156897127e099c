"""Reports that arrived in several files: of several for a user, round and slot the first counts, as in `gather`.

The same report again is not an error: devices repeat themselves, and folders are copied. Another one is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from deniable import arrow_functions as pc
from deniable.arrays import Booleans
from deniable.engines.collecting.gathering import ANOTHER
from deniable.tables.schema.rounds import ROUND_COLUMN

ARRIVAL = "number of the file"
"""A column with the number of the file that a report arrived in; no report has a column of this name."""
_SAID = ("view", "seed", "y")


def numbered(reports: pa.Table, number: int) -> pa.Table:
    """Reports with the number of their file."""
    return reports.append_column(ARRIVAL, pa.array(np.full(reports.num_rows, number, dtype=np.int32)))


def first_in_order(reports: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """Sorted reports without those that an earlier file has, and without the column of files.

    They are sorted by user, round, slot and file. Two of one file stay: they say that the file is wrong.
    """
    later, another = np.zeros(reports.num_rows, dtype=bool), np.zeros(reports.num_rows, dtype=bool)
    if reports.num_rows > 1:
        keys = ["uid", *([ROUND_COLUMN] if ROUND_COLUMN in reports.column_names else []), "slot"]
        same = _equals_before(reports, keys)
        starts = np.flatnonzero(~np.concatenate(([False], same)))
        first = np.repeat(starts, np.diff(np.append(starts, reports.num_rows)))
        file = reports[ARRIVAL].to_numpy()
        later = file != file[first]
        said = [reports[column].to_numpy() for column in _SAID]
        another = later & np.any([values != values[first] for values in said], axis=0)
    kept = reports.drop_columns([ARRIVAL])
    if later.any():
        kept = kept.filter(pa.array(~later))
    return kept, +Counter({ANOTHER: int(another.sum())})


def first_reports(files: Sequence[pa.Table]) -> tuple[pa.Table, Counter[str]]:
    """The reports of several files as one table; the first of several for the same user, round and slot counts."""
    if len(files) < 2 or _ascend(files):
        return pa.concat_tables(files), Counter()
    rounds = [(ROUND_COLUMN, "ascending")] if ROUND_COLUMN in files[0].column_names else []
    together = pa.concat_tables([numbered(reports, number) for number, reports in enumerate(files)])
    order = [("uid", "ascending"), *rounds, ("slot", "ascending"), (ARRIVAL, "ascending")]
    return first_in_order(together.sort_by(order).combine_chunks())


def _equals_before(reports: pa.Table, keys: Sequence[str]) -> Booleans:
    """Whether each row but the first has the same keys as the one before it."""
    same = np.ones(reports.num_rows - 1, dtype=bool)
    for key in keys:
        column = reports[key].combine_chunks()
        equal = pc.equal(column.slice(1), column.slice(0, len(column) - 1))
        same &= np.asarray(equal.fill_null(False))
    return same


def _ascend(files: Sequence[pa.Table]) -> bool:
    """Whether every file is about users after those of the files before, so that nobody is in two."""
    last = None
    for reports in files:
        if not reports.num_rows:
            continue
        ends = pc.min_max(reports["uid"])
        if last is not None and not (ends["min"].as_py() is not None and last < ends["min"].as_py()):
            return False
        last = ends["max"].as_py()
        if last is None:
            return False
    return True
