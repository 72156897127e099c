"""Public attributes: DuckDB evaluates conditions and measures on them, block by block and in order."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from deniable.arrays import Integers
from deniable.engines.duckdb.duckdb_session import open_duckdb
from deniable.errors import QueryRefused
from deniable.queries.question.public_trees import Tree


def evaluate(columns: pa.Table, trees: Sequence[Tree]) -> list[NDArray[np.generic]]:
    """Recognised expressions of a table's columns, row by row."""
    if not trees:
        return []
    named = (exp.alias_(tree.copy(), f"c{number}") for number, tree in enumerate(trees))
    query = exp.select(*named, copy=False).from_("rows").sql(dialect="duckdb")
    with open_duckdb(threads=1) as connection:  # rows stay in their order
        connection.register("rows", columns)
        try:
            values = connection.sql(query).to_arrow_table()
        except duckdb.Error:
            raise QueryRefused("a public attribute is used as the wrong type", "Compare like with like.") from None
    return [np.asarray(values[f"c{number}"].combine_chunks()) for number in range(len(trees))]


def codes(column: pa.ChunkedArray, values: pa.Array) -> Integers:
    """For every row the number of its value in a list."""
    return np.asarray(pc.index_in(column.combine_chunks(), values).fill_null(-1)).astype(np.int64)
