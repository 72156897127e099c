"""The error to expect, from a plan and the number of users alone: no data is looked at.

What has to be known of the data and is not, is assumed: rows are spread evenly over the domains, attributes are
independent, and users have as many rows as an `Assumption` says. The randomiser's noise hardly depends on these; where
it prevails, so does the prediction. Averages depend on how many rows match.

The variance is split by cause. A user's contribution is computed with more and more of what really happens: her rows
as they are; only τ of them (truncation); values and weights rounded by coins (rounding); one view of each (view
sampling); and randomised (randomiser). Each step adds to the second moment E[W·Wᵀ], and so to the variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from deniable.arrays import Floats, Integers, digest
from deniable.queries.answers.added_biases import products_of_both
from deniable.queries.answers.model_error import model_covariance
from deniable.queries.forecasts.assumed_rows import EVENLY, Assumption
from deniable.queries.forecasts.even_means import EvenMeans
from deniable.queries.forecasts.expected_others import expected_others
from deniable.queries.forecasts.matching_rows import tilt_of
from deniable.queries.forecasts.told_bias import with_told_bias
from deniable.queries.forecasts.view_moments import EvenShares, PartMoments
from deniable.queries.planning.known_sums import known_moments, without_known
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.term_pairs import TermPairs
from deniable.queries.question.formula import Formula, Valued, evaluate, moments_of
from deniable.queries.weights.product_weights import rounded_attribute
from deniable.queries.weights.table_plan import TablePlan
from deniable.tables.schema.rounds import stands_for

CAUSES = ("truncation", "rounding", "view sampling", "randomiser")
OTHERS = "other population"
"""The cause that comes last where another population is joined: the noise of its reports."""
WHO_ANSWERS = "who answers"
"""The cause that comes first where rounds rotate: some people stand for all."""
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
    low: float = math.nan
    """The error, standard and model together, is expected to lie between this …"""
    high: float = math.nan
    """… and this, as far as rows are known; NaN where nothing is left open, infinite if it may be unclear."""

    @property
    def error(self) -> float:
        """The standard error and the model error together."""
        return math.hypot(self.stderr, self.model)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedMoments:
    """What to expect of the moments of some groups of a question, before any report."""

    sums: Floats
    """groups × moments."""
    steps: Floats
    """causes × groups × moments × moments: what each cause adds to the covariances."""
    model: Floats
    """groups × moments × moments: expected products of biases."""
    users: float
    """Those who report in all of its tables."""
    spread: Floats
    """groups × moments × moments: how differently users are worth, times their number."""

    def added(self, other: ExpectedMoments) -> ExpectedMoments:
        """Those of two groups of users together, who are independent, and whose biases may go the same way."""
        return ExpectedMoments(
            self.sums + other.sums,
            self.steps + other.steps,
            products_of_both(self.model, other.model),
            self.users + other.users,
            self.spread + other.spread,
        )


def predict(plan: Plan, people: float, assumed: Assumption = EVENLY) -> tuple[Prediction, ...]:
    """The standard error of every output, with this many users."""
    return predictions(plan, expected_moments(plan, people, assumed))


def causes_of(plan: Plan) -> tuple[str, ...]:
    """The causes of errors, in the order of `ExpectedMoments.steps`."""
    first = (WHO_ANSWERS,) if stands_for(plan.collection.rounds) > 1 else ()
    return (*first, *CAUSES, *((OTHERS,) if plan.keyed is not None else ()))


def expected_moments(plan: Plan, people: float, assumed: Assumption = EVENLY) -> ExpectedMoments:
    """The moments of a question's groups, or of some of them if they are many.

    Where rounds rotate, each of those who answer was drawn and stands for c people. What they are worth then varies
    with who was drawn, as well: by (1 − 1/c)·E[f·fᵀ] for each of them.
    """
    users = people * assumed.reporting(plan.collection[table.table] for table in plan.tables)
    groups = np.unique(np.linspace(0, len(plan.private_groups) - 1, SAMPLED_GROUPS).astype(np.int64))
    pairs = TermPairs.of(plan, groups)
    stages, worth = _second_moments(pairs, plan, users, assumed)
    # Differences between stages of which only rounding is left are none.
    steps = np.diff(stages, axis=0)
    steps[np.abs(steps) < NEGLIGIBLE_VARIANCE * np.abs(stages).max(axis=0)] = 0.0
    scale = stands_for(plan.collection.rounds)
    if scale > 1:
        steps = np.concatenate(((1 - 1 / scale) * stages[:1], steps))
    else:
        known = known_moments(plan)[groups]
        steps = np.array([without_known(step, known) for step in steps])
    biases = model_covariance(plan, groups)
    model = np.zeros_like(steps[0]) if biases is None else (users * _relative_rows(plan, assumed)) ** 2 * biases
    means = expected_sums(plan, groups, assumed)
    sums = users * means
    spread = worth - np.einsum("gi,gj->gij", means, means)
    spread[np.abs(spread) < NEGLIGIBLE_VARIANCE * np.abs(worth)] = 0.0
    if model.any() and assumed.matching is not None and tilt_of(plan, assumed):
        answered = users * _expected_answers(plan, groups, assumed)
        model = with_told_bias(model, answered, sums, plan.question.counts)
    steps = users * steps
    if plan.keyed is not None:
        others = expected_others(plan, groups, lambda other, chosen: users * expected_sums(other, chosen, assumed))
        steps = np.concatenate((steps, others[None]))
    return ExpectedMoments(sums, steps, model, users, users * spread)


def predictions(plan: Plan, expected: ExpectedMoments) -> tuple[Prediction, ...]:
    """Every output of a question with the errors that its moments lead to."""
    sums, covariance, model = expected.sums, expected.steps.sum(axis=0), expected.model
    predicted = []
    for output in plan.question.outputs:
        if output.shown:
            valued = evaluate(output.formula, sums, covariance + model)
            valued = _measures_apart(plan, output.formula, valued, covariance)
            causes = np.array([valued.variance(step) for step in expected.steps])
            named = dict(zip(causes_of(plan), causes, strict=True))
            predicted.append(_prediction(output.name, output.adds_up, valued, covariance, named, model))
    return tuple(predicted)


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
    name: str, adds_up: bool, valued: Valued, covariance: Floats, steps: Mapping[str, Floats], model: Floats
) -> Prediction:
    biases = np.sqrt(valued.variance(model))
    errors = np.where(valued.clear, np.sqrt(valued.variance(covariance)), math.nan)
    if np.isnan(errors).all():
        return Prediction(name, math.nan, math.nan, dict.fromkeys(steps, 0.0), adds_up)
    order = np.argsort(errors)  # NaN last
    typical = int(order[np.count_nonzero(~np.isnan(errors)) // 2]) if errors.size > 1 else 0
    total = float(sum(step[typical] for step in steps.values()))
    causes = {cause: float(step[typical]) / total if total else 0.0 for cause, step in steps.items()}
    return Prediction(
        name, float(valued.value[typical]), float(errors[typical]), causes, adds_up, float(biases[typical])
    )


def _second_moments(pairs: TermPairs, plan: Plan, users: float, assumed: Assumption) -> tuple[Floats, Floats]:
    """The expected product of two moments of one user at each stage, and of what she is worth, by group and moments."""
    products = np.tile(pairs.coefficients, (len(CAUSES) + 1, 1))
    worth, between = pairs.coefficients.copy(), np.zeros_like(pairs.coefficients)
    for number, table in enumerate(plan.tables):
        moments = _table_second_moments(plan, table, *pairs.columns(number), assumed)
        products *= moments.stages
        worth *= moments.worth
        if table.parts[0].countable(plan.collection.reports_per_user(table.table), users):
            between += pairs.coefficients * moments.between * _others_means(pairs, plan, number, assumed)
    products[VIEWS:] -= between
    return np.array([pairs.summed(product) for product in products]), pairs.summed(worth)


def _others_means(pairs: TermPairs, plan: Plan, number: int, assumed: Assumption) -> Floats:
    """What differences between views of a table are multiplied by: the means of all other tables' columns."""
    product = np.ones_like(pairs.coefficients)
    for position, other in enumerate(plan.tables):
        if position != number:
            rows = assumed.rows_of(plan.collection[other.table])
            product *= rows**2 * _column_means(plan, other, *pairs.columns(position), assumed)
    return product


def expected_sums(plan: Plan, groups: Integers, assumed: Assumption) -> Floats:
    """groups × moments: what a user is worth on average."""
    terms = plan.term_table.taken(groups)
    values, rows = terms.coefficients, 1.0
    for table, columns in zip(plan.tables, terms.columns.T, strict=True):
        described = plan.collection[table.table]
        distinct, which = np.unique(columns, return_inverse=True)
        means = _even(plan, table, distinct, assumed).columns()
        values = values * assumed.rows_of(described) * means[which]
        rows *= assumed.rows_of(described)
    even = terms.summed(values)
    if tilt_of(plan, assumed):
        return even
    shares = even.mean(axis=0) * len(plan.private_groups) / rows
    matching = {plan.question.moments[count].region: float(shares[count]) for count in plan.question.counts}
    return even * [assumed.times_matching(matching.get(moment.region, 1.0)) for moment in plan.question.moments]


def _expected_answers(plan: Plan, groups: Integers, assumed: Assumption) -> Floats:
    """groups × moments: what a user's reports are worth on average, with weights that assume something."""
    terms = plan.term_table.taken(groups)
    values = terms.coefficients
    for table, columns in zip(plan.tables, terms.columns.T, strict=True):
        shares, contributed = EvenShares.of(plan, table, assumed), np.ones(len(table.asked))
        for part in table.parts:
            views = [view.probability * shares.by_cell(view).means(part.constants.size) for view in part.views]
            contributed = contributed * sum(views, part.constants)
        values = values * plan.collection[table.table].tau * contributed[columns]
    return terms.summed(values)


def _relative_rows(plan: Plan, assumed: Assumption) -> float:
    """How many rows users have, relative to what the prior of a grid expects of its weights."""
    tables = [plan.collection[table.table] for table in plan.tables]
    return math.prod(assumed.rows_of(table) / EVENLY.rows_of(table) for table in tables)


@lru_cache(maxsize=4)
def _means_of(_plan: Plan) -> dict[tuple[object, ...], EvenMeans]:
    """The means that stages and assumptions about rows share: a look at every value of wide domains takes long."""
    return {}


def _even(plan: Plan, table: TablePlan, columns: Integers, assumed: Assumption) -> EvenMeans:
    """Means of some columns of a table."""
    weights = {name: tilt for (owner, name), tilt in tilt_of(plan, assumed).items() if owner == table.table}
    weighed = tuple((name, digest(tilt)) for name, tilt in weights.items())
    known, key = _means_of(plan), (table.table, columns.tobytes(), weighed)
    if key not in known:
        asked = [table.asked[column] for column in columns.tolist()]
        known[key] = EvenMeans.of(plan.collection[table.table], asked, weights)
    return known[key]


def _column_means(plan: Plan, table: TablePlan, left: Integers, right: Integers, assumed: Assumption) -> Floats:
    """Products of the means of two columns each."""
    used, which = np.unique(np.stack((left, right)), return_inverse=True)
    means = _even(plan, table, used, assumed).columns()
    first, second = which.reshape(2, -1)
    return np.asarray(means[first] * means[second])


@dataclass(frozen=True, slots=True, eq=False)
class _TableMoments:
    """Of a user's reports of a table, for pairs of columns."""

    stages: Floats
    """E[W_i·W_j] at each stage: 0 as rows are, 1 truncated, 2 rounded, 3 viewed, 4 all."""
    worth: Floats
    """E[f_i·f_j], f being what her rows are worth."""
    between: Floats
    """The part of it that is due to differences between views, where a user reports one."""


def _table_second_moments(
    plan: Plan, table: TablePlan, left: Integers, right: Integers, assumed: Assumption
) -> _TableMoments:
    described, design = plan.collection[table.table], plan.collection.design_of(table.table)
    pairs, inverse = np.unique(np.sort((left, right), axis=0), axis=1, return_inverse=True)
    which = inverse.reshape(-1)  # numpy 2.0 gives it a second axis
    rows, tau, many = assumed.rows_of(described), described.tau, described.many or 1
    used, positions = np.unique(pairs, return_inverse=True)
    first, second = positions.reshape(pairs.shape)
    even = _even(plan, table, used, assumed)
    plain, mean = even.pairs(first, second), even.columns()
    average = mean[first] * mean[second]
    over_rows = average + (plain - average) / rows  # of the means over one user's rows
    across = np.zeros_like(plain) if described.many is None else tau * (tau - 1) * (rows / tau) ** 2 * over_rows
    if plan.biases:  # weights stand for another function, whose square is at least this
        rowwise = [rows**2 * average] * VIEWS
    else:
        rounding = [rounded_attribute(described, design, product, plan.sums) for product in even.products]
        weight = (rows / tau) ** 2 if described.many is None else many * rows / tau**2
        rowwise = [
            rows**2 * over_rows,
            tau * (rows / tau) ** 2 * plain + across,
            tau * weight * even.pairs(first, second, rounding) + across,
        ]
    shares = EvenShares.of(plan, table, assumed)
    parts = [PartMoments.of(part, shares, *pairs) for part in table.parts]
    viewed = np.prod([part.viewed for part in parts], axis=0)
    randomised = np.prod([part.randomised for part in parts], axis=0)
    stages = np.array([*rowwise, tau * viewed + across, tau * randomised + across])
    return _TableMoments(stages[:, which], (rows**2 * over_rows)[which], parts[0].between[which])
