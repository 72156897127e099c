"""What is known of a query while it is parsed: the value that passes from one step of `sql.PASSES` to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.scope import Node, Scope
from deniable.queries.question.conditions import Disjoint
from deniable.queries.question.partners import settled, with_partner
from deniable.queries.question.public_trees import PublicTest
from deniable.queries.question.question import (
    AnswerColumn,
    Having,
    MomentOf,
    Ordering,
    PrivateGroups,
    PublicGroups,
    Question,
)
from deniable.tables.specification.specification import Specification


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An expression of the SELECT list, and its alias or an empty text."""

    alias: str
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class CollectedSum:
    """A moment that the answers need, and what makes it equal to another."""

    key: tuple[Any, ...]
    """What is summed, and of which rows."""
    size: int
    """How many products it may have."""
    moment: MomentOf


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A query on its way to a question. Each pass fills in some fields, and none changes what another one set."""

    text: str
    collection: Specification
    dimensions: Mapping[str, Dimension]
    key: str = "uid"
    centred: bool = True
    """Whether averages are measured from the middle of their range."""
    select: Node = None
    names: Scope | None = None
    items: tuple[SelectItem, ...] = ()
    rows: Disjoint = ()
    groups: Mapping[str, PrivateGroups | PublicGroups] = field(default_factory=dict)
    """By the normal form of the expression that is grouped by."""
    shown_groups: tuple[str, ...] = ()
    sums: tuple[CollectedSum, ...] = ()
    outputs: tuple[AnswerColumn, ...] = ()
    having: Having | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0
    filters: Mapping[str, tuple[PublicTest, ...]] = field(default_factory=dict)
    moments: tuple[MomentOf, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def scope(self) -> Scope:
        """What names mean, once FROM has been read."""
        if self.names is None:
            raise ValueError("FROM comes before everything that has names in it")
        return self.names

    def question(self) -> Question:
        """The question, after all passes."""
        keyed = self.scope.keyed
        apart = [group.attribute[0] for group in self.groups.values() if isinstance(group, PrivateGroups)]
        rows = settled(self.rows, self.scope.optional, apart)
        return Question(
            text=self.text,
            tables=tuple(name for name in self.scope.tables if keyed is None or name != keyed.table),
            moments=self.moments,
            outputs=self.outputs,
            groups=tuple(self.groups.values()),
            filters=self.filters,
            lookups=self.scope.lookups,
            shown_groups=self.shown_groups,
            having=self.having,
            order=self.order,
            limit=self.limit,
            offset=self.offset,
            possible=tuple(conjunction.private for conjunction in rows),
            lacking=tuple(
                frozenset(name for name in self.scope.optional if with_partner(conjunction, name) is False)
                for conjunction in rows
            ),
            optional=frozenset(self.scope.optional),
            notes=self.notes,
            keyed=keyed,
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """What is known so far, a line each."""
        if self.select is not None:
            yield f"tree: {self.select.sql(dialect='duckdb')}"
        if self.names is not None:
            yield f"from: {self.names}"
            yield from (f"rows: {conjunction}" for conjunction in self.rows)
        yield from (f"item: {item.node.sql(dialect='duckdb')} as {item.alias or '-'}" for item in self.items)
        for group in self.groups.values():
            if isinstance(group, PublicGroups):
                yield f"group {group.label}: {group.table}.{group.column}, as it occurs"
            else:
                yield f"group {group.label}: {len(group.values)} values of {'.'.join(group.attribute)}"
        yield from (f"shown: {label}" for label in self.shown_groups)
        for number, collected in enumerate(self.sums):
            yield from (f"m{number} = {collected.moment.name}: {term}" for term in collected.moment.terms)
        for output in self.outputs:
            bounds = "" if output.possible is None else f", from {output.possible[0]:g} to {output.possible[1]:g}"
            per_row = " per row" if output.possible is not None and output.adds_up else ""
            yield f"output {output.name} = {output.formula}{bounds}{per_row}{'' if output.shown else ', not shown'}"
        if self.having is not None:
            yield f"having: {self.having}"
        yield from (f"order: {ordering.key}{' descending' if ordering.descending else ''}" for ordering in self.order)
        if self.limit is not None or self.offset:
            yield f"limit: {self.limit}, offset {self.offset}"
        for table, tests in self.filters.items():
            yield from (f"filter {table}: {test if wanted else f'not ({test})'}" for test, wanted in tests)
        yield from (f"note: {note}" for note in self.notes)
        for number, moment in enumerate(self.moments):
            yield from (f"moment m{number}: {term}" for term in moment.terms)
