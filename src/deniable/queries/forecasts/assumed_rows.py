"""How many rows people have, and how many of these match a question: what a forecast has to be told, or leaves open.

A forecast knows domains and the number of users. It does not know how many rows a user has in a table that allows many,
nor how many rows meet the conditions of a question, on which averages depend: their error is that of a sum over a
number of rows. Whoever plans a collection often knows this roughly, and says it with `rows=` and `matching=`. What
nobody says is assumed, and the forecast is a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deniable.arrays import Floats
from deniable.checks import is_number
from deniable.errors import InvalidParameter
from deniable.tables.schema.attributes import Table
from deniable.tables.specification.specification import Specification
from deniable.wording import counted, listed

UNKNOWN_ROWS = (1 / 8, 1.0)
"""Nobody says how many rows users have on average: from an eighth of the rows that a table allows to all of them."""
UNKNOWN_MATCHING = (1 / 3, 3.0)
"""Nobody says how many rows match: so many times as many as if rows were spread evenly over the domains."""

Span = tuple[float, float]
RowsGiven = float | Span | Mapping[str, float | Span] | None
"""Expected rows per user: a number, a range, or either by table."""
MatchingGiven = float | Span | list[float | Span | None] | None
"""The expected share of rows that match: a number or a range, of all questions, or a list with one for each."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What one prediction takes for granted."""

    rows: Mapping[str, float] = field(default_factory=dict)
    """By table: rows per user; in a table with one row each, the share of users who have it."""
    matching: float | None = None
    """The share of rows that meet a question's conditions; None: as many as if rows were spread evenly …"""
    times: float = 1.0
    """… times this."""
    seen: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict, compare=False)
    """Where nobody says how many match: by table and attribute, the part of the rows at each value."""

    def rows_of(self, table: Table) -> float:
        """Rows per user who reports."""
        if table.many is None:
            return 1.0
        return self.rows.get(table.name, max(table.many / 2, 0.5))

    def weighted(self, table: Table) -> float:
        """How likely the weight of a report is rounded up, where users have many rows."""
        return self.rows_of(table) / (table.many or 1)

    def reporting(self, tables: Iterable[Table]) -> float:
        """The share of users who report in all of some tables: without her row a user sends no report."""
        return math.prod(self.rows.get(table.name, 1.0) for table in tables if table.many is None)

    def times_matching(self, evenly: float) -> float:
        """How many times as many rows match as if they were spread evenly, of which this share would."""
        if not 0 < evenly < 1:
            return 1.0
        return min(self.times if self.matching is None else self.matching / evenly, 1 / evenly)


EVENLY = Assumption()


@dataclass(frozen=True, slots=True)
class AssumedRows:
    """What is known of rows, from low to high."""

    rows: Mapping[str, Span]
    matching: Span | None = None

    @property
    def middle(self) -> Assumption:
        """One assumption for a forecast that is a number: half of the allowed rows where nobody says more."""
        rows = {name: math.sqrt(low * high) for name, (low, high) in self.rows.items()}
        return Assumption(rows, None if self.matching is None else math.sqrt(self.matching[0] * self.matching[1]))

    def among_reporters(self, tables: Iterable[Table]) -> AssumedRows:
        """The same about users who report in all tables: they have the row of a table with one row each."""
        several = {table.name for table in tables if table.many is not None}
        return AssumedRows({name: span for name, span in self.rows.items() if name in several}, self.matching)

    def ends(self, tables: Iterable[Table]) -> tuple[Assumption, ...]:
        """Few rows that few of match, and many: errors of averages fall, those of sums grow with them."""
        spans = self._spans(tables)
        few, many = ({name: span[end] for name, span in spans.items()} for end in (0, 1))
        if self.matching is not None:
            return Assumption(few, self.matching[0]), Assumption(many, self.matching[1])
        return Assumption(few, times=UNKNOWN_MATCHING[0]), Assumption(many, times=UNKNOWN_MATCHING[1])

    def reasons(self, tables: Iterable[Table], *, conditions: bool) -> tuple[str, ...]:
        """In words, what is not known exactly of a question's rows."""
        said: list[str] = []
        for name, (low, high) in self._spans(tables).items():
            if low < high:
                known = "" if name in self.rows else " (nobody said: rows)"
                said.append(f"{low:.3g} to {high:.3g} rows per user in {name}{known}")
        if conditions and self.matching is None:
            said.append("a third to three times as many matching rows as if spread evenly (nobody said: matching)")
        elif conditions and self.matching is not None and self.matching[0] < self.matching[1]:
            said.append(f"{self.matching[0]:.3g} to {self.matching[1]:.3g} of the rows match")
        return tuple(said)

    def _spans(self, tables: Iterable[Table]) -> dict[str, Span]:
        unknown = {
            table.name: (UNKNOWN_ROWS[0] * table.many, UNKNOWN_ROWS[1] * table.many)
            for table in tables
            if table.many is not None
        }
        return {**unknown, **self.rows}


NOTHING_SAID = AssumedRows({})


def assumed_rows(
    collection: Specification, rows: RowsGiven = None, matching: float | Span | None = None
) -> AssumedRows:
    """Checked expectations about the rows of a collection."""
    shares = None if matching is None else _span("matching", matching, 1.0, "Use 0.2, or (0.1, 0.3), of the rows.")
    if rows is None:
        return AssumedRows({}, shares)
    by_table: Mapping[Any, Any]
    if isinstance(rows, Mapping):
        by_table = rows
    else:
        several = [table.name for table in collection.tables if table.many is not None]
        if not several:
            raise InvalidParameter("rows", "are not given by table, and none has many rows per user", "Name the table.")
        by_table = dict.fromkeys(several, rows)
    names = [table.name for table in collection.tables]
    if unknown := [name for name in by_table if name not in names]:
        raise InvalidParameter("rows", f"name {unknown[0]!r}, which is no table", f"Use {listed(names)}.")
    return AssumedRows({name: _rows_of(collection[name], given) for name, given in by_table.items()}, shares)


def assumed_by_question(
    collection: Specification, rows: RowsGiven, matching: MatchingGiven, questions: int
) -> tuple[AssumedRows, ...]:
    """The same for each of several questions, of which different shares of the rows may match."""
    shares = matching if isinstance(matching, list) else [matching] * questions
    if len(shares) != questions:
        raise InvalidParameter(
            "matching",
            f"has {len(shares)} entries for {counted(questions, 'question')}",
            "Give one share for all questions, or a list with one share per question.",
        )
    return tuple(assumed_rows(collection, rows, share) for share in shares)


def _rows_of(table: Table, given: Any) -> Span:
    if table.many is None:
        return _span("rows", given, 1.0, f"Users have one row in {table.name}: give the share of them who do.")
    return _span("rows", given, float(table.many), f"A user has up to {table.many} rows in {table.name}.")


def _span(name: str, given: Any, most: float, repair: str) -> Span:
    """A number or a range of numbers above 0."""
    ends = tuple(given) if isinstance(given, (tuple, list)) else (given, given)
    numbers = len(ends) == 2 and all(is_number(end) and math.isfinite(end) for end in ends)
    if not numbers or not 0 < ends[0] <= ends[1] <= most:
        raise InvalidParameter(name, f"must be above 0 and at most {most:g}, a number or a range", repair)
    return float(ends[0]), float(ends[1])
