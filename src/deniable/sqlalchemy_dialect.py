"""A dialect of SQLAlchemy: `deniable:///folder` and `deniable+http://:KEY@host:8710`, with reflection.

`pandas.read_sql`, Polars' `read_database` and `%sql` in notebooks take its engines. Options of answers stand in the
address: `deniable:///collected?confidence=0.9&error_columns=false`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import types
from sqlalchemy.engine import default
from sqlalchemy.pool import StaticPool

from deniable import dbapi
from deniable.queries.answers.catalogue import CatalogueTable

_SQLALCHEMY_TYPES: dict[str, Any] = {
    "VARCHAR": types.VARCHAR,
    "BIGINT": types.BIGINT,
    "DOUBLE": types.DOUBLE,
    "BOOLEAN": types.BOOLEAN,
    "DATE": types.DATE,
    "TIMESTAMP": types.TIMESTAMP,
}


class FolderDialect(default.DefaultDialect):  # type: ignore[misc] # an extra
    """Reports in a folder: `deniable:///collected`, or with four slashes from the root."""

    name, driver = "deniable", "folder"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_alter = supports_comments = False
    max_identifier_length = 128
    scheme = ""

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """PEP 249's module."""
        return dbapi

    @classmethod
    def get_pool_class(cls, url: Any) -> Any:  # noqa: ARG003 - SQLAlchemy passes it
        """Threads may share a connection, and opening one reads all reports."""
        return StaticPool

    def create_connect_args(self, url: Any) -> tuple[list[Any], dict[str, Any]]:
        """What `dbapi.connect` is called with."""
        options: dict[str, Any] = {name: _option(text) for name, text in url.query.items()}
        if not self.scheme:
            return [url.database or "."], options
        port = "" if url.port is None else f":{url.port}"
        options["key"] = url.password or url.username or ""
        return [f"{self.scheme}://{url.host}{port}{'/' + url.database if url.database else ''}"], options

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing is ever changed."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Nothing is ever changed."""

    def _tables(self, connection: Any) -> list[CatalogueTable]:
        tables: list[CatalogueTable] = connection.connection.dbapi_connection.tables()
        return tables

    def _table(self, connection: Any, name: str) -> CatalogueTable:
        from sqlalchemy.exc import NoSuchTableError

        for table in self._tables(connection):
            if table.name.casefold() == name.casefold():
                return table
        raise NoSuchTableError(name)

    def get_schema_names(self, *_: Any, **__: Any) -> list[str]:
        """There are none."""
        return []

    def get_table_names(self, connection: Any, *_: Any, **__: Any) -> list[str]:
        """Tables and dimensions."""
        return [table.name for table in self._tables(connection)]

    def get_view_names(self, *_: Any, **__: Any) -> list[str]:
        """There are none."""
        return []

    def has_table(self, connection: Any, table_name: str, *_: Any, **__: Any) -> bool:
        """Whether there is a table of that name."""
        return table_name.casefold() in (table.name.casefold() for table in self._tables(connection))

    def get_columns(self, connection: Any, table_name: str, *_: Any, **__: Any) -> list[Any]:
        """Columns with their types; the comment says what a column's values may be."""
        return [
            {
                "name": column.name,
                "type": _SQLALCHEMY_TYPES.get(column.type, types.VARCHAR)(),
                "nullable": True,
                "default": None,
                "comment": column.comment,
            }
            for column in self._table(connection, table_name).columns
        ]

    def get_table_comment(self, connection: Any, table_name: str, *_: Any, **__: Any) -> Any:
        """What is promised about a table."""
        return {"text": self._table(connection, table_name).comment}

    def get_pk_constraint(self, *_: Any, **__: Any) -> Any:
        """There is none."""
        return {"constrained_columns": [], "name": None}

    def _none(self, *_: Any, **__: Any) -> list[Any]:
        return []

    get_foreign_keys = get_indexes = get_unique_constraints = get_check_constraints = _none


class HttpDialect(FolderDialect):
    """A collector: `deniable+http://:KEY@127.0.0.1:8710`."""

    driver, scheme = "http", "http"
    supports_statement_cache = True


class HttpsDialect(FolderDialect):
    """A collector with TLS."""

    driver, scheme = "https", "https"
    supports_statement_cache = True


def _option(text: str) -> Any:
    """An option of an address: true, false, a number or a text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text
