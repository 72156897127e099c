"""A plan and the pairs of cells that reports support → the totals that reading all reports would give.

What a report contributes to an outcome is a sum over the cells it supports, x = b + Σ_c a(c)·S(c). Over the N reports
of a view, D(c) of which support c and G(c, d) both c and d (`cell_pairs.py`), that makes

    Σ x = N·b + Σ_c a(c)·D(c)
    Σ x·z = N·b·e + b·Σ_c f(c)·D(c) + e·Σ_c a(c)·D(c) + Σ_cd a(c)·f(d)·G(c, d)    where z = e + Σ_c f(c)·S(c) .
"""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.engines.kernel.cell_pairs import Pairs
from deniable.engines.kernel.moment_totals import Totals
from deniable.engines.kernel.user_sums import Summing
from deniable.queries.planning.plan import Plan, public_groups
from deniable.queries.weights.table_plan import PartPlan, ViewWeights
from deniable.tables.designs.views import Design, View

MOST_PAIR_WEIGHTS = 2**24
"""Limit for one view: cells times outcomes."""


def pairs_suffice(plan: Plan) -> bool:
    """Whether a question is about one table and nothing public, so that each of its terms is one contribution."""
    question = plan.question
    public = plan.public or public_groups(question) or question.lookups or any(question.filters.values())
    if len(plan.tables) > 1 or public or len(plan.tables[0].parts) > 1 or not plan.term_table.size:
        return False
    outcomes = max(plan.term_table.groups * plan.term_table.moments + 1, plan.tables[0].columns)
    return all(view.cell_count * outcomes <= MOST_PAIR_WEIGHTS for view in plan.tables[0].parts[0].views)


def needs_pairs_only(plan: Plan) -> bool:
    """Whether pairs suffice, and are needed: some questions, such as how many people there are, need no cell."""
    return bool(plan.tables[0].parts[0].views) and pairs_suffice(plan)


def pays(part: PartPlan, design: Design) -> bool:
    """Whether a question costs more than counting pairs, in steps of the loops per report."""
    direct = sum(view.probability * (view.cells.size + view.columns.size) for view in part.views)
    return direct > 2 * sum(float(view.probability) * _steps(view) for view in design)


def _steps(view: View) -> float:
    hits = float(view.oracle.p + (view.cells - 1) * view.oracle.q)  # cells that a report supports, on average
    return view.cells + hits**2


def totals_of(plan: Plan, summing: Summing, pairs: Pairs, reports: Integers) -> Totals:
    """What all users add up to; each has one report. `reports` says how many there are of each view."""
    (table,), part, terms = summing.tables, plan.tables[0].parts[0], summing.terms
    totals = summing.empty()
    _, groups, moments, strata = summing.shape
    everyone = int(reports.sum())
    totals.users[0] = everyone
    rest = everyone - sum(int(reports[view.view]) for view in part.views)
    nothing = np.zeros((0, table.columns)), np.zeros((0, 0), dtype=np.int64)
    known: list[tuple[float, Floats, Floats, Integers]] = [(float(rest), part.constants, *nothing)]
    for index, view in enumerate(part.views):
        scale = view.probability * everyone / table.counts[index + 1] if table.counts.size else 1.0
        weights = _all_cells(view, table.columns) * (scale / (view.p - view.q))
        known.append(
            (float(reports[view.view]), part.constants - view.q * weights.sum(axis=0), weights, pairs[view.view])
        )
    for stratum, (number, base, weights, together) in enumerate(known):
        constant = terms.outcomes(np.concatenate(([1.0], base))[None, :])[0]
        spent = terms.outcomes(np.pad(weights, ((0, 0), (1, 0))))
        counted = np.diagonal(together) @ spent
        total = (number * constant + counted).reshape(groups, moments)
        left, right = (matrix.reshape(-1, groups, moments) for matrix in (spent, together @ spent))
        both = np.einsum("cgi,cgj->gij", left, right)
        constant, counted = constant.reshape(groups, moments), counted.reshape(groups, moments)
        both += number * constant[:, :, None] * constant[:, None, :]
        both += constant[:, :, None] * counted[:, None, :] + counted[:, :, None] * constant[:, None, :]
        totals.sums[0] += total
        totals.crosses[0] += np.tril(both)
        if strata:
            totals.by_stratum[stratum, 0] = total
    return totals


def _all_cells(view: ViewWeights, columns: int) -> Floats:
    """Weights of all cells × columns, zero where there is none."""
    weighted = view.by_cell()
    weights = np.zeros((view.cell_count, columns))
    weights[weighted.cells] = weighted.weights.dense(columns)
    return weights
