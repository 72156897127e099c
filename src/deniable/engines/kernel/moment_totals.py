"""What users add up to: products of their contributions, sums over users, and sums of products of two moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.engines.kernel import plain_loops
from deniable.mechanisms._compiled import compiled
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.planned_terms import NO_FACTOR


@compiled
def _combine(values: Any, starts: Any, coefficients: Any, factors: Any, out: Any) -> None:
    """Every user's outcomes: each is a sum of terms, and each term a product of factors."""
    for user in range(values.shape[0]):
        for outcome in range(out.shape[1]):
            total = 0.0
            for term in range(starts[outcome], starts[outcome + 1]):
                part = coefficients[term]
                for factor in range(factors.shape[1]):
                    part *= values[user, factors[term, factor]]
                total += part
            out[user, outcome] = total


@compiled
def _accumulate(
    values: Any, group_of: Any, strata: Any, moments: Any, sums: Any, crosses: Any, by_stratum: Any
) -> None:
    """Add every user's outcomes (groups × moments), and the products of moments of the same group."""
    outcomes = values.shape[1]
    if outcomes == 1 and sums.shape[0] == 1:  # one number: kept in registers
        total = square = 0.0
        for user in range(values.shape[0]):
            if group_of[user] == 0:
                value = values[user, 0]
                total += value
                square += value * value
                for kind in range(strata.shape[0]):
                    by_stratum[strata[kind, user], 0, 0] += value
        sums[0, 0] += total
        crosses[0, 0] += square
        return
    for user in range(values.shape[0]):
        public = group_of[user]
        if public < 0:
            continue
        for outcome in range(outcomes):
            sums[public, outcome] += values[user, outcome]
        for kind in range(strata.shape[0]):
            stratum = strata[kind, user]
            for outcome in range(outcomes):
                by_stratum[stratum, public, outcome] += values[user, outcome]
        if moments == 1:
            for outcome in range(outcomes):
                crosses[public, outcome] += values[user, outcome] * values[user, outcome]
            continue
        for outcome in range(outcomes):
            group = outcome // moments
            for other in range(group * moments, outcome + 1):
                product = values[user, outcome] * values[user, other]
                crosses[public, outcome * moments + other - group * moments] += product


def _summed_over_rounds(outcomes: Floats, group: Integers, persons: Integers, groups: int) -> tuple[Floats, Integers]:
    """The outcomes of each person in each group, added up over rounds, and the group."""
    counted = np.flatnonzero(group >= 0)
    keys, which = np.unique(persons[counted] * groups + group[counted], return_inverse=True)
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(keys.size))
    if not keys.size:
        return outcomes[:0], group[:0]
    return np.add.reduceat(outcomes[counted][order], starts, axis=0), keys % groups


@dataclass(frozen=True, slots=True, eq=False)
class TermArrays:
    """How factors become outcomes: the moments of every private group."""

    starts: Integers
    """Where the terms of each outcome begin, and where those of the last one end."""
    coefficients: Floats
    factors: Integers
    """terms × factors: 0 is the number one, then come the columns of all tables, then the public factors."""
    plain: bool = False
    """Whether numpy multiplies and adds; see `plain_loops`."""

    @classmethod
    def of(cls, plan: Plan, *, plain: bool = False) -> TermArrays:
        """The terms of a plan, outcome after outcome."""
        terms = plan.term_table
        offsets = np.cumsum([1, *(table.columns for table in plan.tables)])
        public = np.where(terms.public == NO_FACTOR, 0, terms.public + offsets[-1])
        factors = np.concatenate((terms.columns + offsets[:-1], public), axis=1)
        starts = np.searchsorted(terms.owners, np.arange(terms.groups * terms.moments + 1))
        return cls(starts, terms.coefficients, np.ascontiguousarray(factors[:, factors.any(axis=0)]), plain)

    def outcomes(self, values: Floats) -> Floats:
        """The outcomes of every user."""
        count = self.starts.size - 1
        if self.is_slice:  # one factor each, one after the other
            return values[:, self.factors[0, 0] : self.factors[0, 0] + count]
        out = np.empty((values.shape[0], count))
        (plain_loops.combine if self.plain else _combine)(values, self.starts, self.coefficients, self.factors, out)
        return out

    @property
    def is_slice(self) -> bool:
        """Whether every outcome is one factor, one after the other."""
        count = self.starts.size - 1
        if self.factors.shape != (count, 1) or not (np.diff(self.starts) == 1).all():
            return False
        return bool((self.coefficients == 1.0).all() and (np.diff(self.factors[:, 0]) == 1).all())


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums over users, and sums of products of two moments of a user, for every group."""

    users: Integers
    """How many were added, per public group."""
    sums: Floats
    """public groups × private groups × moments."""
    crosses: Floats
    """The same × moments, the lower triangle."""
    by_stratum: Floats
    """Sums over the users of each stratum: those whose report in some table is of some view."""
    by_round: Floats
    """As `crosses`, of what a user contributes in one round, where there are rounds."""
    rows: Integers
    """How many users in a round were added, per public group, where there are rounds."""

    @classmethod
    def empty(cls, public: int, private: int, moments: int, strata: int) -> Totals:
        """The totals of no users."""
        shape = (public, private, moments)
        crosses, by_stratum = np.zeros((*shape, moments)), np.zeros((strata, *shape))
        users, rows = np.zeros(public, dtype=np.int64), np.zeros(public, dtype=np.int64)
        return cls(users, np.zeros(shape), crosses, by_stratum, np.zeros_like(crosses), rows)

    def add(self, other: Totals) -> None:
        """Add the totals of other users."""
        self.users[...] += other.users
        self.sums[...] += other.sums
        self.crosses[...] += other.crosses
        self.by_stratum[...] += other.by_stratum
        self.by_round[...] += other.by_round
        self.rows[...] += other.rows

    def multiply(self, times: int) -> None:
        """As many users who are all alike."""
        for held in (self.users, self.sums, self.crosses, self.by_stratum, self.by_round, self.rows):
            held *= times

    def add_users(
        self,
        factors: Floats,
        group: Integers,
        strata: Integers,
        terms: TermArrays,
        persons: Integers | None = None,
    ) -> None:
        """Add users: factors, the public group of each (−1 for those who do not count), strata; and the terms.

        With `persons`, rows are users in a round. What a person adds to a group in several rounds is one number.
        """
        outcomes = terms.outcomes(factors)
        accumulate = plain_loops.accumulate if terms.plain else _accumulate
        public, private, moments = self.sums.shape
        if persons is not None:
            no_strata = np.empty((0, group.size), dtype=np.int64)
            again, nothing = np.zeros((public, private * moments)), np.zeros((0, public, private * moments))
            accumulate(outcomes, group, no_strata, moments, again, self.by_round.reshape(public, -1), nothing)
            self.rows[...] += np.bincount(group[group >= 0], minlength=public)
            outcomes, group = _summed_over_rounds(outcomes, group, persons, self.users.size)
        if self.users.size == 1:
            self.users[0] += np.count_nonzero(group == 0)
        else:
            self.users[...] += np.bincount(group[group >= 0], minlength=self.users.size)
        accumulate(
            outcomes,
            group,
            strata,
            moments,
            self.sums.reshape(public, -1),
            self.crosses.reshape(public, -1),
            self.by_stratum.reshape(-1, public, private * moments),
        )
