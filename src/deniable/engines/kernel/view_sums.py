"""What reports in the order of their views add up to, or contribute each; see `view_loops.py`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.cancellation import checkpoint
from deniable.engines.kernel import plain_view_loops
from deniable.engines.kernel.contributions import Program, shared_out
from deniable.engines.kernel.moment_totals import TermArrays, Totals
from deniable.engines.kernel.user_sums import Summing, TableSumming
from deniable.engines.kernel.view_loops import add_view_moments, place_contributions
from deniable.engines.reports.view_order import ViewOrder

MOST_STEPS = 2**30
"""Between two looks at whether the question was cancelled."""
MOST_PLACED = 2**25
"""Contributions that are held at once, of one table."""


MOST_SLOT_SUMS = 2**22
"""Sums that are held at once, of every view in use."""


def has_few_sums(summing: Summing) -> bool:
    """Whether the sums of every view in use fit into memory, for all outcomes of one table."""
    _, groups, moments, _ = summing.shape
    return int(summing.tables[0].programs[0].arrays[1].size) * groups * moments <= MOST_SLOT_SUMS


def follows_views(table: TableSumming) -> bool:
    """Whether the loops know all of a table's views: one part, hashed or named cells, not too many views to list."""
    program = table.programs[0]
    simple = not (program.computed or program.used is not None)
    return len(table.programs) == 1 and table.constants[0] is None and simple


def totals_by_view(summing: Summing, order: ViewOrder) -> Totals:
    """What all users add up to, where each has one report in one table, and nothing is public."""
    (table,), terms, totals = summing.tables, summing.terms, summing.empty()
    _, groups, moments, strata = summing.shape
    program, plain_from = table.programs[0], _plain_from(terms)
    starts, ends = program.slot_ranges(order)
    outcomes = groups * moments
    factors = terms.factors[:, 0] if terms.factors.shape[1] else np.zeros(terms.coefficients.size, dtype=np.int64)
    by_slot, crosses = np.zeros((starts.size, outcomes)), np.zeros((outcomes, moments))

    def work(first: int, end: int) -> tuple[Floats, Floats]:
        mine = np.zeros_like(by_slot), np.zeros_like(crosses)
        share = _share(starts, ends, first, end, order.reports)
        if program.plain:
            listed = (terms.starts, terms.coefficients, factors)
            plain_view_loops.add_view_moments(
                order.seed, order.y, *share, program.arrays[1:], listed, plain_from, moments, *mine
            )
            return mine
        add_view_moments(
            order.seed,
            order.y,
            *share,
            *program.arrays[1:],
            terms.starts,
            terms.coefficients,
            factors,
            plain_from,
            moments,
            *mine,
        )
        return mine

    for first, end in _pieces(program, ends - starts, order.reports):
        checkpoint()
        for sums, products in shared_out(end - first, lambda low, high, at=first: work(at + low, at + high)):  # type: ignore[misc]
            by_slot += sums
            crosses += products
    rest = order.reports - int((ends - starts).sum())
    constant = terms.outcomes(np.concatenate(([1.0], program.arrays[-1][0]))[None, :])[0]
    by_slot[0] = rest * constant
    constant = constant.reshape(groups, moments)
    totals.users[0] = order.reports
    totals.sums[0] = by_slot.sum(axis=0).reshape(groups, moments)
    totals.crosses[0] = np.tril(rest * constant[:, :, None] * constant[:, None, :])
    totals.crosses[0] += crosses.reshape(groups, moments, moments)
    if strata:
        totals.by_stratum[:, 0] = by_slot.reshape(-1, groups, moments)
    return totals


def placed_contributions(table: TableSumming, order: ViewOrder) -> Floats:
    """Columns × reports, in the order of users: what each report contributes."""
    program = table.programs[0]
    starts, ends = program.slot_ranges(order)
    out = np.empty((table.columns, order.reports))
    out[:] = program.arrays[-1][0][:, None]

    def work(first: int, end: int) -> None:
        share = _share(starts, ends, first, end, order.reports)
        if program.plain:
            plain_view_loops.place_contributions(order.seed, order.y, order.positions, *share, program.arrays[1:], out)
            return
        place_contributions(order.seed, order.y, order.positions, *share, *program.arrays[1:], out)

    for first, end in _pieces(program, ends - starts, order.reports):
        checkpoint()
        shared_out(end - first, lambda low, high, at=first: work(at + low, at + high))  # type: ignore[misc]
    return out


def _plain_from(terms: TermArrays) -> int:
    """The column that is the first outcome, if every outcome is one column, in their order; otherwise −1."""
    return int(terms.factors[0, 0]) - 1 if terms.is_slice else -1


def _share(starts: Integers, ends: Integers, first: int, end: int, total: int) -> tuple[Integers, Integers]:
    """The same share of the reports of every slot."""
    sizes = ends - starts
    total = max(total, 1)
    return starts + sizes * first // total, starts + sizes * end // total


def _pieces(program: Program, reports: Integers, total: int) -> list[tuple[int, int]]:
    """Cuts of all reports, each a fraction of a second; `reports` says how many there are of each slot."""
    rows_of, row_starts, column_starts = program.arrays[4], program.arrays[5], program.arrays[9]
    each = np.diff(row_starts[rows_of]) + np.diff(column_starts[rows_of]) + program.columns
    pieces = max(1, min(total, -(-int(reports @ each) // MOST_STEPS)))
    cuts = np.linspace(0, total, pieces + 1).astype(np.int64).tolist()
    return list(pairwise(cuts))
