"""One connection's statements: questions go to the database, everything else is answered from public facts."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from mysql_mimic.errors import ErrorCode, MysqlError
from mysql_mimic.results import ResultColumn
from mysql_mimic.session import Query, Session
from mysql_mimic.types import ColumnType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from deniable.database import Database
from deniable.errors import BadInput, DeniableError
from deniable.limits import LONGEST_SQL
from deniable.queries.answers.result import Result
from deniable.queries.parsing.grammar import check_size
from deniable.service.collector import Collector
from deniable.service.logs import log
from deniable.service.mysql.answered_tables import inner_question
from deniable.service.mysql.information_schema import InformationSchema, Rows, as_rows
from deniable.service.mysql.tree_translation import our_sql
from deniable.service.mysql.variables import AskingVariables
from deniable.service.open_database import TooManyQuestions

logging.getLogger("mysql_mimic").setLevel(logging.CRITICAL)  # it would log texts that clients send
_ABOUT_NOTES = re.compile(r"\s*(/\*.*?\*/\s*)*show\s+(count\(\*\)\s+)?(warnings|errors)", re.IGNORECASE | re.DOTALL)
_SYNONYMS = ((re.compile(r"^(\s*show\s+(?:full\s+)?)fields\b", re.IGNORECASE), r"\1COLUMNS"),
             (re.compile(r"^(\s*show\s+)(keys|indexes)\b", re.IGNORECASE), r"\1INDEX"),
             (re.compile(r"^(\s*show\s+grants)\s+for\s+current_user(\(\))?", re.IGNORECASE), r"\1"))  # fmt: skip
_EMPTY_SHOWS = {
    "PLUGINS": "Name Status Type Library License",
    "FUNCTION STATUS": "Db Name Type Definer Modified Created Security_type Comment",
    "PROCEDURE STATUS": "Db Name Type Definer Modified Created Security_type Comment",
    "TRIGGERS": "Trigger Event Table Statement Timing Created sql_mode Definer",
    "EVENTS": "Db Name Definer Type Status",
    "MASTER STATUS": "File Position",
    "PRIVILEGES": "Privilege Context Comment",
    "OPEN TABLES": "Database Table In_use Name_locked",
}
_NOTE_CODE = 1105


def texts(names: str) -> list[ResultColumn]:
    """Columns of texts."""
    return [ResultColumn(name, ColumnType.VARCHAR) for name in names.split()]


class AskingSession(Session):  # type: ignore[misc] # an extra
    """What one connection may say."""

    def __init__(
        self, collector: Collector, information: InformationSchema, may_ask: Callable[[str | None], bool]
    ) -> None:
        super().__init__(AskingVariables())
        self._collector, self._information, self._may_ask = collector, information, may_ask
        self.database: str | None = None
        self.notes: tuple[str, ...] = ()

    async def init(self, connection: Any) -> None:
        """The connection is let in."""
        await super().init(connection)
        self.database = self.database or self._information.database

    async def use(self, database: str) -> None:
        """USE: there is one database, and INFORMATION_SCHEMA."""
        if database.lower() not in (self._information.database.lower(), "information_schema"):
            raise MysqlError(f"There is one database: {self._information.database}.", ErrorCode.NO_DB_ERROR)
        self.database = database

    async def reset(self) -> None:
        """Forget what was set."""
        self.variables, self.notes = AskingVariables(), ()

    async def schema(self) -> Any:
        """Who answers INFORMATION_SCHEMA."""
        return self._information

    async def handle_query(self, sql: str, attrs: Mapping[str, str]) -> Any:
        """Answer a text, and let no exception say more than it should."""
        if not self._may_ask(self.username):
            raise MysqlError("The key is not valid any more. Ask for a new one.", ErrorCode.ACCESS_DENIED_ERROR)
        if not _ABOUT_NOTES.match(sql[:1000]):
            self.notes = ()
        begun, status = time.monotonic(), "500"
        try:
            if len(sql) > LONGEST_SQL:
                raise MysqlError("The text is too long. Ask a shorter question.", ErrorCode.PARSE_ERROR)
            check_size(sql)
            for pattern, meant in _SYNONYMS:
                sql = pattern.sub(meant, sql)
            answer = await super().handle_query(sql, dict(attrs))
            status = "200"
        except (asyncio.CancelledError, MysqlError):
            status = "400"
            raise
        except BadInput as problem:
            status = "400"
            raise MysqlError(str(problem), ErrorCode.PARSE_ERROR) from None
        except SqlglotError:
            status = "400"
            raise MysqlError("The text is not understood. Correct it.", ErrorCode.PARSE_ERROR) from None
        except DeniableError as problem:
            raise MysqlError(str(problem), ErrorCode.UNKNOWN_ERROR) from None
        except Exception as problem:
            log("mysql statement failed", level=logging.ERROR, problem=problem)
            raise MysqlError("Something failed here. Ask again.", ErrorCode.UNKNOWN_ERROR) from None
        finally:
            self._collector.metrics.requests.labels("mysql", status).inc()
            log("mysql statement", status=int(status), ms=round(1000 * (time.monotonic() - begun), 1))
        return answer

    async def query(self, expression: Any, sql: str, attrs: Mapping[str, str]) -> Rows:  # noqa: ARG002 - overridden
        """A question, or EXPLAIN of one."""
        explains = isinstance(expression, exp.Describe)
        question = expression.this if explains else expression
        if not isinstance(question, exp.Query):
            raise MysqlError("Only questions are answered here: nothing can be changed.", ErrorCode.NOT_SUPPORTED_YET)
        if isinstance(question, exp.Select) and not explains:
            if self._information.is_probe(question):
                return [], [ResultColumn("_", ColumnType.LONGLONG)]
            values = self._information.listed_values(question)
            if values is not None:
                self.notes = ("these are the values of the domain, which is public; which of them occur is private",)
                return values
        inner = inner_question(question) if isinstance(question, exp.Select) and not explains else None
        text = our_sql(inner or question, self._information.constant, self._information.date_columns)
        options = self.variables.options()
        result = await self._ask(lambda database: database.answer(f"EXPLAIN {text}" if explains else text, options))
        self.notes = result.footnotes
        if inner is not None:
            return self._information.pick(question, result)
        return self._shown(result)

    def _shown(self, result: Result) -> Rows:
        table = result.to_arrow()
        if not self.variables.error_columns:
            table = table.select(list(result.columns))
        return as_rows(table)

    async def _ask(self, question: Callable[[Database], Result]) -> Result:
        """What the database says, within the limit of time. KILL, or leaving, ends the computation."""
        ended = threading.Event()
        limit_s = self._collector.settings.question_seconds
        own_limit = self.variables.get("max_execution_time")
        try:
            async with asyncio.timeout(min(limit_s, own_limit / 1000) if own_limit else limit_s):
                return await asyncio.wrap_future(self._collector.questions.ask(question, ended.is_set))
        except TooManyQuestions:
            raise MysqlError("Too many questions wait. Ask again later.", ErrorCode.CON_COUNT_ERROR) from None
        except TimeoutError:
            words = "The answer takes too long. Ask for fewer groups or terms."
            if self._collector.questions.reading:
                words = "Reports are being read, which goes on after this. Ask again in a while."
            raise MysqlError(words, ErrorCode.UNKNOWN_ERROR) from None
        finally:
            ended.set()

    async def _static_query_middleware(self, q: Query) -> Any:
        """A SELECT without any table: constants, variables, functions of the connection."""
        if isinstance(q.expression, exp.Select) and q.expression.find(exp.Table) is None:
            return self._named(q.expression)
        return await q.next()

    async def _query_info_schema(self, expression: Any) -> Any:
        return self._named(expression)

    def _named(self, select: Any) -> Rows:
        """Rows under the names that the client wrote."""
        rows, columns = self._information.select(select)
        items = select.expressions if isinstance(select, exp.Select) else []
        if len(items) == len(columns) and not any(item.is_star for item in items):
            for column, item in zip(columns, items, strict=True):
                column.name = item.alias_or_name or item.sql(dialect="mysql")
        return rows, columns

    def _set_variable(self, setitem: Any) -> None:
        """SET; the value may be an expression of constants. GLOBAL is taken for this connection."""
        if isinstance(setitem.this.left, exp.Parameter):
            return  # a variable of the user's own, which no question can use
        value = setitem.this.right
        if isinstance(value, exp.Func) and not isinstance(value, exp.Anonymous):
            setitem.this.set("expression", exp.Literal.string(str(self._information.constant(value.sql("duckdb")))))
        for node in (setitem, setitem.this.left):
            if node.args.get("kind"):
                node.set("kind", "SESSION")
        super()._set_variable(setitem)

    async def _kill_middleware(self, q: Query) -> Any:
        """KILL: a key may end what it has begun itself."""
        if isinstance(q.expression, exp.Kill):
            name = q.expression.this.name
            control = self.connection.control
            if not name.isdecimal() or control.user_of(int(name)) != self.username:
                raise MysqlError("There is no connection of yours with this number.", ErrorCode.UNKNOWN_PROCEDURE)
        return await super()._kill_middleware(q)

    async def _show(self, expression: Any) -> Any:
        kind = expression.name.upper()
        if kind == "CREATE TABLE":
            return self._information.create_table(expression.text("target"))
        if kind == "CREATE DATABASE":
            name = self._information.database
            return [(name, f"CREATE DATABASE `{name}`")], texts("Database Create_Database")
        if kind == "PROCESSLIST":
            mine = self.connection.control.of_user(self.username)
            return [(str(number), self.username, self.database) for number in mine], texts("Id User db")
        if kind == "ENGINES":
            return [("deniable", "DEFAULT", "randomised reports")], texts("Engine Support Comment")
        if kind == "GRANTS":
            return [(f"GRANT SELECT ON *.* TO `{self.username}`",)], texts("Grants")
        if kind in ("COLLATION", "CHARACTER SET"):
            names = "Collation Charset Id Default" if kind == "COLLATION" else "Charset Description Default_collation"
            first = ("utf8mb4_general_ci", "utf8mb4", "45", "Yes") if kind == "COLLATION" else (
                "utf8mb4", "UTF-8 Unicode", "utf8mb4_general_ci")  # fmt: skip
            return [first], texts(names)
        if kind == "TABLE STATUS":
            rows = [(table.name, "deniable", None, table.comment) for table in self._information.tables]
            return rows, texts("Name Engine Rows Comment")
        if kind in _EMPTY_SHOWS:
            return [], texts(_EMPTY_SHOWS[kind])
        return await super()._show(expression)

    def _show_variables(self, show: Any) -> Any:
        rows = [(name, None if value is None else str(value)) for name, value in self.variables.list()]
        asked = {word.lower() for word in re.findall(r"'([^']*)'", show.sql("mysql"))}
        if asked:
            patterns = [re.compile(re.escape(word).replace("%", ".*").replace("_", ".")) for word in asked]
            rows = [row for row in rows if any(pattern.fullmatch(row[0]) for pattern in patterns)]
        return rows, texts("Variable_name Value")

    def _show_warnings(self, show: Any) -> Any:  # noqa: ARG002 - overridden
        return [("Note", str(_NOTE_CODE), note) for note in self.notes], texts("Level Code Message")
