"""A checked question: which tables, which sums over their users, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.arrays import Booleans, Floats, Integers
from deniable.queries.question.conditions import AttributeKey
from deniable.queries.question.formula import Formula
from deniable.queries.question.public_trees import PublicFactor, PublicTest

MOST_GROUPS = 10_000
NO_ROW = -1
"""In the place of a moment: no row can add to it."""
ERROR_COLUMNS = ("_stderr", "_low", "_high", "_model")
"""Endings of the columns that an exported answer adds for its errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """coefficient · Π condition(t) · measure(t) over private attributes, times the tables' public factors."""

    coefficient: float
    conditions: Mapping[AttributeKey, Floats]
    measures: Mapping[AttributeKey, Floats]
    public: Mapping[str, PublicFactor]
    without: frozenset[str] = frozenset()
    """Tables in which its rows have no partner."""
    once: frozenset[str] = frozenset()
    """Tables with many rows in which everybody counts once, whatever her rows are."""

    def __str__(self) -> str:
        conditions = (f"[{'.'.join(key)}: {int(np.count_nonzero(mask))}]" for key, mask in self.conditions.items())
        measures = (f"{'.'.join(key)} from {values[0]:g} to {values[-1]:g}" for key, values in self.measures.items())
        public = (f"{table}: {factor}" for table, factor in self.public.items())
        return " · ".join((f"{self.coefficient:g}", *conditions, *measures, *public))


@dataclass(frozen=True, slots=True, eq=False)
class MomentOf:
    """A sum over users (or their rows) of a sum of terms."""

    name: str
    terms: tuple[Term, ...]
    indicator: bool
    """Whether a row counts either once or not at all."""
    region: int = 0
    """Moments with the same number are sums over the same rows."""
    free: bool = False
    """Whether it is a sum over all values of a cumulative group."""


@dataclass(frozen=True, slots=True, eq=False)
class PrivateGroups:
    """A private attribute, or bins of one, that is grouped by: all values that WHERE allows appear."""

    label: str
    attribute: AttributeKey
    values: tuple[Any, ...]
    codes: Integers
    """For every position of the domain the number of its group; −1 if it is in none."""
    cumulative: bool = False
    """Whether a group is of all values up to its own: what quantiles need."""
    alone: int = -1
    """The number of the group of rows without a partner in the attribute's table; −1 where all have one."""


@dataclass(frozen=True, slots=True)
class PublicGroups:
    """A public attribute that is grouped by: the values that occur appear."""

    label: str
    table: str
    column: str


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of the answer."""

    name: str
    formula: Formula
    shown: bool = True
    possible: tuple[float, float] | None = None
    """The least and the largest possible value, if known; of a sum, per row."""
    adds_up: bool = False
    """Whether it grows with the number of rows."""


@dataclass(frozen=True, slots=True)
class HavingLogic:
    """Parts of HAVING, joined by and, or or not."""

    sign: str
    parts: tuple[Having, ...]

    def __str__(self) -> str:
        if self.sign == "not":
            return f"not ({self.parts[0]})"
        return "(" + f" {self.sign} ".join(map(str, self.parts)) + ")"


@dataclass(frozen=True, slots=True)
class HavingComparison:
    """Two outputs' formulas compared: part of HAVING."""

    sign: str
    left: Formula
    right: Formula

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


Having = HavingComparison | HavingLogic


@dataclass(frozen=True, slots=True)
class Ordering:
    """A key of ORDER BY: a group's label, or an output."""

    key: str
    descending: bool
    group: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """A dimension joined on a public attribute: the engine adds its columns, as "alias.column"."""

    table: str
    attribute: str
    dimension: str
    key: str
    alias: str
    outer: bool = False
    """Whether rows without one there are kept, as by LEFT JOIN."""


@dataclass(frozen=True, slots=True)
class KeyJoin:
    """A table of another population, joined through a private attribute of users that holds its ids."""

    table: str
    attribute: AttributeKey


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a query asks, after every part of it has been recognised."""

    text: str
    tables: tuple[str, ...]
    moments: tuple[MomentOf, ...]
    outputs: tuple[AnswerColumn, ...]
    groups: tuple[PrivateGroups | PublicGroups, ...] = ()
    filters: Mapping[str, tuple[PublicTest, ...]] = field(default_factory=dict)
    """For each table, tests of its public attributes that all rows must pass."""
    lookups: tuple[Lookup, ...] = ()
    shown_groups: tuple[str, ...] = ()
    having: Having | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0
    possible: tuple[Mapping[AttributeKey, Booleans], ...] = ({},)
    """For each conjunction of WHERE the positions that it allows; a group that none of them meets is left out."""
    lacking: tuple[frozenset[str], ...] = (frozenset(),)
    """For each conjunction of WHERE the tables in which its rows have no partner."""
    optional: frozenset[str] = frozenset()
    """Tables in which people of the question may have no row: those that LEFT JOIN and FULL JOIN name."""
    notes: tuple[str, ...] = ()
    """What a reader of the answer should know about the question."""
    keyed: KeyJoin | None = None
    """A table of another population that takes part, besides `tables`."""
    products: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """For two moments the one that adds up the products of what a row adds to them, or `NO_ROW`, where that is asked.
    """

    @property
    def has_no_group(self) -> bool:
        """Whether WHERE excludes every row, and so every group; or no value of a private attribute is in any group."""
        private = [group.codes for group in self.groups if isinstance(group, PrivateGroups) and group.codes.size]
        return bool(self.groups) and (not self.possible or any((codes < 0).all() for codes in private))

    @property
    def counts(self) -> frozenset[int]:
        """The moments that are numbers of rows."""
        return frozenset(number for number, moment in enumerate(self.moments) if moment.indicator)
