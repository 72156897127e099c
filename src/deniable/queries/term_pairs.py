"""Pairs of terms: the products of two terms whose sums are the second moments of an answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class TermPairs:
    """The pairs of terms whose products make up E[m·m'] for the moments m and m' of some groups."""

    shape: tuple[int, int]
    rows: Integers
    """(group, moment, moment') of each pair of terms, as one number."""
    coefficients: Floats
    left: Integers
    """Factors of the first term of each pair."""
    right: Integers

    @classmethod
    def of(cls, plan: Plan, groups: Integers) -> TermPairs:
        """All pairs within each group."""
        moments = len(plan.question.moments)
        rows, left, right = [], [], []
        for place, group in enumerate(groups.tolist()):
            terms = [
                (moment, term)
                for moment in range(moments)
                for term in range(plan.starts[group * moments + moment], plan.starts[group * moments + moment + 1])
            ]
            for moment, term in terms:
                for other, second in terms:
                    rows.append((place * moments + moment) * moments + other)
                    left.append(term)
                    right.append(second)
        one, two = np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)
        return cls(
            (groups.size, moments),
            np.array(rows, dtype=np.int64),
            plan.coefficients[one] * plan.coefficients[two],
            plan.factors[one],
            plan.factors[two],
        )

    def summed(self, products: Floats) -> Floats:
        """groups × moments × moments: values of pairs, added up."""
        groups, moments = self.shape
        found = np.bincount(self.rows, weights=products, minlength=groups * moments * moments)
        return np.asarray(found, dtype=np.float64).reshape(groups, moments, moments)


def column_of(plan: Plan, table: int, factors: Integers) -> Integers:
    """The column of a table among the factors of each term."""
    first, end = plan.offset(table), plan.offset(table) + plan.tables[table].columns
    mine = (factors >= first) & (factors < end)
    found: Integers = np.where(mine, factors, 0).max(axis=1) - first
    return found
