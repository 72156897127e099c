"""Results with one row per cell or phase: to Arrow, pandas and Polars, as answers to SQL are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from deniable.simulation import mark


class CurveTable(ABC):
    """Columns of equal length, and whether they protect anybody."""

    simulation: bool

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """The columns by name."""

    def to_arrow(self) -> pa.Table:
        """One row per entry."""
        return pa.table(self.columns()).replace_schema_metadata(mark(simulation=self.simulation))

    def to_pandas(self) -> Any:
        """One row per entry. Needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """One row per entry. Needs Polars."""
        import polars

        return polars.from_arrow(self.to_arrow())
