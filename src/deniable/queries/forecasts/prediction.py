"""The error to expect, from a plan and the number of users alone: no data is looked at.

What has to be known of the data and is not, is assumed: rows are spread evenly over the domains, attributes are
independent, and a user has half as many rows as the most she may have. The randomiser's noise does not depend on
these; where it prevails, so does the prediction.

The variance is split by cause. A user's contribution is computed with more and more of what really happens: her rows
as they are; only τ of them (truncation); values and weights rounded by coins (rounding); one view of each (view
sampling); and randomised (randomiser). Each step adds to the second moment E[W·Wᵀ], and so to the variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.answers.guard import limited
from deniable.queries.answers.model_error import model_covariance
from deniable.queries.forecasts.even_means import EvenMeans
from deniable.queries.planning.bounding_plan import bounding_questions
from deniable.queries.planning.known_sums import known_moments, without_known
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.term_pairs import TermPairs
from deniable.queries.question.formula import Formula, Valued, evaluate, moments_of
from deniable.queries.weights.product_weights import rounded_attribute
from deniable.queries.weights.table_plan import CellWeights, PartPlan, TablePlan, ViewWeights
from deniable.tables.schema.attributes import Table

CAUSES = ("truncation", "rounding", "view sampling", "randomiser")
VIEWS = 3
"""From this stage on, a user reports one view only."""
NEGLIGIBLE_VARIANCE = 1e-11
SAMPLED_GROUPS = 50
"""A question with more groups is represented by this many, evenly spaced."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What to expect of one output: of the typical (median) group, if there are several."""

    name: str
    value: float
    """What it would be if rows were spread evenly."""
    stderr: float
    """NaN if it is unclear: a divisor would not be clearly positive, or everything depends on a public measure."""
    causes: Mapping[str, float]
    """The share of the variance that each cause adds."""
    per_user: bool
    """Whether it grows with the number of users."""
    model: float = 0.0
    """What a grid's assumption adds, on data that meets it."""

    @property
    def error(self) -> float:
        """The standard error and the model error together."""
        return math.hypot(self.stderr, self.model)


def predict(plan: Plan, users: float) -> tuple[Prediction, ...]:
    """The standard error of every output, if this many users report."""
    groups = np.unique(np.linspace(0, len(plan.private_groups) - 1, SAMPLED_GROUPS).astype(np.int64))
    pairs = TermPairs.of(plan, groups)
    stages = np.array([_second_moments(pairs, plan, stage, users) for stage in range(len(CAUSES) + 1)])
    # Differences between stages of which only rounding is left are none.
    steps = np.diff(stages, axis=0)
    steps[np.abs(steps) < NEGLIGIBLE_VARIANCE * np.abs(stages).max(axis=0)] = 0.0
    known = known_moments(plan)[groups]
    steps = np.array([without_known(step, known) for step in steps])
    sums, covariance = users * _means(plan, groups), users * steps.sum(axis=0)
    biases = model_covariance(plan, groups)
    model = np.zeros_like(covariance) if biases is None else _limited(plan, groups, biases, sums / users) * users**2
    predictions = []
    for output in plan.question.outputs:
        if output.shown:
            valued = evaluate(output.formula, sums, covariance + model)
            valued = _measures_apart(plan, output.formula, valued, covariance)
            causes = np.array([valued.variance(users * step) for step in steps])
            predictions.append(_prediction(output.name, output.adds_up, valued, covariance, causes, model))
    return tuple(predictions)


def _limited(plan: Plan, groups: Integers, model: Floats, means: Floats) -> Floats:
    """Expected products of biases, within what cells leave open of evenly spread rows."""
    bounds = bounding_questions(plan, {})
    if bounds is None:
        return model
    low, high = (_means(bound, groups) for bound in (bounds.low, bounds.high))
    return limited(model, np.maximum(np.abs(high - means), np.abs(means - low)), bounds.ends[groups])


def _measures_apart(plan: Plan, formula: Formula, valued: Valued, covariance: Floats) -> Valued:
    """Unclear where errors cancel only because a public measure counts as one for everybody, as in its average."""
    used = moments_of(formula)
    factors = [
        factor for number in used for term in plan.question.moments[number].terms for factor in term.public.values()
    ]
    if not any(factor.measure for factor in factors):
        return valued
    apart = np.einsum("gi,gii->g", valued.gradient**2, covariance)
    cancelled = (apart > 0) & (valued.variance(covariance) <= NEGLIGIBLE_VARIANCE * apart)
    return replace(valued, clear=valued.clear & ~cancelled)


def _prediction(
    name: str, adds_up: bool, valued: Valued, covariance: Floats, steps: Floats, model: Floats
) -> Prediction:
    biases = np.sqrt(valued.variance(model))
    errors = np.where(valued.clear, np.sqrt(valued.variance(covariance)), math.nan)
    if np.isnan(errors).all():
        return Prediction(name, math.nan, math.nan, dict.fromkeys(CAUSES, 0.0), adds_up)
    order = np.argsort(errors)  # NaN last
    typical = int(order[np.count_nonzero(~np.isnan(errors)) // 2]) if errors.size > 1 else 0
    total = float(steps[:, typical].sum())
    causes = {
        cause: float(step) / total if total else 0.0 for cause, step in zip(CAUSES, steps[:, typical], strict=True)
    }
    return Prediction(
        name, float(valued.value[typical]), float(errors[typical]), causes, adds_up, float(biases[typical])
    )


def _second_moments(pairs: TermPairs, plan: Plan, stage: int, users: float) -> Floats:
    """groups × moments × moments: the expected product of two moments of one user at a stage."""
    product = pairs.coefficients.copy()
    for number, table in enumerate(plan.tables):
        product *= _table_second_moments(plan, table, *pairs.columns(number), stage)
    if stage >= VIEWS:
        product -= _between(pairs, plan, users)
    return pairs.summed(product)


def _between(pairs: TermPairs, plan: Plan, users: float) -> Floats:
    """What differences between views add to the products of terms, and counting their reports takes away."""
    total = np.zeros_like(pairs.coefficients)
    for number, table in enumerate(plan.tables):
        slots = plan.collection.reports_per_user(table.table)
        if not table.parts[0].countable(slots, users):
            continue
        mine = pairs.coefficients.copy()
        for position, other in enumerate(plan.tables):
            left, right = pairs.columns(position)
            if position == number:
                mine *= _view_differences(table.parts[0], left, right)
            else:
                described = plan.collection[other.table]
                mine *= (_rows_of(described) ** 2) * _column_means(described, other, left, right)
        total += mine
    return total


def _means(plan: Plan, groups: Integers) -> Floats:
    """groups × moments: what a user is worth on average."""
    terms = plan.term_table.taken(groups)
    values = terms.coefficients
    for table, columns in zip(plan.tables, terms.columns.T, strict=True):
        described = plan.collection[table.table]
        distinct, which = np.unique(columns, return_inverse=True)
        means = EvenMeans.of(described, [table.asked[column] for column in distinct.tolist()]).columns()
        values = values * _rows_of(described) * means[which]
    return terms.summed(values)


def _column_means(table: Table, plan: TablePlan, left: Integers, right: Integers) -> Floats:
    """Products of the means of two columns each."""
    used, which = np.unique(np.stack((left, right)), return_inverse=True)
    means = EvenMeans.of(table, [plan.asked[column] for column in used.tolist()]).columns()
    first, second = which.reshape(2, -1)
    return np.asarray(means[first] * means[second])


def _rows_of(table: Table) -> float:
    """How many rows a user is assumed to have."""
    return 1.0 if table.many is None else max(table.many / 2, 0.5)


def _table_second_moments(plan: Plan, table: TablePlan, left: Integers, right: Integers, stage: int) -> Floats:
    """E[W_i·W_j] of a user for pairs of columns, at a stage: 0 as rows are, 1 truncated, 2 rounded, 3 viewed, 4 all."""
    described, design = plan.collection[table.table], plan.collection.design_of(table.table)
    pairs, inverse = np.unique(np.stack((left, right)), axis=1, return_inverse=True)
    which = inverse.reshape(-1)  # numpy 2.0 gives it a second axis
    left_columns, right_columns = pairs
    rows, tau, many = _rows_of(described), described.tau, described.many or 1
    used, positions = np.unique(pairs, return_inverse=True)
    first, second = positions.reshape(pairs.shape)
    even = EvenMeans.of(described, [table.asked[column] for column in used.tolist()])
    plain, mean = even.pairs(first, second), even.columns()
    average = mean[first] * mean[second]
    over_rows = average + (plain - average) / rows  # of the means over one user's rows
    if described.many is None:
        across, single = np.zeros_like(plain), plain
    else:
        across, single = tau * (tau - 1) * (rows / tau) ** 2 * over_rows, plain
    if plan.biases and stage < VIEWS:  # weights stand for another function, whose square is at least this
        return np.asarray((rows**2 * average)[which])
    if stage == 0:
        return np.asarray((rows**2 * over_rows)[which])
    if stage == 1:
        return np.asarray((tau * (rows / tau) ** 2 * single + across)[which])
    if stage == 2:
        rounding = [rounded_attribute(described, design, product, plan.sums) for product in even.products]
        rounded = even.pairs(first, second, rounding)
        weight = (rows / tau) ** 2 if described.many is None else many * rows / tau**2
        return np.asarray((tau * weight * rounded + across)[which])
    product = np.ones(left_columns.size)
    for part in table.parts:
        product *= _part_second_moments(part, left_columns, right_columns, noise=stage == len(CAUSES))
    return np.asarray((tau * product + across)[which])


def _part_second_moments(part: PartPlan, left: Integers, right: Integers, *, noise: bool) -> Floats:
    """E[w_i·w_j] of one report, for pairs of columns."""
    constants = part.constants
    total = constants[left] * constants[right]
    for view in part.views:
        cells = view.by_cell()
        means = cells.means(constants.size) * view.probability
        total += constants[left] * means[right] + constants[right] * means[left]
        total += view.probability * _view_second_moments(view, cells, left, right, constants.size, noise=noise)
    return total


def _view_differences(part: PartPlan, left: Integers, right: Integers) -> Floats:
    """Σ_v π_v·x_v·x_vᵀ − x·xᵀ, x_v being what reports of view v contribute on average."""
    total, mean = np.zeros(left.size), np.zeros(part.constants.size)
    for view in part.views:
        means = view.by_cell().means(part.constants.size)
        total += view.probability * means[left] * means[right]
        mean += view.probability * means
    return np.asarray(total - mean[left] * mean[right])


def _view_second_moments(
    view: ViewWeights, cells: CellWeights, left: Integers, right: Integers, columns: int, *, noise: bool
) -> Floats:
    """E[X_i·X_j], X = Σ_c α(c)·(S(y, c) − q)/(p − q), for pairs of columns."""
    dense = cells.weights.dense(columns)
    own = np.einsum("c,cp,cp->p", cells.shares, dense[:, left], dense[:, right])  # the cell that the row lies in
    if not noise:
        return np.asarray(own)
    every = np.einsum("cp,cp->p", dense[:, left], dense[:, right])
    sums, means = dense.sum(axis=0), cells.shares @ dense
    law = second_moments(view.oracle)
    return np.asarray(law.of(every, own, sums, means, lambda first, second: first[left] * second[right]))
