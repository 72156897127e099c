"""Public attributes: DuckDB evaluates conditions and measures on them, block by block and in order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from deniable import arrow_functions as pc
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
    with _session(os.getpid()).cursor() as connection:
        connection.register("rows", columns)
        try:
            values = connection.sql(query).to_arrow_table()
        except duckdb.Error:
            raise QueryRefused("a public attribute is used as the wrong type", "Compare like with like.") from None
    return [np.asarray(values[f"c{number}"].combine_chunks()) for number in range(len(trees))]


@lru_cache(maxsize=1)
def _session(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 - a forked process has its own
    """A session that is kept: opening one takes longer than most questions. One thread, so rows stay in their order."""
    return open_duckdb(threads=1)


def codes(column: pa.ChunkedArray, values: pa.Array) -> Integers:
    """For every row the number of its value in a list."""
    return np.asarray(pc.index_in(column.combine_chunks(), values).fill_null(-1)).astype(np.int64)
