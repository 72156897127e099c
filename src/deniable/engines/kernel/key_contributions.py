"""Reports of another population → what each id contributes to the functions that a question asks, and its variance.

For a report of view v, W = c + Σ_c α_v(c)·s(c) with s(c) = (S(c) − q)/(p − q), constants c and weights α_v that include
1/π_v. Given the row behind the report, which lies in cell x_v of each view,

    E[W_i·W_j] = c_i·c_j + Σ_v π_v·(c_i·α_j(x_v) + c_j·α_i(x_v) + L_v(α_i, α_j; x_v)),

where L_v is the linear form of `SecondMoments`. It is linear in the indicator of x_v, of which s is an unbiased
estimate in reports of view v, and they come with probability π_v. So s in the place of the indicator, for the view of
the report at hand, estimates E[W_i·W_j] without bias, and far more quietly than the product W_i·W_j itself would.
Designs of several parts multiply what their parts contribute; there the product itself is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.engines.kernel.contributions import Program
from deniable.engines.kernel.user_sums import Columns, TableSumming
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.planning.key_functions import FunctionsAsked
from deniable.queries.weights.table_plan import PartPlan, ViewWeights
from deniable.tables.designs.views import Design

MOST_SUPPORTS = 2**22


class KeyContributions(NamedTuple):
    """What the report of each id contributes."""

    values: Floats
    """functions × ids."""
    spreads: Floats
    """functions × functions × ids: covariances of contributions, estimated without bias."""


def key_contributions(asked: FunctionsAsked, design: Design, reports: Columns) -> KeyContributions:
    """From the reports of ids, one each for every part of the design."""
    plan, functions = asked.plan, asked.functions
    summing = TableSumming(
        plan.table,
        tuple(Program.of(part, design.views) for part in plan.parts),
        tuple(None if part.views else part.constants for part in plan.parts),
        1,
        plan.columns,
        np.zeros(0),
    )
    ids = reports[0].size // summing.slots
    values = np.zeros((ids, plan.columns))
    if ids:
        summing.contributions(reports, 0, ids, values)
    spreads = np.zeros((functions, functions, ids))
    pairs = np.array(list(asked.pairs), dtype=np.int64).reshape(-1, 2)
    left, right = pairs.T
    products = [asked.pairs[pair] for pair in asked.pairs]
    if len(plan.parts) == 1:
        squares = _second_moments(plan.parts[0], left, right, reports)
    else:
        squares = values[:, left] * values[:, right]
    spreads[left, right] = (squares - values[:, products]).T
    certain = _without_noise(asked)
    spreads[certain] = 0.0
    spreads[:, certain] = 0.0
    return KeyContributions(np.ascontiguousarray(values[:, :functions].T), spreads)


def _without_noise(asked: FunctionsAsked) -> Integers:
    """Functions that are known whatever reports say: they have no variance, and no rounding of one."""
    noisy = np.zeros(asked.functions, dtype=bool)
    for view in (view for part in asked.plan.parts for view in part.views):
        if view.probability < 1.0 or view.q > 0.0:
            columns = view.weighted_columns()
            noisy[columns[columns < asked.functions]] = True
    return np.flatnonzero(~noisy)


def _second_moments(part: PartPlan, left: Integers, right: Integers, reports: Columns) -> Floats:
    """ids × pairs: estimates of E[W_i·W_j]."""
    view, seed, y = reports
    constants = part.constants
    total = np.tile(constants[left] * constants[right], (view.size, 1))
    for weights in part.views:
        law = second_moments(weights.oracle)
        dense, cells = _dense(weights, constants.size)
        sums = dense.sum(axis=0)
        every = np.einsum("cp,cp->p", dense[:, left], dense[:, right])
        total += weights.probability * (law.every * every + law.sums * sums[left] * sums[right])
        mine = np.flatnonzero(view == weights.view)
        own = law.own * dense[:, left] * dense[:, right]
        own += dense[:, left] * (law.crossed * sums[right] + constants[right])
        own += dense[:, right] * (law.crossed * sums[left] + constants[left])
        block = max(1, MOST_SUPPORTS // max(cells.size, 1))
        for first in range(0, mine.size, block):
            some = mine[first : first + block]
            supports = weights.oracle.supports(cells[None, :], seed[some, None], y[some, None])
            total[some] += (np.asarray(supports, dtype=np.float64) - weights.q) / (weights.p - weights.q) @ own
    return total


def _dense(view: ViewWeights, columns: int) -> tuple[Floats, Integers]:
    """The weights of a view's cells, cells × columns, and the cells."""
    cells = view.by_cell()
    return cells.weights.dense(columns), cells.cells
