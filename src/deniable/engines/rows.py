"""Rows of frames and files, in the order of user ids, in batches that hold whole users.

DuckDB reads whatever it is given, and sorts and joins with bounded memory, on disk if need be. A CSV file's columns are
typed by the specification, so that one odd value spoils its own row only. Ids out of order end a run.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.errors import Failure, InvalidData, InvalidParameter
from deniable.randomness import Integers
from deniable.tables.collection import Collection
from deniable.tables.encoding import readable
from deniable.tables.reports import Summary
from deniable.tables.schema import Categorical, Private, Table

BATCH_ROWS = 1 << 18
FRAMES = "Pass a frame, a dictionary of columns, or the path of a Parquet or CSV file."
MEMORY_LIMIT = "512MB"
NO_USER, UNKNOWN_USER = "without a user id", "of an unknown user"
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
UNREADABLE = " is unreadable"
PRESENT = "row is present"  # a space keeps it apart from every attribute


class Tally:
    """Counts of one table's run."""

    def __init__(self) -> None:
        self.rows = self.users = self.reports = 0
        self.rejected: Counter[str] = Counter()

    def reject(self, reason: str, rows: int) -> None:
        """Rows that are not even looked at."""
        self.rows += rows
        self.rejected[reason] += rows

    def summary(self, collection: Collection, name: str) -> Summary:
        """The counts, once all rows were read."""
        spent = collection.epsilon_per_report(name)
        return Summary(self.rows, self.users, self.reports, spent, dict(+self.rejected))


def starts_of(uid: pa.Array) -> Integers:
    """Where each user's rows begin, in a column sorted by user."""
    if len(uid) == 1:
        return np.zeros(1, dtype=np.int64)
    changes = np.asarray(pc.not_equal(uid.slice(1), uid.slice(0, len(uid) - 1)))
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def everyone_missing() -> InvalidParameter:
    """Nobody said who sends reports."""
    return InvalidParameter(
        "everyone",
        "is missing: users without rows must send reports too, or their absence would tell",
        "Pass the ids of all users, or a table with one row per user.",
    )


def public_of_rows(column: str, key: str) -> InvalidData:
    """A public column would be taken from rows that are private."""
    return InvalidData(
        f"the public column {column!r} belongs to a table with many rows per user; taken from its rows "
        "it would tell users with rows from users without",
        f"Pass everyone= with the columns {key!r} and {column!r}, one value per user.",
    )


def varying(column: str) -> InvalidData:
    """A public column differs from the user's own value."""
    return InvalidData(
        f"the public column {column!r} varies between rows of a user: it would tell dummy rows from real ones",
        "Make it a private attribute, or give each user one value.",
    )


def unreadable_column(table: str, column: str, kind: str) -> InvalidData:
    """A column cannot hold its domain."""
    return InvalidData(
        f"column {column!r} of table {table!r} is of type {kind}, which cannot hold its domain",
        "Convert the column, or change the specification.",
    )


class RowReader:
    """The tables that were handed in, as sorted streams of batches that hold whole users."""

    def __init__(self, collection: Collection, frames: Mapping[str, Any], key: str, everyone: Any) -> None:
        self._collection, self._frames, self._key, self._given = collection, frames, key, everyone
        self._key_kinds: set[str] = set()
        self.names = [table.name for table in collection.tables if table.name in frames]

    def __enter__(self) -> RowReader:
        self._folder = tempfile.TemporaryDirectory(prefix="deniable-")
        self._connection = duckdb.connect(config={"memory_limit": MEMORY_LIMIT, "temp_directory": self._folder.name})
        self._connection.execute("SET enable_progress_bar = false")  # it would print to stdout
        try:
            for name in self.names:
                self._attach(f"rows_{name}", self._frames[name], self._collection[name], f"table {name!r}")
            if self._given is not None:
                self._attach("everyone_given", self._given, None, "everyone")
            self._everyone(self._given is not None)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._folder.cleanup()

    def _attach(self, view: str, frame: Any, table: Table | None, where: str) -> None:
        """Make a frame or file known under a name, with the columns that are needed."""
        needed = [self._key] if table is None else [self._key, *(table.private if table.many else table.attributes)]
        try:
            if isinstance(frame, (str, Path)):
                relation = _opened(self._connection, frame)
            else:
                # No view begins like this, whatever tables are called: a clash would mix up their rows.
                self._connection.register(f"given_{view}", arrow_or_as_it_is(frame))
                relation = self._connection.table(f"given_{view}")
        except (duckdb.Error, TypeError):
            raise InvalidData(_unreadable(frame, where), FRAMES) from None
        lacking = [column for column in needed if column not in relation.columns]
        if lacking == [self._key]:
            raise InvalidData(f"{where} lacks the column {self._key!r} of user ids", "Name it with key=, or --key.")
        if lacking:
            raise InvalidData(f"{where} lacks the column {lacking[0]!r}", "Rename it, or change the specification.")
        if isinstance(frame, (str, Path)) and _is_csv(frame):
            relation = relation.project(self._typed(relation, table))
        relation.create_view(view)
        kind = str(relation.types[relation.columns.index(self._key)])
        if kind != "VARCHAR" and kind not in _INTEGERS:
            raise InvalidData(f"user ids must be integers or texts, and in {where} they are {kind}", "Convert them.")
        self._key_kinds.add("text" if kind == "VARCHAR" else "integer")
        if len(self._key_kinds) > 1:
            raise InvalidData("user ids are integers in one table and texts in another", "Use one type for all.")

    def _typed(self, relation: Any, table: Table | None) -> str:
        """The columns of a CSV file, all texts, as the specification wants them: one odd value spoils its own row only.

        Ids are public, so they may decide their own type: integers if all of them are.
        """
        key = _quoted(self._key)
        odd = relation.filter(f"NOT regexp_full_match({key}, '-?[0-9]{{1,18}}')").count("*").fetchall()[0][0]
        columns = [key if odd else f"CAST({key} AS BIGINT) AS {key}"]
        for name, domain in zip(table.private, table.domains, strict=True) if table else ():
            column, kind = _quoted(name), _csv_type(domain)
            columns.append(f"{kind.format(column)} AS {column}")
            unreadable = f"{column} IS NOT NULL AND {kind.format(column)} IS NULL"
            columns.append(f"({unreadable}) AS {_quoted(name + UNREADABLE)}")
        public = [name for name in (table.public if table else relation.columns) if name in relation.columns]
        return ", ".join([*columns, *(_quoted(name) for name in public if name != self._key)])

    def _everyone(self, given: bool) -> None:
        """The list of users who send reports for tables with many rows: given, or those of the one-row tables here."""
        single = [name for name in self.names if self._collection[name].many is None]
        if given:
            sources = ["everyone_given"]
        elif single:
            sources = [f"rows_{name}" for name in single]
        elif any(self._collection[name].many for name in self.names):
            raise everyone_missing()
        else:
            return
        key = _quoted(self._key)
        public = self._public_of_users(given)
        columns = "".join(f", {_quoted(column)}" for column in public)
        values = "".join(f", any_value({_quoted(column)}) AS {_quoted(column)}" for column in public)
        union = " UNION ALL ".join(
            f"SELECT {key}{columns} FROM {name} WHERE {key} IS NOT NULL"  # noqa: S608
            for name in sources
        )
        self._connection.execute(
            f"CREATE TEMP TABLE everyone AS SELECT {key} AS uid{values} FROM ({union}) GROUP BY {key}"  # noqa: S608
        )
        for column in public:
            self._check_constant(column, "everyone_given")

    def _public_of_users(self, given: bool) -> list[str]:
        """Public columns of tables with many rows. They come with the list of users, one value for each."""
        public = {
            column for name in self.names if self._collection[name].many for column in self._collection[name].public
        }
        for column in sorted(public):
            if not given or column not in self._connection.table("everyone_given").columns:
                raise public_of_rows(column, self._key)
        return sorted(public)

    def _check_constant(self, column: str, view: str) -> None:
        """Refuse a public column that differs from the user's own value."""
        differing = self._count(
            f"SELECT count(*) FROM {view} r JOIN everyone e ON e.uid = r.{_quoted(self._key)} "  # noqa: S608
            f"WHERE r.{_quoted(column)} IS DISTINCT FROM e.{_quoted(column)}"
        )
        if differing:
            raise varying(column)

    def stream(self, name: str, tally: Tally) -> tuple[Iterator[pa.Table], pa.DataType, dict[str, pa.DataType]]:
        """Batches of whole users, the type of user ids, and those of public columns."""
        table, key = self._collection[name], _quoted(self._key)
        holder = {
            **dict.fromkeys(table.private, "r"),
            **dict.fromkeys(table.public, "r" if table.many is None else "e"),
        }
        present = self._connection.table(f"rows_{name}").columns
        marks = {name + UNREADABLE: "r" for name in table.private if name + UNREADABLE in present}
        columns = ", ".join(f"{place}.{_quoted(column)}" for column, place in (holder | marks).items())
        nobody = self._count(f"SELECT count(*) FROM rows_{name} WHERE {key} IS NULL")  # noqa: S608
        tally.reject(NO_USER, nobody)
        if table.many is None:
            query = f"SELECT r.{key} AS uid, {columns} FROM rows_{name} r WHERE r.{key} IS NOT NULL ORDER BY uid"  # noqa: S608
        else:
            strangers = self._count(
                f"SELECT count(*) FROM rows_{name} r WHERE r.{key} IS NOT NULL "  # noqa: S608
                f"AND r.{key} NOT IN (SELECT uid FROM everyone)"
            )
            tally.reject(UNKNOWN_USER, strangers)
            for column in table.public:
                if column in self._connection.table(f"rows_{name}").columns:
                    self._check_constant(column, f"rows_{name}")
            query = (
                f"SELECT e.uid AS uid, r.{_quoted(PRESENT)}, {columns} FROM everyone e LEFT JOIN "  # noqa: S608
                f"(SELECT *, true AS {_quoted(PRESENT)} FROM rows_{name}) r ON e.uid = r.{key} ORDER BY uid"
            )
        reader: pa.RecordBatchReader = self._connection.sql(query).to_arrow_reader(BATCH_ROWS)
        uid = reader.schema.field("uid").type
        for column, domain in zip(table.private, table.domains, strict=True):
            kind = reader.schema.field(column).type
            if not readable(domain, kind):
                raise unreadable_column(name, column, str(kind))
        public = {column: reader.schema.field(column).type for column in table.public}
        return whole_users(reader), uid, public

    def _count(self, query: str) -> int:
        return int(self._connection.execute(query).fetchall()[0][0])


def _is_csv(path: str | Path) -> bool:
    return any(suffix.lower() in (".csv", ".tsv") for suffix in Path(path).suffixes)


def _unreadable(frame: Any, where: str) -> str:
    """What is wrong with a table, as far as its path tells; DuckDB's own words may quote data."""
    if not isinstance(frame, (str, Path)):
        return f"{where} cannot be read"
    place = Path(frame)
    if not place.exists() and not any(sign in str(frame) for sign in "*?[") and "://" not in str(frame):
        return f"{where} cannot be read: there is no file {place.name!r}"
    return f"{where} cannot be read: {place.name!r} is no {'CSV' if _is_csv(frame) else 'Parquet'} file"


def _opened(connection: Any, path: str | Path) -> Any:
    """A Parquet file as a relation, or a CSV file with all columns as texts."""
    if _is_csv(path):
        return connection.read_csv(str(path), header=True, all_varchar=True)
    return connection.read_parquet(str(path))


def _csv_type(domain: Private) -> str:
    """How a text of a CSV file is read as a value of a domain; what cannot be read becomes NULL."""
    if isinstance(domain, Categorical):
        kind = type(domain.values[0])
        if kind is int:
            return "CASE WHEN regexp_full_match({0}, '[+-]?[0-9]{{1,19}}') THEN TRY_CAST({0} AS BIGINT) END"
        if kind is bool:
            return "TRY_CAST({0} AS BOOLEAN)"
        return "coalesce({0}, '')" if "" in domain.values else "{0}"
    return {"number": "TRY_CAST({0} AS DOUBLE)", "date": "TRY_CAST({0} AS DATE)", "time": "TRY_CAST({0} AS TIMESTAMP)"}[
        domain.kind
    ]


def count_rows(paths: Mapping[str, str | Path]) -> int:
    """How many rows files hold, for a progress bar."""
    return sum(_asked(_opened, path, lambda rows: rows.count("*").fetchall()[0][0]) for path in paths.values())


def column_types(path: str | Path) -> dict[str, str]:
    """Names and types of a file's columns; of a CSV file the types are guessed."""
    types: dict[str, str] = _asked(
        _guessed, path, lambda rows: dict(zip(rows.columns, map(str, rows.types), strict=True))
    )
    return types


def arrow_or_as_it_is(frame: Any) -> Any:
    """A frame as it is; a dictionary of columns as an Arrow table. What Arrow says of a bad one may quote data."""
    if not isinstance(frame, Mapping):
        return frame
    try:
        ready = (np.ndarray, pa.Array, pa.ChunkedArray, list)
        return pa.table({name: one if isinstance(one, ready) else list(one) for name, one in frame.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise TypeError from None


def as_arrow(frame: Any, where: str) -> pa.Table:
    """A frame, or a Parquet or CSV file, as an Arrow table; types of a CSV file are guessed."""
    if isinstance(frame, (str, Path)):
        table: pa.Table = _asked(_guessed, frame, lambda rows: rows.to_arrow_table())
        return table
    with duckdb.connect() as connection:
        try:
            connection.register("given", arrow_or_as_it_is(frame))
            return connection.table("given").to_arrow_table()
        except (duckdb.Error, TypeError):
            raise InvalidData(f"{where} cannot be read", FRAMES) from None


def _guessed(connection: Any, path: str | Path) -> Any:
    return connection.read_csv(str(path)) if _is_csv(path) else connection.read_parquet(str(path))


def _asked(opened: Callable[..., Any], path: str | Path, question: Callable[[Any], Any]) -> Any:
    with duckdb.connect() as connection:
        try:
            return question(opened(connection, path))
        except duckdb.Error:
            raise InvalidData(_unreadable(path, f"file {Path(path).name!r}"), "Pass a Parquet or CSV file.") from None


def whole_users(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows of a sorted stream in batches; the last user of a batch waits until it is known that she is complete."""
    held = reader.schema.empty_table()
    last_seen = None
    for batch in reader:
        if not batch.num_rows:
            continue
        last_seen = _checked_order(batch["uid"], last_seen)
        held = pa.concat_tables([held, pa.Table.from_batches([batch])])
        if held.num_rows < BATCH_ROWS:
            continue
        last = int(starts_of(held["uid"].combine_chunks())[-1])
        if last:
            yield held.slice(0, last)
            held = held.slice(last).combine_chunks()
    if held.num_rows:
        yield held


def few_users(stream: Iterator[pa.Table], users: int) -> Iterator[pa.Table]:
    """Batches of at most so many users: a user may send more reports than she has rows."""
    for rows in stream:
        starts = starts_of(rows["uid"].combine_chunks())
        cuts = [*starts[::users].tolist(), rows.num_rows]
        for first, last in pairwise(cuts):
            yield rows.slice(first, last - first)


def _checked_order(uid: pa.Array, last_seen: Any) -> Any:
    """The last id of a batch. Ids out of order would make a user send two sets of reports, so that ends the run."""
    ordered = pc.all(pc.less_equal(uid.slice(0, len(uid) - 1), uid.slice(1))).as_py() is not False
    if not ordered or (last_seen is not None and pc.less(uid[0], last_seen).as_py()):
        raise Failure("rows came out of the order of user ids. Nothing was written. Please report this.")
    return uid[-1]


def _quoted(name: str) -> str:
    """A column's name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
