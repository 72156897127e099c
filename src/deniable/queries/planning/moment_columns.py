"""Which columns of contributions a question needs of each table, and how they are multiplied and added.

A moment is a sum over users of a sum of terms, and a term a product of factors. Columns and public factors that several
terms need are listed once. Nothing is weighed yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product as combinations_of

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.limits import MOST_CROSSES
from deniable.queries.planning.key_functions import KeyFunctions, identity, with_groups
from deniable.queries.planning.planned_terms import NO_FACTOR, PlannedTerm, TermTable
from deniable.queries.question.public_trees import PublicFactor
from deniable.queries.question.question import MOST_GROUPS, PrivateGroups, Question, Term
from deniable.queries.weights.table_plan import Column, Product
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

MOST_COLUMNS = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class MomentColumns:
    """Columns, public factors and terms of a question, before anything is weighed; see `Plan`."""

    columns: Mapping[str, list[Column]]
    """For every table of the question."""
    public: tuple[tuple[str, PublicFactor], ...]
    groups: tuple[tuple[int, ...], ...]
    terms: TermTable


def moment_columns(question: Question, collection: Specification, keyed: KeyFunctions | None = None) -> MomentColumns:
    """Which columns each table has to answer for a question, and how they are multiplied and added.

    A question that joins another population needs `keyed`, what that one's reports contribute.
    """
    if (question.keyed is None) != (keyed is None):
        problem = "a table of another population takes part, and this is not possible here"
        raise QueryRefused(problem, "Ask for COUNT, SUM and AVG by db.sql, or about users alone.")
    private = [group for group in question.groups if isinstance(group, PrivateGroups)]
    count = math.prod(len(group.values) for group in private)
    if count > MOST_GROUPS:
        raise QueryRefused(f"there are {count:,} groups, over {MOST_GROUPS:,}", "Group by fewer attributes, or bins.")
    check_crosses(question, count)
    combinations = possible_groups(question, private)
    book = _Book(question, collection, keyed)
    owners: list[int] = []
    terms: list[PlannedTerm] = []
    kinds = {described.free for described in question.moments}
    for number, combination in enumerate(combinations):
        inside = {free: _indicators(private, combination, free=free) for free in kinds}
        lone = {free: _alone(private, combination, free=free) for free in kinds}
        for moment, described in enumerate(question.moments):
            mine = book.terms(moment, _inside(described.terms, lone[described.free]), inside[described.free])
            terms += mine
            owners += [number * len(question.moments) + moment] * len(mine)
    width = max((len(term.public) for term in terms), default=0)
    public = [(*term.public, *[NO_FACTOR] * (width - len(term.public))) for term in terms]
    return MomentColumns(
        columns=book.columns,
        public=tuple(book.public),
        groups=combinations,
        terms=TermTable(
            groups=len(combinations),
            moments=len(question.moments),
            owners=np.array(owners, dtype=np.int64),
            coefficients=np.array([term.coefficient for term in terms], dtype=np.float64),
            columns=np.array([term.columns for term in terms], dtype=np.int64).reshape(-1, len(question.tables)),
            public=np.array(public, dtype=np.int64).reshape(len(terms), width),
        ),
    )


def possible_groups(question: Question, private: list[PrivateGroups]) -> tuple[tuple[int, ...], ...]:
    """The combinations of private groups, without those that WHERE, or one of the groups, excludes.

    Groups of different attributes are independent of each other within a conjunction, so each is looked at alone.
    """
    everything = combinations_of(*(range(len(group.values)) for group in private))
    if not private or any(group.cumulative for group in private):
        return tuple(everything)
    attributes = list(dict.fromkeys(group.attribute for group in private))
    allowed: set[tuple[int, ...]] = set()
    for masks, lacking in zip(question.possible, question.lacking, strict=True):
        choices: list[list[tuple[tuple[int, int], ...]]] = []
        for attribute in attributes:
            members = [number for number, group in enumerate(private) if group.attribute == attribute]
            if attribute[0] in lacking:
                choices.append([tuple((number, private[number].alone) for number in members)])
                continue
            codes = np.stack([private[number].codes for number in members])
            if attribute in masks:
                codes = codes[:, masks[attribute]]
            seen = np.unique(codes[:, (codes >= 0).all(axis=0)], axis=1).T.tolist()
            choices.append([tuple(zip(members, chosen, strict=True)) for chosen in seen])
        for combination in combinations_of(*choices):
            allowed.add(tuple(code for _, code in sorted(pair for part in combination for pair in part)))
    return tuple(sorted(allowed)) or (tuple(0 for _ in private),)  # a plan has a group, even one that nobody is in


def check_crosses(question: Question, groups: int) -> None:
    """Refuse a question if the covariances between its sums would not fit into memory."""
    if groups * len(question.moments) ** 2 > MOST_CROSSES:
        sums = counted(len(question.moments), "sum")
        problem = f"{counted(groups, 'group')} of {sums} each need too much memory"
        raise QueryRefused(problem, "Ask for fewer answers at once, or group by bins.")


def _alone(groups: list[PrivateGroups], combination: tuple[int, ...], *, free: bool) -> dict[str, bool]:
    """For each table that is grouped by, whether rows without a partner there are in this group."""
    alone: dict[str, bool] = {}
    for group, value in zip(groups, combination, strict=True):
        here = value == group.alone
        if group.cumulative:
            here = 0 <= group.alone <= (len(group.values) - 1 if free else value)
        alone[group.attribute[0]] = alone.get(group.attribute[0], True) and here
    return alone


def _inside(terms: tuple[Term, ...], alone: Mapping[str, bool]) -> tuple[Term, ...]:
    """The terms that may be in a group, by the tables in which their rows have no partner."""
    return tuple(term for term in terms if all(alone.get(table, True) for table in term.without))


def _indicators(
    groups: list[PrivateGroups], combination: tuple[int, ...], *, free: bool
) -> dict[tuple[str, str], Floats]:
    """For each attribute that is grouped by, which positions of its domain are in the group."""
    inside: dict[tuple[str, str], Floats] = {}
    for group, value in zip(groups, combination, strict=True):
        chosen = group.codes == value
        if group.cumulative:
            last = len(group.values) - 1 if free else value
            chosen = (group.codes >= 0) & (group.codes <= last)
        inside[group.attribute] = inside.get(group.attribute, 1.0) * chosen
    return inside


class _Book:
    """The distinct columns and public factors that the terms of a plan need."""

    def __init__(self, question: Question, collection: Specification, keyed: KeyFunctions | None = None) -> None:
        self._question, self._collection, self._keyed = question, collection, keyed
        self.columns: dict[str, list[Column]] = {name: [] for name in question.tables}
        self.public: list[tuple[str, PublicFactor]] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._families: dict[tuple[int, ...], int] = {}
        alone = question.tables[0] if len(question.tables) == 1 else None
        # A table alone may add its terms before the reports are looked at; parts of a design have to be multiplied.
        self._adds = alone is not None and len(collection.design_of(alone).parts) == 1

    def terms(
        self, moment: int, terms: tuple[Term, ...], groups: Mapping[tuple[str, str], Floats]
    ) -> list[PlannedTerm]:
        """The terms of a moment within a private group."""
        by_factors: dict[tuple[int, ...], list[tuple[float, dict[str, Product]]]] = {}
        for number, term in enumerate(terms):
            products = self._products((moment, number), term, groups)
            if products is None:
                continue
            public = tuple(self._public(table, factor) for table, factor in sorted(term.public.items()))
            by_factors.setdefault(public, []).append((term.coefficient, products))
        planned: list[PlannedTerm] = []
        for public, members in by_factors.items():
            if self._adds:
                (name,) = self._question.tables
                column = tuple(replace(products[name], coefficient=coefficient) for coefficient, products in members)
                planned.append(PlannedTerm(1.0, (self._column(name, column),), public))
                continue
            for coefficient, products in members:
                columns = tuple(self._column(name, (product,)) for name, product in products.items())
                planned.append(PlannedTerm(coefficient, columns, public))
        return planned

    def _products(
        self, family: tuple[int, ...], term: Term, groups: Mapping[tuple[str, str], Floats]
    ) -> dict[str, Product] | None:
        """For each table its part of a term within a group; None if no value satisfies it, or all that do are zero."""
        groups = {attribute: mask for attribute, mask in groups.items() if attribute[0] not in term.without}
        conditions, measures = with_groups(term.conditions, groups), dict(term.measures)
        if self._keyed is not None:
            function, attribute = self._keyed.number(conditions, measures), self._keyed.join.attribute
            measures[attribute] = measures.get(attribute, 1.0) * self._keyed.values[function]
            conditions.setdefault(attribute, np.ones(measures[attribute].size))
            family = (*family, function)
        if not all((mask * measures.get(attribute, 1.0)).any() for attribute, mask in conditions.items()):
            return None
        number = self._families.setdefault(family, len(self._families))
        return {
            name: Product(
                1.0,
                {attribute: mask for (table, attribute), mask in sorted(conditions.items()) if table == name},
                {attribute: values for (table, attribute), values in sorted(measures.items()) if table == name},
                number,
                name in term.once,
            )
            for name in self._question.tables
        }

    def _column(self, name: str, column: Column) -> int:
        key = (name, *(part for product in column for part in identity(product)))
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
