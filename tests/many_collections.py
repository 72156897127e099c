"""Many independent collections of the same rows, as simulations need them."""

import numpy as np
import pyarrow as pa

import deniable as dn


def simulated(collection, frames, users, runs, seed=0):
    """A database for each run: all are drawn at once, with ids of their own, and then parted.

    The ids of every table are 0 … users − 1, and everybody takes part in every table.
    """
    many = {}
    for name, frame in frames.items():
        table = pa.table(frame) if isinstance(frame, dict) else frame
        uid = np.add.outer(np.arange(runs) * users, np.asarray(table["uid"])).ravel()
        position = table.column_names.index("uid")
        many[name] = pa.concat_tables([table] * runs).set_column(position, "uid", pa.array(uid))
    reports = collection.perturb(**many, source=dn.SeededSource(seed), simulation=True)
    for run in range(runs):
        parts = {}
        for name, table in reports.tables.items():
            size = users * collection.reports_per_user(name)
            parts[name] = table.slice(run * size, size)
        yield dn.connect(dn.Reports(collection, parts, {}))
