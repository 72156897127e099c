"""Sums of products of what people are worth: the part of the squares of contributions that is no noise.

Let W_i be what a user's reports contribute to moment i, and f_i = E[W_i] what she is worth. Users are independent, and
answers are about these users, so the covariance of two moments is

    Σ (E[W_i·W_j] − f_i·f_j) = E[Σ W_i·W_j] − Σ f_i·f_j        over users.

The first sum is added up with the answer. The second is a question like any other: where everybody has one row, f_i·f_j
is a function of her attributes, product of two functions that are planned already. So it is planned as a further moment
of the same reports, without bias. The number of people whose row counts once is such a moment itself: 1·1 = 1, 1·v = v.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations_with_replacement

from deniable.errors import QueryRefused
from deniable.queries.planning.key_functions import identity, product_of, with_groups
from deniable.queries.planning.plan import Plan, make_plan
from deniable.queries.question.public_trees import PublicFactor
from deniable.queries.question.question import NO_ROW, MomentOf, Question, Term
from deniable.queries.weights.table_plan import DIRECT

MOST_MULTIPLIED = 4
"""Questions with more are asked without: every further moment takes time."""
MOST_PRODUCT_TERMS = 64
"""Of a product."""
PRODUCTS_REGION = -2
"""Moments with it are about rows of no answer."""


def with_known_spread(plan: Plan) -> Plan:
    """The plan for the same question with products of its moments, where everybody has one row and nothing is assumed.

    The same plan where they are not to be had: what cells of a grid show of values they need not show of squares.
    """
    single = all(plan.collection[name].many is None for name in plan.question.tables)
    if plan.biases or plan.keyed is not None or plan.sums != DIRECT or not single:
        return plan
    asked = with_products(plan.question)
    if asked is plan.question:
        return plan
    try:
        return make_plan(
            asked, plan.collection, str(plan.rule), users=plan.users, unbiased=True, exact_first=plan.exact_first
        )
    except QueryRefused:
        return plan


def with_products(question: Question) -> Question:
    """The question with a further moment for every two moments, unless one of them, or none, is it already.

    It is the same question where rows have public measures, or no partner, or where nothing would be known better.
    """
    moments = question.moments
    alike = all(moment.indicator for moment in moments) and len({moment.region for moment in moments}) == 1
    terms = [term for moment in moments for term in moment.terms]
    measured = any(factor.measure for term in terms for factor in term.public.values())
    apart = question.optional or any(term.without or term.once for term in terms)
    if alike or measured or apart or len(moments) > MOST_MULTIPLIED or any(moment.free for moment in moments):
        return question
    listed, products = list(moments), {}
    known = {_identity(question, moment.terms): number for number, moment in enumerate(moments)}
    for first, second in combinations_with_replacement(range(len(moments)), 2):
        made = _product(moments[first], moments[second])
        if len(made) > MOST_PRODUCT_TERMS:
            return question
        number = known.setdefault(_identity(question, made), len(listed)) if made else NO_ROW
        if number == len(listed):
            name = f"what m{first} and m{second} add to each other's squares"
            listed.append(MomentOf(name, made, indicator=False, region=PRODUCTS_REGION))
        products[first, second] = products[second, first] = number
    return replace(question, moments=tuple(listed), products=products)


def _product(first: MomentOf, second: MomentOf) -> tuple[Term, ...]:
    """The terms of the product of what a row adds to two moments."""
    if first.indicator and first.region == second.region:
        return second.terms
    if second.indicator and first.region == second.region:
        return first.terms
    made = []
    for left in first.terms:
        for right in second.terms:
            conditions = with_groups(left.conditions, right.conditions)
            if all(mask.any() for mask in conditions.values()):
                measures = with_groups(left.measures, right.measures)
                public = _both(left.public, right.public)
                made.append(Term(left.coefficient * right.coefficient, conditions, measures, public))
    return tuple(made)


def _both(left: Mapping[str, PublicFactor], right: Mapping[str, PublicFactor]) -> dict[str, PublicFactor]:
    """Tests of public attributes that both make."""
    tests = {name: dict.fromkeys(factor.tests) for name, factor in left.items()}
    for name, factor in right.items():
        tests[name] = {**tests.get(name, {}), **dict.fromkeys(factor.tests)}
    return {name: PublicFactor(tuple(mine)) for name, mine in tests.items()}


def _identity(question: Question, terms: tuple[Term, ...]) -> tuple[object, ...]:
    """What makes two sums of terms the same."""
    return tuple(
        (
            term.coefficient,
            *(identity(product_of(name, term.conditions, term.measures)) for name in question.tables),
            *sorted((name, str(factor)) for name, factor in term.public.items()),
        )
        for term in terms
    )
