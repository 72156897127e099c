"""What tools ask about the database itself: INFORMATION_SCHEMA, SHOW CREATE TABLE, and constants such as SELECT 1.

Everything here is public and is computed by a DuckDB in memory that holds only the catalogue and reaches no file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa
from mysql_mimic.constants import INFO_SCHEMA
from mysql_mimic.results import ResultColumn
from mysql_mimic.schema import BaseInfoSchema, Column, info_schema_tables
from mysql_mimic.types import ColumnType
from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.answers.catalogue import CatalogueTable
from deniable.queries.answers.result import Result
from deniable.service.mysql.answered_tables import outer_text, without_nan

Node = Any
Rows = tuple[list[tuple[Any, ...]], list[ResultColumn]]
_MYSQL_TYPES = {"VARCHAR": "varchar", "BIGINT": "bigint", "DOUBLE": "double", "BOOLEAN": "tinyint"}
_DECLARED_TYPES = {"VARCHAR": "varchar(255)", "BIGINT": "bigint", "DOUBLE": "double", "BOOLEAN": "tinyint(1)"}
_CATALOGUE_DUCKDB: dict[str, Any] = {
    "threads": 1,
    "memory_limit": "256MB",
    "temp_directory": "",
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
}
_MYSQL_FUNCTIONS = (
    "timediff(later, earlier) AS CAST(later AS TIMESTAMP) - CAST(earlier AS TIMESTAMP)",
    "time_format(span, shape) AS strftime(TIMESTAMP '2000-01-01' + span, replace(shape, '%i', '%M'))",
)
"""What Metabase computes to learn the time zone."""
_LONGEST_LOOKUP_S = 5.0
_ANSWER = "the answer"
_NO_SUCH_TABLE = "Write SHOW TABLES to see what there is."


def column_type(arrow: pa.DataType) -> ColumnType:
    """How a column of an answer travels."""
    if pa.types.is_boolean(arrow):
        return ColumnType.TINY
    if pa.types.is_integer(arrow):
        return ColumnType.LONGLONG
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return ColumnType.DOUBLE
    if pa.types.is_date(arrow):
        return ColumnType.DATE
    if pa.types.is_timestamp(arrow):
        return ColumnType.DATETIME
    return ColumnType.VARCHAR


def as_rows(table: pa.Table) -> Rows:
    """A table as MySQL's rows with typed columns; what is unclear is NULL."""
    columns, values = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column_type(column.type)
        cells = column.to_pylist()
        if kind is ColumnType.VARCHAR:
            cells = [cell if cell is None or isinstance(cell, str) else str(cell) for cell in cells]
        elif kind is ColumnType.DOUBLE:
            cells = [None if cell is None or cell != cell else float(cell) for cell in cells]
        columns.append(ResultColumn(name, kind))
        values.append(cells)
    return list(zip(*values, strict=True)) if values else [], columns


class InformationSchema(BaseInfoSchema):  # type: ignore[misc] # an extra
    """The catalogue of one collection as MySQL shows it."""

    def __init__(self, database: str, tables: Iterable[CatalogueTable]) -> None:
        self.database, self.tables = database, list(tables)
        self._duckdb = duckdb.connect(":memory:", config=_CATALOGUE_DUCKDB)
        described = info_schema_tables(
            Column(
                column.name,
                _MYSQL_TYPES.get(column.type, column.type.lower()),
                table.name,
                comment=column.comment,
                schema=database,
            )
            for table in self.tables
            for column in table.columns
        )
        for schema, shown in described.items():
            self._duckdb.execute(f'CREATE SCHEMA "{_own(schema)}"')
            for name, rows in shown.items():
                kinds = pa.schema([(column, _kind(INFO_SCHEMA[schema][name][column])) for column in rows.columns])
                made = pa.Table.from_pylist([dict(zip(rows.columns, row, strict=True)) for row in rows.rows], kinds)
                self._duckdb.register("made", made)
                self._duckdb.execute(f'CREATE TABLE "{_own(schema)}"."{name}" AS SELECT * FROM made')  # noqa: S608
                self._duckdb.unregister("made")
        self._complete()
        for macro in _MYSQL_FUNCTIONS:
            self._duckdb.execute(f"CREATE MACRO {macro}")
        settings = ("GLOBAL TimeZone = 'UTC'", "enable_external_access = false", "lock_configuration = true")
        self._duckdb.execute("; ".join(f"SET {setting}" for setting in settings))

    def _complete(self) -> None:
        """What mysql-mimic leaves empty: comments of tables, sizes of columns, positions from one."""
        schema = _own("information_schema")
        for table in self.tables:
            self._duckdb.execute(
                f"UPDATE {schema}.tables SET table_comment = ?, engine = 'deniable' "  # noqa: S608
                "WHERE table_schema = ? AND table_name = ?",
                [table.comment, self.database, table.name],
            )
        self._duckdb.execute(
            f"UPDATE {schema}.tables SET table_type = 'SYSTEM VIEW' WHERE table_schema <> ?",  # noqa: S608
            [self.database],
        )
        self._duckdb.execute(
            f"UPDATE {schema}.columns SET ordinal_position = ordinal_position + 1, column_key = '', extra = '', "  # noqa: S608
            "privileges = 'select', numeric_scale = CASE data_type WHEN 'bigint' THEN 0 END, "
            "column_type = CASE data_type WHEN 'varchar' THEN 'varchar(255)' ELSE data_type END, "
            "numeric_precision = CASE data_type WHEN 'bigint' THEN 19 WHEN 'double' THEN 22 END, "
            "character_maximum_length = CASE data_type WHEN 'varchar' THEN 255 END, "
            "character_set_name = CASE data_type WHEN 'varchar' THEN 'utf8mb4' END, "
            "collation_name = CASE data_type WHEN 'varchar' THEN 'utf8mb4_general_ci' END"
        )

    async def query(self, expression: Node) -> Rows:
        """Answer a SELECT about INFORMATION_SCHEMA, or one without any table."""
        return self.select(expression)

    def select(self, expression: Node) -> Rows:
        """Answer a SELECT about INFORMATION_SCHEMA, or one without any table."""
        tree = expression.transform(_prepared)
        parts = {query.alias.casefold() for query in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier) or (table.db and table.db.lower() not in INFO_SCHEMA):
                raise QueryRefused("this is not in the catalogue", "Ask SHOW TABLES or DESCRIBE.")
            if table.db or table.name.casefold() not in parts:
                table.set("db", exp.to_identifier(_own(table.db.lower() or "information_schema")))
            table.set("catalog", None)
        for column in tree.find_all(exp.Column):
            column.set("db", None)
            column.set("catalog", None)
        return as_rows(self._run(str(tree.sql(dialect="duckdb"))))

    def constant(self, text: str) -> Any:
        """The value of an expression without columns, None where it has none."""
        try:
            return self._run(f"SELECT {text}").column(0)[0].as_py()
        except QueryRefused:
            return None

    def pick(self, select: Node, result: Result) -> Rows:
        """Rows and columns of an answer, as a question about it says."""
        text = outer_text(select, result, _ANSWER)
        return as_rows(self._run(text, without_nan(result.to_arrow())))

    def _run(self, text: str, answer: pa.Table | None = None) -> pa.Table:
        cursor = self._duckdb.cursor()
        if answer is not None:
            cursor.register(_ANSWER, answer)
        watch = threading.Timer(_LONGEST_LOOKUP_S, cursor.interrupt)
        watch.start()
        try:
            return cursor.sql(text).to_arrow_table()
        except duckdb.Error:
            raise QueryRefused("this cannot be asked about the catalogue", "Ask SHOW TABLES or DESCRIBE.") from None
        finally:
            watch.cancel()
            cursor.close()

    @property
    def date_columns(self) -> frozenset[str]:
        """Names that mean a date, in whichever table they are."""
        kinds: dict[str, set[str]] = {}
        for table in self.tables:
            for column in table.columns:
                kinds.setdefault(column.name.casefold(), set()).add(column.type)
        return frozenset(name for name, types in kinds.items() if types == {"DATE"})

    def table(self, name: str) -> CatalogueTable:
        """One table."""
        for table in self.tables:
            if table.name.casefold() == name.casefold():
                return table
        raise QueryRefused(f"there is no table {name[:60]!r}", _NO_SUCH_TABLE)

    def create_table(self, name: str) -> Rows:
        """SHOW CREATE TABLE."""
        table = self.table(name)
        lines = [
            f"  {_quoted(column.name)} {_DECLARED_TYPES.get(column.type, column.type.lower())} DEFAULT NULL "
            f"COMMENT {_text(column.comment)}"
            for column in table.columns
        ]
        body = ",\n".join(lines)
        made = f"CREATE TABLE {_quoted(table.name)} (\n{body}\n) ENGINE=deniable COMMENT={_text(table.comment)}"
        names = ("Table", "Create Table")
        return [(table.name, made)], [ResultColumn(column, ColumnType.VARCHAR) for column in names]

    def is_probe(self, select: Node) -> bool:
        """SELECT TRUE FROM users WHERE 1 <> 1 LIMIT 0: whether the table may be asked about, as Metabase finds out."""
        source, limit = select.args.get("from_"), select.args.get("limit")
        asks_nothing = limit is not None and limit.expression.sql() == "0" and len(select.expressions) == 1
        if not asks_nothing or not isinstance(select.expressions[0].unalias(), (exp.Boolean, exp.Literal)):
            return False
        if source is None or not isinstance(source.this, exp.Table) or select.find(exp.Column, exp.Subquery, exp.Join):
            return False
        self.table(source.this.name)
        return True

    def listed_values(self, select: Node) -> Rows | None:
        """SELECT DISTINCT sex FROM users: the values of its domain, which are public; None for other questions."""
        parts = {name for name, part in select.args.items() if part} - {"kind"}
        grouped = select.args.get("group")
        (item, *others) = select.expressions
        column = item.unalias()
        known = {"expressions", "from_", "order", "limit", "distinct" if grouped is None else "group"}
        if others or not isinstance(column, exp.Column) or not parts <= known or "from_" not in parts:
            return None
        source = select.args["from_"].this
        if not isinstance(source, exp.Table) or (grouped is None and "distinct" not in parts):
            return None
        if grouped is not None and [group.name for group in grouped.expressions] != [column.name]:
            return None
        for described in self.table(source.name).columns:
            if described.name.casefold() == column.name.casefold() and described.values:
                values = pa.table({item.alias_or_name: list(described.values)})
                limit = select.args.get("limit")
                rows, columns = as_rows(values)
                return rows[: int(limit.expression.name)] if limit is not None else rows, columns
        return None


def _prepared(node: Node) -> Node:
    """Without collations and character sets; names are compared without case, as MySQL does it here."""
    if isinstance(node, exp.Collate):
        return node.this
    if isinstance(node, exp.ConvertTimezone):  # of a constant, from the server's zone, which is UTC, to UTC
        return node.args["timestamp"]
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.CHARACTER_SET):
        node.set("to", exp.DataType.build("text"))
    if isinstance(node, exp.Ordered):
        node.set("nulls_first", None)
    if isinstance(node, exp.Like):
        return exp.ILike(this=node.this, expression=node.expression)
    return node


def _own(schema: str) -> str:
    """DuckDB has an information_schema of its own."""
    return f"{schema}_shown"


def _kind(described: str) -> pa.DataType:
    return pa.int64() if "int" in described.lower() else pa.string()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(words: str) -> str:
    return "'" + words.replace("\\", "\\\\").replace("'", "''") + "'"
