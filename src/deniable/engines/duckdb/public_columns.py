"""Public attributes: DuckDB evaluates conditions and measures on them, block by block and in order."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.engines.duckdb.session import open_duckdb
from deniable.errors import QueryRefused
from deniable.queries.question.question import PublicFactor


def evaluate(columns: pa.Table, expressions: list[str]) -> list[NDArray[np.generic]]:
    """Checked SQL expressions of a table's columns, row by row."""
    if not expressions:
        return []
    # Expressions never come from a user's text as it is: every node of it was recognised and printed anew.
    listed = ", ".join(f"{text} AS c{number}" for number, text in enumerate(expressions))
    with open_duckdb(threads=1) as connection:  # rows stay in their order
        connection.register("rows", columns)
        try:
            found = connection.sql(f"SELECT {listed} FROM rows").to_arrow_table()  # noqa: S608
        except duckdb.Error:
            problem = "a public attribute is compared or calculated with as another type than it has"
            raise QueryRefused(problem, "Compare like with like.") from None
    return [np.asarray(found[f"c{number}"].combine_chunks()) for number in range(len(expressions))]


def tests_sql(tests: tuple[tuple[str, bool], ...]) -> str:
    """All tests at once; a test that is neither true nor false is not passed."""
    parts = [f"coalesce(({text}), false)" if wanted else f"NOT coalesce(({text}), false)" for text, wanted in tests]
    return " AND ".join(parts) or "true"


def factor_sql(factor: PublicFactor) -> str:
    """What a row is multiplied by."""
    measure = factor.measure or "1.0"
    return f"CASE WHEN {tests_sql(factor.tests)} THEN coalesce(CAST(({measure}) AS DOUBLE), 0.0) ELSE 0.0 END"


def codes(column: pa.ChunkedArray, values: pa.Array) -> Integers:
    """For every row the number of its value in a list."""
    found = pc.index_in(column.combine_chunks(), values)
    return np.asarray(found.fill_null(-1)).astype(np.int64)
