"""How many users carry the variance of an answer. If they are few, its standard error cannot be trusted.

Users contribute much if they drew views with weight, in a join only if they drew one in every table. The variance is
estimated from the same contributions. If a handful of users makes it up, the estimate is no better than one from a
handful of numbers, and mostly too small, because the largest contributions have not occurred.

Let D be the mean of (W − E[W])² given the views that a user has drawn, W being her contribution. Of n users

    n · E[D]² / E[D²]

carry the variance: all of them if D is the same for all views, n·π if it is due to one view of probability π. With
W a product over tables so are A = E[W²|views] and B = E[W|views], and with μ = E[W]

    D = A − 2μB + μ²,    E[D] = E[A] − μ²,    E[D²] = E[A²] + 4μ²·E[B²] − 4μ·E[AB] + 2μ²·E[A] − 3μ⁴,

each expectation a product over tables. In a table a user's contribution is the sum of τ slots, of which each has drawn
its views. A slot adds b on average and b² + c in the mean square, given its views; both b and b² + c are products over
the parts of a design. With S the sum of the b, and slots alike and apart from each other,

    A = Σ c + S²,    B = S.

Rows count as spread evenly, as in a prediction.
"""

from __future__ import annotations

import math

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.answers.estimation import FEW_USERS, Moments
from deniable.queries.planning.plan import Plan
from deniable.queries.weights.table_plan import PartPlan, TablePlan, ViewWeights

_NOISE = 1e-9


def effective_users(plan: Plan, moments: Moments, *, single_rows: bool) -> Floats | None:
    """rows × moments: how many users carry the variance of an answer's moments.

    None if they are enough in any case, or if nothing is drawn: without noise, views, or a choice among rows.
    """
    if single_rows and plan.is_free_of_noise:
        return None
    shares = effective_shares(plan, float(moments.users.min(initial=math.inf)))
    if shares is None:
        return None
    mine = shares[moments.private]
    carriers: Floats = np.full(mine.shape, math.inf)
    return np.multiply(
        moments.users[:, None], mine, out=carriers, where=np.isfinite(mine)
    )  # also where there are no users


def effective_shares(plan: Plan, users: float) -> Floats | None:
    """private groups × moments: the share of users who carry the variance, infinite where there is none.

    None if this many `users` are enough in any case.
    """
    rarest = [
        min((view.probability for view in part.views), default=1.0) for table in plan.tables for part in table.parts
    ]
    if users * math.prod(rarest) >= FEW_USERS:  # even the rarest combination of views is drawn often enough
        return None
    with np.errstate(all="ignore"):  # numbers beyond any float are called unclear elsewhere
        spent, share = _terms(plan)
        # Terms of a moment have their views, and so their users, in common: a mean over them, by what each spends.
        shares = plan.term_table.summed(spent) / plan.term_table.summed(spent / share)
    return np.where(np.isnan(shares), math.inf, shares)


def expected_noise(plan: Plan) -> Floats:
    """private groups × moments: what the randomiser adds to the variance, per user, whatever views are drawn."""
    terms = plan.term_table
    means, squares = np.ones(terms.size), np.ones(terms.size)
    for table, columns in zip(plan.tables, terms.columns.T, strict=True):
        a, _, _, bb, _ = _table_expectations(plan, table)[:, columns]
        means, squares = means * bb, squares * a
    return terms.summed(terms.coefficients**2 * np.maximum(squares - means, 0.0))


def _terms(plan: Plan) -> tuple[Floats, Floats]:
    """For every term what it adds to the variance, per user, and the share of users who carry that."""
    terms = plan.term_table
    products = np.ones((5, terms.size))
    for table, columns in zip(plan.tables, terms.columns.T, strict=True):
        products *= _table_expectations(plan, table)[:, columns]
    a, aa, b, bb, ab = products
    mean = np.maximum(a - b**2, 0.0)
    square = np.maximum(aa + 4 * b**2 * bb - 4 * b * ab + 2 * b**2 * a - 3 * b**4, mean**2)
    known = mean <= _NOISE * b**2  # without any report, but for rounding
    return np.where(known, 0.0, terms.coefficients**2 * mean), np.where(known, 1.0, mean**2 / square)


def _table_expectations(plan: Plan, table: TablePlan) -> Floats:
    """E[A], E[A²], E[B], E[B²] and E[AB] of a user's contribution, for every column of a table."""
    slot = np.prod([_expectations(part) for part in table.parts], axis=0)
    return _summed_slots(slot, plan.collection[table.table].tau)


def _summed_slots(slot: Floats, tau: int) -> Floats:
    """E[A], E[A²], E[B], E[B²] and E[AB] of τ slots, from what `_expectations` says of one."""
    a, aa, ab, abb, b, bb, bbb, bbbb = slot
    c, cc = np.maximum(a - bb, 0.0), np.maximum(aa - 2 * abb + bbbb, 0.0)
    cb, cbb = ab - bbb, abb - bbbb
    two, three, four = tau * (tau - 1), tau * (tau - 1) * (tau - 2), tau * (tau - 1) * (tau - 2) * (tau - 3)
    # The first four moments of S: which of its factors are of one slot?
    s, ss, sss = tau * b, tau * bb + two * b**2, tau * bbb + 3 * two * bb * b + three * b**3
    ssss = tau * bbbb + two * (4 * bbb * b + 3 * bb**2) + 6 * three * bb * b**2 + four * b**4
    csum_s = tau * cb + two * c * b
    csum_ss = tau * cbb + two * (2 * cb * b + c * bb) + three * c * b**2
    csum_csum = tau * cc + two * c**2
    return np.stack((tau * c + ss, csum_csum + 2 * csum_ss + ssss, s, ss, csum_s + sss))


def _expectations(part: PartPlan) -> Floats:
    """Expectations of `_powers` of one report for every column, over the views it may be of."""
    constants = part.constants
    expectations = np.zeros((8, constants.size))
    rest = 1.0
    for view in part.views:
        means, squares = _view_moments(view, constants.size)
        expectations += view.probability * _powers(constants**2 + 2 * constants * means + squares, constants + means)
        rest -= view.probability
    return np.asarray(expectations + max(rest, 0.0) * _powers(constants**2, constants))


def _powers(a: Floats, b: Floats) -> Floats:
    """Products of the mean square a and the mean b, given the view."""
    return np.stack((a, a * a, a * b, a * b**2, b, b**2, b**3, b**4))


def _view_moments(view: ViewWeights, columns: int) -> tuple[Floats, Floats]:
    """E[X] and E[X²] of what a report of a view adds to the constants, for every column."""
    cells = view.by_cell()
    weights, squares = cells.weights.values, cells.weights.values**2
    means = cells.means(columns)
    own = cells.summed(squares * np.repeat(cells.shares, cells.weights.counts), columns)
    every, sums = (cells.summed(values, columns) for values in (squares, weights))
    return means, second_moments(view.oracle).of(every, own, sums, means, np.multiply)
