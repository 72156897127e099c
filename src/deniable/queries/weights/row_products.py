"""Sparse rows, and their products: how weights of single axes become weights of combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A sparse matrix: for every row the columns that are not zero, in order, and their values."""

    starts: Integers
    columns: Integers
    values: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Rows:
        """The nonzero entries of a matrix."""
        rows, columns = np.nonzero(matrix)
        return cls(np.searchsorted(rows, np.arange(matrix.shape[0] + 1)), columns, matrix[rows, columns])

    @classmethod
    def summed(cls, rows: Integers, columns: Integers, values: Floats, height: int) -> Rows:
        """From entries in any order; entries at the same position are added."""
        width = int(columns.max(initial=0)) + 1
        positions, totals = rows * width + columns, values
        if not ascending(positions):
            positions, which = np.unique(positions, return_inverse=True)
            totals = np.bincount(which, weights=values, minlength=positions.size).astype(np.float64)
        distinct_rows, kept = np.divmod(positions, width)
        starts = np.concatenate(([0], np.cumsum(np.bincount(distinct_rows, minlength=height))))
        return cls(starts, kept, totals)

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self.starts.size - 1

    @property
    def counts(self) -> Integers:
        """How many entries each row has."""
        return self.starts[1:] - self.starts[:-1]

    def totals(self) -> Floats:
        """The sum of each row."""
        rows = np.repeat(np.arange(self.height), self.counts)
        return np.bincount(rows, self.values, minlength=self.height).astype(np.float64)

    def dense(self, width: int) -> Floats:
        """All rows × `width` columns."""
        matrix = np.zeros((self.height, width))
        matrix[np.repeat(np.arange(self.height), self.counts), self.columns] = self.values
        return matrix

    def take(self, rows: Integers) -> Rows:
        """Some rows, in any order."""
        counts = self.counts[rows]
        entries = _ranges(self.starts[rows], counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        return Rows(starts, self.columns[entries], self.values[entries])


def ascending(numbers: Integers) -> bool:
    """Whether every number is larger than the one before: then there is nothing to sort or to add up."""
    return bool((numbers[1:] > numbers[:-1]).all())


def _ranges(starts: Integers, counts: Integers) -> Integers:
    """starts[0], starts[0] + 1, … (counts[0] of them), then those of the second, and so on."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    return np.arange(total) - (ends - counts - starts).repeat(counts)


def row_products(factors: Sequence[Rows]) -> tuple[Integers, list[Integers], Floats]:
    """All products of one entry of each factor from the same row.

    Returns for every product its row, the columns its entries stand in (one array per factor), and its value; rows in
    order, and within a row the last factor's columns change fastest.
    """
    first = factors[0]
    rows = np.arange(first.height).repeat(first.counts)
    columns: list[Integers] = [first.columns]
    values = first.values
    for factor in factors[1:]:
        counts = factor.counts[rows]
        if np.all(counts == 1):  # an axis that is not asked about, mostly
            entries = factor.starts[rows]
        else:
            entries = _ranges(factor.starts[rows], counts)
            columns = [column.repeat(counts) for column in columns]
            values, rows = values.repeat(counts), rows.repeat(counts)
        columns.append(factor.columns[entries])
        values = values * factor.values[entries]
    return rows, columns, values
