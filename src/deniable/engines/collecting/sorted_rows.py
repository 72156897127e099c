"""Rows of frames and files, in the order of user ids, in batches that hold whole users.

DuckDB reads any frame or file, and sorts and joins with bounded memory, on disk if necessary. The columns of a CSV file
get their types from the specification, so that an odd value spoils only its own row. Ids out of order end a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from deniable.engines.collecting.drawn_names import name_of
from deniable.engines.collecting.input_frames import (
    FRAMES,
    arrow_or_as_it_is,
    csv_type,
    is_csv,
    opened_as_text,
    why_unreadable,
)
from deniable.engines.collecting.row_counts import Tally
from deniable.engines.collecting.user_batches import USER_BATCH_ROWS, sorted_users
from deniable.engines.duckdb.duckdb_session import open_duckdb, quoted
from deniable.engines.duckdb.spill_folders import SpillFolder
from deniable.errors import InvalidData, InvalidParameter
from deniable.tables.bulk.column_encoding import readable
from deniable.tables.schema.attributes import Table
from deniable.tables.specification.specification import Specification

NO_USER, UNKNOWN_USER = "without a user id", "of an unknown user"
SECOND_ROW = "a second row of a user"
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_NULL = '"NULL"'
UNREADABLE_SUFFIX = " is unreadable"
PRESENT = "row is present"  # a space keeps it apart from every attribute


def everyone_missing() -> InvalidParameter:
    """The list of users who send reports is missing."""
    return InvalidParameter(
        "everyone",
        "is missing: users without rows must send reports too, or their absence would reveal them",
        "Pass the ids of all users (everyone=, --everyone FILE), or a table with one row per user.",
    )


def public_of_rows(column: str, key: str) -> InvalidData:
    """A public column would have to be taken from private rows."""
    return InvalidData(
        f"the public column {column!r} belongs to a table with many rows per user; taken from its rows "
        "it would show which users have rows",
        f"Pass everyone= with the columns {key!r} and {column!r}, one value per user.",
    )


def varying(column: str) -> InvalidData:
    """A public column differs from the user's own value."""
    return InvalidData(
        f"the public column {column!r} varies between rows of a user: it would show which rows are dummies",
        "Make it a private attribute, or give each user one value.",
    )


def outer_type(kind: object) -> str:
    """The name of a type without its fields. Their names may be data: those of dictionaries come from the rows.

    >>> outer_type("struct<flu: int64>"), outer_type("STRUCT(flu BIGINT)[]"), outer_type("timestamp[us]")
    ('struct', 'STRUCT', 'timestamp')
    """
    return re.split(r"[<(\[]", str(kind), maxsplit=1)[0]


def unreadable_column(table: str, column: str, kind: object) -> InvalidData:
    """A column cannot hold its domain."""
    return InvalidData(
        f"column {column!r} of table {table!r} is of type {outer_type(kind)}, which cannot hold its domain",
        "Convert the column, or change the specification.",
    )


@dataclass(frozen=True, slots=True)
class _Given:
    """Rows as they were passed, and the name of their view in DuckDB."""

    view: str
    frame: Any
    table: Table | None
    """None for the list of everyone."""

    @property
    def where(self) -> str:
        """What messages call it."""
        return "everyone" if self.table is None else f"table {self.table.name!r}"

    @property
    def owner(self) -> str | None:
        """Whose rows they are; None for users."""
        return None if self.table is None else self.table.owner

    @property
    def ids(self) -> str:
        """What messages call its ids."""
        return "user ids" if self.owner is None else f"ids of {self.owner}"

    @property
    def is_csv(self) -> bool:
        """Whether it is a file without types."""
        return isinstance(self.frame, (str, Path)) and is_csv(self.frame)


class RowReader:
    """The tables that were passed, as sorted streams of batches that hold whole users.

    DuckDB's threads leave the rows of a user in any order, which is fine for a release: it draws among them at random.
    For a simulation that is to be repeated, `repeatable` sorts them too. With a `secret`, users have the names that
    follow from it instead of their ids.
    """

    def __init__(
        self,
        collection: Specification,
        frames: Mapping[str, Any],
        key: str,
        everyone: Any,
        *,
        repeatable: bool = False,
        spill: Path | None = None,
        secret: str | None = None,
    ) -> None:
        self._collection, self._frames, self._key, self._given = collection, frames, key, everyone
        self._repeatable, self._spill, self._secret = repeatable, spill, secret
        self._key_kinds: dict[str | None, str] = {}
        self._without_ids: dict[str, tuple[duckdb.DuckDBPyRelation, Table | None]] = {}
        self.names = [table.name for table in collection.tables if table.name in frames]

    def __enter__(self) -> RowReader:
        paths = [frame for frame in (*self._frames.values(), self._given) if isinstance(frame, (str, Path))]
        self._folder = SpillFolder(self._spill)
        self._connection = open_duckdb(folder=self._folder.path, files=paths)
        try:
            given = [_Given(f"rows_{name}", self._frames[name], self._collection[name]) for name in self.names]
            if self._given is not None:
                given.append(_Given("everyone_given", self._given, None))
            opened = [(rows, self._open(rows)) for rows in given]
            self._text_ids = {rows.owner for rows, relation in opened if self._has_text_ids(rows, relation)}
            opened = [
                (rows, relation.project(self._typed(relation, rows.table)) if rows.is_csv else relation)
                for rows, relation in opened
            ]
            opened = [(rows, self._named(rows, relation)) for rows, relation in opened]
            doubtful = self._types_are_doubtful(opened)
            for rows, relation in opened:
                key = quoted(self._key_of(rows.table))
                if rows.owner in doubtful and not relation.filter(f"{key} IS NOT NULL").limit(1).fetchall():
                    self._without_ids[rows.view] = relation, rows.table
                else:
                    self._attach(rows, relation)
            self._attach_empty()
            self._everyone(self._given is not None)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._folder.close()

    def _open(self, given: _Given) -> duckdb.DuckDBPyRelation:
        """A frame or file that has the columns that are needed."""
        table, frame, where = given.table, given.frame, given.where
        key = self._key_of(table)
        needed = [key] if table is None else [key, *(table.private if table.many else table.attributes)]
        relation: duckdb.DuckDBPyRelation
        try:
            if isinstance(frame, (str, Path)):
                relation = opened_as_text(self._connection, frame, where)
            else:
                # No other view begins like this, whatever tables are called: a clash would mix up rows.
                self._connection.register(f"given_{given.view}", arrow_or_as_it_is(frame))
                relation = self._connection.table(f"given_{given.view}")
        except (duckdb.Error, TypeError):
            raise InvalidData(why_unreadable(frame, where), FRAMES) from None
        lacking = [column for column in needed if column not in relation.columns]
        if lacking == [key]:
            repair = (
                "Name it with key=, or --key." if given.owner is None else "Rename it, or change the specification."
            )
            raise InvalidData(f"{where} lacks the column {key!r} of {given.ids}", repair)
        if lacking:
            raise InvalidData(f"{where} lacks the column {lacking[0]!r}", "Rename it, or change the specification.")
        return relation

    def _has_text_ids(self, given: _Given, relation: duckdb.DuckDBPyRelation) -> bool:
        """Whether some id is a text. In a CSV file, ids that are not written as integers are texts: 007 is not 7.

        Ids are public, so they may decide their own type.
        """
        if not given.is_csv:
            return self._kind(given, relation) == "VARCHAR"
        odd = f"NOT regexp_full_match({quoted(self._key_of(given.table))}, '0|-?[1-9][0-9]{{0,17}}')"
        return bool(relation.filter(odd).limit(1).project("true").fetchall())

    def _types_are_doubtful(self, opened: Sequence[tuple[_Given, duckdb.DuckDBPyRelation]]) -> set[str | None]:
        """The populations in which it matters which tables are empty: ids have several types or odd ones, or a column
        has no type.
        """
        doubtful = {rows.owner for rows, relation in opened if _NULL in map(str, relation.types)}
        for owner in {rows.owner for rows, _ in opened}:
            kinds = {self._kind(rows, relation) for rows, relation in opened if rows.owner == owner}
            if len(kinds) > 1 or not kinds <= {"VARCHAR", *_INTEGERS}:
                doubtful.add(owner)
        return doubtful

    def _named(self, given: _Given, relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        """The rows under the names of their users, where these are drawn. Ids of odd types stay, and are refused."""
        kind = self._kind(given, relation)
        if self._secret is None or (kind != "VARCHAR" and kind not in _INTEGERS):
            return relation
        return relation.project(f"* REPLACE ({name_of(self._key_of(given.table), self._secret)})")

    def _key_of(self, table: Table | None) -> str:
        """The column of ids: of users as it was passed, of others as the specification says."""
        return self._key if table is None or table.key is None else table.key

    def _kind(self, given: _Given, relation: duckdb.DuckDBPyRelation) -> str:
        return str(relation.types[relation.columns.index(self._key_of(given.table))])

    def _attach(self, given: _Given, relation: duckdb.DuckDBPyRelation) -> None:
        """Register a frame or file under its name, if its ids have the same type as those before it."""
        relation.create_view(given.view)
        kind = self._kind(given, relation)
        if kind != "VARCHAR" and kind not in _INTEGERS:
            problem = f"{given.ids} must be integers or texts, and in {given.where} they are {outer_type(kind)}"
            raise InvalidData(problem, "Convert them.")
        mine = "VARCHAR" if kind == "VARCHAR" else "BIGINT"
        if self._key_kinds.setdefault(given.owner, mine) != mine:
            raise InvalidData(f"{given.ids} are integers in one table and texts in another", "Use one type for all.")

    def _attach_empty(self) -> None:
        """Register tables without any id: their ids get the type of the others, untyped columns that of the domain."""
        for view, (relation, table) in self._without_ids.items():
            key, kind = quoted(self._key_of(table)), self._key_kinds.get(table.owner if table else None, "BIGINT")
            columns = [f"TRY_CAST({key} AS {kind}) AS {key}"]
            untyped = [name for name, kind in zip(relation.columns, relation.types, strict=True) if str(kind) == _NULL]
            for name, domain in zip(table.private, table.domains, strict=True) if table else ():
                if name in untyped:
                    text = f"CAST({quoted(name)} AS VARCHAR)"
                    columns.append(f"{csv_type(domain).format(text)} AS {quoted(name)}")
            relation.project(f"* REPLACE ({', '.join(columns)})").create_view(view)

    def _typed(self, relation: Any, table: Table | None) -> str:
        """The text columns of a CSV file, converted as the specification says; an odd value spoils only its row."""
        key = quoted(self._key_of(table))
        is_text = (table.owner if table else None) in self._text_ids
        columns = [key if is_text else f"CAST({key} AS BIGINT) AS {key}"]
        for name, domain in zip(table.private, table.domains, strict=True) if table else ():
            column, kind = quoted(name), csv_type(domain)
            columns.append(f"{kind.format(column)} AS {column}")
            unreadable = f"{column} IS NOT NULL AND {kind.format(column)} IS NULL"
            columns.append(f"({unreadable}) AS {quoted(name + UNREADABLE_SUFFIX)}")
        public = [name for name in (table.public if table else relation.columns) if name in relation.columns]
        return ", ".join([*columns, *(quoted(name) for name in public if name != self._key_of(table))])

    def _everyone(self, given: bool) -> None:
        """Create the list of users who send reports for tables with many rows: as given, or from the one-row tables."""
        users = [self._collection[name] for name in self.names if self._collection[name].owner is None]
        single = [table.name for table in users if table.many is None]
        if given:
            sources = ["everyone_given"]
        elif single:
            sources = [f"rows_{name}" for name in single]
        elif users:
            raise everyone_missing()
        else:
            return
        key = quoted(self._key)
        public = self._public_of_users(given)
        columns = "".join(f", {quoted(column)}" for column in public)
        values = "".join(f", any_value({quoted(column)}) AS {quoted(column)}" for column in public)
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
        """Public columns of tables with many rows. They come with the list of users, one value per user."""
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
            f"SELECT count(*) FROM {view} r JOIN everyone e ON e.uid = r.{quoted(self._key)} "  # noqa: S608
            f"WHERE r.{quoted(column)} IS DISTINCT FROM e.{quoted(column)}"
        )
        if differing:
            raise varying(column)

    def stream(self, name: str, tally: Tally) -> tuple[Iterator[pa.Table], pa.DataType, dict[str, pa.DataType]]:
        """Batches of whole users, the type of user ids, and those of public columns."""
        table = self._collection[name]
        key = quoted(self._key_of(table))
        holder = {
            **dict.fromkeys(table.private, "r"),
            **dict.fromkeys(table.public, "r" if table.many is None else "e"),
        }
        present = self._connection.table(f"rows_{name}").columns
        marks = {name + UNREADABLE_SUFFIX: "r" for name in table.private if name + UNREADABLE_SUFFIX in present}
        columns = ", ".join(f"{source}.{quoted(column)}" for column, source in (holder | marks).items())
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
            order = ["uid", *(f"r.{quoted(column)}" for column in table.private)] if self._repeatable else ["uid"]
            query = (
                f"SELECT e.uid AS uid, r.{quoted(PRESENT)}, {columns} FROM everyone e LEFT JOIN "  # noqa: S608
                f"(SELECT *, true AS {quoted(PRESENT)} FROM rows_{name}) r ON e.uid = r.{key} "
                f"ORDER BY {', '.join(order)}"
            )
        reader: pa.RecordBatchReader = self._connection.sql(query).to_arrow_reader(USER_BATCH_ROWS)
        uid = reader.schema.field("uid").type
        _check_types(table, reader.schema)
        public = {column: reader.schema.field(column).type for column in table.public}
        return sorted_users(reader), uid, public

    def odd_ids(self, name: str) -> dict[str, int]:
        """How many rows would be rejected for their user id, by reason."""
        key, view = quoted(self._key_of(self._collection[name])), f"rows_{name}"
        odd = {NO_USER: self._count(f"SELECT count(*) FROM {view} WHERE {key} IS NULL")}  # noqa: S608
        if self._collection[name].many is None:
            odd[SECOND_ROW] = self._count(f"SELECT count({key}) - count(DISTINCT {key}) FROM {view}")  # noqa: S608
        else:
            known = f"{key} IS NOT NULL AND {key} NOT IN (SELECT uid FROM everyone)"  # noqa: S608
            odd[UNKNOWN_USER] = self._count(f"SELECT count(*) FROM {view} WHERE {known}")  # noqa: S608
        return odd

    def unsorted(self, name: str) -> Iterator[pa.RecordBatch]:
        """The private columns of rows that have a known user, in any order."""
        table = self._collection[name]
        key = quoted(self._key_of(table))
        present = self._connection.table(f"rows_{name}").columns
        marks = [mark for attribute in table.private if (mark := attribute + UNREADABLE_SUFFIX) in present]
        columns = ", ".join(quoted(column) for column in (*table.private, *marks))
        known = "" if table.many is None else f" AND {key} IN (SELECT uid FROM everyone)"  # noqa: S608
        query = f"SELECT {columns} FROM rows_{name} WHERE {key} IS NOT NULL{known}"  # noqa: S608
        reader: pa.RecordBatchReader = self._connection.sql(query).to_arrow_reader(USER_BATCH_ROWS)
        _check_types(table, reader.schema)
        yield from reader

    def _count(self, query: str) -> int:
        return int(self._connection.execute(query).fetchall()[0][0])


def _check_types(table: Table, schema: pa.Schema) -> None:
    """Refuse columns that cannot hold their domains."""
    for column, domain in zip(table.private, table.domains, strict=True):
        kind = schema.field(column).type
        if not readable(domain, kind):
            raise unreadable_column(table.name, column, str(kind))
