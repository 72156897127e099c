"""Which columns of contributions a question needs of each table, and how they are multiplied and added.

A moment is a sum over users of a sum of terms, and a term a product of factors. Columns and public factors that several
terms need are listed once. Nothing is weighed yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.errors import QueryRefused
from deniable.limits import MOST_CROSSES
from deniable.queries.question.question import MOST_GROUPS, PrivateGroups, PublicFactor, Question, Term
from deniable.queries.weights.table_plan import Column, Product
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

MOST_COLUMNS = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Columns, factors and terms of a question, before anything is weighed; see `Plan`."""

    columns: Mapping[str, list[Column]]
    """For every table of the question."""
    public: tuple[tuple[str, PublicFactor], ...]
    groups: tuple[tuple[int, ...], ...]
    starts: Integers
    coefficients: Floats
    factors: Integers


def lay_out(question: Question, collection: Specification) -> Layout:
    """Which columns each table has to answer for a question, and how they are multiplied and added."""
    private = [group for group in question.groups if isinstance(group, PrivateGroups)]
    count = math.prod(len(group.values) for group in private)
    if count > MOST_GROUPS:
        raise QueryRefused(f"there are {count:,} groups, over {MOST_GROUPS:,}", "Group by fewer attributes, or bins.")
    check_crosses(question, count)
    combinations = tuple(product(*(range(len(group.values)) for group in private)))
    book = _Book(question, collection)
    starts, coefficients, factors = [0], [], []
    for combination in combinations:
        groups = _indicators(private, combination)
        for moment, described in enumerate(question.moments):
            for coefficient, chosen in book.terms(moment, described.terms, groups):
                coefficients.append(coefficient)
                factors.append(chosen)
            starts.append(len(coefficients))
    return Layout(
        columns=book.columns,
        public=tuple(book.public),
        groups=combinations,
        starts=np.array(starts, dtype=np.int64),
        coefficients=np.array(coefficients, dtype=np.float64),
        factors=np.array([book.place(chosen) for chosen in factors], dtype=np.int64).reshape(len(factors), book.width),
    )


def check_crosses(question: Question, groups: int) -> None:
    """Refuse where all the covariances between sums would not fit into memory."""
    if groups * len(question.moments) ** 2 > MOST_CROSSES:
        sums = counted(len(question.moments), "sum")
        problem = f"{counted(groups, 'group')} of {sums} each need too much memory"
        raise QueryRefused(problem, "Ask for fewer answers at once, or group by bins.")


def _indicators(groups: list[PrivateGroups], combination: tuple[int, ...]) -> dict[tuple[str, str], Floats]:
    """For each attribute that is grouped by, which places of its domain are in the group."""
    found: dict[tuple[str, str], Floats] = {}
    for group, value in zip(groups, combination, strict=True):
        found[group.place] = found.get(group.place, 1.0) * (group.codes == value)
    return found


Chosen = tuple[tuple[str, int], ...]
"""Factors of a term: (table, its column), or ("", number of a public factor)."""


class _Book:
    """The distinct columns and public factors that the terms of a plan need."""

    def __init__(self, question: Question, collection: Specification) -> None:
        self._question, self._collection = question, collection
        self.columns: dict[str, list[Column]] = {name: [] for name in question.tables}
        self.public: list[tuple[str, PublicFactor]] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._families: dict[tuple[int, int], int] = {}
        alone = question.tables[0] if len(question.tables) == 1 else None
        # A table alone may add its terms before the reports are looked at; parts of a design have to be multiplied.
        self._adds = alone is not None and len(collection.design_of(alone).parts) == 1

    @property
    def width(self) -> int:
        """How many factors a term has at most."""
        return len(self._question.tables) * 2

    def terms(
        self, moment: int, terms: tuple[Term, ...], groups: Mapping[tuple[str, str], Floats]
    ) -> list[tuple[float, Chosen]]:
        """The terms of a moment within a private group: coefficients and factors."""
        found: dict[Chosen, list[tuple[float, dict[str, Product]]]] = {}
        for number, term in enumerate(terms):
            products = self._products(self._families.setdefault((moment, number), len(self._families)), term, groups)
            if products is None:
                continue
            public = tuple(("", self._public(table, factor)) for table, factor in sorted(term.public.items()))
            found.setdefault(public, []).append((term.coefficient, products))
        made: list[tuple[float, Chosen]] = []
        for public, members in found.items():
            if self._adds:
                (name,) = self._question.tables
                column = tuple(
                    Product(coefficient, one[name].conditions, one[name].measures, one[name].family)
                    for coefficient, one in members
                )
                made.append((1.0, ((name, self._column(name, column)), *public)))
                continue
            for coefficient, one in members:
                columns = tuple((name, self._column(name, (mine,))) for name, mine in one.items())
                made.append((coefficient, (*columns, *public)))
        return made

    def _products(self, family: int, term: Term, groups: Mapping[tuple[str, str], Floats]) -> dict[str, Product] | None:
        """For each table its part of a term within a group; None if no value satisfies it, or all that do are zero."""
        conditions = dict(term.conditions)
        for place, inside in groups.items():
            conditions[place] = conditions.get(place, 1.0) * inside
        if not all((mask * term.measures.get(place, 1.0)).any() for place, mask in conditions.items()):
            return None
        return {
            name: Product(
                1.0,
                {attribute: mask for (table, attribute), mask in sorted(conditions.items()) if table == name},
                {attribute: values for (table, attribute), values in sorted(term.measures.items()) if table == name},
                family,
            )
            for name in self._question.tables
        }

    def _column(self, name: str, column: Column) -> int:
        key = (name, *(part for one in column for part in _identity(one)))
        if key not in self._known:
            self._known[key] = len(self.columns[name])
            self.columns[name].append(column)
            if sum(map(len, self.columns.values())) > MOST_COLUMNS:
                raise QueryRefused("the question has too many groups and terms", "Group by fewer attributes, or bins.")
        return self._known[key]

    def _public(self, table: str, factor: PublicFactor) -> int:
        if (table, factor) not in self.public:
            self.public.append((table, factor))
        return self.public.index((table, factor))

    def place(self, chosen: Chosen) -> list[int]:
        """The numbers of a term's factors, filled up with the factor one."""
        offsets, reached = {}, 1
        for name in self._question.tables:
            offsets[name], reached = reached, reached + len(self.columns[name])
        offsets[""] = reached
        found = [offsets[name] + number for name, number in chosen]
        return found + [0] * (self.width - len(found))


def _identity(one: Product) -> tuple[object, ...]:
    return (
        one.coefficient,
        *((name, values.tobytes()) for name, values in one.conditions.items()),
        "·",
        *((name, values.tobytes()) for name, values in one.measures.items()),
    )
