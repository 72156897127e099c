"""What there is to ask about, for tools: tables and columns with SQL types and comments, from public facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deniable.queries.parsing.dimensions import Dimension
from deniable.tables.schema.attributes import Categorical, Ordinal, Private, Table, Text
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.specification.specification import Specification
from deniable.wording import counted, listed

MOST_VALUES = 100
"""Above so many values of a domain, only its ends are listed."""
_OF_VALUES = {bool: "BOOLEAN", int: "BIGINT", str: "VARCHAR"}
_OF_TIME = {"date": "DATE", "time": "TIMESTAMP"}


@dataclass(frozen=True, slots=True)
class CatalogueColumn:
    """A column: its name, its type in SQL, what it is in words, and the values it may have where they are few."""

    name: str
    type: str
    comment: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogueTable:
    """A table that can be asked about."""

    name: str
    comment: str
    columns: tuple[CatalogueColumn, ...]


def catalogue(collection: Specification, dimensions: Mapping[str, Dimension] | None = None) -> list[CatalogueTable]:
    """The tables of a collection, then its dimensions.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95), sex=dn.Categorical("f", "m")), epsilon=2.0)
    >>> for column in catalogue(shop)[0].columns:
    ...     print(column.name, column.type, column.comment, sep=" | ")
    uid | VARCHAR | user id, for joins
    age | BIGINT | private: 1 to 95
    sex | VARCHAR | private: f, m
    """
    tables = [
        CatalogueTable(table.name, _promise(collection, table), _columns(collection, table))
        for table in collection.tables
    ]
    for name, dimension in (dimensions or {}).items():
        columns = tuple(CatalogueColumn(column, "VARCHAR", "dimension") for column in dimension.columns)
        tables.append(CatalogueTable(name, "public dimension", columns))
    return tables


def _promise(collection: Specification, table: Table) -> str:
    many, epsilon = table.many, collection.epsilon_of(table.owner)
    rows = "one row per person" if many is None else f"up to {counted(many, 'row')} per person"
    if table.owner is not None:
        rows = f"one row per {table.key}, reported by {table.owner}"
    return f"{rows}, randomised on devices: epsilon {epsilon:g} for all tables; only aggregates"


def _columns(collection: Specification, table: Table) -> tuple[CatalogueColumn, ...]:
    ids = "user id, for joins" if table.key is None else f"id, for joins on {table.key}"
    columns = [CatalogueColumn(table.key or USER_COLUMN, "VARCHAR", ids)]
    for name, meaning in table.attributes.items():
        columns.append(CatalogueColumn(name, *kind_of(meaning), domain_values(meaning)))
    if collection.rounds is not None and ROUND_COLUMN not in table.attributes:
        columns.append(CatalogueColumn(ROUND_COLUMN, "BIGINT", f"round: 1 to {collection.rounds.count}"))
    return tuple(columns)


def kind_of(meaning: object) -> tuple[str, str]:
    """The SQL type of an attribute's values, and its domain in a few words."""
    if not isinstance(meaning, Private):
        return "VARCHAR", "public"
    if isinstance(meaning, Categorical):
        return _OF_VALUES[type(meaning.values[0])], f"private: {listed(map(str, meaning.values), 5)}"
    if isinstance(meaning, Text):
        return "VARCHAR", f"private: any words of up to {counted(meaning.max_length, 'byte')}"
    words = f"private: {meaning.low} to {meaning.high}"
    if meaning.kind in _OF_TIME:
        return _OF_TIME[meaning.kind], words
    return "BIGINT" if meaning.denominator == 1 else "DOUBLE", words


def domain_values(meaning: object) -> tuple[Any, ...]:
    """The values that a private attribute may have, if they are few enough to list; which of them occur is private."""
    if isinstance(meaning, Categorical) and meaning.size <= MOST_VALUES:
        return tuple(meaning.values)
    if isinstance(meaning, Ordinal) and meaning.size <= MOST_VALUES:
        return tuple(meaning.decode(code) for code in range(meaning.size))
    return ()
