"""Pairs of terms: the products of two terms whose sums are the second moments of an answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.errors import QueryRefused
from deniable.limits import MOST_CROSSES
from deniable.queries.planning.plan import Plan


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
        firsts, ends = plan.starts[groups * moments], plan.starts[(groups + 1) * moments]
        if int(((ends - firsts) ** 2).sum()) > MOST_CROSSES:
            problem = "the question has too many groups, or terms in them, for errors to be worked out"
            raise QueryRefused(problem, "Ask for fewer answers at once, or simplify the condition.")
        owners = np.repeat(np.arange(plan.starts.size - 1), np.diff(plan.starts)) % max(moments, 1)
        rows, left, right = [np.zeros(0, dtype=np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for place, (first, end) in enumerate(zip(firsts.tolist(), ends.tolist(), strict=True)):
            terms = np.arange(first, end)
            one, two = np.repeat(terms, terms.size), np.tile(terms, terms.size)
            rows.append((place * moments + owners[one]) * moments + owners[two])
            left.append(one)
            right.append(two)
        one, two = np.concatenate(left), np.concatenate(right)
        return cls(
            (groups.size, moments),
            np.concatenate(rows),
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
