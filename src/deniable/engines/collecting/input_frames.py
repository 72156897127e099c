"""Tables as people pass them: frames of any library, dictionaries of columns, Parquet and CSV files.

Error messages of DuckDB and Arrow may quote data, so they are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from deniable.engines.duckdb.duckdb_session import literal_path, open_duckdb
from deniable.engines.duckdb.regular_files import why_not_a_file
from deniable.errors import InvalidData
from deniable.tables.schema.attributes import Categorical, Private, Text
from deniable.wording import shown

FRAMES = "Pass a frame, a dictionary of columns, or the path of a Parquet or CSV file."

SAMPLE_ROWS = 20_480
_TEXTS = {"header": True, "all_varchar": True}


def is_csv(path: str | Path) -> bool:
    """Whether a path is that of a CSV file, compressed or not."""
    return any(suffix.lower() in (".csv", ".tsv") for suffix in Path(path).suffixes)


def why_unreadable(frame: Any, where: str) -> str:
    """What is wrong with a table, as far as its path shows; DuckDB's own message may quote data."""
    if not isinstance(frame, (str, Path)):
        return f"{where} cannot be read"
    kind = "CSV" if is_csv(frame) else "Parquet"
    return f"{where} cannot be read: {why_not_a_file(frame) or f'{shown(Path(frame).name)} is not a {kind} file'}"


def opened_as_text(connection: Any, path: str | Path, where: str) -> Any:
    """A Parquet file as a relation, or a CSV file with all columns as texts."""
    return _opened(connection, path, where, **_TEXTS)


def _opened(connection: Any, path: str | Path, where: str, **csv: Any) -> Any:
    """One regular file as a relation. Names of folders are not read as values (`hive_partitioning`)."""
    if why_not_a_file(path):
        raise InvalidData(why_unreadable(path, where), FRAMES)
    if is_csv(path):
        return connection.read_csv(literal_path(path), hive_partitioning=False, **csv)
    return connection.read_parquet(literal_path(path), hive_partitioning=False)


def csv_type(domain: Private) -> str:
    """How a text of a CSV file is read as a value of a domain; what cannot be read becomes NULL."""
    if isinstance(domain, Categorical):
        kind = type(domain.values[0])
        if kind is int:
            return "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]{{1,19}}') THEN TRY_CAST({0} AS BIGINT) END"
        if kind is bool:
            return "TRY_CAST({0} AS BOOLEAN)"
        return "coalesce({0}, '')" if "" in domain.values else "{0}"
    if isinstance(domain, Text):
        return "{0}"
    return {"number": "TRY_CAST({0} AS DOUBLE)", "date": "TRY_CAST({0} AS DATE)", "time": "TRY_CAST({0} AS TIMESTAMP)"}[
        domain.kind
    ]


def arrow_or_as_it_is(frame: Any) -> Any:
    """A frame as it is; a dictionary of columns as an Arrow table. Arrow's own messages may quote data."""
    if not isinstance(frame, Mapping):
        return frame
    try:
        ready = (np.ndarray, pa.Array, pa.ChunkedArray, list)
        return pa.table({name: values if isinstance(values, ready) else list(values) for name, values in frame.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise TypeError from None


def as_arrow(frame: Any, where: str) -> pa.Table:
    """A frame, or a Parquet or CSV file, as an Arrow table; types of a CSV file are guessed."""
    if isinstance(frame, (str, Path)):
        table: pa.Table = _asked(frame, lambda rows: rows.to_arrow_table())
        return table
    with open_duckdb() as connection:
        try:
            connection.register("given", arrow_or_as_it_is(frame))
            return connection.table("given").to_arrow_table()
        except (duckdb.Error, TypeError):
            raise InvalidData(f"{where} cannot be read", FRAMES) from None


def count_rows(paths: Mapping[str, str | Path]) -> int:
    """How many rows files hold, for a progress bar."""
    return sum(_asked(path, lambda rows: rows.count("*").fetchall()[0][0], **_TEXTS) for path in paths.values())


def column_types(path: str | Path) -> dict[str, str]:
    """Names and types of a file's columns; of a CSV file the types are guessed from its first `SAMPLE_ROWS` rows."""
    types: dict[str, str] = _asked(
        path,
        lambda rows: dict(zip(rows.columns, map(str, rows.types), strict=True)),
        header=True,
        sample_size=SAMPLE_ROWS,
    )
    return types


def _asked(path: str | Path, question: Callable[[Any], Any], **csv: Any) -> Any:
    where = f"file {shown(Path(path).name)}"
    unreadable = InvalidData(why_unreadable(path, where), "Pass a Parquet or CSV file.")
    if why_not_a_file(path):
        raise unreadable
    with open_duckdb(files=[path]) as connection:
        try:
            return question(_opened(connection, path, where, **csv))
        except duckdb.OutOfMemoryException:
            raise InvalidData(f"{where} is too large for memory", "Pass a smaller one.") from None
        except duckdb.Error:
            raise unreadable from None
