"""Public dimension tables, as Arrow tables whose conditions DuckDB evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable import arrow_functions as pc
from deniable.arrays import Booleans, Floats, Integers
from deniable.engines.duckdb.public_columns import evaluate
from deniable.errors import InvalidData
from deniable.queries.question.public_trees import Tree, holds
from deniable.tables.bulk.column_encoding import encode, readable
from deniable.tables.schema.attributes import Private, without_rules


@dataclass(frozen=True, slots=True, eq=False)
class DimensionTable:
    """A public table with one row per value of its key."""

    name: str
    frame: pa.Table

    @property
    def columns(self) -> list[str]:
        """Names of its columns."""
        return list(self.frame.column_names)

    def listed(self, column: str, condition: Tree | None) -> list[Any]:
        """The different values of a column, in rows for which a condition is true."""
        values = self.frame[column].combine_chunks()
        if condition is not None:
            (true,) = evaluate(self.frame, [holds(condition)])
            values = values.filter(pa.array(true.astype(bool)))
        return list(values.unique().to_pylist())

    def check_key(self, key: str) -> None:
        """Refuse a key that names a value twice."""
        column = self.frame[key].drop_null()
        if len(column) != len(column.unique()):
            raise InvalidData(f"dimension {self.name!r} names values of {key!r} twice", "Keep one row for each value.")

    def on(self, key: str, domain: Private, *, outer: bool = False) -> AlignedDimension:
        """Its rows in the order of a domain; keys outside it are left out. With `outer`, NULLs where there is none."""
        self.check_key(key)
        column = self.frame[key]
        if not readable(domain, column.type):
            raise InvalidData(f"column {key!r} of dimension {self.name!r} is of another type", "Convert it first.")
        positions, problems = encode(without_rules(domain), column)
        rows = np.full(domain.size, -1, dtype=np.int64)
        good = np.flatnonzero(problems == 0)
        rows[positions[good]] = good
        return AlignedDimension(self.frame.take(pa.array(rows, mask=rows < 0)), (rows >= 0) | outer)

    def rows_of(self, values: pa.ChunkedArray, key: str) -> pa.Table:
        """For every value the row with that key; NULLs if there is none."""
        try:
            keys = self.frame[key].combine_chunks().cast(values.type)
            rows = pc.index_in(values.combine_chunks(), keys, skip_nulls=True)  # NULL is no key
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InvalidData(f"column {key!r} of dimension {self.name!r} is of another type", "Convert it.") from None
        return self.frame.take(rows)


@dataclass(frozen=True, slots=True, eq=False)
class AlignedDimension:
    """A dimension's rows in the order of an attribute's domain."""

    frame: pa.Table
    present: Booleans

    def holds(self, condition: Tree) -> Booleans:
        """Where a condition on the dimension's columns is true."""
        (true,) = evaluate(self.frame, [holds(condition)])
        return true.astype(bool) & self.present

    def numbers(self, column: str) -> Floats | None:
        """A column's numbers, with NaN for NULL; None if it is not numeric."""
        values = self.frame[column]
        kind = values.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            return None
        return np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan).combine_chunks(), dtype=np.float64)

    def groups(self, column: str) -> tuple[tuple[Any, ...], Integers]:
        """A column's distinct values, sorted, and for each position of the domain the index of its value."""
        array = self.frame[column].combine_chunks()
        values = array.filter(pa.array(self.present)).unique().sort()
        indices = np.asarray(pc.index_in(array, values).fill_null(-1)).astype(np.int64)
        return tuple(values.to_pylist()), np.where(self.present, indices, -1)


Dimensions = Mapping[str, DimensionTable]
"""Public tables by their names."""
