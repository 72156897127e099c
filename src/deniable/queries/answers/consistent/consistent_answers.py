"""Answers from possible frequencies of cells: `postprocess="consistent"`.

The frequencies of a view's cells, as estimated from reports, are noisy and impossible: some are negative, and views
contradict each other. Least squares under the prior makes views agree, the nearest possible frequencies
(`possible_frequencies.norm_sub`) follow, and the question's weights are applied to these instead. A question about more
than two attributes of one table, which no view has, is answered from the table over all of them that assumes least
(`maximum_entropy.py`). In a join the frequencies are those of pairs of cells of two tables.

All this adds an unknown bias, so answers are marked. Their standard errors come from a parametric bootstrap:
frequencies are drawn around the estimated ones, with the noise of reports, and processed in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.consistent.maximum_entropy import by_maximum_entropy
from deniable.queries.answers.consistent.possible_frequencies import norm_sub
from deniable.queries.answers.estimation import Moments, at_once
from deniable.queries.answers.result import Estimate, Result
from deniable.queries.grids.grid_weights import Bias, solve_grid
from deniable.queries.planning.cell_frequencies import counting_plan, counting_table
from deniable.queries.planning.plan import Plan
from deniable.queries.question.formula import evaluate
from deniable.queries.question.question import AnswerColumn, PrivateGroups, PublicGroups, Question
from deniable.queries.weights.table_plan import TablePlan

CONSISTENT_NOTE = "made consistent: biased where cells are nearly empty; standard errors by bootstrap"
MOST_OUTCOMES = 5_000
DRAWS = 100
SEED = 1
"""Seed of the bootstrap, so that the same reports give the same errors. Nothing private depends on it."""


Measuring = Callable[[Plan], Moments]


def consistent_answer(
    plan: Plan,
    measuring: Measuring,
    plain: Mapping[str, tuple[Estimate, ...]],
    options: AnswerOptions,
) -> Result:
    """The answer to a planned question; `plain` are the plain answers, whose model errors are kept."""
    question = plan.question
    if question.having is not None or question.order or question.limit is not None:
        raise QueryRefused("HAVING, ORDER BY and LIMIT do not go with postprocess", "Leave out one of them.")
    if any(measure >= 0 for measure in plan.measured) or plan.public:
        raise QueryRefused("public measures do not go with postprocess", "Leave out one of them.")
    counting = Counting.of(plan)
    moments = measuring(counting.plan)
    keys, counts = _public_rows(question, moments)
    estimated = moments.sums[:, 0].reshape(len(keys), -1)
    random = np.random.default_rng(SEED)
    rows: list[tuple[tuple[int, ...], dict[str, Any], dict[str, tuple[float, float]]]] = []
    for public in range(len(keys)):
        total = float(counts[public]) * counting.reports
        raw = estimated[public] / max(total, 1.0)
        possible = counting.possible(raw[None, :])
        noisy = possible + random.standard_normal((DRAWS, raw.size)) * np.sqrt(counting.variances / max(total, 1.0))
        value = total * counting.answers(possible)[0]
        drawn = total * counting.answers(counting.possible(noisy))
        covariance = np.einsum("dgi,dgj->gij", drawn - value, drawn - value) / DRAWS
        estimates = {
            output.name: _estimated(output, value, covariance, question.counts)
            for output in question.outputs
            if output.shown
        }
        for combination in range(value.shape[0]):
            rank, labels = _labels(plan, keys, public, combination)
            rows.append((rank, labels, {name: each[combination] for name, each in estimates.items()}))
    rows.sort(key=lambda row: row[0])  # in the order of the plain answer
    groups = {label: [labels[label] for _, labels, _ in rows] for label in question.shown_groups}
    together, all_hold = at_once(question, len(rows), options.confidence) if options.simultaneous else (1, [])
    answers = {
        name: tuple(
            Estimate(*row[2][name], options.confidence, together, estimate.model)
            for row, estimate in zip(rows, each, strict=True)
        )
        for name, each in plain.items()
    }
    return Result(groups, answers, (CONSISTENT_NOTE, *all_hold), question.text)


@dataclass(frozen=True, slots=True, eq=False)
class Counting:
    """Which frequencies of cells a question is answered from, how they are measured, and how answers follow from them.

    Frequencies are listed view by view; in a join, they are those of all combinations of the tables' cells.
    """

    asked: Plan
    plan: Plan
    """Measures the frequencies."""
    spans: tuple[slice, ...]
    """Frequencies that add up to at most one: those of one view, or all of a join."""
    variances: Floats
    """Of each frequency as estimated from one report."""
    values: Floats
    """frequencies × (groups · moments): what each is worth."""
    constants: Floats
    reports: int
    """Per user, over all tables."""
    agreed: Callable[[Floats], Floats]
    """How the frequencies of all views are made to agree."""
    whole: Callable[[Floats], Floats] | None = None
    """How answers follow from frequencies if not through `values`: for questions about many attributes."""

    @classmethod
    def of(cls, plan: Plan) -> Counting:
        """For a plan."""
        known = list(plan.biases)
        single = len(known) == 1
        if not single:
            known = [_alone(plan, number, bias) for number, bias in enumerate(known)]
        tables = [_counted(plan, number, bias) for number, bias in enumerate(known)]
        outcomes = math.prod(table.columns for table in tables)
        if outcomes > MOST_OUTCOMES:
            raise QueryRefused(f"{outcomes:,} cells are too many to make consistent", "Leave out postprocess.")
        measured, columns = counting_plan(plan, tables)
        squares = [_squares(bias) for bias in known]
        variances = (
            squares[0] if single else np.prod([square[columns[:, k]] for k, square in enumerate(squares)], axis=0)
        )
        worth = [_worth(plan.tables[number], bias) for number, bias in enumerate(known)]
        values, constants = _combined(plan, worth, single, columns)
        return cls(
            plan,
            measured,
            tuple(known[0].system.spans) if single else (slice(0, outcomes),),
            variances,
            values,
            constants,
            int(np.prod([plan.collection[name].tau for name in plan.question.tables])),
            _agreed(known[0]) if single else lambda raw: raw,
            by_maximum_entropy(plan, known[0]) if single else None,
        )

    def possible(self, raw: Floats) -> Floats:
        """The nearest possible frequencies; an additional cell holds the rest, so that all add up to one."""
        possible = np.empty_like(raw)
        agreed = self.agreed(raw)
        for span in self.spans:
            mine = agreed[:, span]
            rest = 1 - mine.sum(axis=1, keepdims=True)
            possible[:, span] = norm_sub(np.concatenate((mine, rest), axis=1), 1.0)[:, :-1]
        return possible

    def answers(self, frequencies: Floats) -> Floats:
        """draws × private groups × moments, per report."""
        if self.whole is not None:
            return self.whole(frequencies)
        groups, moments = len(self.asked.private_groups), len(self.asked.question.moments)
        return np.asarray(self.constants + frequencies @ self.values).reshape(-1, groups, moments)


def _agreed(bias: Bias) -> Callable[[Floats], Floats]:
    """The frequencies of each view's cells as estimated from all views together: least squares under the prior."""
    views, prior = bias.system.views, bias.system.prior
    means = np.concatenate([view.means for view in views])
    gain = bias.system.fitted(bias.users, [float(view.view.probability) for view in views], prior)
    return lambda raw: np.asarray(means + (raw - means) @ gain)


def _alone(plan: Plan, number: int, bias: Bias) -> Bias:
    """The weights of a table's columns if only the most informative view is used."""
    table = plan.tables[number]
    if not bias.system.views:
        return bias
    explained = [
        float(np.einsum("uc,uc->", bias.weights[span], bias.system.crossed[span])) for span in bias.system.spans
    ]
    best = bias.system.views[int(np.argmax(explained))].view.number
    described, design = plan.collection[table.table], plan.collection.design_of(table.table)
    single = solve_grid(described, design, table.asked, bias.users, exact_first=False, only=best).bias
    if single is None:
        raise ValueError("weights with an assumption have a bias")
    return single


def _counted(plan: Plan, number: int, bias: Bias) -> TablePlan:
    """Contributions whose means are the frequencies of a table's cells; a constant one if no cell is used."""
    name, columns, views = plan.tables[number].table, bias.weights.shape[0], bias.system.views
    blocks = [np.eye(columns)[span] for span in bias.system.spans]
    return counting_table(name, views, blocks)


def _squares(bias: Bias) -> Floats:
    """E[x²] of one report's contribution to the frequency of each cell."""
    if not bias.system.views:
        return np.ones(1)
    return np.concatenate([np.diag(view.noise) / float(view.view.probability) for view in bias.system.views])


def _worth(table: TablePlan, bias: Bias) -> tuple[Floats, Floats]:
    """What each cell is worth for each column, and what every report is."""
    constants = bias.asked.column_means()
    for view, span in zip(bias.system.views, bias.system.spans, strict=True):
        constants = constants - view.means @ bias.weights[span]
    weights = bias.weights if bias.weights.shape[0] else np.zeros((1, table.columns))
    return weights, constants


def _combined(plan: Plan, worth: Sequence[tuple[Floats, Floats]], single: bool, columns: Any) -> tuple[Floats, Floats]:
    """frequencies × outcomes of the asked plan, and the outcomes' constants."""
    groups, moments = plan.term_table.groups, plan.term_table.moments
    values, constants = np.zeros((columns.shape[0], groups * moments)), np.zeros(groups * moments)
    for outcome in range(groups * moments):
        for term in plan.terms(*divmod(outcome, moments)):
            if single:
                (weights, always), (column,) = worth[0], term.columns
                values[:, outcome] += term.coefficient * weights[:, column]
                constants[outcome] += term.coefficient * always[column]
                continue
            both: Floats = np.full(columns.shape[0], term.coefficient)
            rest = term.coefficient
            for number, (column, (weights, always)) in enumerate(zip(term.columns, worth, strict=True)):
                both = both * (weights[columns[:, number], column] + always[column])
                rest *= float(always[column])
            values[:, outcome] += both - rest  # rows outside all cells are worth the constants
            constants[outcome] += rest
    return values, constants


def _estimated(
    output: AnswerColumn, value: Floats, covariance: Floats, counts: Container[int]
) -> list[tuple[float, float]]:
    """Value and standard error of an output in every private group."""
    valued = evaluate(output.formula, value, covariance, counts)
    errors = np.sqrt(valued.variance(covariance))
    return [
        (float(value), float(error)) if clear else (math.nan, math.nan)
        for value, error, clear in zip(valued.value, errors, valued.clear, strict=True)
    ]


def _public_rows(question: Question, moments: Moments) -> tuple[list[tuple[Any, ...]], Floats]:
    """The combinations of public groups in the order of their rows, and how many users each has."""
    count = sum(isinstance(group, PublicGroups) for group in question.groups)
    keys = list(dict.fromkeys(key[:count] for key in moments.keys))
    return keys, moments.users[:: max(len(moments.keys) // max(len(keys), 1), 1)]


def _labels(
    plan: Plan, keys: list[tuple[Any, ...]], public: int, combination: int
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The rank of a row, and its groups' values."""
    chosen = iter(plan.private_groups[combination])
    rank, labels, seen = [], {}, 0
    for group in plan.question.groups:
        if isinstance(group, PrivateGroups):
            rank.append(next(chosen))
            labels[group.label] = group.values[rank[-1]]
        else:
            values = list(dict.fromkeys(key[seen] for key in keys))
            labels[group.label] = keys[public][seen]
            rank.append(values.index(labels[group.label]))
            seen += 1
    return tuple(rank), labels
