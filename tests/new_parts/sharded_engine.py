"""A new engine: users are divided among several engines, whose sums are added."""

from collections import Counter
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Shards:
    """What is known of one table's reports in all shards."""

    def __init__(self, stores):
        self._stores = stores
        self.slots = stores[0].slots
        self.rows = sum(store.rows for store in stores)

    def distinct(self, column):
        return pc.unique(pa.concat_arrays([store.distinct(column) for store in self._stores])).sort()

    def view_counts(self, views):
        return sum(store.view_counts(views) for store in self._stores)


class ShardedEngine:
    """Sums over users add up over shards. Views are not divided by their counts: no shard knows them all."""

    def __init__(self, *engines):
        self._engines = engines
        self.collection, self.simulation = engines[0].collection, engines[0].simulation
        self.stores = {name: Shards([engine.stores[name] for engine in engines]) for name in engines[0].stores}
        self.refused = {name: sum((engine.refused[name] for engine in engines), Counter()) for name in self.stores}

    def moments(self, plan, dimensions, *, counted=True):
        return reduce(_added, (engine.moments(plan, dimensions, counted=False) for engine in self._engines))

    def cell_counts(self, table, views):
        return np.sum([engine.cell_counts(table, views) for engine in self._engines], axis=0)

    def cell_pairs(self, table):
        shards = [engine.cell_pairs(table) for engine in self._engines]
        return {view: sum(shard[view] for shard in shards) for view in shards[0]}

    def close(self):
        for engine in self._engines:
            engine.close()


def _added(left, right):
    assert left.keys == right.keys
    summed = {name: getattr(left, name) + getattr(right, name) for name in ("users", "sums", "crosses", "between")}
    return replace(left, **summed)
