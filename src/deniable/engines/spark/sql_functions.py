"""Functions for users of Spark SQL: rows → reports, and questions → answers.

Questions run on the cluster, so they need the driver's session. A table function does not have it, because it runs in a
Python process of its own. That process is started on the driver's machine when the statement is analysed. It sends the
question to a thread of the driver over a local socket with a secret, and gets the answer. No executor waits meanwhile.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - as everybody calls it
from pyspark.sql.functions import arrow_udf, udtf
from pyspark.sql.pandas.types import from_arrow_schema

from deniable.engines.collecting.perturbing import reports_of
from deniable.engines.collecting.round_asking import Asking
from deniable.engines.collecting.row_counts import Tally
from deniable.engines.collecting.sorted_rows import PRESENT
from deniable.engines.spark.question_function import question_function
from deniable.engines.spark.question_rewriting import FUNCTION_PREFIX, QUESTION_FUNCTION, KnownTables, RewritingSql
from deniable.engines.spark.spark_perturbing import batch_key
from deniable.engines.spark.spark_session import checked_session
from deniable.errors import BadInput, DeniableError
from deniable.randomness import SecureSource
from deniable.simulation import check_noise
from deniable.tables.schema.report_format import ANSWER_COLUMNS, REPORT_COLUMNS
from deniable.tables.specification.runs import largest_epsilon
from deniable.tables.specification.specification import Specification

_REPORT_ARRAY = T.ArrayType(
    T.StructType(
        [T.StructField("slot", T.IntegerType()), *(T.StructField(name, T.LongType()) for name in ANSWER_COLUMNS)]
    )
)
_STRANGER_PAUSE_S = 0.05  # after somebody without the password


def register_functions(
    spark: Any,
    collection: Specification,
    answer: Callable[[str], pa.Table],
    dimensions: Iterable[str] = (),
    *,
    simulation: bool = False,
) -> None:
    """Make a collection known to Spark SQL. See `deniable.spark.register`. `answer` answers a question."""
    checked_session(spark)
    check_noise(largest_epsilon(collection), simulation=simulation)
    unregister_functions(spark)  # those of another collection would stay
    secret = SecureSource.new_key()
    for table in collection.tables:
        function = arrow_udf(_perturbing(collection, table.name, secret), _REPORT_ARRAY)
        spark.udf.register(FUNCTION_PREFIX + table.name, function.asNondeterministic())
    password = secrets.token_bytes(32)
    questions = _Questions(answer, password)
    try:
        spark.udtf.register(QUESTION_FUNCTION, udtf(question_function(questions.address, password)))
    except BaseException:
        questions.stop()
        raise
    known = KnownTables.of((table.name for table in collection.tables), dimensions)
    spark.sql = RewritingSql(spark.sql, known, questions.stop)


def unregister_functions(spark: Any) -> None:
    """Undo `register_functions`; nothing happens where nothing is registered."""
    if isinstance(spark.sql, RewritingSql):
        rewriting = spark.sql
        rewriting.stop()
        spark.sql = rewriting.spark_sql
        for name in (QUESTION_FUNCTION, *(FUNCTION_PREFIX + table for table in sorted(rewriting.known.tables))):
            spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS `{name}`")


# Rows → reports -------------------------------------------------------------------------------------------------------


def _perturbing(collection: Specification, name: str, secret: bytes) -> Callable[..., pa.Array]:
    """deniable_<table>(uid, attribute, …), or for a table with many rows deniable_<table>(uid, array of rows)."""
    table = collection[name]
    slots = collection.reports_per_user(name)
    calls: Counter[int] = Counter()

    def perturb(*columns: pa.Array) -> pa.Array:
        from pyspark import TaskContext

        uid, *given = columns
        if uid.null_count:
            raise BadInput("a user id is missing. Nothing was released. Leave such rows out.")
        if not (pa.types.is_integer(uid.type) or pa.types.is_string(uid.type) or pa.types.is_large_string(uid.type)):
            raise BadInput("user ids must be integers or texts. Nothing was released. Convert them.")
        wanted = len(table.private) if table.many is None else 1
        if len(given) != wanted:
            what = ", ".join(table.private) if table.many is None else "an array of rows"
            raise BadInput(f"deniable_{name} takes the user id and {what}. Nothing was released.")
        rows = _one_each(table.private, given) if table.many is None else _many_each(table.private, given[0])
        task = TaskContext.get()
        calls[task.taskAttemptId()] += 1
        # The same for a task that is retried, different for every statement, task, call and content.
        number = calls[task.taskAttemptId()] + (task.stageId() << 32)
        content = pa.table({"uid": uid, **{f"c{index}": column for index, column in enumerate(given)}})
        key = batch_key(secret, name, task.partitionId(), number, content)
        source = SecureSource(key).recomputable(again=True)
        _, slot, *numbers = reports_of(Asking(collection), name, rows, source, Tally(), ids=uid)[:5]
        fields = [slot.cast(pa.int32()), *(column.cast(pa.int64()) for column in numbers)]
        offsets = pa.array(np.arange(len(uid) + 1, dtype=np.int32) * slots)
        return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, list(REPORT_COLUMNS)))

    perturb.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    return perturb


def _one_each(names: tuple[str, ...], columns: list[pa.Array]) -> pa.Table:
    """A user per row. Ids are replaced by row numbers, because two consecutive rows are two users here."""
    numbers = pa.array(np.arange(len(columns[0])))
    return pa.table({"uid": numbers, **dict(zip(names, columns, strict=True))})


def _many_each(names: tuple[str, ...], rows: pa.Array) -> pa.Table:
    """The rows of each user in turn; a user without rows has one that is not present."""
    counts = np.asarray(rows.value_lengths().fill_null(0)).astype(np.int64)
    owners = np.repeat(np.arange(counts.size), np.maximum(counts, 1))
    present = (counts > 0)[owners]
    flat = rows.flatten()
    rows_taken = pa.array(np.cumsum(present) - 1, mask=~present)
    columns = {name: flat.field(name).take(rows_taken) for name in names}
    flags = pa.array(np.ones(owners.size, dtype=bool), mask=~present)
    return pa.table({"uid": owners, PRESENT: flags, **columns})


# Questions → answers --------------------------------------------------------------------------------------------------


class _Questions:
    """Answers the questions of one session until it is stopped, in threads of the driver."""

    def __init__(self, answer: Callable[[str], pa.Table], password: bytes) -> None:
        self._listener = Listener(("127.0.0.1", 0), authkey=password)
        self.address: Any = self._listener.address
        self._stopped = threading.Event()
        threading.Thread(target=self._serve, args=(answer,), name="deniable questions", daemon=True).start()

    def _serve(self, answer: Callable[[str], pa.Table]) -> None:
        while not self._stopped.is_set():
            try:
                connection = self._listener.accept()
            except Exception:  # stopped, or somebody without the password
                self._stopped.wait(_STRANGER_PAUSE_S)
                continue
            threading.Thread(target=_reply, args=(connection, answer), daemon=True).start()

    def stop(self) -> None:
        """Answer nothing more. A thread that waits for a connection gets one, so that it notices."""
        self._stopped.set()
        self._listener.close()
        with suppress(OSError):
            socket.create_connection(self.address, timeout=1.0).close()


def _reply(connection: Connection, answer: Callable[[str], pa.Table]) -> None:
    with connection:
        try:
            table = answer(connection.recv())
            connection.send((True, from_arrow_schema(table.schema), [tuple(row.values()) for row in table.to_pylist()]))
        except DeniableError as error:
            connection.send((False, str(error), []))
        except Exception as error:
            connection.send((False, f"unexpected {type(error).__name__}", []))
