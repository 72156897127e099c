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
    """pairs × tables: the columns of the first term of each pair."""
    right: Integers

    @classmethod
    def of(cls, plan: Plan, groups: Integers) -> TermPairs:
        """All pairs within each group."""
        terms = plan.term_table
        spans = terms.spans(groups)
        if sum((end - first) ** 2 for first, end in spans) > MOST_CROSSES:
            problem = "the question has too many groups, or terms in them, for errors to be worked out"
            raise QueryRefused(problem, "Ask for fewer answers at once, or simplify the condition.")
        moment = terms.owners % max(terms.moments, 1)
        rows, left, right = [np.zeros(0, dtype=np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for position, (first, end) in enumerate(spans):
            mine = np.arange(first, end)
            left.append(np.repeat(mine, mine.size))
            right.append(np.tile(mine, mine.size))
            rows.append((position * terms.moments + moment[left[-1]]) * terms.moments + moment[right[-1]])
        firsts, seconds = np.concatenate(left), np.concatenate(right)
        return cls(
            (groups.size, terms.moments),
            np.concatenate(rows),
            terms.coefficients[firsts] * terms.coefficients[seconds],
            terms.columns[firsts],
            terms.columns[seconds],
        )

    def columns(self, table: int) -> tuple[Integers, Integers]:
        """The columns of a table in the first and in the second term of each pair."""
        return self.left[:, table], self.right[:, table]

    def summed(self, products: Floats) -> Floats:
        """groups × moments × moments: values of pairs, added up."""
        groups, moments = self.shape
        totals = np.bincount(self.rows, weights=products, minlength=groups * moments * moments)
        return np.asarray(totals, dtype=np.float64).reshape(groups, moments, moments)
