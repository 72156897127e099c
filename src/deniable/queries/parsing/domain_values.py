"""An expression of one private attribute at every value of its domain, evaluated by DuckDB: what it means there is
what it means here, by construction. A domain is public, so nothing is learnt of anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from deniable import arrow_functions as pc
from deniable.arrays import Booleans, Floats, Integers
from deniable.queries.parsing.scalar_functions import ON_DOMAINS, why_not
from deniable.queries.parsing.scope import ColumnMeaning, Node, PrivateColumn, Scope
from deniable.queries.parsing.word_conditions import check_words
from deniable.queries.question.listed_words import ListedWords
from deniable.tables.schema.attributes import Categorical, Enumerable, Ordinal
from deniable.tables.schema.calendar_steps import CalendarStep
from deniable.tables.schema.scalars import named_span, written

MOST_COMPUTED_VALUES = 1 << 20
_VALUE = "value"


def only_attribute(scope: Scope, node: Node) -> PrivateColumn | None:
    """The private attribute that an expression is a function of; None if it has none, several, or other columns."""
    columns: list[ColumnMeaning] = [scope.meaning(column) for column in node.find_all(exp.Column)]
    private = [column for column in columns if isinstance(column, PrivateColumn) and column.dimension is None]
    if not private or len(private) < len(columns) or len({column.attribute for column in private}) > 1:
        return None
    return private[0]


def values_of(scope: Scope, node: Node, domain: Enumerable) -> pa.Array:
    """An expression at every value of a domain, in order."""
    if isinstance(domain, ListedWords):
        check_words(scope, node, domain)
    if domain.size > MOST_COMPUTED_VALUES:
        raise scope.refusal(node, "the attribute's domain is too large to calculate with", "Compare the attribute.")
    starts, *others = (_computed(scope, node, pa.table({_VALUE: column})) for column in _columns_inside(domain))
    if isinstance(domain, Ordinal) and not all(starts.equals(other) for other in others):
        problem = "this divides the intervals that the attribute is known by"
        raise scope.refusal(node, problem, f"Use units of which {named_span(written(domain.step))} is a part.")
    return starts


def _columns_inside(domain: Enumerable) -> list[pa.Array]:
    """A domain's values; of intervals, several moments within each, at which a function has to be the same."""
    if isinstance(domain, Categorical) or domain.kind == "number":
        return [domain_column(domain)]
    starts, ends = _starts(domain), _starts(domain, 1) - 1
    if np.array_equal(starts, ends):
        return [domain_column(domain)]
    quarter, half = starts + (ends - starts) // 4, starts + (ends - starts) // 2
    return [_moments(domain, ticks) for ticks in (starts, starts + 1, quarter, half, ends)]


def constant_of(scope: Scope, node: Node) -> Any:
    """The value of an expression without columns, such as DATE '2024-01-31' + INTERVAL 1 MONTH."""
    return _computed(scope, node, pa.table({_VALUE: pa.array([0])}))[0].as_py()


def value_alone(scope: Scope, node: Node) -> Any:
    """The value of an expression where all its columns are NULL, as in rows without a partner."""
    columns = {column.sql(dialect="duckdb"): scope.meaning(column) for column in node.find_all(exp.Column)}
    names = {text: f"c{number}" for number, text in enumerate(columns)}
    frame = {
        names[text]: domain_column(meaning.domain).slice(0, 0)
        if isinstance(meaning, PrivateColumn) and meaning.dimension is None
        else pa.nulls(0)
        for text, meaning in columns.items()
    }
    made = {name: pa.concat_arrays([column, pa.nulls(1, column.type)]) for name, column in frame.items()}
    return _computed(scope, node, pa.table(made or {_VALUE: pa.array([0])}), names)[0].as_py()


def evaluated(scope: Scope, node: Node, frame: pa.Table, names: Mapping[str, str]) -> pa.Array:
    """An expression at every row of a frame; `names` leads from columns as they are written to those of the frame."""
    return _computed(scope, node, frame, names)


def _computed(scope: Scope, node: Node, frame: pa.Table, names: Mapping[str, str] | None = None) -> pa.Array:
    for part in node.walk():
        if refused := why_not(part, ON_DOMAINS):
            raise scope.refusal(part, *refused)

    def by_value(part: Node) -> Node:
        if not isinstance(part, exp.Column):
            return part
        return exp.column(_VALUE if names is None else names[part.sql(dialect="duckdb")], quoted=True)

    query = exp.select(exp.alias_(node.copy().transform(by_value), "result")).from_("rows").sql(dialect="duckdb")
    with _evaluator().cursor() as connection:
        connection.register("rows", frame)
        try:
            result = connection.sql(query).to_arrow_table()["result"].combine_chunks()
        except duckdb.Error:
            problem = "this cannot be calculated for every value of the attribute's domain"
            raise scope.refusal(node, problem, "Calculate with values of one type; use TRY_CAST and CASE.") from None
    return result


@cache
def _evaluator() -> duckdb.DuckDBPyConnection:
    """An empty database that can open nothing; one thread, so that rows stay in their order."""
    settings: dict[str, Any] = {
        "threads": 1,
        "temp_directory": "",
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
    }
    made = duckdb.connect(config=settings)
    for setting in ("enable_progress_bar", "python_enable_replacements", "enable_external_access"):
        made.execute(f"SET {setting} = false")
    made.execute("SET lock_configuration = true")
    return made


def domain_column(domain: Enumerable) -> pa.Array:
    """The values of a domain as files would have them; of intervals, where they begin; NULL for what is missing."""
    if isinstance(domain, Categorical):
        return pa.array([*domain.values, *([None] if domain.missing_position is not None else [])])
    if domain.kind != "number":
        return _moments(domain, _starts(domain))
    scale = domain.denominator
    low, step = int(domain.low * scale), int(domain.step * scale)
    values = low + step * np.arange(domain.size)
    return pa.array(values if scale == 1 else values / scale, mask=_absent(domain))


def _absent(domain: Enumerable) -> Booleans:
    return np.asarray(np.arange(domain.size) >= domain.known_size)


def _starts(domain: Ordinal, after: int = 0) -> Integers:
    """Where intervals begin, each so many intervals later: days or microseconds since 1970."""
    numbers = np.arange(domain.size) + after
    if isinstance(domain.step, CalendarStep):
        months = (domain.low.year - 1970) * 12 + domain.low.month - 1 + domain.step.months * numbers
        return np.asarray(months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64))
    if domain.kind == "date":
        return np.asarray(domain.low.toordinal() - date(1970, 1, 1).toordinal() + domain.step.days * numbers)
    tick = timedelta(microseconds=1)
    return np.asarray((domain.low - datetime(1970, 1, 1)) // tick + domain.step // tick * numbers)


def _moments(domain: Ordinal, ticks: Integers) -> pa.Array:
    absent = _absent(domain)
    if domain.kind == "date":
        return pa.array(ticks.astype(np.int32), pa.int32(), mask=absent).cast(pa.date32())
    return pa.array(ticks.astype(np.int64), pa.int64(), mask=absent).cast(pa.timestamp("us"))


def truth_of(scope: Scope, node: Node, domain: Enumerable) -> tuple[Booleans, Booleans]:
    """Where a condition is true, and where it is false; it may be neither."""
    values = values_of(scope, node, domain)
    if not pa.types.is_boolean(values.type):
        raise scope.refusal(node, "a condition is expected here", "Compare it with something.")
    return _mask(values), _mask(pc.invert(values))


def _mask(values: pa.Array) -> Booleans:
    return np.asarray(values.fill_null(False)).astype(bool)


def numbers_of(values: pa.Array) -> Floats | None:
    """Numbers, with NaN for NULL; None for values of another type."""
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        values = values.cast(pa.float64())
    if not pa.types.is_floating(values.type):
        return None
    return np.asarray(values.cast(pa.float64()).fill_null(np.nan), dtype=np.float64)


def distinct_of(values: pa.Array) -> tuple[tuple[Any, ...], Integers]:
    """The different values in order, NULL last, and the number of the one that each has."""
    distinct = values.drop_null().unique().sort()
    codes = np.asarray(pc.index_in(values, distinct).fill_null(len(distinct))).astype(np.int64)
    shown = distinct.to_pylist()
    return tuple([*shown, None] if values.null_count else shown), codes
