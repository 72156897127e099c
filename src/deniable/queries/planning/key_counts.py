"""How many rows of users have each id of another population: what an error in that one's reports is multiplied by.

An answer is Σ_k N(k)·W(k) over ids k, as far as the other population is concerned: N(k) is what users' rows with that
id add up to, W(k) what its report contributes. A question of its own asks for N, a group for every id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from deniable.errors import QueryRefused
from deniable.limits import MOST_CROSSES
from deniable.queries.planning.kept_plans import Kept
from deniable.queries.planning.key_functions import groups_of_others, identity, product_of, with_groups
from deniable.queries.planning.plan import Plan, make_plan
from deniable.queries.question.question import MOST_GROUPS, MomentOf, PrivateGroups, Question, Term
from deniable.wording import counted


@dataclass(frozen=True, slots=True, eq=False)
class KeyCounts:
    """The question for N, and which of its moments each term of the original question counts by."""

    question: Question
    moments: tuple[tuple[int, ...], ...]
    """For each moment of the original question, the moment here of each of its terms."""
    products: Mapping[tuple[int, int], int] | None = None
    """For two of these moments, the one that adds up the products of what a row adds to them; None if not asked."""


_PLANS = Kept[Plan]()


def counting_plan(plan: Plan, ids: int) -> tuple[KeyCounts, Plan]:
    """What rows add up to for each of so many ids, and the plan for that.

    It does not depend on what the other population reports, so the latest plans are kept, by all that they depend on.
    """
    collection = plan.collection
    single_rows = all(collection[name].many is None for name in plan.question.tables)
    counts = key_counts(plan.question, ids, products=single_rows)
    users = 0.0 if collection.grids is None else plan.users

    def made() -> Plan:
        return make_plan(counts.question, collection, str(plan.rule), users=plan.users, unbiased=True)

    return counts, _PLANS.get((collection.sha256, str(plan.rule), users, _digest(counts.question)), made)


def _digest(question: Question) -> str:
    """The same for questions that lead to the same plan."""
    digest = hashlib.sha256(repr((question.tables, question.filters, question.lookups)).encode())
    for term in (term for moment in question.moments for term in moment.terms):
        digest.update(repr(sorted((table, str(factor)) for table, factor in term.public.items())).encode())
        for functions in (term.conditions, term.measures):
            for key, values in sorted(functions.items()):
                digest.update(repr(key).encode() + values.tobytes())
            digest.update(b"|")
    for group in question.groups:
        digest.update(repr((group.label, getattr(group, "attribute", group))).encode())
        if isinstance(group, PrivateGroups):
            digest.update(repr(group.values).encode() + group.codes.tobytes())
    for masks in question.possible:
        for key, mask in sorted(masks.items()):
            digest.update(repr(key).encode() + mask.tobytes())
        digest.update(b"|")
    return digest.hexdigest()


def key_counts(question: Question, ids: int, *, products: bool = False) -> KeyCounts:
    """What rows add up to for each of so many ids, in each group of users; with `products`, of two sums too."""
    if question.keyed is None:
        raise ValueError("the question is about users alone")
    other = question.keyed.table
    users = [group for group in question.groups if group not in groups_of_others(question)]
    numbers: dict[tuple[object, ...], int] = {}
    moments: list[MomentOf] = []
    which = []
    for moment in question.moments:
        mine = []
        for term in moment.terms:
            conditions = {key: mask for key, mask in term.conditions.items() if key[0] != other}
            measures = {key: values for key, values in term.measures.items() if key[0] != other}
            parts = [identity(product_of(table, conditions, measures)) for table in question.tables]
            key = (*parts, *sorted((table, str(factor)) for table, factor in term.public.items()))
            number = numbers.setdefault(key, len(moments))
            if number == len(moments):
                alone = Term(1.0, conditions, measures, term.public)
                is_count = not measures and not any(factor.measure for factor in term.public.values())
                moments.append(MomentOf(f"rows {number}", (alone,), indicator=is_count, region=number))
            mine.append(number)
        which.append(tuple(mine))
    multiplied = _products(moments, question.tables) if products else None
    if multiplied is not None and ids * len(multiplied[0]) ** 2 <= MOST_CROSSES:
        moments, pairs = multiplied
    else:
        pairs = None
    known = [len(group.values) for group in users if isinstance(group, PrivateGroups)]
    if ids * np.prod(known, initial=1.0) > MOST_GROUPS or ids * len(moments) ** 2 > MOST_CROSSES:
        problem = f"{counted(ids, 'id')} in so many groups are too many for errors to be worked out"
        raise QueryRefused(problem, "Group users by fewer attributes, or bins.")
    by_id = PrivateGroups("id of another population", question.keyed.attribute, tuple(range(ids)), np.arange(ids))
    asked = replace(
        question,
        moments=tuple(moments),
        outputs=(),
        groups=(*users, by_id),
        shown_groups=(),
        having=None,
        order=(),
        limit=None,
        offset=0,
        possible=tuple(
            {key: mask for key, mask in masks.items() if key[0] != other} for masks in question.possible or ({},)
        ),
        keyed=None,
    )
    return KeyCounts(asked, tuple(which), pairs)


def _products(
    moments: list[MomentOf], tables: tuple[str, ...]
) -> tuple[list[MomentOf], dict[tuple[int, int], int]] | None:
    """Moments, followed by those of products of two; None where public columns are summed."""
    terms = [moment.terms[0] for moment in moments]
    if any(factor for term in terms for factor in term.public.values()):
        return None
    numbers = {_parts(term, tables): number for number, term in enumerate(terms)}
    made, pairs = list(moments), {}
    for (first, one_term), (second, other) in combinations_with_replacement(enumerate(terms), 2):
        conditions = with_groups(one_term.conditions, other.conditions)
        measures = with_groups(one_term.measures, other.measures)
        product = Term(1.0, conditions, measures, one_term.public)
        number = numbers.setdefault(_parts(product, tables), len(made))
        if number == len(made):
            made.append(MomentOf(f"products {number}", (product,), indicator=False, region=number))
        pairs[first, second] = pairs[second, first] = number
    return made, pairs


def _parts(term: Term, tables: tuple[str, ...]) -> tuple[object, ...]:
    return tuple(identity(product_of(table, term.conditions, term.measures)) for table in tables)
