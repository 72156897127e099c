"""Means over rows that are spread evenly over the domains: of what columns ask for, and of products of two columns.

Where more rows are known to have some values than others, values have weights.

A column is a sum of products of functions of single attributes, and attributes are independent. So a mean is a product
of means over single domains. All that are needed come from one matrix per attribute: the means of products of any two
of the distinct functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Floats, Integers, digest
from deniable.queries.weights.table_plan import Column, Product
from deniable.tables.schema.attributes import Table

BLOCK = 2**22
"""How many values of functions are multiplied at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class AttributeFunctions:
    """The distinct functions of one attribute, and which of them each product takes."""

    which: Integers
    means: Floats
    products: Floats
    """Means of products of two functions."""

    @classmethod
    def of(cls, size: int, given: Sequence[Sequence[Floats]], weight: Floats | None = None) -> AttributeFunctions:
        """From the arrays that are multiplied for each product; with a weight on every value, if there is one."""
        known: dict[tuple[bytes, ...], int] = {}
        digests: dict[int, bytes] = {}
        distinct: list[Sequence[Floats]] = []
        which = []
        for arrays in given:
            for array in arrays:
                if id(array) not in digests:
                    digests[id(array)] = digest(array)
            key = tuple(digests[id(array)] for array in arrays)
            if key not in known:
                known[key] = len(distinct)
                distinct.append(arrays)
            which.append(known[key])
        means, products = np.zeros(len(distinct)), np.zeros((len(distinct), len(distinct)))
        step = max(BLOCK // max(len(distinct), 1), 1)
        for start in range(0, size, step):
            part = slice(start, min(start + step, size))
            block = np.ones((len(distinct), part.stop - start))
            for row, arrays in zip(block, distinct, strict=True):
                for array in arrays:
                    row *= array[part]
            weighted = block if weight is None else block * weight[part]
            means += weighted.sum(axis=1)
            products += weighted @ block.T
        return cls(np.array(which, dtype=np.int64), means / size, products / size)

    def of_pairs(self, left: Integers, right: Integers) -> Floats:
        """Means of products of the functions of two products each."""
        return np.asarray(self.products[self.which[left], self.which[right]])


@dataclass(frozen=True, slots=True, eq=False)
class EvenMeans:
    """Means of some columns of a table."""

    table: Table
    products: tuple[Product, ...]
    owners: tuple[range, ...]
    """The products of each column."""
    functions: Mapping[str, AttributeFunctions]
    weights: Mapping[str, Floats] = field(default_factory=dict)
    """Of the values of some attributes; one on average."""

    @classmethod
    def of(cls, table: Table, columns: Sequence[Column], weights: Mapping[str, Floats] | None = None) -> EvenMeans:
        """Prepare columns of a table."""
        weighed = weights or {}
        products = tuple(product for column in columns for product in column)
        ends = np.cumsum([len(column) for column in columns], dtype=np.int64).tolist()
        owners = tuple(range(end - len(column), end) for column, end in zip(columns, ends, strict=True))
        functions = {}
        for name, domain in zip(table.private, table.domains, strict=True):
            given = [_arrays(product.conditions, name) + _arrays(product.measures, name) for product in products]
            if any(given):  # else it is one everywhere
                functions[name] = AttributeFunctions.of(domain.size, given, weighed.get(name))
        return cls(table, products, owners, functions, weighed)

    def columns(self) -> Floats:
        """The mean of each column."""
        values = np.array([product.coefficient for product in self.products])
        for known in self.functions.values():
            values = values * known.means[known.which]
        return np.array([values[mine.start : mine.stop].sum() for mine in self.owners])

    def pairs(self, left: Integers, right: Integers, rounded: Sequence[str | None] | None = None) -> Floats:
        """The mean of the product of two columns each; `rounded` names the attribute that each product rounds."""
        first, second, pair = [], [], []
        for number, (column, other_column) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            for mine in self.owners[column]:
                for other in self.owners[other_column]:
                    first.append(mine)
                    second.append(other)
                    pair.append(number)
        a, b = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
        coefficients = np.array([product.coefficient for product in self.products])
        values = coefficients[a] * coefficients[b]
        for name, known in self.functions.items():
            plain = known.of_pairs(a, b)
            coins = None if rounded is None else np.array([attribute == name for attribute in rounded])
            if coins is not None and (both := coins[a] & coins[b]).any():
                plain = np.where(both, self._by_coins(name, a, b), plain)
            values = values * plain
        return np.bincount(np.array(pair, dtype=np.int64), values, minlength=left.size).astype(np.float64)

    def _by_coins(self, name: str, a: Integers, b: Integers) -> Floats:
        """Means of products where two values are rounded to the ends of the domain by one coin."""
        given = [_arrays(product.conditions, name) for product in self.products]
        size = self.table.domains[self.table.private.index(name)].size
        weight = self.weights.get(name, np.ones(size))
        everywhere = AttributeFunctions.of(size, given, weight).of_pairs(a, b)
        upper = AttributeFunctions.of(size, given, weight * np.linspace(0.0, 1.0, size)).of_pairs(a, b)
        ends = np.array(
            [product.measures[name][[0, -1]] if name in product.measures else [1.0, 1.0] for product in self.products]
        )
        low, high = (ends[a] * ends[b]).T
        return np.asarray(low * everywhere + (high - low) * upper)


def _arrays(functions: Mapping[str, Floats], name: str) -> list[Floats]:
    return [functions[name]] if name in functions else []
