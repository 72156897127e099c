"""What engines share: reports of whole users → their contributions → sums over users.

A `Summing` is made once for a question, holds nothing but arrays, and may be sent to another process. Reading reports,
joining tables and adding up the sums of processes is left to the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans, Floats, Integers
from deniable.engines.kernel.contributions import Program
from deniable.engines.kernel.moment_totals import TermArrays, Totals
from deniable.engines.reports.user_blocks import ReportFacts
from deniable.queries.planning.plan import Plan

Columns = tuple[NDArray[Any], ...]
"""view, seed and y: all slots of the first user, then of the second. Or view, and what each report contributes."""

MOST_STRATA = 20_000_000
CHUNK = 2**17
"""Contributions that are held at a time by each core: they stay in its cache."""
PLAIN_CHUNK = 2**18
"""Users that plain loops take at a time: every call of numpy has its price."""


@dataclass(frozen=True, slots=True, eq=False)
class TableSumming:
    """One table of a question: what its reports contribute."""

    name: str
    programs: tuple[Program, ...]
    constants: tuple[Floats | None, ...]
    """For each part of the design what every row contributes, if that is all its reports say."""
    tau: int
    columns: int
    counts: Floats
    """How many reports there are of no view in use, and of each view in use; empty if they are not counted."""
    contributed: bool = False
    """Whether the columns that come are contributions already."""

    @classmethod
    def of(cls, plan: Plan, number: int, store: ReportFacts, *, counted: bool, plain: bool) -> TableSumming:
        """From a plan and what is known of the reports."""
        mine = plan.tables[number]
        design = plan.collection.design_of(mine.table)
        counts: Floats = np.zeros(0)
        scales: Floats | None = None
        views = mine.parts[0].views
        if counted and mine.parts[0].countable(store.slots, store.rows):
            view_counts = store.view_counts(design.views)[[view.view for view in views]].astype(np.float64)
            if view_counts.all():
                scales = np.array([view.probability for view in views]) * store.rows / view_counts
                counts = np.concatenate(([store.rows - view_counts.sum()], view_counts))
        return cls(
            mine.table,
            tuple(Program.of(part, design.views, scales, plain=plain) for part in mine.parts),
            tuple(None if part.views else part.constants for part in mine.parts),
            plan.collection[mine.table].tau,
            mine.columns,
            counts,
        )

    @property
    def slots(self) -> int:
        """Reports per user."""
        return self.tau * len(self.programs)

    @property
    def reads(self) -> bool:
        """Whether it has to read reports at all."""
        return any(constants is None for constants in self.constants)

    def contributions(self, reports: Columns, first: int, end: int, out: Floats) -> None:
        """The contributions of some users: multiplied over the parts of a design, added over slots."""
        if self.contributed:
            begin, stop = first * self.slots, end * self.slots
            chosen = np.array([values[begin:stop] for values in reports[1:]]).T
            out[:] = chosen.reshape(-1, self.tau, chosen.shape[1]).sum(axis=1) if self.tau > 1 else chosen
            return
        parts = len(self.programs)
        rows: Floats | None = None
        for number, (program, constants) in enumerate(zip(self.programs, self.constants, strict=True)):
            if constants is not None:
                mine = np.tile(constants, ((end - first) * self.tau, 1))
            else:
                # The parts of a row alternate.
                begin, stop = first * self.slots + number, end * self.slots
                mine = program.contributions(*(column[begin:stop:parts] for column in reports))
            rows = mine if rows is None else rows * mine
        assert rows is not None  # noqa: S101 - a design has parts
        out[:] = rows.reshape(-1, self.tau, out.shape[1]).sum(axis=1) if self.tau > 1 else rows

    def strata(self, view: NDArray[Any]) -> Integers:
        """The stratum of every user, where views are counted: there each has one report."""
        return np.asarray(self.programs[0].slot_of[view], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Summing:
    """From the reports of users who are in all tables to their share of the totals."""

    tables: tuple[TableSumming, ...]
    terms: TermArrays
    public: int
    """How many public factors there are."""
    shape: tuple[int, int, int, int]
    """Of the totals: public groups, private groups, moments, strata."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        stores: Mapping[str, ReportFacts],
        public_groups: int,
        *,
        counted: bool,
        plain: bool = False,
    ) -> Summing:
        """From a plan and what is known of the reports; with `plain`, numpy adds (`plain_loops`)."""
        tables = tuple(
            TableSumming.of(
                plan,
                number,
                stores[table.table],
                counted=counted and table.table not in plan.question.optional,
                plain=plain,
            )
            for number, table in enumerate(plan.tables)
        )
        strata = sum(table.counts.size for table in tables)
        shape = (public_groups, len(plan.private_groups), len(plan.question.moments), strata)
        if strata and float(np.prod(shape, dtype=np.float64)) > MOST_STRATA:
            return cls.of(plan, stores, public_groups, counted=False, plain=plain)
        return cls(tables, TermArrays.of(plan, plain=plain), len(plan.public), shape)

    def empty(self) -> Totals:
        """The totals of no users."""
        return Totals.empty(*self.shape)

    def add(
        self,
        totals: Totals,
        reports: Sequence[Columns],
        factors: Mapping[int, Floats],
        group: Integers,
        first: int,
        end: int,
        persons: Integers | None = None,
        absent: Mapping[int, Booleans] | None = None,
    ) -> None:
        """Add some of the users: their reports in each table, public factors, and group (−1: they do not count).

        With `persons`, the ascending numbers of people, users are people in a round, and all rounds of one come here.
        `absent` says for tables by their number who has no row there: that counts as one, unless a factor says more.
        """
        width = 1 + sum(table.columns for table in self.tables) + self.public
        chunk = PLAIN_CHUNK if self.terms.plain else max(CHUNK // width, 64)
        counted = [number for number, table in enumerate(self.tables) if table.counts.size]
        for low, high in _cuts(first, end, chunk, persons):
            values = np.empty((high - low, width))
            values[:, 0] = 1.0
            start = 1
            for number, (table, mine) in enumerate(zip(self.tables, reports, strict=True)):
                table.contributions(mine, low, high, values[:, start : start + table.columns])
                if absent and number in absent:
                    values[absent[number][low:high], start : start + table.columns] = 1.0
                start += table.columns
            for number, column in factors.items():
                values[:, start + number] = column[low:high]
            strata = np.empty((len(counted), high - low), dtype=np.int64)
            reached = 0
            for row, number in enumerate(counted):
                strata[row] = self.tables[number].strata(reports[number][0][low:high]) + reached
                reached += self.tables[number].counts.size
            mine_only = None if persons is None else persons[low:high]
            totals.add_users(values, group[low:high], strata, self.terms, mine_only)


def _cuts(first: int, end: int, chunk: int, persons: Integers | None) -> Iterator[tuple[int, int]]:
    """Where chunks begin and end; never between two rounds of a person."""
    low = first
    while low < end:
        high = min(low + chunk, end)
        if persons is not None and high < end:
            high = int(np.searchsorted(persons, persons[high - 1], side="right"))
        yield low, high
        low = high
