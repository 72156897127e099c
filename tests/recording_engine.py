"""An engine that is not one of the package's: it has another do the work, and records what it was asked."""


class RecordingEngine:
    def __init__(self, inner):
        self.inner, self.asked = inner, []
        self.collection, self.stores = inner.collection, inner.stores
        self.refused, self.simulation = inner.refused, inner.simulation

    def moments(self, plan, dimensions, *, counted=True):
        self.asked.append("moments")
        return self.inner.moments(plan, dimensions, counted=counted)

    def cell_counts(self, table, views):
        self.asked.append(f"cell counts of {table}")
        return self.inner.cell_counts(table, views)

    def cell_pairs(self, table):
        self.asked.append(f"cell pairs of {table}")
        return self.inner.cell_pairs(table)

    def close(self):
        self.asked.append("close")
        self.inner.close()
