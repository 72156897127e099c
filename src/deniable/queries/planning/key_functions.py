"""What a question asks of another population, as functions of the private attribute that holds its ids.

Of each product, a question about transactions asks for some f(row of the product): whether it comes from China, what
it costs. The product's own report contributes W with E[W] = f. So W, by id, stands for f as a function of the
transactions' attribute: both sides are unbiased and independent of each other, and n·τ reports are enough where a
report for each pair of a transaction and a product would be n²·τ [XDW20, Section 8.2].

First stage: `asked_functions` and `functions_plan` say what the other population's reports have to contribute. Second
stage: with what they did contribute, `KeyFunctions` is part of the plan for the users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product as combinations_of

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.queries.grids.grid_weights import plan_grids
from deniable.queries.question.conditions import AttributeKey
from deniable.queries.question.question import MOST_GROUPS, KeyJoin, PrivateGroups, Question
from deniable.queries.weights.axis_weights import Rule
from deniable.queries.weights.product_weights import plan_table
from deniable.queries.weights.table_plan import Product, TablePlan
from deniable.tables.specification.specification import Specification

Functions = Mapping[AttributeKey, Floats]
Identity = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KeyFunctions:
    """What reports of another population contribute to each function that a question asks of it, by id."""

    join: KeyJoin
    asked: FunctionsAsked
    values: Floats
    """functions × positions of the attribute's domain: W, and zero where there is no report."""
    spreads: Floats
    """functions × functions × positions: Cov(W_i, W_j), estimated without bias."""

    @property
    def is_exact(self) -> bool:
        """Whether there is no noise in any of them."""
        return not self.spreads.any()

    def number(self, conditions: Functions, measures: Functions) -> int:
        """The number of the function that a term asks of the other table."""
        return self.asked.numbers[identity(product_of(self.join.table, conditions, measures))]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionsAsked:
    """The functions that a question asks of another population, and the plan for its reports."""

    plan: TablePlan
    """Its columns are the functions, and then products of two of them."""
    functions: int
    pairs: Mapping[tuple[int, int], int]
    """For two functions that count in one answer, the column of their product."""
    numbers: Mapping[Identity, int] = field(repr=False)


def product_of(table: str, conditions: Functions, measures: Functions) -> Product:
    """The part of a term that is about one table."""
    return Product(
        1.0,
        {attribute: mask for (owner, attribute), mask in sorted(conditions.items()) if owner == table},
        {attribute: values for (owner, attribute), values in sorted(measures.items()) if owner == table},
    )


def identity(product: Product) -> Identity:
    """What makes two products the same."""
    return (
        product.coefficient,
        product.once,
        *((name, values.tobytes()) for name, values in product.conditions.items()),
        "·",
        *((name, values.tobytes()) for name, values in product.measures.items()),
    )


def groups_of_others(question: Question) -> list[PrivateGroups]:
    """The groups that are values of the other population's attributes."""
    private = [group for group in question.groups if isinstance(group, PrivateGroups)]
    return [group for group in private if question.keyed is not None and group.attribute[0] == question.keyed.table]


def asked_functions(question: Question) -> tuple[tuple[Product, ...], ...]:
    """For each combination of the other population's groups, the distinct functions that terms ask of it."""
    if question.keyed is None:
        raise ValueError("the question is about users alone")
    groups = groups_of_others(question)
    if np.prod([float(len(group.values)) for group in groups], initial=1.0) > MOST_GROUPS:
        raise QueryRefused(f"there are over {MOST_GROUPS:,} groups", "Group by fewer attributes, or bins.")
    if any(moment.free for moment in question.moments):
        problem = "quantiles are not possible where another population is joined"
        raise QueryRefused(problem, "Ask for COUNT, SUM and AVG.")
    listed = []
    for combination in combinations_of(*(range(len(group.values)) for group in groups)):
        inside: dict[AttributeKey, Floats] = {}
        for group, value in zip(groups, combination, strict=True):
            inside[group.attribute] = inside.get(group.attribute, 1.0) * (group.codes == value)
        functions: dict[Identity, Product] = {}
        for term in (term for moment in question.moments for term in moment.terms):
            conditions = with_groups(term.conditions, inside)
            made = product_of(question.keyed.table, conditions, term.measures)
            functions[identity(made)] = made
        listed.append(tuple(functions.values()))
    return tuple(listed)


def with_groups(conditions: Functions, groups: Functions) -> dict[AttributeKey, Floats]:
    """The conditions of a term within a group."""
    met = dict(conditions)
    for attribute, inside in groups.items():
        met[attribute] = met.get(attribute, 1.0) * inside
    return met


def functions_plan(question: Question, collection: Specification, rule: Rule) -> FunctionsAsked:
    """What the other population's reports have to contribute.

    Its weights are without bias: what a grid does not show without an assumption is refused.
    """
    if question.keyed is None:
        raise ValueError("the question is about users alone")
    by_group = asked_functions(question)
    numbers: dict[Identity, int] = {}
    columns: list[Product] = []
    for made in (made for functions in by_group for made in functions):
        if numbers.setdefault(identity(made), len(columns)) == len(columns):
            columns.append(made)
    asked, pairs, known = tuple(columns), dict[tuple[int, int], int](), dict(numbers)
    for functions in by_group:
        mine = sorted(numbers[identity(made)] for made in functions)
        for left, right in ((left, right) for left in mine for right in mine if left <= right):
            both = _times(asked[left], asked[right])
            if known.setdefault(identity(both), len(columns)) == len(columns):
                columns.append(both)
            pairs[left, right] = pairs[right, left] = known[identity(both)]
    table, design = collection[question.keyed.table], collection.design_of(question.keyed.table)
    listed = [(column,) for column in columns]
    if collection.grids is None:
        return FunctionsAsked(plan_table(table, design, listed, rule), len(asked), pairs, numbers)
    (solved,) = plan_grids([(table, design, listed)], 1.0, unbiased=True, exact_first=True)
    return FunctionsAsked(solved.plan, len(asked), pairs, numbers)


def _times(left: Product, right: Product) -> Product:
    """The product of two functions, which is of the same form."""

    def joined(first: Mapping[str, Floats], second: Mapping[str, Floats]) -> dict[str, Floats]:
        free = np.ones(1)
        return {name: first.get(name, free) * second.get(name, free) for name in sorted({*first, *second})}

    return Product(1.0, joined(left.conditions, right.conditions), joined(left.measures, right.measures))
