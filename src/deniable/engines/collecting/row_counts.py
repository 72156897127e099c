"""What became of the rows of a run: counts for whoever runs the collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from deniable.tables.specification.specification import Specification


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of the rows of one table: exact counts for whoever runs the collection. They are not private."""

    rows: int
    users: int
    reports: int
    epsilon_per_report: float
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Rows that were not used, by reason."""


class Tally:
    """Counts of one table while its rows are read."""

    def __init__(self) -> None:
        self.rows = self.users = self.reports = 0
        self.rejected: Counter[str] = Counter()

    def reject(self, reason: str, rows: int) -> None:
        """Count rows that are skipped unread."""
        self.rows += rows
        self.rejected[reason] += rows

    def summary(self, collection: Specification, name: str) -> Summary:
        """The counts, once all rows were read."""
        spent = collection.epsilon_per_report(name)
        return Summary(self.rows, self.users, self.reports, spent, dict(+self.rejected))
