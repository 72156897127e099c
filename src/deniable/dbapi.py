"""DB-API 2.0 (PEP 249) over a database: for tools of Python that know connections and cursors.

    from deniable import dbapi
    connection = dbapi.connect("collected/")                              # reports in a folder
    connection = dbapi.connect("http://127.0.0.1:8710", key="dnk_…")      # a collector, with a key of the scope ask

Answers have a column for the number, and x_stderr, x_low and x_high for its errors; `error_columns=False` leaves these
out. Nothing can be changed, so commit and rollback do nothing.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from deniable.asked_collector import AskedCollector, Unreachable
from deniable.database import Database
from deniable.database import connect as open_database
from deniable.errors import BadInput, DeniableError
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.catalogue import CatalogueTable, catalogue

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Connection", "Cursor", "DataError", "DatabaseError",
    "Date", "DateFromTicks", "Error", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError",
    "OperationalError", "ProgrammingError", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks", "Warning",
    "apilevel", "connect", "paramstyle", "threadsafety",
]  # fmt: skip

apilevel, threadsafety, paramstyle = "2.0", 2, "qmark"
Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 - PEP 249's name
    """A date from seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - PEP 249's name
    """A time of the day from seconds since 1970."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802 - PEP 249's name
    """A moment from seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])


class Warning(Exception):  # noqa: A001 - PEP 249's name
    """Something worth a look."""


class Error(Exception):
    """Base of the errors of this module."""


class InterfaceError(Error):
    """A connection or a cursor is used in a way that it is not made for."""


class DatabaseError(Error):
    """The database says no."""


class DataError(DatabaseError):
    """A value is impossible."""


class OperationalError(DatabaseError):
    """The question was fine, and something else failed."""


class IntegrityError(DatabaseError):
    """Nothing here raises it: nothing can be changed."""


class InternalError(DatabaseError):
    """Nothing here raises it."""


class ProgrammingError(DatabaseError):
    """The question cannot be answered as it stands; the message says what to change."""


class NotSupportedError(DatabaseError):
    """Not possible with randomised reports."""


class _Kind:
    """A type of columns, equal to every Arrow type that it stands for."""

    def __init__(self, name: str, *tests: Any) -> None:
        self._name, self._tests = name, tests

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, pa.DataType) and any(test(other) for test in self._tests))

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING = _Kind("STRING", pa.types.is_string, pa.types.is_large_string)
NUMBER = _Kind("NUMBER", pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
DATETIME = _Kind("DATETIME", pa.types.is_date, pa.types.is_timestamp, pa.types.is_time)
BINARY = _Kind("BINARY", pa.types.is_binary)
ROWID = _Kind("ROWID")


def connect(
    target: str | PathLike[str] | Database, *, key: str | None = None, error_columns: bool = True, **options: Any
) -> Connection:
    """Open reports in a folder, a database, or a collector at an address with a key of the scope ask.

    Options are those of `Database.sql`: `confidence=0.9` and the like.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> frame = {"uid": range(1_000), "age": [20, 30] * 500}
    >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
    >>> cursor = connect(db).cursor()
    >>> cursor.execute("SELECT COUNT(*) AS n FROM users WHERE age < ?", [25]).fetchone()[0] > 0
    True
    >>> [column[0] for column in cursor.description]
    ['n', 'n_stderr', 'n_low', 'n_high']
    """
    try:
        chosen = AnswerOptions(**options)
        if isinstance(target, Database):
            return Connection(target, chosen, error_columns=error_columns, owned=False)
        if isinstance(target, str) and target.startswith(("http://", "https://")):
            return Connection(AskedCollector(target, key or ""), chosen, error_columns=error_columns, owned=True)
        return Connection(open_database(Path(target)), chosen, error_columns=error_columns, owned=True)
    except TypeError:
        raise InterfaceError("an option is unknown. Nothing was opened. Use those of Database.sql.") from None
    except DeniableError as problem:
        raise _translated(problem) from None


class Connection:
    """An open database. Threads may share it."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(
        self, asked: Database | AskedCollector, options: AnswerOptions, *, error_columns: bool, owned: bool
    ) -> None:
        self._asked: Database | AskedCollector | None = asked
        self._options, self._error_columns, self._owned = options, error_columns, owned

    @property
    def asked(self) -> Database | AskedCollector:
        """What is asked; refused after `close`."""
        if self._asked is None:
            raise InterfaceError("the connection is closed. Nothing was asked. Open another.")
        return self._asked

    def tables(self) -> list[CatalogueTable]:
        """What there is to ask about."""
        asked = self.asked
        try:
            return catalogue(asked.collection, asked.dimensions) if isinstance(asked, Database) else asked.tables()
        except Unreachable as problem:
            raise OperationalError(str(problem)) from None

    def cursor(self) -> Cursor:
        """Something to ask with."""
        return Cursor(self, self.asked)

    def commit(self) -> None:
        """Nothing was changed, so nothing is kept."""
        self.asked  # noqa: B018 - refused after close

    def rollback(self) -> None:
        """Nothing was changed, so nothing is undone."""
        self.asked  # noqa: B018 - refused after close

    def close(self) -> None:
        """Give back what the reports keep."""
        asked, self._asked = self._asked, None
        if self._owned and isinstance(asked, Database):
            asked.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, text: str) -> tuple[pa.Table, tuple[str, ...]]:
        asked = self.asked
        if isinstance(asked, AskedCollector):
            table, notes, answers = asked.answer(text, self._options)
        else:
            result = asked.answer(text, self._options)
            table, notes, answers = result.to_arrow(), result.footnotes, tuple(result.answers)
        if not self._error_columns:
            errors = {f"{name}_{part}" for name in answers for part in ("stderr", "model", "low", "high")}
            table = table.select([name for name in table.column_names if name not in errors])
        return table, notes


class Cursor:
    """Asks questions one after the other, and hands out rows."""

    arraysize = 1

    def __init__(self, connection: Connection, _: object) -> None:
        self.connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self.messages: list[tuple[type, str]] = []
        """Notes about the last answer."""
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Ask a question; each ? stands for a parameter."""
        self._check_open()
        self.description, self._rows, self.rowcount, self.messages = None, None, -1, []
        try:
            table, notes = self.connection._answer(bound(operation, parameters or ()))
        except (DeniableError, Unreachable) as problem:
            raise _translated(problem) from None
        self.description = [(field.name, field.type, None, None, None, None, True) for field in table.schema]
        columns = [_plain(column) for column in table.columns]
        self._rows = iter(list(zip(*columns, strict=True)))
        self.rowcount = table.num_rows
        self.messages = [(Warning, note) for note in notes]
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any]]) -> None:  # noqa: ARG002
        """Questions have answers, and PEP 249 has no place for several: refused."""
        self._check_open()
        raise NotSupportedError("executemany is for changes. Nothing was asked. Call execute for each question.")

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, None after the last."""
        return next(self._answered(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Some rows."""
        rows = self._answered()
        return [row for _, row in zip(range(self.arraysize if size is None else size), rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return list(self._answered())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._answered()

    def close(self) -> None:
        """No more questions."""
        self._closed, self._rows = True, None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed. Nothing was asked. Make another.")
        self.connection.asked  # noqa: B018 - refused after close

    def _answered(self) -> Iterator[tuple[Any, ...]]:
        self._check_open()
        if self._rows is None:
            raise InterfaceError("nothing was asked yet. There are no rows. Call execute first.")
        return self._rows


def bound(operation: str, parameters: Sequence[Any]) -> str:
    """A text with its parameters as constants: each ? outside of quotes becomes one.

    >>> bound("SELECT COUNT(*) FROM users WHERE sex = ?", ["f' OR 1"])
    "SELECT COUNT(*) FROM users WHERE sex = 'f'' OR 1'"
    """
    if isinstance(parameters, Mapping | str):
        raise ProgrammingError("parameters are a list: one for each ?. Nothing was asked. Pass a list.")
    if not parameters:
        return operation
    try:
        tokens = sqlglot.tokenize(operation, read="duckdb")
    except SqlglotError:
        raise ProgrammingError("the text is not understood. Nothing was asked. Correct it.") from None
    marks = [token.start for token in tokens if token.token_type == TokenType.PLACEHOLDER]
    if len(marks) != len(parameters):
        words = f"the text has {len(marks)} marks ?, and {len(parameters)} parameters were passed"
        raise ProgrammingError(f"{words}. Nothing was asked. Pass one for each.")
    for start, value in reversed([*zip(marks, parameters, strict=True)]):
        operation = operation[:start] + _constant(value) + operation[start + 1 :]
    return operation


def _constant(value: Any) -> str:
    """A value as SQL writes it, with its quotes."""
    if not isinstance(value, (str, int, float, bool, datetime.date, datetime.datetime, type(None))):
        raise ProgrammingError("a parameter is not a text, a number, a date or a time. Nothing was asked. Convert it.")
    return str(exp.convert(value).sql(dialect="duckdb"))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; what is unclear is None."""
    return [None if value != value else value for value in column.to_pylist()]


def _translated(problem: Exception) -> Error:
    return ProgrammingError(str(problem)) if isinstance(problem, BadInput) else OperationalError(str(problem))
