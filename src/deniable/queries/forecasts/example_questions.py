"""Questions that stand for all that might be asked: ranges of one attribute and of two, spread over the domains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.arrays import Floats
from deniable.queries.question.public_trees import Tree, column
from deniable.tables.schema.attributes import Categorical, Private, Table
from deniable.tables.specification.specification import Specification

NOTHING_SEEN: Mapping[str, Mapping[str, Floats]] = MappingProxyType({})
RANGES = 6
GOLDEN = (math.sqrt(5) - 1) / 2
RANGE_LENGTHS = (0.5, 0.25, 0.6, 0.12, 0.4, 0.75)
"""Lengths of the ranges that represent all ranges, as shares of the domain."""


def all_ranges(collection: Specification, seen: Mapping[str, Mapping[str, Floats]] = NOTHING_SEEN) -> tuple[str, ...]:
    """Questions that represent all ranges of one attribute and of two attributes of a table.

    Where rows were seen, half of the ranges are spread over the rows, and half over the domain.
    """
    return tuple(
        text
        for table in collection.tables
        for size in (1, 2)
        for names in combinations(table.private, size)
        for text in ranges_of(table, names, seen.get(table.name, {}))
    )


def ranges_of(table: Table, names: tuple[str, ...], seen: Mapping[str, Floats] = MappingProxyType({})) -> Iterator[str]:
    """Questions about ranges of some attributes of a table."""
    domains = dict(zip(table.private, table.domains, strict=True))
    for number in range(RANGES):
        tests = (
            _range(name, domains[name], number + position * (RANGES // 2 + 1), seen.get(name) if number % 2 else None)
            for position, name in enumerate(names)
        )
        yield counted_rows(table, *tests)


def counted_rows(table: Table, *tests: Tree) -> str:
    """A question that counts rows of a table."""
    source = exp.to_identifier(table.name, quoted=True)
    query = exp.select(exp.Count(this=exp.Star())).from_(exp.Table(this=source)).where(*tests)
    return str(query.sql(dialect="duckdb"))


def counted_apart(table: Table, tests: Sequence[Tree]) -> str:
    """A question that counts the rows of a table that meet each of some conditions."""
    source = exp.to_identifier(table.name, quoted=True)
    counts = [
        exp.alias_(exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=test)), f"n{number}")
        for number, test in enumerate(tests)
    ]
    return str(exp.select(*counts).from_(exp.Table(this=source)).sql(dialect="duckdb"))


def between(name: str, domain: Private, low: int, high: int) -> Tree:
    """The condition that an attribute is one of the values at some positions of its domain."""
    first, last = (_literal(domain.decode(position)) for position in (low, high))
    return exp.Between(this=column(name), low=first, high=last)


def _range(name: str, domain: Private, number: int, seen: Floats | None) -> Tree:
    """The `number`-th of some ranges spread over a domain; a single category if it has no order."""
    if isinstance(domain, Categorical):
        return exp.EQ(this=column(name), expression=_literal(domain.values[number % domain.known_size]))
    length = min(max(round(RANGE_LENGTHS[number % RANGES] * domain.known_size), 1), domain.known_size - 1)
    low = math.floor((number + 1) * GOLDEN % 1 * (domain.known_size - length + 1))
    if seen is not None:  # as parts of the rows instead of parts of the domain
        rows = np.cumsum(seen)
        low, high = (int(np.searchsorted(rows, end / domain.known_size)) for end in (low, low + length))
        return between(name, domain, min(low, high, domain.known_size - 1), min(high, domain.known_size - 1))
    return between(name, domain, low, low + length - 1)


def _literal(value: Any) -> Tree:
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    return exp.Literal.string(str(value)) if isinstance(value, (str, date)) else exp.Literal.number(str(value))
