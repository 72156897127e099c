"""Rows of a query → rows that every table can count: with a partner, without one, or whether or not there is one.

Where everybody has at most one row, those without one are everybody, less those with one. Where people may have many,
reports hide who has none: then only rows with a partner can be counted, or everybody once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from deniable.errors import QueryRefused
from deniable.queries.parsing.scope import Scope
from deniable.queries.question.conditions import Conjunction, Disjoint
from deniable.queries.question.partners import has_row, settled, with_partner


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """Rows, and whether they are added or taken away."""

    rows: Conjunction
    without: frozenset[str]
    """Tables in which they have no partner."""
    sign: int = 1
    once: frozenset[str] = frozenset()
    """Tables with many rows in which everybody counts once."""


def counted_rows(scope: Scope, rows: Disjoint, apart: frozenset[str], *, people: bool = False) -> Iterator[CountedRows]:
    """Rows as sums and differences of what can be counted."""
    many = [table for table in scope.optional if scope.collection[table].many is not None]
    for conjunction in settled(rows, scope.optional, apart):
        without = frozenset(table for table in scope.optional if with_partner(conjunction, table) is False)
        made = [CountedRows(conjunction, without)]
        for table in many:
            made = [part for each in made for part in _of_many(scope, each, table, people=people)]
        yield from made


def _of_many(scope: Scope, counted: CountedRows, table: str, *, people: bool) -> Iterator[CountedRows]:
    partner = with_partner(counted.rows, table)
    if partner:
        yield counted
        return
    others = {test: wanted for test, wanted in counted.rows.public.items() if test != has_row(table)}
    single = scope.collection[table].many == 1 and not any(name == table for name, _ in others)
    if not single and not (people and partner is None):
        problem = f"rows without one in {table!r} would count, and reports hide how many rows somebody has"
        repair = f"Ask about columns of {table}: COUNT({table}.{scope.key}), SUM(x), AVG(x); or write JOIN."
        raise QueryRefused(problem, repair)
    everybody = replace(counted, rows=Conjunction(counted.rows.private, others), once=counted.once | frozenset({table}))
    yield everybody
    if partner is False:
        here = Conjunction(counted.rows.private, {**others, has_row(table): True})
        yield replace(counted, rows=here, sign=-counted.sign)
