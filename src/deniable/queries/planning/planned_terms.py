"""The terms of a plan: what the moments of every private group are added up from.

A term is a coefficient times a column of contributions of every table, times public factors. `Plan.terms` shows them
one by one. Whatever is computed for all of them at once takes the arrays of a `TermTable`. The kernel lays them out for
its loops (`engines/kernel/moment_totals.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from deniable.arrays import Floats, Integers

NO_FACTOR = -1


@dataclass(frozen=True, slots=True)
class PlannedTerm:
    """coefficient · Π columns · Π public factors."""

    coefficient: float
    columns: tuple[int, ...]
    """For each table of the plan, in order, the number of its column."""
    public: tuple[int, ...] = ()
    """Numbers of public factors in `Plan.public`."""

    def __str__(self) -> str:
        factors = (*(f"c{column}" for column in self.columns), *(f"p{number}" for number in self.public))
        return "·".join((f"{self.coefficient:g}", *factors))


@dataclass(frozen=True, slots=True, eq=False)
class TermTable:
    """All terms of a plan, in the order of private groups and their moments."""

    groups: int
    moments: int
    owners: Integers
    """group · moments + moment of every term, ascending."""
    coefficients: Floats
    columns: Integers
    """terms × tables."""
    public: Integers
    """terms × the most public factors that a term has; `NO_FACTOR` where there are fewer."""

    @property
    def size(self) -> int:
        """How many terms there are."""
        return self.coefficients.size

    def of(self, group: int, moment: int) -> Iterator[PlannedTerm]:
        """The terms of a moment of a private group."""
        owner = group * self.moments + moment
        first, end = np.searchsorted(self.owners, (owner, owner + 1)).tolist()
        for term in range(first, end):
            public = tuple(number for number in self.public[term].tolist() if number != NO_FACTOR)
            yield PlannedTerm(float(self.coefficients[term]), tuple(self.columns[term].tolist()), public)

    def spans(self, groups: Integers) -> list[tuple[int, int]]:
        """For each of some groups where its terms begin and end."""
        firsts, ends = (np.searchsorted(self.owners, (groups + step) * self.moments).tolist() for step in (0, 1))
        return list(zip(firsts, ends, strict=True))

    def taken(self, groups: Integers) -> TermTable:
        """The terms of some groups alone."""
        spans = self.spans(groups)
        terms = np.concatenate([np.arange(first, end) for first, end in spans]) if spans else np.zeros(0, np.int64)
        sizes = [end - first for first, end in spans]
        owners = self.owners[terms] + np.repeat((np.arange(groups.size) - groups) * self.moments, sizes)
        return replace(
            self,
            groups=groups.size,
            owners=owners,
            coefficients=self.coefficients[terms],
            columns=self.columns[terms],
            public=self.public[terms],
        )

    def summed(self, values: Floats) -> Floats:
        """groups × moments: values of terms, added up."""
        totals = np.bincount(self.owners, values, minlength=self.groups * self.moments)
        return np.asarray(totals, dtype=np.float64).reshape(self.groups, self.moments)
