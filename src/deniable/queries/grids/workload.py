"""The columns that a grid is fitted to, and where their conditions change: the constants that questions name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from deniable.arrays import Floats
from deniable.queries.weights.table_plan import Column, Product
from deniable.tables.schema.attributes import Table

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadColumn:
    """One column that a table has to answer well."""

    column: Column
    importance: float
    users: float
    """The effective number of users for its variance: smaller than the real one in a join."""

    def restricted(self, names: Names) -> WorkloadColumn:
        """The same with nothing but the functions of some attributes."""
        column = tuple(
            replace(
                product,
                conditions={name: values for name, values in product.conditions.items() if name in names},
                measures={name: values for name, values in product.measures.items() if name in names},
            )
            for product in self.column
        )
        return replace(self, column=column)


@dataclass(frozen=True, slots=True)
class Subject:
    """Attributes that questions use together, and which of them they add up."""

    names: Names
    summed: Names = ()

    def part(self, names: Names) -> Subject:
        """The same for some of the attributes."""
        return Subject(names, tuple(name for name in self.summed if name in names))


def subjects(table: Table, items: Sequence[WorkloadColumn]) -> dict[Subject, list[WorkloadColumn]]:
    """What columns are about, with the columns; one that is about nothing counts for the first attribute."""
    about: dict[Subject, list[WorkloadColumn]] = {}
    for item in items:
        compared = {name for product in item.column for name in _varying(product.conditions)}
        summed = {name for product in item.column for name in _varying(product.measures)}
        names = tuple(name for name in table.private if name in compared | summed) or table.private[:1]
        about.setdefault(Subject(names, tuple(name for name in names if name in summed)), []).append(item)
    return about


def parts(asked: Mapping[Subject, Sequence[WorkloadColumn]]) -> set[Subject]:
    """Pairs and single attributes of what is asked about together."""
    return {subject.part(names) for subject in asked for size in (1, 2) for names in combinations(subject.names, size)}


def borders(items: Sequence[WorkloadColumn], name: str) -> tuple[int, ...]:
    """Where conditions on an attribute change, besides the start of the domain: the positions of their constants."""
    return changes(
        [product.conditions[name] for item in items for product in item.column if name in product.conditions]
    )


def changes(functions: Sequence[Floats]) -> tuple[int, ...]:
    """The positions at which some function differs from its value just before."""
    starts: set[int] = set()
    for function in functions:
        starts.update((np.flatnonzero(function[1:] != function[:-1]) + 1).tolist())
    return tuple(sorted(starts))


def _varying(functions: Mapping[str, Floats]) -> set[str]:
    return {name for name, values in functions.items() if np.ptp(values) > 0}


def importance_of(column: Column) -> float:
    """One over the square of how far apart the most and the least are that one row adds to a column."""
    return 1 / max(sum(abs(product.coefficient) * _span(product) for product in column), 1e-300) ** 2


def _span(product: Product) -> float:
    """From the least, or zero, to the largest, or zero."""
    functions: dict[str, Floats] = dict(product.conditions)
    for name, values in product.measures.items():
        functions[name] = functions.get(name, 1.0) * values
    ends = np.ones(2)
    for values in functions.values():
        products = np.outer(ends, (values.min(), values.max()))
        ends = np.array([products.min(), products.max()])
    return float(max(ends[1], 0.0) - min(ends[0], 0.0))
