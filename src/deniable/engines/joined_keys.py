"""Questions that join another population, in two stages: what its reports contribute by id, then what users say.

First the reports of the other population are read, once for a question, and become functions of the users' attribute
that holds its ids. The question is then planned and answered like any other. Last, what the other population's noise
adds to the errors is worked out from how many rows have each id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.engines.engine import Engine, ReadsIds
from deniable.engines.kernel.key_contributions import key_contributions
from deniable.errors import QueryRefused
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.estimation import Moments, covariance
from deniable.queries.answers.key_variance import Key, others_covariance, others_part
from deniable.queries.planning.key_counts import counting_plan
from deniable.queries.planning.key_functions import KeyFunctions, functions_plan
from deniable.queries.planning.plan import Plan, make_plan
from deniable.queries.question.question import Question
from deniable.queries.weights.axis_weights import Rule
from deniable.tables.schema.attributes import Private


def joined_plan(question: Question, engine: Engine, options: AnswerOptions, users: float) -> Plan:
    """The plan for a question that joins another population: both stages of it. Its weights are without bias."""
    if options.postprocess is not None:
        problem = "answers from possible frequencies are about users alone"
        raise QueryRefused(problem, "Leave out postprocess.")
    try:
        keyed = key_functions(question, engine, options.weights)
        return make_plan(
            question, engine.collection, options.weights, options.sums, users=users, unbiased=True, keyed=keyed
        )
    except QueryRefused:
        if engine.collection.grids is None:
            raise
        problem = "the views of this grid do not show every id of the other population, which such a join needs"
        raise QueryRefused(problem, 'Collect with design = "hio" or "mg".') from None


def key_functions(question: Question, engine: Engine, weights: str) -> KeyFunctions:
    """What the reports of the joined population contribute to the functions that a question asks of it."""
    join, collection = question.keyed, engine.collection
    if join is None:
        raise ValueError("the question is about users alone")
    if not isinstance(engine, ReadsIds):
        problem = "this engine cannot join another population"
        raise QueryRefused(problem, "Ask about users alone, or open the reports with DuckDB or Spark.")
    if join.table not in engine.stores:
        raise QueryRefused(f"there are no reports of table {join.table!r}", "Collect them first.")
    asked = functions_plan(question, collection, Rule.of(weights))
    ids, reports = engine.id_reports(join.table)
    made = key_contributions(asked, collection.design_of(join.table), reports)
    domain = collection[join.attribute[0]].domains[collection[join.attribute[0]].private.index(join.attribute[1])]
    positions = positions_of(domain, ids)
    known = positions >= 0
    values = np.zeros((asked.functions, domain.size))
    spreads = np.zeros((asked.functions, asked.functions, domain.size))
    values[:, positions[known]] = made.values[:, known]
    spreads[:, :, positions[known]] = made.spreads[:, :, known]
    return KeyFunctions(join, asked, values, spreads)


def positions_of(domain: Private, ids: list[Any]) -> Integers:
    """Where ids are in a domain, −1 for those outside; as everywhere, the number 7 and the text "7" are one id."""
    known = {str(domain.decode(code)): code for code in range(domain.known_size)}
    return np.array([known.get(str(each), -1) for each in ids], dtype=np.int64)


def with_others(plan: Plan, asked: Callable[[Plan], Moments]) -> Moments:
    """Moments with what the other population adds to their errors; `asked` adds up a plan for the users."""
    keyed, moments = plan.keyed, asked(plan)
    if keyed is None or keyed.is_exact:
        return moments
    counts, counting = counting_plan(plan, keyed.values.shape[1])
    counted = asked(counting)
    single_rows = all(plan.collection[name].many is None for name in plan.question.tables)
    noise = np.zeros_like(counted.crosses)
    for number in range(len(counts.question.moments)):  # sharper for each alone
        mine = covariance(counts.question, counted, single_rows, {number})
        noise[:, number, number] = mine[:, number, number]
    together = covariance(counts.question, counted, single_rows)
    apart = ~np.eye(len(counts.question.moments), dtype=bool)
    noise[:, apart] = together[:, apart]
    rows: dict[Key, list[int]] = {}
    for row, key in enumerate(counted.keys):
        rows.setdefault(key[:-1], []).append(row)

    def by_id(key: Key) -> tuple[Floats, Floats]:
        mine = rows.get(key, [])
        positions = [counted.keys[row][-1] for row in mine]
        sums = np.zeros((keyed.values.shape[1], len(counts.question.moments)))
        errors = np.zeros((*sums.shape, len(counts.question.moments)))
        sums[positions], errors[positions] = counted.sums[mine], noise[mine]
        return sums, errors

    part = others_part(plan.question, keyed, counts, moments.keys, by_id)
    users = moments.users if moments.people is None else np.maximum(moments.users, moments.people)
    return replace(moments, others=others_covariance(part, moments.sums, moments.crosses - moments.between, users))
